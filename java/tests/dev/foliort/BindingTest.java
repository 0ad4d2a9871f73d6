package dev.foliort;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.management.ThreadMXBean;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.FloatBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

class BindingTest {
    private static final int WIDTH = Models.WIDTH;
    private static final ByteOrder OTHER_ORDER = ByteOrder.nativeOrder() == ByteOrder.LITTLE_ENDIAN
            ? ByteOrder.BIG_ENDIAN : ByteOrder.LITTLE_ENDIAN;

    private Session session;
    private float[] expected;

    @BeforeEach
    void open() {
        session = Models.session("mlp");
        try (Tensor x = Tensor.copyOf(Models.row(1, WIDTH), 1, WIDTH); Outputs y = session.run(Map.of("x", x))) {
            expected = Models.copy(y.get("y").floats());
        }
    }

    @AfterEach
    void close() {
        session.close();
    }

    private static FloatBuffer row() {
        return Models.direct(WIDTH).put(0, Models.row(1, WIDTH));
    }

    @Test
    void boundRunsReadAndWriteTheMemoryGiven() {
        FloatBuffer in = row();
        FloatBuffer out = Models.direct(WIDTH);
        try (Binding binding = session.binding()) {
            try (Tensor x = Tensor.wrap(in, 1, WIDTH); Tensor y = Tensor.wrap(out, 1, WIDTH)) {
                binding.bindInput("x", x).bindOutput("y", y);
            } // the binding holds them
            binding.run();
            assertArrayEquals(expected, Models.copy(out));
            in.put(0, Models.row(2, WIDTH));
            binding.run(new RunOptions());
            assertTrue(!Arrays.equals(expected, Models.copy(out)));
        }
    }

    @Test
    void boundRunsMakeNewValuesWhereNoneIsGiven() {
        try (Binding binding = session.binding(); Tensor x = Tensor.wrap(row(), 1, WIDTH)) {
            binding.bindInput("x", x).bindOutput("y");
            assertEquals(List.of("y"), binding.outputNames());
            binding.run();
            try (Tensor first = binding.get("y")) {
                binding.run();
                try (Value second = binding.value("y")) {
                    assertArrayEquals(expected, Models.copy(first.floats()));
                    assertNotEquals(first, second);
                }
            }
            Models.assertFails(ErrorCode.INVALID_ARGUMENT, "z", () -> binding.get("z"));
        }
    }

    @Test
    void outputsFitIntoCapacityOrSayWhatTheyTake() {
        ByteBuffer room = ByteBuffer.allocateDirect(4096).order(ByteOrder.nativeOrder()).position(64);
        try (Binding binding = session.binding(); Tensor x = Tensor.wrap(row(), 1, WIDTH)) {
            binding.bindInput("x", x).bindOutputWithCapacity("y", room);
            binding.run();
            try (Tensor y = binding.get("y")) {
                assertArrayEquals(new long[] {1, WIDTH}, y.shape());
                assertEquals(expected[3], room.getFloat(64 + 3 * Float.BYTES));
            }
            ByteBuffer small = ByteBuffer.allocateDirect(100).order(ByteOrder.nativeOrder());
            binding.clearOutputs().bindOutputWithCapacity("y", small);
            Models.assertFails(ErrorCode.INVALID_ARGUMENT, "128", binding::run);
            Models.assertFails(ErrorCode.INVALID_ARGUMENT, "direct",
                    () -> binding.bindOutputWithCapacity("y", ByteBuffer.allocate(4096)));
            Models.assertFails(ErrorCode.INVALID_ARGUMENT, "byte order",
                    () -> binding.bindOutputWithCapacity("y", ByteBuffer.allocateDirect(4096).order(OTHER_ORDER)));
        }
    }

    @Test
    void whatWasBoundCanBeForgotten() {
        try (Binding binding = session.binding(); Tensor x = Tensor.wrap(row(), 1, WIDTH)) {
            binding.bindInput("x", x).bindOutput("y").clearInputs();
            Models.assertFails(ErrorCode.INVALID_ARGUMENT, "x", binding::run);
            Models.assertFails(ErrorCode.INVALID_ARGUMENT, "nobody", () -> binding.bindInput("nobody", x));
            Models.assertFails(ErrorCode.INVALID_ARGUMENT, "null", () -> binding.bindInput("x", null));
        }
    }

    @Test
    void closedBindingsAndSessionsRefuseBoundRuns() {
        Binding binding = session.binding();
        Binding other = session.binding();
        binding.close();
        binding.close();
        Models.assertFails(ErrorCode.CLOSED, "binding", binding::run);
        Models.assertFails(ErrorCode.CLOSED, "binding", () -> binding.bindOutput("y"));
        session.close();
        Models.assertFails(ErrorCode.CLOSED, "session", other::run);
        Models.assertFails(ErrorCode.CLOSED, "session", () -> session.binding());
        other.close();
    }

