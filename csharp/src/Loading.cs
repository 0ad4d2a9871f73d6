using System;
using System.Threading;

namespace FolioRuntime
{
    /// <summary>What an open or a create has beside its options while it lasts: a listener and a flag.</summary>
    internal sealed class Loading : IDisposable
    {
        private readonly Callbacks.Progress progress; // may be null
        private readonly IntPtr held;
        private readonly NativeCancel cancel; // may be null
        private CancellationTokenRegistration registration;

        internal Loading(Func<string, double, bool> listener, CancellationToken token,
            Action<IntPtr, IntPtr> setProgress, Action<NativeCancel> setCancel)
        {
            if (listener != null)
            {
                progress = new Callbacks.Progress(listener);
                held = Callbacks.Hold(progress);
                setProgress(Callbacks.ProgressAddress, held);
            }
            if (!token.CanBeCanceled) return;
            cancel = new NativeCancel();
            setCancel(cancel);
            registration = token.Register(cancel.Request);
        }

        /// <summary>What the listener threw comes before the error that it led to.</summary>
        internal T Run<T>(Func<T> action)
        {
            try
            {
                return action();
            }
            catch (FolioException)
            {
                progress?.Rethrow();
                throw;
            }
        }

        /// <summary>After the native options are gone.</summary>
        public void Dispose()
        {
            registration.Dispose();
            cancel?.Dispose();
            if (progress != null) Callbacks.Release(held);
        }
    }
}
