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

        /// <summary>No time limit.</summary>
        public RunOptions()
        {
            cancel = new NativeCancel();
            Native = new NativeRunOptions();
            Native.SetCancel(cancel);
        }

        /// <summary>
        /// Runs that take longer throw ErrorCode.Cancelled. Rounded up to milliseconds; TimeSpan.Zero and
        /// System.Threading.Timeout.InfiniteTimeSpan for no limit, while others below zero are refused. Set it before the
        /// first run.
        /// </summary>
        public TimeSpan Timeout
        {
            set { Native.SetTimeout(value == System.Threading.Timeout.InfiniteTimeSpan ? 0 : Milliseconds(value)); }
        }

        /// <summary>A name for the runs, for messages and the log. Set it before the first run.</summary>
        public string Tag
        {
            set
            {
                byte[] utf8 = Utf8.Of(value);
                Native.SetTag(utf8, utf8.Length);
            }
        }

        internal NativeRunOptions Native { get; }

        /// <summary>Sets a configuration key; docs/config_keys.md lists them. Before the first run.</summary>
        /// <param name="key">Its name.</param>
        /// <param name="value">Its value.</param>
        /// <returns>This.</returns>
        public RunOptions Config(string key, string value)
        {
            byte[] name = Utf8.Of(key);
            byte[] text = Utf8.Of(value);
            Native.Config(name, name.Length, text, text.Length);
            return this;
        }

        /// <summary>
        /// Makes the runs with these options throw ErrorCode.Cancelled, those to come too. From any thread; a
        /// CancellationToken's Register takes it.
        /// </summary>
        public void Cancel()
        {
            cancel.Request();
        }

        // Up: 0 has a meaning of its own, which no limit may get by rounding.
        private static long Milliseconds(TimeSpan limit)
        {
            if (limit < TimeSpan.Zero) throw FolioException.Invalid("the timeout is negative: " + limit);
            long whole = limit.Ticks / TimeSpan.TicksPerMillisecond;
            return limit.Ticks % TimeSpan.TicksPerMillisecond == 0 ? whole : whole + 1;
        }
    }
}
