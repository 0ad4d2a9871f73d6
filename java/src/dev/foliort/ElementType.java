package dev.foliort;

/** The type of a tensor's elements, with ONNX's numbers. */
public enum ElementType {
    UNDEFINED(0, 0),
    FLOAT(1, 32),
    UINT8(2, 8),
    INT8(3, 8),
    UINT16(4, 16),
    INT16(5, 16),
    INT32(6, 32),
    INT64(7, 64),
    /** Text in UTF-8; not laid out in memory. */
    STRING(8, 0),
    /** One byte, 0 or 1. */
    BOOL(9, 8),
    FLOAT16(10, 16),
    DOUBLE(11, 64),
    UINT32(12, 32),
    UINT64(13, 64),
    COMPLEX64(14, 64),
    COMPLEX128(15, 128),
    BFLOAT16(16, 16),
    FLOAT8E4M3FN(17, 8),
    FLOAT8E4M3FNUZ(18, 8),
    FLOAT8E5M2(19, 8),
    FLOAT8E5M2FNUZ(20, 8),
    UINT4(21, 4),
    INT4(22, 4),
    FLOAT4E2M1(23, 4),
    FLOAT8E8M0(24, 8),
    UINT2(25, 2),
    INT2(26, 2);

    private final int number;
    private final int bits;

    ElementType(int number, int bits) {
        this.number = number;
        this.bits = bits;
    }

    /** ONNX's number. */
    public int number() {
        return number;
    }

    /** Bits of one element; below 8, elements are packed, low bits first. 0 for strings. */
    public int bits() {
        return bits;
    }

    static ElementType of(int number) {
        ElementType[] all = values();
        return number >= 0 && number < all.length ? all[number] : UNDEFINED;
    }
}
