using System.Collections.Generic;

namespace FolioRuntime
{
    /// <summary>How a model is opened. Not for several threads at once.</summary>
    public sealed class ModelOptions
    {
        /// <summary>Configuration keys and their values; docs/config_keys.md lists them.</summary>
        public IDictionary<string, string> Config { get; } = new Dictionary<string, string>();

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
