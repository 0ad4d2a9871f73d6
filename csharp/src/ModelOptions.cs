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

        /// <summary>
        /// The same without a copy: memory that must not change as long as there are models and sessions that use it. It
        /// stays pinned as long as that.
        /// </summary>
        public IDictionary<string, ReadOnlyMemory<byte>> ExternalFiles { get; } =
            new Dictionary<string, ReadOnlyMemory<byte>>();

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
                GiveExternalFiles(result);
                using (var loading = new Loading(Progress, CancellationToken, result.SetProgress, result.SetCancel))
                {
                    return loading.Run(() => action(result));
                }
            }
        }

        private void GiveExternalFiles(NativeModelOptions result)
        {
            foreach (KeyValuePair<string, byte[]> file in CopiedExternalFiles)
            {
                byte[] name = Utf8.Of(file.Key);
                if (file.Value == null) throw FolioException.Invalid("the bytes of '" + file.Key + "' are null");
                result.CopyExternalFile(name, name.Length, file.Value, file.Value.Length);
            }
            foreach (KeyValuePair<string, ReadOnlyMemory<byte>> file in ExternalFiles)
            {
                byte[] name = Utf8.Of(file.Key);
                using (var pin = new Pin(file.Value.Pin()))
                {
                    result.ExternalFile(name, name.Length, pin.Address, file.Value.Length, Callbacks.ReleaseAddress,
                        pin.User);
                    pin.Keep();
                }
            }
        }
    }
}
