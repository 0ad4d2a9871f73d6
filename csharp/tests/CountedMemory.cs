using System;
using System.Buffers;
using System.Runtime.InteropServices;
using System.Threading;

namespace FolioRuntime.Tests
{
    /// <summary>Native memory that knows how often it is pinned.</summary>
    internal sealed unsafe class CountedMemory<T> : MemoryManager<T> where T : struct
    {
        private readonly int count;
        private readonly IntPtr data;
        private int pins;

        internal CountedMemory(int count)
        {
            this.count = count;
            data = Marshal.AllocHGlobal(count * Marshal.SizeOf(typeof(T)));
            GetSpan().Clear();
        }

        internal CountedMemory(T[] elements) : this(elements.Length)
        {
            elements.CopyTo(GetSpan());
        }

        internal int Pins
        {
            get { return Volatile.Read(ref pins); }
        }

        public override Span<T> GetSpan()
        {
            return new Span<T>((void*)data, count);
        }

        public override MemoryHandle Pin(int elementIndex = 0)
        {
            Interlocked.Increment(ref pins);
            return new MemoryHandle((byte*)data + elementIndex * Marshal.SizeOf(typeof(T)), default(GCHandle), this);
        }

        public override void Unpin()
        {
            Interlocked.Decrement(ref pins);
        }

        protected override void Dispose(bool disposing)
        {
            Marshal.FreeHGlobal(data);
        }
    }
}
