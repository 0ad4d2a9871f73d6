package dev.foliort;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.MappedByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.Arrays;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Model files that change while they are open. */
class FilesTest {
    private static final int WIDTH = Models.WIDTH;

    @TempDir
    Path folder;

    private Path copyOf(String name) throws IOException {
        return Files.copy(Models.path(name), folder.resolve("model.onnx"), StandardCopyOption.REPLACE_EXISTING);
    }

    /** Weights stay where they are in the file, so that every run reads them there. */
    private static Session inPlace(Model model) {
        return model.session(new SessionOptions().config("session.disable_prepacking", "1"));
    }

    private static float[] run(Session session) {
        try (Tensor x = Tensor.copyOf(Models.row(1, WIDTH), 1, WIDTH); Outputs outputs = session.run(Map.of("x", x))) {
            return Models.copy(outputs.get("y").floats());
        }
    }

    private static void truncate(Path path) throws IOException {
        try (RandomAccessFile file = new RandomAccessFile(path.toFile(), "rw")) {
            file.setLength(0);
        }
    }

    @Test
    void aTruncatedModelIsAnErrorOfTheRun() throws IOException {
        Path path = copyOf("mlp");
        try (Model model = Model.open(path); Session session = inPlace(model)) {
            run(session);
            truncate(path);
            for (int i = 0; i < 3; ++i) {
                Models.assertFails(ErrorCode.MODEL_CHANGED, "model.onnx", () -> run(session));
            }
        }
    }

    @Test
    void faultsOfTheHostAreStillTheHosts() throws IOException {
        try (Model model = Model.open(Models.path("mlp"))) { // the guard is on
            assertFalse(model.inputs().isEmpty());
        }
        Path path = folder.resolve("buffer");
        Files.write(path, new byte[1 << 16]);
        try (RandomAccessFile file = new RandomAccessFile(path.toFile(), "rw")) {
            MappedByteBuffer buffer = file.getChannel().map(FileChannel.MapMode.READ_ONLY, 0, 1 << 16);
            assertEquals(0, buffer.get(1 << 15));
            file.setLength(0);
            assertThrows(InternalError.class, () -> {
                for (int i = 0; i < 1000; ++i) buffer.get(1 << 15);
                Thread.sleep(50); // compiled code learns of the fault when it next comes back from the system
            });
        }
    }

    @Test
    void reloadGivesTheFileThatIsThereNow() throws IOException {
        Path path = copyOf("mlp");
        try (Model model = Model.open(path);
                Session session = inPlace(model);
                Model same = model.reload();
                Session again = inPlace(same)) {
            float[] before = run(session);
            assertArrayEquals(before, run(again));
            byte[] other = Files.readAllBytes(path);
            for (int i = other.length / 2; i < other.length / 2 + 64; i += 4) other[i] ^= 1;
            Path fresh = Files.write(folder.resolve("fresh"), other);
            Files.move(fresh, path, StandardCopyOption.ATOMIC_MOVE);
            try (Model changed = model.reload(); Session newer = inPlace(changed)) {
                assertFalse(Arrays.equals(before, run(newer)));
            }
            assertArrayEquals(before, run(session));
        }
    }

    @Test
    void aModelFromBytesCannotBeReloaded() throws IOException {
        try (Model model = Model.copyOf(Files.readAllBytes(Models.path("mlp")), new ModelOptions())) {
            Models.assertFails(ErrorCode.INVALID_ARGUMENT, "memory", model::reload);
        }
    }
}
