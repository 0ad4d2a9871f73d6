using System;
using System.Buffers;
using System.Collections.Generic;
using System.Runtime.InteropServices;

namespace FolioRuntime
{
    /// <summary>
    /// Elements of one type in a shape, row-major. Wrap lies over memory of the caller's, pins it and copies nothing;
    /// Allocate and CopyOf make memory of their own; AsMemory and AsSpan are views of it.
    /// </summary>
    public sealed unsafe class Tensor : Value
    {
        internal Tensor(NativeValue native) : base(native)
        {
        }

        /// <summary>The dims, outermost first; none of a scalar.</summary>
        public long[] Shape
        {
            get { return Call(value => value.Dims()); }
        }

        /// <summary>The product of the dims.</summary>
        public long ElementCount
        {
            get { return Call(value => value.ElementCount()); }
        }

        /// <summary>Zeros (or empty strings) in native memory, aligned to 64 bytes.</summary>
        /// <param name="type">Of the elements.</param>
        /// <param name="shape">Dims, outermost first; none for a scalar.</param>
        /// <returns>The tensor, to be disposed.</returns>
        public static Tensor Allocate(ElementType type, params long[] shape)
        {
            NativeLibrary.Require();
            FolioException.NotNull(shape, "shape is");
            return new Tensor(NativeValue.Tensor((int)type, shape, shape.Length));
        }

        /// <summary>Over an array, which is pinned as long as the native library uses it.</summary>
        /// <typeparam name="T">The type of an element.</typeparam>
        /// <param name="array">The elements, in row-major order.</param>
        /// <param name="shape">Dims, outermost first; none for a scalar.</param>
        /// <returns>The tensor, to be disposed.</returns>
        public static Tensor Wrap<T>(T[] array, params long[] shape) where T : struct
        {
            FolioException.NotNull(array, "array is");
            return WrapAs(array.AsMemory(), ElementTypes.Of<T>(), shape);
        }

        /// <summary>Over memory, which is pinned as long as the native library uses it.</summary>
        /// <typeparam name="T">The type of an element.</typeparam>
        /// <param name="memory">The elements, in row-major order.</param>
        /// <param name="shape">Dims, outermost first; none for a scalar.</param>
        /// <returns>The tensor, to be disposed.</returns>
        public static Tensor Wrap<T>(Memory<T> memory, params long[] shape) where T : struct
        {
            return WrapAs(memory, ElementTypes.Of<T>(), shape);
        }

        /// <summary>The same over memory that is never written: the tensor cannot be an output.</summary>
        /// <typeparam name="T">The type of an element.</typeparam>
        /// <param name="memory">The elements, in row-major order.</param>
        /// <param name="shape">Dims, outermost first; none for a scalar.</param>
        /// <returns>The tensor, to be disposed.</returns>
        public static Tensor Wrap<T>(ReadOnlyMemory<T> memory, params long[] shape) where T : struct
        {
            return WrapPinned(memory, ElementTypes.Of<T>(), false, shape);
        }

        /// <summary>Over memory whose bytes are elements of any type: Float16 in ushort, Int4 in byte ...</summary>
        /// <typeparam name="T">The type of an element.</typeparam>
        /// <param name="memory">The elements, in row-major order.</param>
        /// <param name="type">Of the elements.</param>
        /// <param name="shape">Dims, outermost first; none for a scalar.</param>
        /// <returns>The tensor, to be disposed.</returns>
        public static Tensor WrapAs<T>(Memory<T> memory, ElementType type, params long[] shape) where T : struct
        {
            return WrapPinned<T>(memory, type, true, shape);
        }

        /// <summary>Copies the elements.</summary>
        /// <typeparam name="T">The type of an element.</typeparam>
        /// <param name="elements">In row-major order.</param>
        /// <param name="shape">Dims, outermost first; none for a scalar.</param>
        /// <returns>The tensor, to be disposed.</returns>
        public static Tensor CopyOf<T>(ReadOnlySpan<T> elements, params long[] shape) where T : struct
        {
            return Wrap(elements.ToArray(), shape);
        }

        /// <summary>Copies the elements.</summary>
        /// <typeparam name="T">The type of an element.</typeparam>
        /// <param name="elements">In row-major order.</param>
        /// <param name="shape">Dims, outermost first; none for a scalar.</param>
        /// <returns>The tensor, to be disposed.</returns>
        public static Tensor CopyOf<T>(T[] elements, params long[] shape) where T : struct
        {
            return CopyOf(new ReadOnlySpan<T>(FolioException.NotNull(elements, "array is")), shape);
        }

