using System;

namespace FolioRuntime
{
    /// <summary>
    /// Threads and log of a group of models and sessions, and what the process as a whole holds. Nobody needs one: what
    /// is opened without belongs to Env.Shared.
    /// </summary>
    public sealed class Env : IDisposable
    {
        private readonly NativeEnv native;
        private readonly Lease lease;
        private readonly bool isShared;

        static Env()
        {
            NativeLibrary.Require();
            Shared = new Env(new NativeEnv(), true);
        }

        /// <summary>An environment of its own. It may be disposed before what was made with it.</summary>
        /// <param name="options">Threads, arenas and log.</param>
        public Env(EnvOptions options) : this(FolioException.NotNull(options, "options are").Create(), false)
        {
        }

        private Env(NativeEnv native, bool isShared)
        {
            this.native = native;
            this.isShared = isShared;
            lease = new Lease("env", native);
        }

        /// <summary>The process's own environment. Disposing it does nothing.</summary>
        public static Env Shared { get; }

        /// <summary>What Folio found of the CPU, and which of its kernels it uses.</summary>
        public static CpuInfo Cpu
        {
            get { return new CpuInfo(Utf8.Split(FolioNative.CpuTexts())); }
        }

        /// <summary>Version, compiler and build type in one line, for bug reports.</summary>
        public static string BuildInfo
        {
            get { return Utf8.Text(FolioNative.BuildInfo()); }
        }

        /// <summary>Sums over all sessions of the environment, disposed ones included.</summary>
        public Metrics Metrics
        {
            get { return new Metrics(Call(env => env.Metrics())); }
        }

        /// <summary>The same in Prometheus' text format.</summary>
        public string MetricsText
        {
            get { return Utf8.Text(Call(env => env.MetricsText())); }
        }

        /// <summary>Gives memory that the runs of the process no longer use back to the system.</summary>
        public void Trim()
        {
            Call(env =>
            {
                env.Trim();
                return true;
            });
        }

        /// <summary>All that Folio holds in this process, and what the system says of the process.</summary>
        /// <returns>A snapshot.</returns>
        public MemoryReport MemoryReport()
        {
            return Call(env => FolioRuntime.MemoryReport.Take(env.MemoryReport()));
        }

        /// <summary>Disposing again is fine.</summary>
        public void Dispose()
        {
            if (!isShared) lease.Close();
        }

        internal T Call<T>(Func<NativeEnv, T> function)
        {
            lease.Enter();
            try
            {
                return function(native);
            }
            finally
            {
                lease.Leave();
            }
        }
    }
}
