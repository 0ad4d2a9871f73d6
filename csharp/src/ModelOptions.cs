using System.Collections.Generic;

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

        internal NativeModelOptions ToNative()
        {
            var result = new NativeModelOptions();
            foreach (KeyValuePair<string, string> entry in Config)
            {
                byte[] key = Utf8.Of(entry.Key);
                byte[] value = Utf8.Of(entry.Value);
                result.Config(key, key.Length, value, value.Length);
            }
            return result;
        }
    }
}
