package dev.foliort;

import java.nio.Buffer;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.DoubleBuffer;
import java.nio.FloatBuffer;
import java.nio.IntBuffer;
import java.nio.LongBuffer;
import java.nio.ShortBuffer;
import java.nio.charset.StandardCharsets;

/**
 * Elements of one type in a shape, row-major. `wrap` lies over memory of the caller's and copies nothing; `allocate`
 * and `copyOf` make memory of their own; `bytes`, `floats` ... are views of the memory, which stays as long as they do.
 */
public final class Tensor extends Value {
    Tensor(NativeValue handle) {
        super(handle);
    }

    /**
     * Zeros (or empty strings) in native memory, aligned to 64 bytes.
     *
     * @param type of the elements
     * @param shape dims, outermost first; none for a scalar
     * @return the tensor, to be closed
     */
    public static Tensor allocate(ElementType type, long... shape) {
        return new Tensor(NativeValue.tensor(type.number(), notNull(shape)));
    }

    /**
     * A tensor over the bytes between the position and limit of a direct buffer, which must be exactly its own. The
     * buffer stays alive as long as the native library uses it. Over a read-only buffer it cannot be an output.
     *
     * @param buffer direct, and in the machine's byte order ({@link ByteBuffer#order(ByteOrder)}; new buffers, slices and
     *     duplicates have another), which does not matter to types of a byte or less
     * @param type of the elements
     * @param shape dims, outermost first; none for a scalar
     * @return the tensor, to be closed
     */
    public static Tensor wrap(ByteBuffer buffer, ElementType type, long... shape) {
        return wrap(buffer, 1, type.bits() > Byte.SIZE ? buffer.order() : ByteOrder.nativeOrder(), type, shape);
    }

    /**
     * Over a direct buffer in the machine's byte order, as ByteBuffer.order(ByteOrder.nativeOrder()) makes it.
     *
     * @param buffer direct, and in the machine's byte order
     * @param shape dims, outermost first; none for a scalar
     * @return the tensor, to be closed
     */
    public static Tensor wrap(FloatBuffer buffer, long... shape) {
        return wrap(buffer, Float.BYTES, buffer.order(), ElementType.FLOAT, shape);
    }

    /**
     * Over a direct buffer in the machine's byte order, as DOUBLE.
     *
     * @param buffer direct, and in the machine's byte order
     * @param shape dims, outermost first; none for a scalar
     * @return the tensor, to be closed
     */
    public static Tensor wrap(DoubleBuffer buffer, long... shape) {
        return wrap(buffer, Double.BYTES, buffer.order(), ElementType.DOUBLE, shape);
    }

    /**
     * Over a direct buffer in the machine's byte order, as INT16.
     *
     * @param buffer direct, and in the machine's byte order
     * @param shape dims, outermost first; none for a scalar
     * @return the tensor, to be closed
     */
    public static Tensor wrap(ShortBuffer buffer, long... shape) {
        return wrap(buffer, Short.BYTES, buffer.order(), ElementType.INT16, shape);
    }

    /**
     * Over a direct buffer, for elements of 16 bits that Java lacks: FLOAT16, BFLOAT16, UINT16.
     *
     * @param buffer direct, and in the machine's byte order
     * @param type of the elements
     * @param shape dims, outermost first; none for a scalar
     * @return the tensor, to be closed
     */
    public static Tensor wrap(ShortBuffer buffer, ElementType type, long... shape) {
        if (type.bits() != Short.SIZE) throw FolioException.invalid(type + " does not have 16 bits");
        return wrap(buffer, Short.BYTES, buffer.order(), type, shape);
    }

    /**
     * Over a direct buffer in the machine's byte order, as INT32.
     *
     * @param buffer direct, and in the machine's byte order
     * @param shape dims, outermost first; none for a scalar
     * @return the tensor, to be closed
     */
    public static Tensor wrap(IntBuffer buffer, long... shape) {
        return wrap(buffer, Integer.BYTES, buffer.order(), ElementType.INT32, shape);
    }

