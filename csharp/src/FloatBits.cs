using System.Runtime.InteropServices;

namespace FolioRuntime
{
    /// <summary>A float and its bits; netstandard2.0 has no BitConverter for it.</summary>
    [StructLayout(LayoutKind.Explicit)]
    internal struct FloatBits
    {
        [FieldOffset(0)]
        private float number;

        [FieldOffset(0)]
        private int bits;

        internal static float FloatOf(int bits)
        {
            return new FloatBits { bits = bits }.number;
        }

        internal static int BitsOf(float number)
        {
            return new FloatBits { number = number }.bits;
        }
    }
}
