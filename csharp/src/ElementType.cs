namespace FolioRuntime
{
    /// <summary>The type of a tensor's elements, with ONNX's numbers.</summary>
    public enum ElementType
    {
        /// <summary>Not known.</summary>
        Undefined = 0,
        /// <summary>32 bits.</summary>
        Float = 1,
        /// <summary>Unsigned integers.</summary>
        UInt8 = 2,
        /// <summary>Signed integers.</summary>
        Int8 = 3,
        /// <summary>Unsigned integers.</summary>
        UInt16 = 4,
        /// <summary>Signed integers.</summary>
        Int16 = 5,
        /// <summary>Signed integers.</summary>
        Int32 = 6,
        /// <summary>Signed integers.</summary>
        Int64 = 7,
        /// <summary>Text in UTF-8; not laid out in memory.</summary>
        String = 8,
        /// <summary>One byte, 0 or 1.</summary>
        Bool = 9,
        /// <summary>IEEE 754 half precision.</summary>
        Float16 = 10,
        /// <summary>64 bits.</summary>
        Double = 11,
        /// <summary>Unsigned integers.</summary>
        UInt32 = 12,
        /// <summary>Unsigned integers.</summary>
        UInt64 = 13,
        /// <summary>Two floats.</summary>
        Complex64 = 14,
        /// <summary>Two doubles.</summary>
        Complex128 = 15,
        /// <summary>The upper half of a float.</summary>
        BFloat16 = 16,
        /// <summary>8 bits: 4 of exponent, 3 of fraction; no infinities.</summary>
        Float8E4M3FN = 17,
        /// <summary>The same with one zero and one NaN.</summary>
        Float8E4M3FNUZ = 18,
        /// <summary>8 bits: 5 of exponent, 2 of fraction.</summary>
        Float8E5M2 = 19,
        /// <summary>The same with one zero and one NaN.</summary>
        Float8E5M2FNUZ = 20,
        /// <summary>Two in a byte.</summary>
        UInt4 = 21,
        /// <summary>Two in a byte.</summary>
        Int4 = 22,
        /// <summary>Two in a byte.</summary>
        Float4E2M1 = 23,
        /// <summary>A power of two.</summary>
        Float8E8M0 = 24,
        /// <summary>Four in a byte.</summary>
        UInt2 = 25,
        /// <summary>Four in a byte.</summary>
        Int2 = 26,
    }
}
