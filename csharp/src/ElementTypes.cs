using System;
using System.Collections.Generic;
using System.Runtime.InteropServices;

namespace FolioRuntime
{
    /// <summary>Which C# type is which element type.</summary>
    internal static class ElementTypes
    {
        private static readonly Dictionary<Type, ElementType> known = new Dictionary<Type, ElementType>
        {
            { typeof(float), ElementType.Float },
            { typeof(double), ElementType.Double },
            { typeof(sbyte), ElementType.Int8 },
            { typeof(byte), ElementType.UInt8 },
            { typeof(short), ElementType.Int16 },
            { typeof(ushort), ElementType.UInt16 },
            { typeof(int), ElementType.Int32 },
            { typeof(uint), ElementType.UInt32 },
            { typeof(long), ElementType.Int64 },
            { typeof(ulong), ElementType.UInt64 },
            { typeof(bool), ElementType.Bool },
            { typeof(Float16), ElementType.Float16 },
            { typeof(BFloat16), ElementType.BFloat16 },
        };

        internal static ElementType Of<T>()
        {
            if (known.TryGetValue(typeof(T), out ElementType type)) return type;
            throw FolioException.Invalid(typeof(T) + " is no element type; WrapAs takes any memory");
        }

        internal static int BytesOf<T>() where T : struct
        {
            return MemoryMarshal.AsBytes(new ReadOnlySpan<T>(new T[1])).Length;
        }
    }
}
