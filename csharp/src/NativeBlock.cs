using System;
using System.Runtime.InteropServices;

namespace FolioRuntime
{
    /// <summary>Results of any length come as one block: the number of elements, then the elements.</summary>
    internal static class NativeBlock
    {
        private const int HeaderBytes = sizeof(long);

        internal static byte[] TakeBytes(IntPtr block)
        {
            try
            {
                var result = new byte[Marshal.ReadInt64(block)];
                Marshal.Copy(block + HeaderBytes, result, 0, result.Length);
                return result;
            }
            finally
            {
                NativeLibrary.CSharp_FolioFree(block);
            }
        }

        internal static long[] TakeLongs(IntPtr block)
        {
            try
            {
                var result = new long[Marshal.ReadInt64(block)];
                Marshal.Copy(block + HeaderBytes, result, 0, result.Length);
                return result;
            }
            finally
            {
                NativeLibrary.CSharp_FolioFree(block);
            }
        }
    }
}
