package dev.foliort;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.FloatBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(120)
class ThreadsTest {
    private static final int THREADS = 8;
    private static final int WIDTH = Models.WIDTH;

    @Test
    void manyThreadsOnOneSessionGetTheirOwnResults() throws Exception {
        try (Session session = Models.session("mlp")) {
            List<float[]> expected = new ArrayList<>();
            for (int i = 0; i < THREADS; ++i) expected.add(run(session, i));
            AtomicInteger next = new AtomicInteger();
            together(() -> {
                int mine = next.getAndIncrement();
                FloatBuffer in = Models.direct(WIDTH).put(0, Models.row(mine, WIDTH));
                FloatBuffer out = Models.direct(WIDTH);
                try (Tensor x = Tensor.wrap(in, 1, WIDTH); Tensor y = Tensor.wrap(out, 1, WIDTH)) {
                    for (int round = 0; round < 300; ++round) {
                        session.run(Map.of("x", x), Map.of("y", y));
                        assertArrayEquals(expected.get(mine), Models.copy(out));
                    }
                }
                return null;
            });
        }
    }

    @Test
    void collectionsDuringRunsDoNoHarm() throws Exception {
        try (Session session = Models.session("mlp")) {
            float[] expected = run(session, 3);
            AtomicInteger next = new AtomicInteger();
            together(() -> {
                boolean collects = next.getAndIncrement() == 0;
                for (int round = 0; round < 200; ++round) {
                    // Nothing is closed, and nothing but the run holds the buffer.
                    Tensor x = Tensor.wrap(Models.direct(WIDTH).put(0, Models.row(3, WIDTH)), 1, WIDTH);
                    FloatBuffer y = session.run(Map.of("x", x)).get("y").floats();
                    if (collects && round % 10 == 0) System.gc();
                    assertArrayEquals(expected, Models.copy(y));
                }
                return null;
            });
        }
    }

    @Test
    void closeWaitsForRunsInFlight() throws Exception {
        closeDuringRuns(CloseMode.WAIT);
    }

    @Test
    void closeCancelsRunsInFlight() throws Exception {
        closeDuringRuns(CloseMode.CANCEL);
    }

    @Test
    void closingEverythingFromEverywhereNeverCrashes() throws Exception {
        for (int round = 0; round < 30; ++round) {
            Session session = Models.session("mlp");
            Tensor x = Tensor.allocate(ElementType.FLOAT, 1, WIDTH);
            AtomicInteger next = new AtomicInteger();
            together(() -> {
                int mine = next.getAndIncrement();
                try {
                    for (int i = 0; i < 200; ++i) {
                        if (i == 20 * mine) session.close(mine % 2 == 0 ? CloseMode.CANCEL : CloseMode.WAIT);
                        if (mine == 7 && i == 10) x.close();
                        session.run(Map.of("x", x)).close();
                    }
                } catch (FolioException e) {
                    assertTrue(e.code() == ErrorCode.CLOSED || e.code() == ErrorCode.CANCELLED, e.getMessage());
                }
                return null;
            });
            session.close();
            x.close();
        }
    }

    private static void closeDuringRuns(CloseMode mode) throws Exception {
        Session session = Models.session("slow");
        CountDownLatch running = new CountDownLatch(2);
        ExecutorService pool = Executors.newFixedThreadPool(2);
        List<Future<ErrorCode>> ends = new ArrayList<>();
        for (int i = 0; i < 2; ++i) {
            ends.add(pool.submit(() -> {
                try (Tensor x = Tensor.allocate(ElementType.FLOAT, 100_000, 4)) {
                    running.countDown();
                    session.run(Map.of("x", x)).close();
                    return null;
                } catch (FolioException e) {
                    return e.code();
                }
            }));
        }
        running.await();
        Thread.sleep(30);
        session.close(mode);
        for (Future<ErrorCode> end : ends) {
            assertEquals(mode == CloseMode.WAIT ? null : ErrorCode.CANCELLED, end.get());
        }
        pool.shutdown();
    }

    private static float[] run(Session session, int seed) {
        try (Tensor x = Tensor.copyOf(Models.row(seed, WIDTH), 1, WIDTH); Outputs y = session.run(Map.of("x", x))) {
            return Models.copy(y.get("y").floats());
        }
    }

    private static void together(Callable<Void> work) throws Exception {
        ExecutorService pool = Executors.newFixedThreadPool(THREADS);
        List<Future<Void>> ends = new ArrayList<>();
        for (int i = 0; i < THREADS; ++i) ends.add(pool.submit(work));
        pool.shutdown();
        for (Future<Void> end : ends) end.get();
    }
}
