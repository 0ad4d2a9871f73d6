using System;
using System.Globalization;

namespace FolioRuntime
{
    /// <summary>A float cut to its upper 16 bits: an element of ElementType.BFloat16.</summary>
    public readonly struct BFloat16 : IEquatable<BFloat16>
    {
        /// <summary>From its bits.</summary>
        /// <param name="bits">The element as it stands in memory.</param>
        public BFloat16(ushort bits)
        {
            Bits = bits;
        }

        /// <summary>Sign, 8 bits of exponent, 7 of fraction.</summary>
        public ushort Bits { get; }

        /// <summary>Every one has a float.</summary>
        /// <param name="value">The number.</param>
        /// <returns>The same number.</returns>
        public static explicit operator float(BFloat16 value)
        {
            return FloatBits.FloatOf(value.Bits << 16);
        }

        /// <summary>The nearest number, of two equally near the even one.</summary>
        /// <param name="value">The number.</param>
        /// <returns>The nearest one.</returns>
        public static explicit operator BFloat16(float value)
        {
            uint bits = (uint)FloatBits.BitsOf(value);
            if (float.IsNaN(value)) return new BFloat16((ushort)(bits >> 16 | 0x40)); // stays NaN when cut
            return new BFloat16((ushort)(bits + 0x7fff + (bits >> 16 & 1) >> 16));
        }

        /// <summary>Equal bits.</summary>
        /// <param name="other">What to compare with.</param>
        /// <returns>Whether the bits are equal.</returns>
        public bool Equals(BFloat16 other)
        {
            return Bits == other.Bits;
        }

        /// <summary>Equal bits.</summary>
        public override bool Equals(object obj)
        {
            return obj is BFloat16 && Equals((BFloat16)obj);
        }

        /// <summary>Of the bits.</summary>
        public override int GetHashCode()
        {
            return Bits;
        }

        /// <summary>The number.</summary>
        public override string ToString()
        {
            return ((float)this).ToString(CultureInfo.InvariantCulture);
        }
    }
}
