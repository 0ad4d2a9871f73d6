package dev.foliort;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(60)
class AsyncTest {
    private static final int WIDTH = Models.WIDTH;

    private final ExecutorService pool = Executors.newFixedThreadPool(2);

    @AfterEach
    void shutDown() throws InterruptedException {
        pool.shutdownNow();
        assertTrue(pool.awaitTermination(20, TimeUnit.SECONDS));
    }

    private static Tensor large() {
        return Tensor.allocate(ElementType.FLOAT, 100_000, 4);
    }

    @Test
    void asyncRunsGiveWhatRunsGive() throws Exception {
        try (Session session = Models.session("mlp")) {
            List<CompletableFuture<Outputs>> futures = new ArrayList<>();
            for (int i = 0; i < 20; ++i) {
                try (Tensor x = Tensor.copyOf(Models.row(i, WIDTH), 1, WIDTH)) {
                    futures.add(session.runAsync(Map.of("x", x), pool));
                } // closed at once: the run holds it
            }
            for (int i = 0; i < 20; ++i) {
                try (Tensor x = Tensor.copyOf(Models.row(i, WIDTH), 1, WIDTH);
                        Outputs expected = session.run(Map.of("x", x));
                        Outputs found = futures.get(i).get()) {
                    assertArrayEquals(Models.copy(expected.get("y").floats()), Models.copy(found.get("y").floats()));
                }
            }
        }
    }

    @Test
    void errorsOfAsyncRunsComeOutOfTheFuture() {
        try (Session session = Models.session("mlp"); Tensor narrow = Tensor.allocate(ElementType.FLOAT, 1, 5)) {
            CompletableFuture<Outputs> future = session.runAsync(Map.of("x", narrow), pool);
            ExecutionException e = assertThrows(ExecutionException.class, future::get);
            assertEquals(ErrorCode.INVALID_ARGUMENT, ((FolioException) e.getCause()).code());
            narrow.close();
            Models.assertFails(ErrorCode.CLOSED, "value", () -> session.runAsync(Map.of("x", narrow), pool));
        }
    }

    @Test
    void cancellingStopsTheRun() throws Exception {
        try (Session session = Models.session("slow"); Tensor x = large()) {
            CompletableFuture<Outputs> running = session.runAsync(Map.of("x", x), pool);
            Thread.sleep(20);
            assertTrue(running.cancel(true));
            assertThrows(CancellationException.class, running::get);
            RunOptions options = new RunOptions();
            CompletableFuture<Outputs> other = session.runAsync(Map.of("x", x), List.of("y"), options, pool);
            options.cancel();
            ExecutionException e = assertThrows(ExecutionException.class, other::get);
            assertEquals(ErrorCode.CANCELLED, ((FolioException) e.getCause()).code());
        }
    }

    @Test
    void theQueueOfPendingRunsIsBounded() throws Exception {
        try (Model model = Model.open(Models.path("slow"));
                Session session = model.session(new SessionOptions().pendingLimit(2));
                Tensor x = large()) {
            CompletableFuture<Outputs> first = session.runAsync(Map.of("x", x), pool);
            CompletableFuture<Outputs> second = session.runAsync(Map.of("x", x), pool);
            assertThrows(RejectedExecutionException.class, () -> session.runAsync(Map.of("x", x), pool));
            first.cancel(true);
            second.cancel(true);
            CompletableFuture<Outputs> later = null;
            while (later == null) {
                try {
                    later = session.runAsync(Map.of("x", x), pool); // as soon as a place is free
                } catch (RejectedExecutionException e) {
                    Thread.sleep(1);
                }
            }
            later.get().close();
            Models.assertFails(ErrorCode.INVALID_ARGUMENT, "less than 1", () -> new SessionOptions().pendingLimit(0));
        }
    }

    @Test
    void runsThatTheExecutorRefusesHoldNothing() {
        pool.shutdownNow();
        try (Model model = Model.open(Models.path("mlp"));
                Session session = model.session(new SessionOptions().pendingLimit(1));
                Tensor x = Tensor.allocate(ElementType.FLOAT, 1, WIDTH)) {
            for (int i = 0; i < 3; ++i) {
                RejectedExecutionException e = assertThrows(RejectedExecutionException.class,
                        () -> session.runAsync(Map.of("x", x), pool));
                assertThrows(NullPointerException.class, () -> session.runAsync(null, pool));
                assertTrue(!e.getMessage().contains("waiting or running"), e.getMessage());
            }
        }
    }

    @Test
    void closingTheSessionEndsPendingRuns() throws Exception {
        Session session = Models.session("slow");
        List<CompletableFuture<Outputs>> futures = new ArrayList<>();
        try (Tensor x = large()) {
            for (int i = 0; i < 6; ++i) futures.add(session.runAsync(Map.of("x", x), pool));
        }
        session.close(CloseMode.CANCEL);
        for (CompletableFuture<Outputs> future : futures) {
            try {
                future.get().close();
            } catch (ExecutionException e) {
                ErrorCode code = ((FolioException) e.getCause()).code();
                assertTrue(code == ErrorCode.CLOSED || code == ErrorCode.CANCELLED, code.toString());
            }
        }
    }
}
