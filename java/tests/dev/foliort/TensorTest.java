package dev.foliort;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertDoesNotThrow;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.lang.ref.WeakReference;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.FloatBuffer;
import java.nio.ReadOnlyBufferException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Collections;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;

class TensorTest {
    @Test
    void wrapSharesTheMemoryBothWays() {
        FloatBuffer buffer = Models.direct(6);
        try (Tensor tensor = Tensor.wrap(buffer, 2, 3)) {
            buffer.put(5, 1.5f);
            assertEquals(1.5f, tensor.floats().get(5));
            tensor.floats().put(0, -2f);
            assertEquals(-2f, buffer.get(0));
        }
    }

    @Test
    void wrapTakesAPartOfTheMemory() {
        FloatBuffer buffer = Models.direct(8);
        for (int i = 0; i < 8; ++i) buffer.put(i, i);
        buffer.position(2).limit(6);
        try (Tensor tensor = Tensor.wrap(buffer, 4)) {
            assertArrayEquals(new float[] {2, 3, 4, 5}, Models.copy(tensor.floats()));
        }
    }

    @Test
    void wrapRefusesWhatItWouldHaveToCopy() {
        Models.assertFails(ErrorCode.INVALID_ARGUMENT, "not direct",
                () -> Tensor.wrap(FloatBuffer.allocate(4), 4));
        ByteOrder other = ByteOrder.nativeOrder() == ByteOrder.LITTLE_ENDIAN
                ? ByteOrder.BIG_ENDIAN : ByteOrder.LITTLE_ENDIAN;
        Models.assertFails(ErrorCode.INVALID_ARGUMENT, "byte order",
                () -> Tensor.wrap(ByteBuffer.allocateDirect(16).order(other).asFloatBuffer(), 4));
        ByteBuffer bytes = ByteBuffer.allocateDirect(16).order(other);
        for (ElementType type : new ElementType[] {ElementType.FLOAT, ElementType.FLOAT16, ElementType.COMPLEX64}) {
            Models.assertFails(ErrorCode.INVALID_ARGUMENT, "byte order",
                    () -> Tensor.wrap(bytes, type, 128 / type.bits()));
        }
        Tensor.wrap(bytes, ElementType.UINT8, 16).close(); // bytes have no order
        Tensor.wrap(bytes, ElementType.INT4, 32).close();
    }

    @Test
    void emptyTensorsAndScalars() {
        try (Tensor empty = Tensor.wrap(Models.direct(0), 0, 4); Tensor scalar = Tensor.copyOf(new long[] {7})) {
            assertEquals(0, empty.elementCount());
            assertEquals(0, empty.floats().remaining());
            assertEquals(0, scalar.shape().length);
            assertEquals(7, scalar.longs().get(0));
        }
    }

    @Test
    void buffersOfEachTypeAreWrapped() {
        ByteBuffer bytes = ByteBuffer.allocateDirect(16).order(ByteOrder.nativeOrder());
        bytes.putLong(8, 7);
        try (Tensor doubles = Tensor.wrap(bytes.asDoubleBuffer(), 2);
                Tensor ints = Tensor.wrap(bytes.asIntBuffer(), 4);
                Tensor longs = Tensor.wrap(bytes.asLongBuffer(), 2);
                Tensor nibbles = Tensor.wrap(bytes, ElementType.INT4, 32)) {
            assertEquals(ElementType.DOUBLE, doubles.type());
            assertEquals(7, ints.ints().get(2));
            assertEquals(7, longs.longs().get(1));
            assertEquals(7, nibbles.bytes().get(8));
            assertEquals(4, nibbles.type().bits());
        }
    }

    @Test
    void wrapRefusesAShapeOfAnotherSize() {
        Models.assertFails(ErrorCode.INVALID_ARGUMENT, "24", () -> Tensor.wrap(Models.direct(6), 2, 4));
        Models.assertFails(ErrorCode.INVALID_ARGUMENT, "-1", () -> Tensor.wrap(Models.direct(6), -1));
    }

    @Test
    void readOnlyMemoryIsNotWritten() {
        FloatBuffer buffer = Models.direct(2);
        try (Tensor tensor = Tensor.wrap(buffer.asReadOnlyBuffer(), 2)) {
            assertTrue(tensor.bytes().isReadOnly());
            assertThrows(ReadOnlyBufferException.class, () -> tensor.floats().put(0, 1f));
        }
    }