    /**
     * Over a direct buffer in the machine's byte order, as INT64.
     *
     * @param buffer direct, and in the machine's byte order
     * @param shape dims, outermost first; none for a scalar
     * @return the tensor, to be closed
     */
    public static Tensor wrap(LongBuffer buffer, long... shape) {
        return wrap(buffer, Long.BYTES, buffer.order(), ElementType.INT64, shape);
    }

    /**
     * Copies the elements into native memory.
     *
     * @param elements in row-major order
     * @param shape dims, outermost first; none for a scalar
     * @return the tensor, to be closed
     */
    public static Tensor copyOf(float[] elements, long... shape) {
        ByteBuffer copy = room(elements.length, Float.BYTES);
        copy.asFloatBuffer().put(elements);
        return wrap(copy, ElementType.FLOAT, shape);
    }

    /**
     * Copies the elements.
     *
     * @param elements in row-major order
     * @param shape dims, outermost first; none for a scalar
     * @return the tensor, to be closed
     */
    public static Tensor copyOf(double[] elements, long... shape) {
        ByteBuffer copy = room(elements.length, Double.BYTES);
        copy.asDoubleBuffer().put(elements);
        return wrap(copy, ElementType.DOUBLE, shape);
    }

    /**
     * Copies the elements, as INT16.
     *
     * @param elements in row-major order
     * @param shape dims, outermost first; none for a scalar
     * @return the tensor, to be closed
     */
    public static Tensor copyOf(short[] elements, long... shape) {
        ByteBuffer copy = room(elements.length, Short.BYTES);
        copy.asShortBuffer().put(elements);
        return wrap(copy, ElementType.INT16, shape);
    }

    /**
     * Copies the elements.
     *
     * @param elements in row-major order
     * @param shape dims, outermost first; none for a scalar
     * @return the tensor, to be closed
     */
    public static Tensor copyOf(int[] elements, long... shape) {
        ByteBuffer copy = room(elements.length, Integer.BYTES);
        copy.asIntBuffer().put(elements);
        return wrap(copy, ElementType.INT32, shape);
    }

    /**
     * Copies the elements.
     *
     * @param elements in row-major order
     * @param shape dims, outermost first; none for a scalar
     * @return the tensor, to be closed
     */
    public static Tensor copyOf(long[] elements, long... shape) {
        ByteBuffer copy = room(elements.length, Long.BYTES);
        copy.asLongBuffer().put(elements);
        return wrap(copy, ElementType.INT64, shape);
    }

    /**
     * Copies the elements.
     *
     * @param elements in row-major order
     * @param shape dims, outermost first; none for a scalar
     * @return the tensor, to be closed
     */
    public static Tensor copyOf(boolean[] elements, long... shape) {
        ByteBuffer copy = room(elements.length, 1);
        for (int i = 0; i < elements.length; ++i) copy.put(i, (byte) (elements[i] ? 1 : 0));
        return wrap(copy, ElementType.BOOL, shape);
    }

    /**
     * Copies the bytes of elements of any type but strings.
     *
     * @param bytes of the elements, in row-major order
     * @param type of the elements
     * @param shape dims, outermost first; none for a scalar
     * @return the tensor, to be closed
     */
    public static Tensor copyOf(byte[] bytes, ElementType type, long... shape) {
        return wrap(room(bytes.length, 1).put(0, bytes), type, shape);
    }

    /**
     * Copies the strings.
     *
     * @param elements in row-major order
     * @param shape dims, outermost first; none for a scalar
     * @return the tensor, to be closed
     */
    public static Tensor copyOf(String[] elements, long... shape) {
        long[] lengths = new long[elements.length];
        byte[][] parts = new byte[elements.length][];
        int bytes = 0;
        for (int i = 0; i < elements.length; ++i) {
            if (elements[i] == null) throw FolioException.invalid("string " + i + " is null");
            parts[i] = elements[i].getBytes(StandardCharsets.UTF_8);
            lengths[i] = parts[i].length;
            bytes = Math.addExact(bytes, parts[i].length);
        }
        ByteBuffer text = ByteBuffer.allocate(bytes);
        for (byte[] part : parts) text.put(part);
        return new Tensor(NativeValue.strings(text.array(), lengths, notNull(shape)));
    }

