package dev.foliort;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.lang.ref.WeakReference;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Opening and compiling: progress, cancelling, what a model says of itself, what it is made with. */
class LoadTest {
    private static final int WIDTH = Models.WIDTH;

    @Test
    void progressIsHeardToItsEnd() {
        List<String> stages = new ArrayList<>();
        double[] last = new double[1];
        ProgressListener listener = (stage, fraction) -> {
            stages.add(stage);
            assertTrue(fraction >= last[0] && fraction <= 1, stage + " " + fraction);
            last[0] = fraction;
            return true;
        };
        try (Model model = Model.open(Models.path("mlp"), new ModelOptions().progress(listener))) {
            assertTrue(stages.size() > 0);
            assertEquals(1.0, last[0]);
            stages.clear();
            last[0] = 0;
            model.session(new SessionOptions().progress(listener)).close();
            assertTrue(stages.size() > 0);
        }
    }

    @Test
    void progressCanCancel() {
        Models.assertFails(ErrorCode.MODEL_LOAD_CANCELED, "",
                () -> Model.open(Models.path("mlp"), new ModelOptions().progress((stage, fraction) -> false)));
    }

    @Test
    void whatAListenerThrowsComesOutOfTheCall() {
        ProgressListener broken = (stage, fraction) -> {
            throw new IllegalStateException("mine 😀");
        };
        IllegalStateException e = assertThrows(IllegalStateException.class,
                () -> Model.open(Models.path("mlp"), new ModelOptions().progress(broken)));
        assertEquals("mine 😀", e.getMessage());
        try (Model model = Model.open(Models.path("mlp"))) {
            assertThrows(IllegalStateException.class, () -> model.session(new SessionOptions().progress(broken)));
            ProgressListener error = (stage, fraction) -> {
                throw new StackOverflowError();
            };
            assertThrows(StackOverflowError.class, () -> model.session(new SessionOptions().progress(error)));
            model.session().close(); // nothing is left of it
        }
    }

    @Test
    void loadsCanBeCancelledFromOutside() {
        Cancel cancel = new Cancel();
        assertFalse(cancel.isRequested());
        try (Model model = Model.open(Models.path("mlp"), new ModelOptions().cancel(cancel))) {
            cancel.request();
            assertTrue(cancel.isRequested());
            Models.assertFails(ErrorCode.MODEL_LOAD_CANCELED, "",
                    () -> Model.open(Models.path("mlp"), new ModelOptions().cancel(cancel)));
            Models.assertFails(ErrorCode.MODEL_LOAD_CANCELED, "",
                    () -> model.session(new SessionOptions().cancel(cancel)));
        }
    }

    @Test
    void aModelTellsOfItself() {
        try (Model model = Model.open(Models.path("decoder").toString(), new ModelOptions()); Session session = model.session()) {
            ModelInfo info = model.info();
            assertEquals("onnx", info.format());
            assertTrue(info.path().endsWith("decoder.onnx"));
            assertEquals("folio make_model", info.producerName());
            assertEquals("1", info.producerVersion());
            assertEquals("decoder", info.graphName());
            assertEquals("", info.domain() + info.description());
            assertEquals(8, info.irVersion());
            assertEquals(0, info.modelVersion());
            assertEquals(31, info.nodeCount());
            assertTrue(info.initializerCount() > 0 && info.initializerBytes() < info.fileBytes());
            assertEquals(1, model.opsets().get("com.microsoft"));
            assertEquals(2, model.operators().get("com.microsoft.GroupQueryAttention"));
            assertEquals(List.of(), model.unsupportedOperators());
            assertEquals(List.of(), model.overridableInitializers());
            assertEquals(List.of(), session.overridableInitializers());
            assertTrue(model.memoryReport().text().contains("decoder.onnx"));
            try (Model again = session.model()) {
                assertEquals(info.path(), again.info().path());
            }
        }
    }

    @Test
    void nodesThatFolioLacksAreListed(@TempDir Path folder) throws IOException {
        byte[] bytes = Files.readAllBytes(Models.path("mlp"));
        Models.replaceAll(bytes, "MatMul", "MadMul");
        Path file = Files.write(folder.resolve("mad.onnx"), bytes);
        try (Model model = Model.open(file, new ModelOptions())) {
            UnsupportedOperator op = model.unsupportedOperators().get(0);
            assertEquals("MadMul", op.opType());
            assertEquals("", op.domain());
            assertTrue(op.opsetVersion() > 0);
            assertTrue(op.reason().length() > 0 && op.nodeName() != null);
            Models.assertFails(ErrorCode.UNSUPPORTED_OPERATOR, "MadMul", model::session);
        }
    }

    @Test
    void externalDataCanComeFromMemory(@TempDir Path folder) throws IOException {
        Path model = Files.copy(Models.path("external"), folder.resolve("model.onnx")); // without its data
        byte[] weights = Files.readAllBytes(Models.path("external").resolveSibling("external.bin"));
        Models.assertFails(ErrorCode.NO_SUCHFILE, "external.bin", () -> Model.open(model));
        ModelOptions options = new ModelOptions().copyExternalFile("external.bin", weights);
        try (Model opened = Model.open(model, options);
                Session session = opened.session();
                Session expected = Models.session("external")) {
            assertArrayEquals(run(expected), run(session));
        }
    }