    @Test
    void copiesOfEachTypeHaveTheElements() {
        try (Tensor f = Tensor.copyOf(new float[] {1, 2}, 2);
                Tensor d = Tensor.copyOf(new double[] {3, 4}, 1, 2);
                Tensor i = Tensor.copyOf(new int[] {5, 6}, 2, 1);
                Tensor l = Tensor.copyOf(new long[] {7}, new long[0]);
                Tensor b = Tensor.copyOf(new boolean[] {true, false}, 2);
                Tensor h = Tensor.copyOf(new byte[] {0, 0x3c}, ElementType.FLOAT16, 1)) {
            assertEquals(2f, f.floats().get(1));
            assertEquals(4.0, d.doubles().get(1));
            assertArrayEquals(new long[] {1, 2}, d.shape());
            assertEquals(6, i.ints().get(1));
            assertEquals(7L, l.longs().get(0));
            assertEquals(0, l.shape().length);
            assertEquals(1, b.bytes().get(0));
            assertEquals(ElementType.FLOAT16, h.type());
            assertEquals(0x3c, h.bytes().get(1));
        }
    }

    @Test
    void allocateIsZeroAndAligned() {
        try (Tensor tensor = Tensor.allocate(ElementType.DOUBLE, 3)) {
            assertEquals(0.0, tensor.doubles().get(2));
            assertEquals(0, tensor.bytes().alignmentOffset(0, 64));
            assertEquals(ValueKind.TENSOR, tensor.kind());
            assertEquals(3, tensor.elementCount());
        }
    }

    @Test
    void aViewOfAnotherTypeFails() {
        try (Tensor tensor = Tensor.allocate(ElementType.INT64, 1)) {
            Models.assertFails(ErrorCode.INVALID_ARGUMENT, "INT64", tensor::floats);
            Models.assertFails(ErrorCode.INVALID_ARGUMENT, "INT64", tensor::strings);
        }
    }

    @Test
    void stringsKeepEmojiAndNul() {
        String[] texts = {"日本-😀", "a\0b", "", "\0", "é"};
        try (Tensor tensor = Tensor.copyOf(texts, 5)) {
            assertArrayEquals(texts, tensor.strings());
            assertEquals(ElementType.STRING, tensor.type());
            Models.assertFails(ErrorCode.INVALID_ARGUMENT, "strings, which can only be copied", tensor::bytes);
        }
        Models.assertFails(ErrorCode.INVALID_ARGUMENT, "only copied", () -> Tensor.copyOf(new byte[4], ElementType.STRING, 4));
        Models.assertFails(ErrorCode.INVALID_ARGUMENT, "strings", () -> Tensor.copyOf(texts, 4));
        Models.assertFails(ErrorCode.INVALID_ARGUMENT, "null", () -> Tensor.copyOf(new String[] {null}, 1));
    }

    @Test
    void stringsCanBeWritten() {
        try (Tensor tensor = Tensor.allocate(ElementType.STRING, 2, 2); Tensor floats = Tensor.allocate(ElementType.FLOAT, 1)) {
            tensor.setString(3, "日本-😀");
            tensor.setString(1, "a\0b");
            tensor.setString(1, "c\0");
            tensor.setString(3, "longer than it was: 日本-😀");
            assertArrayEquals(new String[] {"", "c\0", "", "longer than it was: 日本-😀"}, tensor.strings());
            Models.assertFails(ErrorCode.INVALID_ARGUMENT, "4", () -> tensor.setString(4, "x"));
            Models.assertFails(ErrorCode.INVALID_ARGUMENT, "index -1 ", () -> tensor.setString(-1, "x"));
            Models.assertFails(ErrorCode.INVALID_ARGUMENT, "null", () -> tensor.setString(0, null));
            Models.assertFails(ErrorCode.INVALID_ARGUMENT, "", () -> floats.setString(0, "x"));
        }
    }

