package dev.foliort;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.FloatBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.time.Duration;
import java.time.temporal.ChronoUnit;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class SessionTest {
    private static final int WIDTH = Models.WIDTH;

    private Session session;

    @BeforeEach
    void open() {
        session = Models.session("mlp");
    }

    @AfterEach
    void close() {
        session.close();
    }

    @Test
    void inputsAndOutputsAreDescribed() {
        ValueInfo x = session.inputs().get(0);
        assertEquals("x", x.name());
        assertEquals(ElementType.FLOAT, x.type());
        assertEquals(ValueKind.TENSOR, x.kind());
        assertArrayEquals(new long[] {-1, WIDTH}, x.shape());
        assertEquals(List.of("batch", ""), x.symbolicDims());
        assertEquals("x FLOAT[-1, 32]", x.toString());
        assertEquals("y", session.outputs().get(0).name());
    }

    @Test
    void metadataOfTheModel() {
        try (Model model = Model.open(Models.path("mlp"))) {
            assertEquals("mlp", model.metadata().get("make_model.kind"));
            assertEquals("y", model.outputs().get(0).name());
            assertTrue(Model.libraryVersion().matches("\\d+\\.\\d+\\.\\d+"));
        }
    }

    @Test
    void weightsArePackedAtLast() {
        assertTrue(session.waitPacked(-1));
        assertTrue(session.waitPacked(0));
        session.close();
        Models.assertFails(ErrorCode.CLOSED, "session", () -> session.waitPacked(0));
    }

    @Test
    void runWritesIntoTheMemoryGiven() {
        FloatBuffer in = Models.direct(WIDTH);
        FloatBuffer out = Models.direct(WIDTH);
        in.put(0, Models.row(1, WIDTH));
        try (Tensor x = Tensor.wrap(in, 1, WIDTH);
                Tensor y = Tensor.wrap(out, 1, WIDTH);
                Outputs expected = session.run(Map.of("x", x))) {
            session.run(Map.of("x", x), Map.of("y", y));
            float[] first = Models.copy(out);
            assertArrayEquals(Models.copy(expected.get("y").floats()), first);
            assertEquals(Set.of("y"), expected.names());
            in.put(0, Models.row(2, WIDTH)); // the next run sees it, without another wrap
            session.run(Map.of("x", x), Map.of("y", y));
            assertTrue(!java.util.Arrays.equals(first, Models.copy(out)));
        }
    }

    @Test
    void outputsOfOneRunAreInputsOfTheNext() {
        try (Tensor x = Tensor.copyOf(Models.row(1, 2 * WIDTH), 2, WIDTH);
                Outputs first = session.run(Map.of("x", x));
                Outputs second = session.run(Map.of("x", first.get("y")))) {
            assertArrayEquals(new long[] {2, WIDTH}, second.get("y").shape());
        }
    }

    @Test
    void wrongNamesTypesAndShapesAreNamed() {
        try (Tensor x = Tensor.allocate(ElementType.FLOAT, 1, WIDTH);
                Tensor narrow = Tensor.allocate(ElementType.FLOAT, 1, 5);
                Tensor ints = Tensor.allocate(ElementType.INT32, 1, WIDTH)) {
            Models.assertFails(ErrorCode.INVALID_ARGUMENT, "nobody", () -> session.run(Map.of("nobody", x)));
            Models.assertFails(ErrorCode.INVALID_ARGUMENT, "x", () -> session.run(Map.of()));
            Models.assertFails(ErrorCode.INVALID_ARGUMENT, "int32", () -> session.run(Map.of("x", ints)));
            Models.assertFails(ErrorCode.INVALID_ARGUMENT, "5", () -> session.run(Map.of("x", narrow)));
            Models.assertFails(ErrorCode.INVALID_ARGUMENT, "5",
                    () -> session.run(Map.of("x", x), Map.of("y", narrow)));
            Models.assertFails(ErrorCode.INVALID_ARGUMENT, "😀", () -> session.run(Map.of("x", x, "😀", x)));
            Models.assertFails(ErrorCode.INVALID_ARGUMENT, "NUL", () -> session.run(Map.of("x\0", x)));
            try (Outputs outputs = session.run(Map.of("x", x))) {
                Models.assertFails(ErrorCode.INVALID_ARGUMENT, "z", () -> outputs.get("z"));
            }
        }
    }

    @Test
    void readOnlyTensorIsNoOutput() {
        try (Tensor x = Tensor.allocate(ElementType.FLOAT, 1, WIDTH);
                Tensor y = Tensor.wrap(Models.direct(WIDTH).asReadOnlyBuffer(), 1, WIDTH)) {
            Models.assertFails(ErrorCode.INVALID_ARGUMENT, "y", () -> session.run(Map.of("x", x), Map.of("y", y)));
        }
    }

    @Test
    void openErrorsHaveCodeAndPath() {
        Models.assertFails(ErrorCode.NO_SUCHFILE, "nothing-😀.onnx", () -> Model.open("/nothing-😀.onnx"));
        Models.assertFails(ErrorCode.INVALID_ARGUMENT, "folio.nonsense",
                () -> Model.open(Models.path("mlp"), new ModelOptions().config("folio.nonsense", "1")));
        Models.assertFails(ErrorCode.NO_MODEL, "not an ONNX",
                () -> Model.copyOf(new byte[100], new ModelOptions()));
        try (Model model = Model.open(Models.path("mlp"))) {
            Models.assertFails(ErrorCode.INVALID_ARGUMENT, "folio.threads",
                    () -> model.session(new SessionOptions().config("folio.threads", "many")));
        }
    }

    @Test
    void pathsMayHaveEmoji(@TempDir Path folder) throws java.io.IOException {
        Path copy = folder.resolve("模型-😀.onnx");
        Files.copy(Models.path("mlp"), copy, StandardCopyOption.REPLACE_EXISTING);
        try (Model model = Model.open(copy); Session copied = model.session(new SessionOptions().threads(1))) {
            assertEquals("x", copied.inputs().get(0).name());
        }
    }

    @Test
    void aModelFromBytesRuns() throws java.io.IOException {
        try (Model model = Model.copyOf(Files.readAllBytes(Models.path("mlp")), new ModelOptions());
                Session fixed = model.session(new SessionOptions().freeDimension("batch", 3))) {
            assertArrayEquals(new long[] {3, WIDTH}, fixed.inputs().get(0).shape());
        }
    }

    @Test
    void useAfterCloseThrows() {
        Model model = Model.open(Models.path("mlp"));
        model.close();
        model.close();
        Models.assertFails(ErrorCode.CLOSED, "model", model::session);
        Models.assertFails(ErrorCode.CLOSED, "model", model::inputs);
        try (Tensor x = Tensor.allocate(ElementType.FLOAT, 1, WIDTH)) {
            Tensor closed = Tensor.allocate(ElementType.FLOAT, 1, WIDTH);
            closed.close();
            Models.assertFails(ErrorCode.CLOSED, "closed", () -> session.run(Map.of("x", closed)));
            Models.assertFails(ErrorCode.CLOSED, "closed", () -> session.run(Map.of("x", x), Map.of("y", closed)));
            session.close();
            session.close(CloseMode.CANCEL);
            Models.assertFails(ErrorCode.CLOSED, "session", () -> session.run(Map.of("x", x)));
            assertEquals("x", session.inputs().get(0).name());
        }
    }

    @Test
    void aCloseModeThatIsNoneClosesNothing() {
        Models.assertFails(ErrorCode.INVALID_ARGUMENT, "null", () -> session.close(null));
        assertTrue(session.waitPacked(-1));
    }

    @Test
    void outputsThatAreClosedGiveNothing() {
        try (Tensor x = Tensor.allocate(ElementType.FLOAT, 1, WIDTH)) {
            Outputs outputs = session.run(Map.of("x", x));
            outputs.close();
            outputs.close();
            Models.assertFails(ErrorCode.CLOSED, "outputs", () -> outputs.get("y"));
            Models.assertFails(ErrorCode.CLOSED, "outputs", () -> outputs.value("nobody"));
            assertEquals(Set.of("y"), outputs.names());
        }
    }

    @Test
    void sequencesAndOptionalsHaveParts() {
        try (Session sequences = Models.session("sequences");
                Tensor x = Tensor.copyOf(Models.row(1, 8), 2, 4);
                Outputs outputs = sequences.run(Map.of("x", x), List.of("three", "maybe"), null)) {
            Value three = outputs.value("three");
            assertEquals(ValueKind.SEQUENCE, three.kind());
            assertEquals(3, three.partCount());
            try (Value part = three.part(0)) {
                assertEquals(ElementType.FLOAT, part.type());
                assertNotNull(((Tensor) part).floats());
            }
            Models.assertFails(ErrorCode.INVALID_ARGUMENT, "SEQUENCE", () -> outputs.get("three"));
            Models.assertFails(ErrorCode.INVALID_ARGUMENT, "index 3 ", () -> three.part(3));
            Models.assertFails(ErrorCode.INVALID_ARGUMENT, "index -1 ", () -> three.part(-1));
            ValueInfo declared = sequences.outputs().get(8);
            assertEquals(ValueKind.SEQUENCE, declared.kind());
            assertEquals(ElementType.FLOAT, declared.element().type());
        }
    }

    @Test
    void allOutputsAreComputedWhereNoneIsNamed() {
        try (Session sequences = Models.session("sequences"); Tensor x = Tensor.copyOf(Models.row(1, 8), 2, 4)) {
            Set<String> all = sequences.outputs().stream().map(ValueInfo::name).collect(Collectors.toSet());
            RunOptions options = new RunOptions().timeout(Duration.ofMinutes(10));
            List<String> names = null;
            try (Outputs given = sequences.run(Map.of("x", x), options);
                    Outputs named = sequences.run(Map.of("x", x), names, options);
                    Outputs later = sequences.runAsync(Map.of("x", x), null, options, Runnable::run).join()) {
                for (Outputs outputs : List.of(given, named, later)) assertEquals(all, outputs.names());
            }
            options.cancel();
            Models.assertFails(ErrorCode.CANCELLED, "", () -> sequences.run(Map.of("x", x), options));
        }
    }

    @Test
    void runOptionsAreChecked() {
        try (Tensor x = Tensor.allocate(ElementType.FLOAT, 1, WIDTH);
                Tensor y = Tensor.allocate(ElementType.FLOAT, 1, WIDTH)) {
            session.run(Map.of("x", x), Map.of("y", y), new RunOptions().tag("one"));
            Models.assertFails(ErrorCode.INVALID_ARGUMENT, "folio.nonsense",
                    () -> new RunOptions().config("folio.nonsense", "1"));
            assertEquals(2, ErrorCode.INVALID_ARGUMENT.number());
        }
    }

    @Test
    void aTimeLimitCancels() {
        try (Session slow = Models.session("slow");
                Tensor x = Tensor.allocate(ElementType.FLOAT, 400_000, 4)) {
            RunOptions limited = new RunOptions().timeout(Duration.ofMillis(1));
            Models.assertFails(ErrorCode.CANCELLED, "", () -> slow.run(Map.of("x", x), List.of("y"), limited));
            RunOptions cancelled = new RunOptions();
            cancelled.cancel();
            Models.assertFails(ErrorCode.CANCELLED, "", () -> slow.run(Map.of("x", x), List.of("y"), cancelled));
        }
    }

    @Test
    void aTimeLimitBelowAMillisecondIsOneMillisecond() {
        try (Session slow = Models.session("slow");
                Tensor x = Tensor.allocate(ElementType.FLOAT, 400_000, 4)) {
            for (long nanoseconds : new long[] {1, 999_999}) {
                RunOptions limited = new RunOptions().timeout(Duration.ofNanos(nanoseconds));
                Models.assertFails(ErrorCode.CANCELLED, "", () -> slow.run(Map.of("x", x), List.of("y"), limited));
            }
        }
    }

    @Test
    void whatMeansNoTimeLimitAndWhatIsRefused() {
        try (Tensor x = Tensor.allocate(ElementType.FLOAT, 1, WIDTH)) {
            for (Duration none : List.of(Duration.ZERO, ChronoUnit.FOREVER.getDuration())) {
                session.run(Map.of("x", x), List.of("y"), new RunOptions().timeout(none)).close();
            }
        }
        for (Duration passed : List.of(Duration.ofNanos(-1), Duration.ofMillis(-1), Duration.ofDays(-1))) {
            Models.assertFails(ErrorCode.INVALID_ARGUMENT, "negative", () -> new RunOptions().timeout(passed));
        }
    }
}
