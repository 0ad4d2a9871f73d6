using System;
using System.Buffers;

namespace FolioRuntime
{
    /// <summary>Elements of a tensor as Memory: they stay as long as somebody can reach this.</summary>
    internal sealed unsafe class NativeMemory<T> : MemoryManager<T> where T : struct
    {
        private readonly Lease lease;
        private readonly IntPtr data;
        private readonly int count;

        /// <summary>The caller has entered the lease; this leaves it.</summary>
        internal NativeMemory(Lease lease, IntPtr data, int count)
        {
            this.lease = lease;
            this.data = data;
            this.count = count;
        }

        ~NativeMemory()
        {
            lease.Leave();
        }

        public override Span<T> GetSpan()
        {
            return new Span<T>((void*)data, count);
        }

        public override MemoryHandle Pin(int elementIndex = 0)
        {
            int bytes = elementIndex == 0 ? 0 : ElementTypes.BytesOf<T>() * elementIndex;
            return new MemoryHandle((void*)(data + bytes), default(System.Runtime.InteropServices.GCHandle), this);
        }

        public override void Unpin()
        {
        }

        protected override void Dispose(bool disposing)
        {
        }
    }
}