    /** {@return the dims, outermost first; none of a scalar} */
    public long[] shape() {
        return call(NativeValue::dims);
    }

    /** {@return the product of the dims} */
    public long elementCount() {
        return call(NativeValue::elementCount);
    }

    /** {@return a view of the elements, in the machine's byte order; read-only where the memory must not be written} */
    public ByteBuffer bytes() {
        ByteBuffer view = call(value -> {
            ByteBuffer memory = value.view();
            lease().holdFor(memory); // what is made from it, below and by the caller, keeps it reachable
            return value.isWritable() ? memory.duplicate() : memory.asReadOnlyBuffer();
        });
        return view.order(ByteOrder.nativeOrder());
    }

    /** {@return a view of the elements of a FLOAT tensor} */
    public FloatBuffer floats() {
        return bytesOf(ElementType.FLOAT).asFloatBuffer();
    }

    /** {@return a view of the elements of a DOUBLE tensor} */
    public DoubleBuffer doubles() {
        return bytesOf(ElementType.DOUBLE).asDoubleBuffer();
    }

    /** {@return elements of any type of 16 bits; {@link Float16} and {@link BFloat16} know what they mean} */
    public ShortBuffer shorts() {
        if (type().bits() != Short.SIZE) throw wrongType(ElementType.INT16);
        return bytes().asShortBuffer();
    }

    /** {@return a view of the elements of an INT32 tensor} */
    public IntBuffer ints() {
        return bytesOf(ElementType.INT32).asIntBuffer();
    }

    /** {@return a view of the elements of an INT64 tensor} */
    public LongBuffer longs() {
        return bytesOf(ElementType.INT64).asLongBuffer();
    }

    /** {@return copies of the strings} */
    public String[] strings() {
        return call(value -> {
            if (ElementType.of(value.type()) != ElementType.STRING) throw wrongType(ElementType.STRING);
            String[] result = new String[Math.toIntExact(value.elementCount())];
            for (int i = 0; i < result.length; ++i) result[i] = Text.of(value.stringAt(i));
            return result;
        });
    }

    /**
     * Writes one string, by its place in row-major order; not while a run uses the tensor.
     *
     * @param index from 0
     * @param text what to write
     */
    public void setString(long index, String text) {
        if (text == null) throw FolioException.invalid("string " + index + " is null");
        call(value -> {
            value.setString(index, text.getBytes(StandardCharsets.UTF_8));
            return null;
        });
    }

    private ByteBuffer bytesOf(ElementType wanted) {
        if (type() != wanted) throw wrongType(wanted);
        return bytes();
    }

    private FolioException wrongType(ElementType wanted) {
        return FolioException.invalid("the tensor is of " + type() + ", not of " + wanted);
    }

    private static ByteBuffer room(int count, int elementBytes) {
        return ByteBuffer.allocateDirect(Math.multiplyExact(count, elementBytes)).order(ByteOrder.nativeOrder());
    }

    private static long[] notNull(long[] shape) {
        if (shape == null) throw FolioException.invalid("the shape is null");
        return shape;
    }

    private static Tensor wrap(Buffer buffer, int elementBytes, ByteOrder order, ElementType type, long[] shape) {
        if (!buffer.isDirect()) throw FolioException.invalid("the buffer is not direct; copyOf takes arrays");
        if (order != ByteOrder.nativeOrder()) {
            throw FolioException.invalid("the buffer's byte order is " + order + ", not the machine's: "
                    + "order(ByteOrder.nativeOrder()) changes it");
        }
        Buffer slice = buffer.slice(); // begins at the position
        long bytes = (long) slice.remaining() * elementBytes;
        return new Tensor(NativeValue.wrap(slice, bytes, !buffer.isReadOnly(), notNull(shape), type.number()));
    }
}
