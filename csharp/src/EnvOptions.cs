using System;

namespace FolioRuntime
{
    /// <summary>What an environment is made with. Not for several threads at once.</summary>
    public sealed class EnvOptions
    {
        /// <summary>
        /// Threads that compute one run, the calling thread included, of sessions that do not say; 0 lets Folio choose.
        /// </summary>
        public int Threads { get; set; }

        /// <summary>How many idle pieces of scratch memory the process keeps at most; 0 leaves the limit.</summary>
        public int MaxArenas { get; set; }

        /// <summary>
        /// Who gets the log of the whole process, from any thread, until the environment and all that was made with it
        /// are gone; null leaves the log as it is. What it throws is dropped.
        /// </summary>
        public Action<LogLevel, string> Log { get; set; }

        /// <summary>Lines below are not even made.</summary>
        public LogLevel LogLevel { get; set; } = LogLevel.Warning;

        internal NativeEnv Create()
        {
            IntPtr function = Log == null ? IntPtr.Zero : Callbacks.LogAddress;
            IntPtr user = Log == null ? IntPtr.Zero : Callbacks.Hold(Log);
            return NativeEnv.Create(Threads, MaxArenas, (int)LogLevel, function, Callbacks.ReleaseAddress, user);
        }
    }
}
