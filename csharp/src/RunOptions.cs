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

        /// <summary>Runs that take longer throw ErrorCode.Cancelled. Set it before the first run.</summary>
        public TimeSpan Timeout
        {
            set { Native.SetTimeout((long)value.TotalMilliseconds); }
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
    }
}
