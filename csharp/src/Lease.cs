using System;
using System.Threading;

namespace FolioRuntime
{
    /// <summary>
    /// Counts who uses a native object, so that it is never deleted under a call: its owner until it closes, each call
    /// while it lasts, each view while somebody can reach it. The last one out deletes it. Objects that nobody closes
    /// are deleted by the finalizer of SWIG's proxy, which cannot run while one of these can reach it.
    /// </summary>
    internal sealed class Lease
    {
        private readonly string what;
        private readonly IDisposable native;
        private int users = 1;
        private int closed;

        internal Lease(string what, IDisposable native)
        {
            this.what = what;
            this.native = native;
        }

        /// <summary>Begins a call; Leave ends it.</summary>
        internal void Enter()
        {
            if (Volatile.Read(ref closed) != 0 || !EnterEvenIfClosed()) throw FolioException.Closed(what);
        }

        /// <summary>For closing itself: false if the object is gone.</summary>
        internal bool EnterEvenIfClosed()
        {
            int count = Volatile.Read(ref users);
            while (count != 0)
            {
                int found = Interlocked.CompareExchange(ref users, count + 1, count);
                if (found == count) return true;
                count = found;
            }
            return false;
        }

        internal void Leave()
        {
            if (Interlocked.Decrement(ref users) == 0) native.Dispose();
        }

        /// <summary>From now on nobody enters. Once is enough, more is fine.</summary>
        internal void Close()
        {
            if (Interlocked.Exchange(ref closed, 1) == 0) Leave();
        }
    }
}
