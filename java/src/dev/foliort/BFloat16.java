package dev.foliort;

/** Floats cut to 16 bits, in shorts: what tensors of {@link ElementType#BFLOAT16} hold. */
public final class BFloat16 {
    private BFloat16() {}

    /**
     * The number; every one has a float.
     *
     * @param bits the element as it stands in memory
     * @return the same number
     */
    public static float toFloat(short bits) {
        return Float.intBitsToFloat(bits << 16);
    }

    /**
     * The nearest number, of two equally near the even one.
     *
     * @param value to be rounded
     * @return the nearest BFLOAT16, as it stands in memory
     */
    public static short ofFloat(float value) {
        int bits = Float.floatToRawIntBits(value);
        if (Float.isNaN(value)) return (short) (bits >>> 16 | 0x40); // stays NaN when cut
        return (short) (bits + 0x7fff + (bits >>> 16 & 1) >>> 16);
    }
}
