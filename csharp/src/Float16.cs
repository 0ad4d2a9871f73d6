using System;
using System.Globalization;

namespace FolioRuntime
{
    /// <summary>A number of 16 bits as IEEE 754 has it: an element of ElementType.Float16.</summary>
    public readonly struct Float16 : IEquatable<Float16>
    {
        private const int Shift = 13; // 23 bits of fraction less 10
        private const float SubnormalUnit = 1f / (1 << 24);

        /// <summary>From its bits.</summary>
        /// <param name="bits">The element as it stands in memory.</param>
        public Float16(ushort bits)
        {
            Bits = bits;
        }

        /// <summary>Sign, 5 bits of exponent, 10 of fraction.</summary>
        public ushort Bits { get; }

        /// <summary>Every one has a float.</summary>
        /// <param name="value">The number.</param>
        /// <returns>The same number.</returns>
        public static explicit operator float(Float16 value)
        {
            int sign = (value.Bits & 0x8000) << 16;
            int exponent = value.Bits >> 10 & 0x1f;
            int fraction = value.Bits & 0x3ff;
            if (exponent == 0)
            {
                float small = fraction * SubnormalUnit;
                return sign == 0 ? small : -small;
            }
            int wide = exponent == 0x1f ? 0xff : exponent + 127 - 15;
            return FloatBits.FloatOf(sign | wide << 23 | fraction << Shift);
        }

        /// <summary>The nearest number, of two equally near the even one; infinity for what is too large.</summary>
        /// <param name="value">The number.</param>
        /// <returns>The nearest one.</returns>
        public static explicit operator Float16(float value)
        {
            int bits = FloatBits.BitsOf(value);
            int sign = (int)((uint)bits >> 16 & 0x8000);
            int magnitude = bits & 0x7fffffff;
            if (magnitude > 0x7f800000) return new Float16((ushort)(sign | 0x7e00 | magnitude >> Shift & 0x3ff));
            if (magnitude >= 0x477ff000) return new Float16((ushort)(sign | 0x7c00)); // from 65520 on
            if (magnitude < 0x38800000) // below the smallest normal number
            {
                return new Float16((ushort)(sign | (int)Math.Round(Math.Abs((double)value) / SubnormalUnit)));
            }
            int rounded = magnitude + 0xfff + (magnitude >> Shift & 1);
            return new Float16((ushort)(sign | (rounded - (127 - 15 << 23)) >> Shift));
        }

        /// <summary>Equal bits.</summary>
        /// <param name="other">What to compare with.</param>
        /// <returns>Whether the bits are equal.</returns>
        public bool Equals(Float16 other)
        {
            return Bits == other.Bits;
        }

        /// <summary>Equal bits.</summary>
        public override bool Equals(object obj)
        {
            return obj is Float16 && Equals((Float16)obj);
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
