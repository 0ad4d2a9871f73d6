using System;
using System.Collections.Generic;
using System.Globalization;
using System.Threading;

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

        /// <summary>
        /// Records the steps of all runs and their times, for a file whose path begins so: Session.EndProfiling writes it
        /// and tells its name.
        /// </summary>
        public string Profile
        {
            set { Config["folio.profile"] = value; }
        }

        /// <summary>
        /// Constants of the graph to be replaced by tensors of the same type and shape, which must not be changed any more.
        /// </summary>
        public IDictionary<string, Tensor> Initializers { get; } = new Dictionary<string, Tensor>();

        /// <summary>Whose packed weights to use; null for the cache that the process shares.</summary>
        public PackCache PackCache { get; set; }

        /// <summary>As ModelOptions.Progress, of a create.</summary>
        public Func<string, double, bool> Progress { get; set; }

        /// <summary>Stops a create, with ErrorCode.ModelLoadCanceled. It does not stop runs.</summary>
        public CancellationToken CancellationToken { get; set; }

        /// <summary>How many runs of RunAsync may wait or run at once; more are refused.</summary>
        public int PendingLimit { get; set; } = 1024;

        internal T Use<T>(Func<NativeSessionOptions, T> action)
        {
            if (PendingLimit < 1) throw FolioException.Invalid("the limit of pending runs is less than 1");
            using (var result = new NativeSessionOptions())
            {
                Give(result);
                using (var loading = new Loading(Progress, CancellationToken, result.SetProgress, result.SetCancel))
                {
                    return loading.Run(() => action(result));
                }
            }
        }

        private void Give(NativeSessionOptions result)
        {
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
            var leases = new Leases();
            try
            {
                foreach (KeyValuePair<string, Tensor> entry in Initializers)
                {
                    byte[] name = Utf8.Of(entry.Key);
                    result.Initializer(name, name.Length, leases.Enter(entry.Value, entry.Key));
                }
            }
            finally
            {
                leases.Leave();
            }
            PackCache?.Call(cache =>
            {
                result.SetPackCache(cache);
                return true;
            });
        }
    }
}
