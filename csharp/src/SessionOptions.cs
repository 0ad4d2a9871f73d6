using System.Collections.Generic;
using System.Globalization;

namespace FolioRuntime
{
    /// <summary>How a model is compiled. Not for several threads at once.</summary>
    public sealed class SessionOptions
    {
        /// <summary>Configuration keys and their values; docs/config_keys.md lists them.</summary>
        public IDictionary<string, string> Config { get; } = new Dictionary<string, string>();

        /// <summary>Names of dims, and the numbers that fix them.</summary>
        public IDictionary<string, long> FreeDimensions { get; } = new Dictionary<string, long>();

        /// <summary>Threads that compute one run, the calling thread included; 0 lets Folio choose.</summary>
        public int Threads
        {
            set { Config["folio.threads"] = value.ToString(CultureInfo.InvariantCulture); }
        }

        internal NativeSessionOptions ToNative()
        {
            var result = new NativeSessionOptions();
            foreach (KeyValuePair<string, string> entry in Config)
            {
                byte[] key = Utf8.Of(entry.Key);
                byte[] value = Utf8.Of(entry.Value);
                result.Config(key, key.Length, value, value.Length);
            }
            foreach (KeyValuePair<string, long> entry in FreeDimensions)
            {
                byte[] name = Utf8.Of(entry.Key);
                result.FreeDimension(name, name.Length, entry.Value);
            }
            return result;
        }
    }
}