    @Test
    void nullsThatAreNotAllowedAreNamed() {
        long[] shape = null;
        assertRefused("shape", () -> Tensor.allocate(ElementType.FLOAT, shape));
        assertRefused("shape", () -> Tensor.wrap(Models.direct(1), shape));
        assertRefused("shape", () -> Tensor.copyOf(new float[1], shape));
        assertRefused("shape", () -> Tensor.copyOf(new String[] {"a"}, shape));
        assertRefused("path", () -> Model.open((String) null));
        assertRefused("string 0", () -> Tensor.copyOf(new String[1], 1));
        assertNull("type", () -> Tensor.allocate(null, 1));
        assertNull("buffer", () -> Tensor.wrap((FloatBuffer) null, 1));
        assertNull("elements", () -> Tensor.copyOf((float[]) null, 1));
        assertNull("elements", () -> Value.sequence(ElementType.FLOAT, null));
        assertNull("path", () -> Model.open((Path) null));
        assertNull("options", () -> Model.open(Models.path("mlp"), null));
        assertNull("options", () -> new Env(null));
        try (Tensor keys = Tensor.copyOf(new long[] {1}, 1); Session session = Models.session("mlp")) {
            assertNull("keys", () -> Value.map(null, keys));
            assertNull("values", () -> Value.map(keys, null));
            assertNull("shapes", () -> session.prepareShapes(null));
            assertNull("inputs", () -> session.run(null));
            assertRefused("'x'", () -> session.run(Collections.singletonMap("x", null)));
            assertRefused("name", () -> session.run(Collections.singletonMap(null, keys)));
        }
    }

    /** A text, a shape or a value. */
    private static void assertRefused(String what, Executable action) {
        Models.assertFails(ErrorCode.INVALID_ARGUMENT, what, action);
        Models.assertFails(ErrorCode.INVALID_ARGUMENT, "null", action);
    }

    /** An object of another kind, which the JVM's text names. */
    private static void assertNull(String what, Executable action) {
        String message = assertThrows(NullPointerException.class, action).getMessage();
        assertTrue(message.contains('"' + what + '"'), message);
    }

    @Test
    void useAfterCloseThrowsAndClosingAgainIsFine() {
        Tensor tensor = Tensor.allocate(ElementType.FLOAT, 2);
        tensor.close();
        assertDoesNotThrow(tensor::close);
        Models.assertFails(ErrorCode.CLOSED, "closed", tensor::shape);
        Models.assertFails(ErrorCode.CLOSED, "closed", tensor::floats);
        Models.assertFails(ErrorCode.CLOSED, "closed", tensor::kind);
    }

    @Test
    void viewsOutliveTheirTensor() {
        for (int round = 0; round < 50; ++round) {
            FloatBuffer view;
            try (Tensor tensor = Tensor.allocate(ElementType.FLOAT, 100_000)) {
                view = tensor.floats();
                view.put(99_999, round);
            }
            if (round % 10 == 0) System.gc();
            try (Tensor other = Tensor.allocate(ElementType.FLOAT, 100_000)) {
                other.floats().put(99_999, -1f);
                assertEquals(round, view.get(99_999));
            }
        }
    }

    @Test
    void wrappedMemoryLivesAsLongAsItsTensor() throws InterruptedException {
        FloatBuffer buffer = Models.direct(1000);
        WeakReference<FloatBuffer> seen = new WeakReference<>(buffer);
        buffer.put(999, 7f);
        Tensor tensor = Tensor.wrap(buffer, 1000);
        buffer = null;
        for (int i = 0; i < 100; ++i) {
            if (i % 20 == 0) System.gc();
            Models.direct(1000).put(999, -1f);
        }
        assertEquals(7f, tensor.floats().get(999));
        tensor.close();
        for (int i = 0; i < 100 && seen.get() != null; ++i) {
            System.gc();
            Thread.sleep(10);
        }
        assertEquals(null, seen.get(), "the buffer was not given back");
    }

    @Test
    void tensorsThatNobodyClosesAreCollected() throws IOException {
        long before = addressSpaceKilobytes();
        for (int i = 0; i < 4000; ++i) { // 4 GB in all
            Tensor.allocate(ElementType.FLOAT, 250_000);
            if (i % 100 == 99) System.gc();
        }
        long grown = addressSpaceKilobytes() - before;
        assertTrue(grown < 2_000_000, grown + " kB");
    }

    private static long addressSpaceKilobytes() throws IOException {
        for (String line : Files.readAllLines(Path.of("/proc/self/status"))) {
            if (line.startsWith("VmSize:")) return Long.parseLong(line.replaceAll("[^0-9]", ""));
        }
        throw new IOException("/proc/self/status has no VmSize");
    }
}
