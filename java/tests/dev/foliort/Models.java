package dev.foliort;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.FloatBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.Arrays;
import org.junit.jupiter.api.function.Executable;

/** What the tests share: the models that the build wrote, and a few short cuts. */
final class Models {
    /** Rows of 32 floats: x to y. */
    static final int WIDTH = 32;

    private Models() {}

    static Path path(String name) {
        return Path.of(System.getProperty("folio.test.models"), name + ".onnx");
    }

    static Session session(String name) {
        try (Model model = Model.open(path(name))) {
            return model.session();
        }
    }

    static FloatBuffer direct(int count) {
        return ByteBuffer.allocateDirect(count * Float.BYTES).order(ByteOrder.nativeOrder()).asFloatBuffer();
    }

    /** Rows that differ with `seed`. */
    static float[] row(int seed, int count) {
        float[] result = new float[count];
        for (int i = 0; i < count; ++i) result[i] = (float) Math.sin(seed * 31 + i);
        return result;
    }

    static float[] copy(FloatBuffer buffer) {
        float[] result = new float[buffer.remaining()];
        buffer.duplicate().get(result);
        return result;
    }

    /** Writes `to` over each `from` of the same length. */
    static void replaceAll(byte[] bytes, String from, String to) {
        byte[] old = from.getBytes(StandardCharsets.US_ASCII);
        byte[] with = to.getBytes(StandardCharsets.US_ASCII);
        for (int i = 0; i + old.length <= bytes.length; ++i) {
            if (Arrays.equals(bytes, i, i + old.length, old, 0, old.length)) {
                System.arraycopy(with, 0, bytes, i, with.length);
            }
        }
    }

    static void assertFails(ErrorCode code, String text, Executable action) {
        FolioException e = assertThrows(FolioException.class, action);
        assertEquals(code, e.code(), e.getMessage());
        assertTrue(e.getMessage().contains(text), e.getMessage());
    }
}