    @Test
    void boundRunsCanBeCancelled() {
        try (Session slow = Models.session("slow");
                Binding binding = slow.binding();
                Tensor x = Tensor.allocate(ElementType.FLOAT, 100_000, 4)) {
            RunOptions cancelled = new RunOptions().tag("stopped");
            cancelled.cancel();
            binding.bindInput("x", x).bindOutput("y");
            Models.assertFails(ErrorCode.CANCELLED, "", () -> binding.run(cancelled));
            binding.run(null); // as without
        }
    }

    /** A cache that is input and output is written in place: token by token gives what all at once gives. */
    @Test
    void aCacheBoundAsInputAndOutputIsWrittenInPlace() {
        long[] tokens = {1, 7, 42, 3};
        float[] atOnce;
        try (Session decoder = Models.session("decoder")) {
            try (Generation whole = new Generation(decoder)) {
                atOnce = whole.step(tokens);
            }
            try (Generation steps = new Generation(decoder)) {
                float[] last = null;
                for (long token : tokens) last = steps.step(token);
                assertArrayEquals(atOnce, last, 1e-3f);
                assertEquals(tokens.length, steps.rowsWritten());
            }
        }
    }

    @Test
    void boundRunsMakeNoGarbage() {
        ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
        try (Binding binding = session.binding();
                Tensor x = Tensor.wrap(row(), 1, WIDTH);
                Tensor y = Tensor.allocate(ElementType.FLOAT, 1, WIDTH)) {
            binding.bindInput("x", x).bindOutput("y", y);
            for (int i = 0; i < 1000; ++i) binding.run();
            long before = threads.getCurrentThreadAllocatedBytes();
            for (int i = 0; i < 100_000; ++i) binding.run();
            long bytes = threads.getCurrentThreadAllocatedBytes() - before;
            assertTrue(bytes < 10_000, bytes + " bytes of garbage in 100000 runs"); // the compiler's own, if any
        }
    }

    @Test
    void oneBindingInManyThreadsRunsOneAfterTheOther() throws InterruptedException {
        try (Binding binding = session.binding();
                Tensor x = Tensor.wrap(row(), 1, WIDTH);
                Tensor y = Tensor.allocate(ElementType.FLOAT, 1, WIDTH)) {
            binding.bindInput("x", x).bindOutput("y", y);
            List<Thread> threads = new ArrayList<>();
            List<Throwable> failures = new ArrayList<>();
            for (int i = 0; i < 4; ++i) {
                Thread thread = new Thread(() -> {
                    for (int run = 0; run < 200; ++run) {
                        if (run % 20 == 0) binding.bindInput("x", x);
                        binding.run();
                    }
                });
                thread.setUncaughtExceptionHandler((who, e) -> failures.add(e));
                threads.add(thread);
                thread.start();
            }
            for (Thread thread : threads) thread.join();
            assertEquals(List.of(), failures);
            assertArrayEquals(expected, Models.copy(y.floats()));
        }
    }

    /** A decoder whose caches are one tensor each, as long as it will ever be. */
    private static final class Generation implements AutoCloseable {
        private static final int MAX = 8;
        private static final String[] CACHES = {"0.key", "0.value", "1.key", "1.value"};

        private final Binding binding;
        private final List<Tensor> caches = new ArrayList<>();
        private int length;

        Generation(Session decoder) {
            binding = decoder.binding().bindOutput("logits");
            for (String cache : CACHES) {
                Tensor tensor = Tensor.allocate(ElementType.FLOAT, 1, 2, MAX, 32);
                caches.add(tensor);
                binding.bindInput("past_key_values." + cache, tensor).bindOutput("present." + cache, tensor);
            }
        }

        /** The logits of the last token. */
        float[] step(long... tokens) {
            length += tokens.length;
            long[] ones = new long[length];
            Arrays.fill(ones, 1);
            try (Tensor ids = Tensor.copyOf(tokens, 1, tokens.length); Tensor mask = Tensor.copyOf(ones, 1, length)) {
                binding.bindInput("input_ids", ids).bindInput("attention_mask", mask);
                binding.run();
            }
            try (Tensor logits = binding.get("logits")) {
                float[] all = Models.copy(logits.floats());
                int vocabulary = all.length / tokens.length;
                return Arrays.copyOfRange(all, all.length - vocabulary, all.length);
            }
        }

        /** Rows of the first cache that are not zeros. */
        int rowsWritten() {
            FloatBuffer cache = caches.get(0).floats();
            int count = 0;
            for (int row = 0; row < MAX; ++row) {
                boolean isZero = true;
                for (int i = 0; i < 32; ++i) isZero &= cache.get(row * 32 + i) == 0;
                if (!isZero) ++count;
            }
            return count;
        }

        @Override
        public void close() {
            binding.close();
            caches.forEach(Tensor::close);
        }
    }
}
