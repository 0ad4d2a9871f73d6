using System;
using System.Runtime.ExceptionServices;
using System.Runtime.InteropServices;

namespace FolioRuntime
{
    /// <summary>
    /// Where native code calls back. Nothing that the user's code throws goes on from here into native code.
    /// </summary>
    internal static class Callbacks
    {
        [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
        private delegate int ProgressFunction(IntPtr user, IntPtr stage, double fraction);

        [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
        private delegate void LogFunction(IntPtr user, int level, IntPtr message);

        [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
        private delegate void ReleaseFunction(IntPtr user);

        // In fields: the native side keeps them.
        private static readonly ProgressFunction onProgress = OnProgress;
        private static readonly LogFunction onLog = OnLog;
        private static readonly ReleaseFunction onRelease = OnRelease;

        internal static IntPtr ProgressAddress { get; } = Marshal.GetFunctionPointerForDelegate(onProgress);

        internal static IntPtr LogAddress { get; } = Marshal.GetFunctionPointerForDelegate(onLog);

        /// <summary>Gives back a handle of Hold: disposes what it holds, where that can be disposed.</summary>
        internal static IntPtr ReleaseAddress { get; } = Marshal.GetFunctionPointerForDelegate(onRelease);

        /// <summary>Keeps the object until ReleaseAddress, or Release, gets the handle.</summary>
        internal static IntPtr Hold(object held)
        {
            return GCHandle.ToIntPtr(GCHandle.Alloc(held));
        }

        internal static void Release(IntPtr user)
        {
            GCHandle kept = GCHandle.FromIntPtr(user);
            object held = kept.Target;
            kept.Free();
            (held as IDisposable)?.Dispose();
        }

        // Called by the native library from any thread.
        private static void OnRelease(IntPtr user)
        {
            try
            {
                Release(user);
            }
            catch (Exception)
            {
                // Of a memory manager's Unpin: no exception crosses native code, and there is nobody to tell.
            }
        }

        private static int OnProgress(IntPtr user, IntPtr stage, double fraction)
        {
            var progress = (Progress)GCHandle.FromIntPtr(user).Target;
            return progress.Call(Utf8.Text(stage), fraction) ? 0 : 1;
        }

        private static void OnLog(IntPtr user, int level, IntPtr message)
        {
            try
            {
                ((Action<LogLevel, string>)GCHandle.FromIntPtr(user).Target)((LogLevel)level, Utf8.Text(message));
            }
            catch (Exception)
            {
                // A line of the log is lost; there is nobody to tell.
            }
        }

        /// <summary>One load's listener, and what it threw.</summary>
        internal sealed class Progress
        {
            private readonly Func<string, double, bool> listener;
            private ExceptionDispatchInfo thrown;

            internal Progress(Func<string, double, bool> listener)
            {
                this.listener = listener;
            }

            /// <summary>Throws what the listener threw, if it did.</summary>
            internal void Rethrow()
            {
                thrown?.Throw();
            }

            internal bool Call(string stage, double fraction)
            {
                try
                {
                    return listener(stage, fraction);
                }
                catch (Exception e)
                {
                    thrown = ExceptionDispatchInfo.Capture(e);
                    return false;
                }
            }
        }
    }
}
