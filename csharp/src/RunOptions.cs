using System;

namespace FolioRuntime
{
    /// <summary>
    /// How runs go: their time limit, and the flag that stops them. May serve many runs at once; lives until collected.
    /// </summary>
    public sealed class RunOptions
    {
        private readonly NativeCancel cancel;

        static RunOptions()
        {
            NativeLibrary.Require();
        }

        public RunOptions()
        {
            cancel = new NativeCancel();
            Native = new NativeRunOptions();
            Native.SetCancel(cancel);
        }

        /// <summary>Runs that take longer throw ErrorCode.Cancelled. Set it before the first run.</summary>
        public TimeSpan Timeout
        {
            set { Native.SetTimeout((long)value.TotalMilliseconds); }
        }

        internal NativeRunOptions Native { get; }

        /// <summary>
        /// Makes the runs with these options throw ErrorCode.Cancelled, those to come too. From any thread; a
        /// CancellationToken's Register takes it.
        /// </summary>
        public void Cancel()
        {
            cancel.Request();
        }
    }
}
