using System;
using System.Buffers;

namespace FolioRuntime
{
    /// <summary>
    /// Pinned memory on its way to the native library, which gives it back through Callbacks.ReleaseAddress with User
    /// once it has it (Keep); until then this unpins it when disposed.
    /// </summary>
    internal sealed class Pin : IDisposable
    {
        private bool isKept;

        internal unsafe Pin(MemoryHandle memory)
        {
            // Empty memory has no address, and none that counts.
            Address = memory.Pointer == null ? Callbacks.ReleaseAddress : (IntPtr)memory.Pointer;
            User = Callbacks.Hold(memory);
        }

        internal IntPtr Address { get; }

        internal IntPtr User { get; }

        internal void Keep()
        {
            isKept = true;
        }

        public void Dispose()
        {
            if (!isKept) Callbacks.Release(User);
        }
    }
}
