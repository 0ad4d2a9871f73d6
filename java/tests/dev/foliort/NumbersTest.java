package dev.foliort;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.ShortBuffer;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Numbers of 16 bits; sequences and maps made by hand; messages of the loader. */
class NumbersTest {
    @Test
    void everyFloat16GoesToFloatAndBack() {
        for (int bits = 0; bits < 1 << 16; ++bits) {
            float value = Float16.toFloat((short) bits);
            short back = Float16.ofFloat(value);
            if (Float.isNaN(value)) {
                assertTrue(Float.isNaN(Float16.toFloat(back)));
            } else {
                assertEquals((short) bits, back);
            }
        }
        assertEquals(1f, Float16.toFloat((short) 0x3c00));
        assertEquals(65504f, Float16.toFloat((short) 0x7bff));
        assertEquals(0x1p-24f, Float16.toFloat((short) 1));
    }

    @Test
    void floatsAreRoundedToTheNearestFloat16() {
        assertEquals((short) 0x3c00, Float16.ofFloat(1 + 0x1p-11f)); // half way: to the even one
        assertEquals((short) 0x3c02, Float16.ofFloat(1 + 3 * 0x1p-11f));
        assertEquals((short) 0x3c01, Float16.ofFloat(1 + 0x1p-11f + 0x1p-20f));
        assertEquals((short) 0x7bff, Float16.ofFloat(65519f));
        assertEquals((short) 0x7c00, Float16.ofFloat(65520f));
        assertEquals((short) 0xfc00, Float16.ofFloat(Float.NEGATIVE_INFINITY));
        assertEquals((short) 0x8000, Float16.ofFloat(-0x1p-25f));
        assertEquals((short) 0x0002, Float16.ofFloat(0x1.8p-24f)); // half way: to the even one
        assertEquals((short) 0x0400, Float16.ofFloat(0x1p-14f - 0x1p-26f));
    }

    @Test
    void everyBFloat16GoesToFloatAndBack() {
        for (int bits = 0; bits < 1 << 16; ++bits) {
            float value = BFloat16.toFloat((short) bits);
            short back = BFloat16.ofFloat(value);
            if (Float.isNaN(value)) {
                assertTrue(Float.isNaN(BFloat16.toFloat(back)));
            } else {
                assertEquals((short) bits, back);
            }
        }
        assertEquals((short) 0x3f80, BFloat16.ofFloat(1 + 0x1p-8f)); // half way: to the even one
        assertEquals((short) 0x3f82, BFloat16.ofFloat(1 + 3 * 0x1p-8f));
        assertEquals((short) 0x7f80, BFloat16.ofFloat(Float.MAX_VALUE));
    }

    @Test
    void tensorsOf16Bits() {
        ShortBuffer buffer = ByteBuffer.allocateDirect(4).order(ByteOrder.nativeOrder()).asShortBuffer();
        buffer.put(0, Float16.ofFloat(0.5f)).put(1, Float16.ofFloat(-2f));
        try (Tensor half = Tensor.wrap(buffer, ElementType.FLOAT16, 2);
                Tensor ints = Tensor.wrap(buffer, 2);
                Tensor copied = Tensor.copyOf(new short[] {-7}, 1)) {
            assertEquals(-2f, Float16.toFloat(half.shorts().get(1)));
            assertEquals(ElementType.FLOAT16, half.type());
            assertEquals(10, half.type().number());
            assertEquals(ElementType.INT16, ints.type());
            assertEquals(-7, copied.shorts().get(0));
            Models.assertFails(ErrorCode.INVALID_ARGUMENT, "FLOAT16", half::floats);
            Models.assertFails(ErrorCode.INVALID_ARGUMENT, "16 bits", () -> Tensor.wrap(buffer, ElementType.INT32, 2));
        }
    }

    @Test
    void sequencesAndMapsAreMadeOfTensors() {
        try (Tensor a = Tensor.copyOf(new float[] {1, 2}, 2);
                Tensor b = Tensor.copyOf(new float[] {3}, 1);
                Value sequence = Value.sequence(ElementType.FLOAT, List.of(a, b));
                Tensor keys = Tensor.copyOf(new String[] {"日本", "😀"}, 2);
                Value map = Value.map(keys, a)) {
            b.close(); // the sequence holds it
            assertEquals(ValueKind.SEQUENCE, sequence.kind());
            try (Value part = sequence.part(1)) {
                assertEquals(3f, ((Tensor) part).floats().get(0));
            }
            assertEquals(ValueKind.MAP, map.kind());
            assertEquals(ElementType.STRING, map.type());
            try (Value mapKeys = map.part(0)) {
                assertArrayEquals(new String[] {"日本", "😀"}, ((Tensor) mapKeys).strings());
            }
            Models.assertFails(ErrorCode.INVALID_ARGUMENT, "", () -> Value.map(a, keys));
            Models.assertFails(ErrorCode.INVALID_ARGUMENT, "", () -> Value.sequence(ElementType.INT64, List.of(a)));
        }
    }

    @Test
    void theLoaderExplainsWhatTheLinkerMeans() {
        assertTrue(NativeLibrary.explain("x", "7f /lib/ld-musl-x86_64.so.1").contains("musl"));
        String old = "/lib/libc.so.6: version `GLIBC_2.36' not found (required by libfolio.so.1)";
        assertTrue(NativeLibrary.explain(old, "").contains("too old"));
        assertTrue(NativeLibrary.explain("a.so: failed to map segment from shared object", "").contains("noexec"));
        assertEquals("no such file", NativeLibrary.explain("no such file", "7f /lib/ld-linux-x86-64.so.2"));
    }
}
