using System;
using System.Threading;

namespace FolioRuntime
{
    /// <summary>How Model.Save writes (docs/saving.md). Not for several threads at once.</summary>
    public sealed class SaveOptions
    {
        /// <summary>
        /// "none", "basic", "extended" or "all", which keep to operators that other runtimes have; "": "all".
        /// </summary>
        public string Optimize { get; set; } = "";

        /// <summary>"ONNX" or "ORT", whatever the path's end; "": by that.</summary>
        public string Format { get; set; } = "";

        /// <summary>
        /// The name, without a folder, of a file beside an ONNX model for large initializers; "": none.
        /// </summary>
        public string ExternalFile { get; set; } = "";

        /// <summary>Initializers of this size and above are large; 0: 1024.</summary>
        public long ExternalMinBytes { get; set; }

        /// <summary>
        /// Hears how far a save has come: a short word and a number from 0 to 1, in the thread that saves. False cancels,
        /// with ErrorCode.Cancelled; what it throws comes out of the save. Null: nobody.
        /// </summary>
        public Func<string, double, bool> Progress { get; set; }

        /// <summary>Stops a save, with ErrorCode.Cancelled.</summary>
        public CancellationToken CancellationToken { get; set; }

        internal SaveResult Save(NativeModel model, byte[] path)
        {
            byte[] optimize = Utf8.Of(Optimize);
            byte[] format = Utf8.Of(Format);
            byte[] file = Utf8.Of(ExternalFile);
            using (var given = new NativeSaveOptions())
            {
                given.Set(optimize, optimize.Length, format, format.Length, file, file.Length, ExternalMinBytes);
                // The native options borrow the flag, which lives through the call.
                using (var loading = new Loading(Progress, CancellationToken, given.SetProgress, given.SetCancel))
                {
                    return loading.Run(() => new SaveResult(model.Save(path, path.Length, given)));
                }
            }
        }
    }
}
