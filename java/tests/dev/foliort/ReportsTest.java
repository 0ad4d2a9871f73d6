package dev.foliort;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.ResourceBundle;
import org.junit.jupiter.api.Test;

/** The log, metrics and memory, and that nothing leaks. */
class ReportsTest {
    private static final int WIDTH = Models.WIDTH;

    /** Keeps the lines that it gets, or throws. */
    private static final class Log implements System.Logger {
        final List<String> lines = Collections.synchronizedList(new ArrayList<>());
        volatile boolean throwing;

        @Override
        public String getName() {
            return "test";
        }

        @Override
        public boolean isLoggable(Level level) {
            return level.getSeverity() >= Level.WARNING.getSeverity();
        }

        @Override
        public void log(Level level, ResourceBundle bundle, String message, Throwable thrown) {
            lines.add(level + " " + message);
            if (throwing) throw new IllegalStateException("the logger is broken");
        }

        @Override
        public void log(Level level, ResourceBundle bundle, String format, Object... values) {
            log(level, bundle, format, (Throwable) null);
        }
    }

    /** Each key is warned of once. */
    private static void warn(Env env, String key) {
        ModelOptions options = new ModelOptions().config(key, "1");
        Model.open(env, Models.path("mlp").toString(), options).close();
    }

    @Test
    void theLogGoesToTheHost() {
        Log log = new Log();
        try (Env env = new Env(new EnvOptions().log(log).threads(1).maxArenas(4))) {
            warn(env, "session.reports_test_😀");
            assertEquals(1, log.lines.size());
            assertTrue(log.lines.get(0).startsWith("WARNING"), log.lines.get(0));
            assertTrue(log.lines.get(0).contains("session.reports_test_😀"), log.lines.get(0));
        }
        warn(Env.shared(), "session.reports_test_a"); // to standard error now
        assertEquals(1, log.lines.size());
    }

    @Test
    void aLogThatThrowsHarmsNobody() {
        Log log = new Log();
        log.throwing = true;
        try (Env env = new Env(new EnvOptions().log(log))) {
            warn(env, "session.reports_test_b");
            assertEquals(1, log.lines.size());
        }
        Models.assertFails(ErrorCode.INVALID_ARGUMENT, "threads", () -> new Env(new EnvOptions().threads(-1)));
    }

    @Test
    void environmentsCloseAndTheSharedOneDoesNot() {
        Env env = new Env(new EnvOptions());
        env.close();
        env.close();
        Models.assertFails(ErrorCode.CLOSED, "env", env::metrics);
        Env.shared().close();
        Env.shared().trim();
        assertTrue(Env.shared().metricsText().contains("folio_"));
        assertTrue(Env.buildInfo().contains(Model.libraryVersion()));
        CpuInfo cpu = Env.cpu();
        assertTrue(cpu.logicalCpuCount() > 0 && cpu.defaultThreadCount() > 0);
        assertFalse(cpu.level().isEmpty() || cpu.features() == null || cpu.brand() == null);
    }

    @Test
    void metricsCountRuns() {
        try (Session session = Models.session("mlp"); Tensor x = Tensor.allocate(ElementType.FLOAT, 1, WIDTH)) {
            for (int i = 0; i < 5; ++i) session.run(Map.of("x", x)).close();
            RunOptions cancelled = new RunOptions();
            cancelled.cancel();
            Models.assertFails(ErrorCode.CANCELLED, "", () -> session.run(Map.of("x", x), List.of("y"), cancelled));
            Metrics metrics = session.metrics();
            assertEquals(6, metrics.runCount());
            assertEquals(1, metrics.cancelledCount());
            assertEquals(0, metrics.errorCount());
            assertEquals(0, metrics.inFlightCount());
            assertEquals(1, metrics.sessionCount());
            assertEquals(6, metrics.latencyBuckets().stream().mapToLong(Long::longValue).sum());
            assertTrue(metrics.latencySumUs() >= 0);
            assertTrue(session.metricsText().contains("folio_"));
        }
    }

    @Test
    void memoryReportsAddUp() {
        try (Session session = Models.session("mlp")) {
            session.waitPacked(-1);
            MemoryReport report = session.memoryReport();
            assertTrue(report.mappedBytes() > 0);
            assertTrue(report.residentBytes() <= report.mappedBytes());
            assertTrue(report.pssBytes() <= report.residentBytes());
            assertTrue(report.packedHeapBytes() + report.packedSidecarBytes() + report.packedStoreBytes() > 0);
            assertTrue(report.constantBytes() >= 0 && report.privateBytes() > 0);
            assertTrue(report.savedFileBytes() >= 0 && report.savedPackedBytes() >= 0);
            MemoryReport.Entry file = report.entries().stream().filter(e -> e.kind().equals("mapping")).findFirst()
                    .orElseThrow();
            assertTrue(file.name().endsWith("mlp.onnx"), file.name());
            assertTrue(file.bytes() >= file.residentBytes() && file.residentBytes() >= file.pssBytes());
            assertFalse(file.isPrivate());
            assertTrue(report.json().startsWith("{") && report.text().equals(report.toString()));
            MemoryReport process = Env.shared().memoryReport();
            assertTrue(process.processRssBytes() > 0 && process.processPssBytes() > 0);
            assertTrue(process.processAnonymousBytes() > 0 && process.processPageTableBytes() > 0);
            assertTrue(process.arenaBytes() >= 0);
        }
    }

    @Test
    void sessionsThatNobodyClosesAreCollected() throws InterruptedException {
        try (Env env = new Env(new EnvOptions())) {
            for (int i = 0; i < 50; ++i) leak(env);
            for (int i = 0; i < 200 && env.metrics().sessionCount() != 0; ++i) {
                System.gc();
                Thread.sleep(10);
            }
            assertEquals(0, env.metrics().sessionCount());
        }
    }

    /** A session, binding, tensors and results, all left to the collector. */
    private static void leak(Env env) {
        Model model = Model.open(env, Models.path("mlp").toString(), new ModelOptions());
        Session session = model.session();
        Tensor x = Tensor.wrap(Models.direct(WIDTH), 1, WIDTH);
        session.binding().bindInput("x", x).bindOutput("y").run();
        session.run(Map.of("x", x)).get("y").floats();
    }
}
