package dev.foliort;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Models written as files. */
class SaveTest {
    @TempDir
    Path folder;

    private static SaveResult save(Path path, SaveOptions options) {
        try (Model model = Model.open(Models.path("mlp"))) {
            return model.save(path, options);
        }
    }

    private static void assertRefused(String part, SaveOptions options, Path path) {
        Models.assertFails(ErrorCode.INVALID_ARGUMENT, part, () -> save(path, options));
        assertFalse(Files.exists(path));
    }

    @Test
    void aSavedModelOpensAgain() throws IOException {
        Path saved = folder.resolve("saved 😀.ort");
        try (Model model = Model.open(Models.path("mlp"))) {
            SaveResult written = model.save(saved);
            assertEquals(Files.size(saved), written.fileBytes());
            assertEquals(0, written.dataBytes());
        }
        try (Model model = Model.open(saved)) {
            assertEquals("mlp", model.metadata().get("make_model.kind"));
            assertEquals("ort", model.info().format());
        }
    }

    @Test
    void theFormatIsChosenByItsName() {
        Path saved = folder.resolve("saved.bin");
        for (String format : new String[] {"ORT", "ONNX"}) {
            SaveResult written = save(saved, new SaveOptions().format(format).optimize("none"));
            try (Model model = Model.open(saved)) {
                assertEquals(format.toLowerCase(), model.info().format());
                assertEquals(written.nodeCount(), model.info().nodeCount());
                assertEquals(written.initializerCount(), model.info().initializerCount());
                assertEquals(written.initializerBytes(), model.info().initializerBytes());
            }
        }
    }

    private long nodes(String name, SaveOptions options) {
        try (Model model = Model.open(Models.path(name))) {
            return model.save(folder.resolve("saved.onnx"), options).nodeCount();
        }
    }

    @Test
    void levelsOptimizeMoreAndMore() {
        assertTrue(nodes("types", new SaveOptions().optimize("basic")) < nodes("types", new SaveOptions().optimize("none")));
        long all = nodes("decoder", new SaveOptions().optimize("all"));
        assertTrue(all < nodes("decoder", new SaveOptions().optimize("basic")));
        assertEquals(all, nodes("decoder", new SaveOptions()));
        assertEquals(all, nodes("decoder", new SaveOptions().optimize("extended")));
    }

    @Test
    void largeInitializersGoIntoAFileBesideTheModel() throws IOException {
        Path saved = folder.resolve("saved.onnx");
        Path data = folder.resolve("weights 😀.bin");
        SaveOptions options = new SaveOptions().externalFile("weights 😀.bin");
        assertEquals(0, save(saved, options.externalMinBytes(1 << 30)).dataBytes());
        assertFalse(Files.exists(data));
        SaveResult large = save(saved, options.externalMinBytes(0));
        assertEquals(Files.size(data), large.dataBytes());
        assertTrue(large.dataBytes() > large.fileBytes());
        try (Model model = Model.open(saved)) {
            model.session().close();
        }
        SaveResult small = save(saved, options.externalMinBytes(128));
        assertTrue(small.dataBytes() > large.dataBytes() && small.fileBytes() < large.fileBytes());
    }

    @Test
    void whatMakesNoSenseIsRefused() {
        assertRefused("most", new SaveOptions().optimize("most"), folder.resolve("a.onnx"));
        assertRefused("TXT", new SaveOptions().format("TXT"), folder.resolve("a.onnx"));
        assertRefused("-1", new SaveOptions().externalMinBytes(-1), folder.resolve("a.onnx"));
        assertRefused("b/c", new SaveOptions().externalFile("b/c"), folder.resolve("a.onnx"));
        assertRefused("a.ort", new SaveOptions().externalFile("b"), folder.resolve("a.ort"));
        assertRefused("null", new SaveOptions().format(null), folder.resolve("a.ort"));
        assertRefused("NUL", new SaveOptions().format("ORT\0"), folder.resolve("a.ort"));
        Models.assertFails(ErrorCode.NO_SUCHFILE, "none", () -> save(folder.resolve("none/a.onnx"), new SaveOptions()));
    }

    @Test
    void savesTellHowFarTheyAreAndCanBeStopped() {
        Path saved = folder.resolve("saved.onnx");
        List<String> stages = new ArrayList<>();
        double[] last = new double[1];
        save(saved, new SaveOptions().progress((stage, fraction) -> {
            stages.add(stage);
            assertTrue(fraction >= last[0] && fraction <= 1, stage + " " + fraction);
            last[0] = fraction;
            return true;
        }));
        assertTrue(stages.size() > 0 && last[0] == 1.0, stages + " " + last[0]);

        Path never = folder.resolve("never.onnx");
        Models.assertFails(ErrorCode.CANCELLED, "", () -> save(never, new SaveOptions().progress((stage, f) -> false)));
        IllegalStateException e = assertThrows(IllegalStateException.class,
                () -> save(never, new SaveOptions().progress((stage, fraction) -> {
                    throw new IllegalStateException("mine 😀");
                })));
        assertEquals("mine 😀", e.getMessage());
        Cancel cancel = new Cancel();
        cancel.request();
        Models.assertFails(ErrorCode.CANCELLED, "", () -> save(never, new SaveOptions().cancel(cancel)));
        assertFalse(Files.exists(never));
        save(never, new SaveOptions().cancel(new Cancel()).progress(null));
        assertTrue(Files.exists(never));
    }
}
