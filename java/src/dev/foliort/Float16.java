package dev.foliort;

/** Numbers of 16 bits as IEEE 754 has them, in shorts: what tensors of {@link ElementType#FLOAT16} hold. */
public final class Float16 {
    private static final int EXPONENT_SHIFT = 13; // 23 bits of fraction less 10
    private static final float SUBNORMAL_UNIT = 0x1p-24f;

    private Float16() {}

    /**
     * The number; every one has a float.
     *
     * @param bits the element as it stands in memory
     * @return the same number
     */
    public static float toFloat(short bits) {
        int sign = (bits & 0x8000) << 16;
        int exponent = bits >> 10 & 0x1f;
        int fraction = bits & 0x3ff;
        if (exponent == 0) {
            float value = fraction * SUBNORMAL_UNIT;
            return sign == 0 ? value : -value;
        }
        int wide = exponent == 0x1f ? 0xff : exponent + 127 - 15;
        return Float.intBitsToFloat(sign | wide << 23 | fraction << EXPONENT_SHIFT);
    }

    /**
     * The nearest number, of two equally near the even one; infinity for what is too large.
     *
     * @param value to be rounded
     * @return the nearest FLOAT16, as it stands in memory
     */
    public static short ofFloat(float value) {
        int bits = Float.floatToRawIntBits(value);
        int sign = bits >>> 16 & 0x8000;
        int magnitude = bits & 0x7fffffff;
        if (magnitude > 0x7f800000) return (short) (sign | 0x7e00 | magnitude >> EXPONENT_SHIFT & 0x3ff);
        if (magnitude >= 0x477ff000) return (short) (sign | 0x7c00); // from 65520 on
        if (magnitude < 0x38800000) { // below the smallest normal number
            return (short) (sign | (int) Math.rint(Math.abs((double) value) / SUBNORMAL_UNIT));
        }
        int rounded = magnitude + 0xfff + (magnitude >> EXPONENT_SHIFT & 1);
        return (short) (sign | (rounded - (127 - 15 << 23)) >> EXPONENT_SHIFT);
    }
}