    @Test
    void externalDataInMemoryOfTheCallersIsReadInPlace(@TempDir Path folder) throws Exception {
        Path path = Files.copy(Models.path("external"), folder.resolve("model.onnx")); // without its data
        ByteBuffer weights = direct(Models.path("external").resolveSibling("external.bin"));
        WeakReference<ByteBuffer> seen = new WeakReference<>(weights);
        ModelOptions options = new ModelOptions().externalFile("external.bin", weights);
        weights = null;
        Session session;
        try (Model model = Model.open(path, options)) {
            session = model.session(new SessionOptions().config("session.disable_prepacking", "1"));
        }
        options = null; // only the session has the bytes now
        assertReadInPlace(session, "external", seen);
        Models.assertFails(ErrorCode.INVALID_ARGUMENT, "not in a direct buffer",
                () -> new ModelOptions().externalFile("external.bin", ByteBuffer.allocate(4)));
        Models.assertFails(ErrorCode.INVALID_ARGUMENT, "null", () -> new ModelOptions().externalFile("external.bin", null));
    }

    @Test
    void aModelInMemoryOfTheCallersIsReadInPlace() throws Exception {
        ByteBuffer bytes = direct(Models.path("mlp"));
        WeakReference<ByteBuffer> seen = new WeakReference<>(bytes);
        Session session;
        try (Model model = Model.wrap(bytes, new ModelOptions())) {
            session = model.session(new SessionOptions().config("session.disable_prepacking", "1"));
        }
        bytes = null;
        assertReadInPlace(session, "mlp", seen);
        Models.assertFails(ErrorCode.INVALID_ARGUMENT, "not in a direct buffer",
                () -> Model.wrap(ByteBuffer.allocate(4), new ModelOptions()));
        ByteBuffer none = ByteBuffer.allocateDirect(64);
        WeakReference<ByteBuffer> refused = new WeakReference<>(none);
        assertThrows(FolioException.class, () -> Model.wrap(refused.get(), new ModelOptions()));
        none = null;
        assertGoes(refused);
    }

    /** Closes the session, which alone holds the memory; a part of a buffer holds the whole. */
    private static void assertReadInPlace(Session session, String model, WeakReference<ByteBuffer> memory)
            throws InterruptedException {
        for (int i = 0; i < 100; ++i) {
            if (i % 20 == 0) System.gc();
            ByteBuffer.allocateDirect(1 << 14).put(9, (byte) 1); // would lie where the memory was
        }
        try (Session expected = Models.session(model)) {
            assertArrayEquals(run(expected), run(session));
        }
        assertTrue(memory.get() != null, "the memory was let go under the session: its bytes were copied, or are lost");
        session.close();
        assertGoes(memory);
    }

    private static void assertGoes(WeakReference<?> memory) throws InterruptedException {
        for (int i = 0; i < 100 && memory.get() != null; ++i) {
            System.gc();
            Thread.sleep(10);
        }
        assertEquals(null, memory.get(), "the memory was not given back");
    }

    /** A file's bytes in a direct buffer, with others before and after them. */
    private static ByteBuffer direct(Path file) throws IOException {
        byte[] bytes = Files.readAllBytes(file);
        ByteBuffer result = ByteBuffer.allocateDirect(bytes.length + 128);
        return result.position(64).put(bytes).flip().position(64);
    }

    @Test
    void initializersCanBeReplaced() {
        try (Model model = Model.open(Models.path("mlp"));
                Session session = model.session();
                Tensor zeros = Tensor.allocate(ElementType.FLOAT, WIDTH, WIDTH)) {
            try (Session replaced = model.session(new SessionOptions().initializer("layer0.weight", zeros))) {
                assertTrue(!java.util.Arrays.equals(run(session), run(replaced)));
            }
            Models.assertFails(ErrorCode.INVALID_ARGUMENT, "nobody",
                    () -> model.session(new SessionOptions().initializer("nobody", zeros)));
        }
    }

    @Test
    void runsMayOverrideInputsThatHaveADefault() {
        try (Model model = Model.open(Models.path("defaults"));
                Session session = model.session();
                Tensor x = Tensor.copyOf(Models.row(1, WIDTH), 1, WIDTH);
                Tensor zeros = Tensor.allocate(ElementType.FLOAT, WIDTH);
                Tensor ones = Tensor.allocate(ElementType.FLOAT, WIDTH)) {
            assertEquals(1, model.inputs().size());
            assertEquals(4, model.overridableInitializers().size());
            assertEquals("layer0.bias FLOAT[32]", model.overridableInitializers().get(0).toString());
            assertEquals(List.of("layer3.bias"), session.overridableInitializers().stream().map(ValueInfo::name)
                    .filter(name -> name.startsWith("layer3")).collect(java.util.stream.Collectors.toList()));
            for (int i = 0; i < WIDTH; ++i) ones.floats().put(i, 1f);
            try (Outputs usual = session.run(Map.of("x", x));
                    Outputs without = session.run(Map.of("x", x, "layer3.bias", zeros));
                    Outputs with = session.run(Map.of("x", x, "layer3.bias", ones))) {
                assertFalse(usual.get("y").floats().equals(without.get("y").floats()));
                for (int i = 0; i < WIDTH; ++i) {
                    assertEquals(1f, with.get("y").floats().get(i) - without.get("y").floats().get(i), 1e-5f);
                }
            }
        }
    }

    @Test
    void shapesCanBePlannedBeforehand() {
        try (Session session = Models.session("mlp")) {
            session.prepareShapes(Map.of("x", new long[] {3, WIDTH}));
            Models.assertFails(ErrorCode.INVALID_ARGUMENT, "5",
                    () -> session.prepareShapes(Map.of("x", new long[] {3, 5})));
        }
    }

    private static float[] run(Session session) {
        try (Tensor x = Tensor.copyOf(Models.row(1, WIDTH), 1, WIDTH); Outputs outputs = session.run(Map.of("x", x))) {
            return Models.copy(outputs.get("y").floats());
        }
    }
}
