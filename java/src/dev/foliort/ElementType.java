package dev.foliort;

/** The type of a tensor's elements, with ONNX's numbers. */
public enum ElementType {
    /** Not known. */
    UNDEFINED(0, 0),
    /** 32 bits. */
    FLOAT(1, 32),
    /** Unsigned integers. */
    UINT8(2, 8),
    /** Signed integers. */
    INT8(3, 8),
    /** Unsigned integers. */
    UINT16(4, 16),
    /** Signed integers. */
    INT16(5, 16),
    /** Signed integers. */
    INT32(6, 32),
    /** Signed integers. */
    INT64(7, 64),
    /** Text in UTF-8; not laid out in memory. */
    STRING(8, 0),
    /** One byte, 0 or 1. */
    BOOL(9, 8),
    /** IEEE 754 half precision; see {@link Float16}. */
    FLOAT16(10, 16),
    /** 64 bits. */
    DOUBLE(11, 64),
    /** Unsigned integers. */
    UINT32(12, 32),
    /** Unsigned integers. */
    UINT64(13, 64),
    /** Two floats. */
    COMPLEX64(14, 64),
    /** Two doubles. */
    COMPLEX128(15, 128),
    /** The upper half of a float; see {@link BFloat16}. */
    BFLOAT16(16, 16),
    /** 8 bits: 4 of exponent, 3 of fraction; no infinities. */
    FLOAT8E4M3FN(17, 8),
    /** The same with one zero and one NaN. */
    FLOAT8E4M3FNUZ(18, 8),
    /** 8 bits: 5 of exponent, 2 of fraction. */
    FLOAT8E5M2(19, 8),
    /** The same with one zero and one NaN. */
    FLOAT8E5M2FNUZ(20, 8),
    /** Two in a byte. */
    UINT4(21, 4),
    /** Two in a byte. */
    INT4(22, 4),
    /** Two in a byte. */
    FLOAT4E2M1(23, 4),
    /** A power of two. */
    FLOAT8E8M0(24, 8),
    /** Four in a byte. */
    UINT2(25, 2),
    /** Four in a byte. */
    INT2(26, 2);

    private final int number;
    private final int bits;

    ElementType(int number, int bits) {
        this.number = number;
        this.bits = bits;
    }

    /** {@return ONNX's number} */
    public int number() {
        return number;
    }

    /** {@return bits of one element; below 8, elements are packed, low bits first. 0 for strings} */
    public int bits() {
        return bits;
    }

    static ElementType of(int number) {
        ElementType[] all = values();
        return number >= 0 && number < all.length ? all[number] : UNDEFINED;
    }
}
