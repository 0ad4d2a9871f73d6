using System;
using System.Collections.Generic;
using System.Threading;

namespace FolioRuntime
{
    /// <summary>How a model is opened. Not for several threads at once.</summary>
    public sealed class ModelOptions
    {
        /// <summary>
        /// Configuration keys and their values; docs/config_keys.md lists them. The guard is on: a file that becomes
        /// shorter must not end the process (docs/files_that_change.md).
        /// </summary>
        public IDictionary<string, string> Config { get; } =
            new Dictionary<string, string> { { "folio.sigbus_guard", "1" } };

        /// <summary>
        /// Hears how far an open has come: a short word and a number from 0 to 1, in the thread that opens. False
        /// cancels, with ErrorCode.ModelLoadCanceled; what it throws comes out of the open. Null: nobody.
        /// </summary>
        public Func<string, double, bool> Progress { get; set; }

        /// <summary>Stops an open, with ErrorCode.ModelLoadCanceled.</summary>
        public CancellationToken CancellationToken { get; set; }

        /// <summary>
        /// Bytes, which are copied at each open, to be used where the model names external data files so.
        /// </summary>
        public IDictionary<string, byte[]> CopiedExternalFiles { get; } = new Dictionary<string, byte[]>();

        internal T Use<T>(Func<NativeModelOptions, T> action)
        {
            using (var result = new NativeModelOptions())
            {
                foreach (KeyValuePair<string, string> entry in Config)
                {
                    byte[] key = Utf8.Of(entry.Key);
                    byte[] value = Utf8.Of(entry.Value);
                    result.Config(key, key.Length, value, value.Length);
                }
                foreach (KeyValuePair<string, byte[]> file in CopiedExternalFiles)
                {
                    byte[] name = Utf8.Of(file.Key);
                    result.CopyExternalFile(name, name.Length, file.Value, file.Value.Length);
                }
                using (var loading = new Loading(Progress, CancellationToken, result.SetProgress, result.SetCancel))
                {
                    return loading.Run(() => action(result));
                }
            }
        }
    }
}