        /// <summary>Copies the strings.</summary>
        /// <param name="elements">In row-major order.</param>
        /// <param name="shape">Dims, outermost first; none for a scalar.</param>
        /// <returns>The tensor, to be disposed.</returns>
        public static Tensor CopyOf(string[] elements, params long[] shape)
        {
            NativeLibrary.Require();
            FolioException.NotNull(elements, "array is");
            FolioException.NotNull(shape, "shape is");
            var text = new List<byte>();
            var lengths = new long[elements.Length];
            for (int i = 0; i < elements.Length; ++i)
            {
                if (elements[i] == null) throw FolioException.Invalid("string " + i + " is null");
                byte[] utf8 = Utf8.Of(elements[i]);
                lengths[i] = utf8.Length;
                text.AddRange(utf8);
            }
            byte[] bytes = text.ToArray();
            return new Tensor(
                NativeValue.Strings(bytes, bytes.Length, lengths, lengths.Length, shape, shape.Length));
        }

        /// <summary>A view that stays valid as long as somebody has it, also when the tensor is disposed.</summary>
        /// <typeparam name="T">The type of an element.</typeparam>
        /// <returns>The elements.</returns>
        public Memory<T> AsMemory<T>() where T : struct
        {
            RequireType(ElementTypes.Of<T>());
            Lease.Enter();
            try
            {
                IntPtr data = WritableData();
                return new NativeMemory<T>(Lease, data, Count(Native.ElementCount())).Memory;
            }
            catch
            {
                Lease.Leave();
                throw;
            }
        }

        /// <summary>
        /// A view that makes no garbage and is valid only until the tensor is disposed or collected. Whoever uses it
        /// holds the tensor in a using block.
        /// </summary>
        /// <typeparam name="T">The type of an element.</typeparam>
        /// <returns>The elements.</returns>
        public Span<T> AsSpan<T>() where T : struct
        {
            RequireType(ElementTypes.Of<T>());
            Lease.Enter();
            try
            {
                return new Span<T>((void*)WritableData(), Count(Native.ElementCount()));
            }
            finally
            {
                Lease.Leave();
            }
        }

        /// <summary>As AsSpan; also of tensors over memory that must not be written.</summary>
        /// <typeparam name="T">The type of an element.</typeparam>
        /// <returns>The elements.</returns>
        public ReadOnlySpan<T> AsReadOnlySpan<T>() where T : struct
        {
            RequireType(ElementTypes.Of<T>());
            Lease.Enter();
            try
            {
                return new ReadOnlySpan<T>((void*)Native.Data(), Count(Native.ElementCount()));
            }
            finally
            {
                Lease.Leave();
            }
        }

        /// <summary>The bytes of elements of any type but strings. As AsReadOnlySpan.</summary>
        /// <returns>The bytes.</returns>
        public ReadOnlySpan<byte> AsBytes()
        {
            Lease.Enter();
            try
            {
                return new ReadOnlySpan<byte>((void*)Native.Data(), Count(Native.Bytes()));
            }
            finally
            {
                Lease.Leave();
            }
        }

        /// <summary>A copy of the elements.</summary>
        /// <typeparam name="T">The type of an element.</typeparam>
        /// <returns>The elements, in row-major order.</returns>
        public T[] ToArray<T>() where T : struct
        {
            T[] result = AsReadOnlySpan<T>().ToArray();
            GC.KeepAlive(this);
            return result;
        }

        /// <summary>Copies of the strings.</summary>
        /// <returns>The strings, in row-major order.</returns>
        public string[] ToStrings()
        {
            RequireType(ElementType.String);
            return Call(value =>
            {
                var result = new string[Count(value.ElementCount())];
                for (int i = 0; i < result.Length; ++i) result[i] = Utf8.Text(value.StringAt(i));
                return result;
            });
        }

        /// <summary>Writes one string, by its place in row-major order; not while a run uses the tensor.</summary>
        /// <param name="index">From 0.</param>
        /// <param name="text">What to write.</param>
        public void SetString(long index, string text)
        {
            if (text == null) throw FolioException.Invalid("string " + index + " is null");
            byte[] utf8 = Utf8.Of(text);
            Call(value =>
            {
                value.SetString(index, utf8, utf8.Length);
                return true;
            });
        }

        private static Tensor WrapPinned<T>(ReadOnlyMemory<T> memory, ElementType type, bool isWritable, long[] shape)
            where T : struct
        {
            NativeLibrary.Require();
            FolioException.NotNull(shape, "shape is");
            long bytes = MemoryMarshal.AsBytes(memory.Span).Length;
            using (var pin = new Pin(memory.Pin()))
            {
                NativeValue native = NativeValue.Wrap(pin.Address, bytes, isWritable, shape, shape.Length, (int)type,
                    Callbacks.ReleaseAddress, pin.User);
                pin.Keep();
                return new Tensor(native);
            }
        }

        private static int Count(long count)
        {
            if (count > int.MaxValue) throw FolioException.Invalid(count + " are too many for one view");
            return (int)count;
        }

        private IntPtr WritableData()
        {
            if (!Native.IsWritable()) throw FolioException.Invalid("the tensor's memory must not be written");
            return Native.Data();
        }

        private void RequireType(ElementType wanted)
        {
            ElementType found = Type;
            if (found != wanted) throw FolioException.Invalid("the tensor is of " + found + ", not of " + wanted);
        }
    }
}
