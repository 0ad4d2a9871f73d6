package dev.foliort;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Packed weights: caches, pack files, stores. */
class PackTest {
    @TempDir
    Path folder;

    private Path copyOf(String name) throws IOException {
        return Files.copy(Models.path(name), folder.resolve("model.onnx"));
    }

    private static Session packed(Model model, SessionOptions options) {
        Session session = model.session(options);
        assertTrue(session.waitPacked(-1));
        return session;
    }

    @Test
    void aHoldingCacheServesTheNextSession() {
        try (Model model = Model.open(Models.path("mlp")); PackCache cache = PackCache.holding()) {
            SessionOptions options = new SessionOptions().packCache(cache);
            packed(model, options).close();
            PackCacheStats first = cache.stats();
            assertTrue(first.missCount() > 0 && first.blobCount() == first.missCount());
            assertEquals(first.missCount(), first.packedCount());
            assertEquals(first.blobBytes(), first.heapBlobBytes());
            addsUp(first);
            packed(model, options).close();
            assertEquals(first.missCount(), cache.stats().missCount());
            assertTrue(cache.stats().hitCount() > first.hitCount());
            assertEquals(first.blobBytes(), cache.collect());
            assertEquals(0, cache.stats().blobCount());
        }
    }

    private static void addsUp(PackCacheStats s) {
        assertEquals(s.missCount(), s.foundCount() + s.packedCount() + s.writtenCount());
        assertEquals(s.blobCount(), s.heapBlobCount() + s.sidecarBlobCount() + s.storeBlobCount());
        assertEquals(s.blobBytes(), s.heapBlobBytes() + s.sidecarBlobBytes() + s.storeBlobBytes());
        assertTrue(s.foundBytes() + s.packedBytes() + s.writtenBytes() > 0);
        assertEquals(0, s.misfitCount() + s.damagedCount() + s.ignoredFileCount());
        assertTrue(s.absentCount() <= s.missCount());
        assertTrue(s.hashedBytes() + s.memoBytes() + s.declaredBytes() + s.cachedBytes() >= 0);
    }

    @Test
    void aSharingCacheKeepsNothing() {
        try (Model model = Model.open(Models.path("mlp")); PackCache cache = PackCache.sharing()) {
            packed(model, new SessionOptions().packCache(cache)).close();
            assertTrue(cache.stats().packedCount() > 0);
            assertEquals(0, cache.stats().blobCount());
            assertTrue(PackCache.sharedStats().missCount() >= 0);
        }
    }

    @Test
    void whatACacheRecordedServesLaterSessions() throws IOException {
        Path file = folder.resolve("recorded.fpack");
        try (Model model = Model.open(copyOf("mlp")); PackCache cache = PackCache.recording()) {
            packed(model, new SessionOptions().packCache(cache)).close();
            PackCacheStats stats = cache.stats();
            assertTrue(stats.recordedCount() > 0 && stats.recordedBytes() > 0);
            PackResult written = cache.write(file);
            assertEquals(stats.recordedCount(), written.writtenBlobCount());
            assertTrue(written.writtenBlobBytes() > 0);
            try (PackCache other = PackCache.holding()) {
                packed(model, new SessionOptions().packCache(other).config("folio.pack_sidecar", file.toString()))
                        .close();
                assertEquals(written.writtenBlobCount(), other.stats().foundCount());
                assertEquals(0, other.stats().packedCount());
                addsUp(other.stats());
            }
            cache.close();
            Models.assertFails(ErrorCode.CLOSED, "pack cache", cache::stats);
        }
    }

    @Test
    void packFilesAreMadeCheckedAndDescribed() throws IOException {
        try (Model model = Model.open(copyOf("mlp"))) {
            PackResult missing = model.pack(new PackOptions().check(true));
            assertTrue(missing.missingBlobCount() > 0);
            PackResult written = model.pack(new PackOptions().levels(Env.cpu().level()), new SessionOptions());
            assertEquals(missing.missingBlobCount(), written.writtenBlobCount());
            assertEquals(0, written.rawBlobCount() + written.rawBlobBytes());
            PackResult checked = model.pack(new PackOptions().check(true));
            assertEquals(0, checked.missingBlobCount());
            assertEquals(written.writtenBlobCount(), checked.foundBlobCount());
            String described = PackFiles.describe(folder.resolve("model.onnx.fpack"), true);
            assertTrue(described.contains("\"blobs\""), described);
            Path elsewhere = folder.resolve("elsewhere.fpack");
            model.pack(new PackOptions().path(elsewhere));
            assertTrue(Files.exists(elsewhere));
        }
    }

    @Test
    void aModelCanHaveItsWeightsInThePackFileAlone() throws IOException {
        Path replaced = folder.resolve("replaced.onnx");
        try (Model model = Model.open(Models.path("wide"))) {
            model.pack(new PackOptions().path(replaced).replace(true));
        }
        assertTrue(Files.size(replaced) < Files.size(Models.path("wide")) / 2);
        try (Model model = Model.open(replaced)) {
            model.session().close();
        }
    }

    @Test
    void storesAreListedVerifiedAndCollected() throws IOException {
        Path store = Files.createDirectory(folder.resolve("store"));
        try (Model model = Model.open(copyOf("mlp"))) {
            assertTrue(model.pack(new PackOptions().store(store)).writtenBlobCount() > 0);
        }
        assertTrue(PackFiles.listStore(store).startsWith("{"));
        assertTrue(PackFiles.verifyStore(store).startsWith("{"));
        assertTrue(PackFiles.collectStore(store, 1 << 30).startsWith("{"));
        Models.assertFails(ErrorCode.INVALID_ARGUMENT, "negative", () -> PackFiles.collectStore(store, -1));
        Models.assertFails(ErrorCode.NO_SUCHFILE, "nothing",
                () -> PackFiles.describe(folder.resolve("nothing.fpack"), false));
    }
}
