import com.sun.management.ThreadMXBean;
import dev.foliort.Binding;
import dev.foliort.ElementType;
import dev.foliort.Model;
import dev.foliort.Session;
import dev.foliort.Tensor;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.util.Arrays;

/**
 * Of a bound run of a tiny model: nanoseconds (of the quickest round), bytes of garbage. Then nanoseconds to wrap 16
 * bytes and 64 MiB as a tensor, and to close it. See call_cost.py.
 */
public final class CallCost {
    private static final int RUNS = 20_000;
    private static final int WRAPS = 2_000;
    private static final int ROUNDS = 101;

    public static void main(String[] arguments) {
        ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
        double[] rounds = new double[ROUNDS];
        long garbage = 0;
        try (Model model = Model.open(arguments[0]);
                Session session = model.session();
                Binding binding = session.binding();
                Tensor x = Tensor.allocate(ElementType.FLOAT, 1, 4);
                Tensor y = Tensor.allocate(ElementType.FLOAT, 1, 4)) {
            binding.bindInput("x", x).bindOutput("y", y);
            for (int round = 0; round < ROUNDS; ++round) {
                long before = threads.getCurrentThreadAllocatedBytes();
                long begin = System.nanoTime();
                for (int i = 0; i < RUNS; ++i) binding.run();
                rounds[round] = (double) (System.nanoTime() - begin) / RUNS;
                garbage = threads.getCurrentThreadAllocatedBytes() - before;
            }
        }
        wrap(16); // warms up
        double quickest = Arrays.stream(rounds).min().getAsDouble();
        System.out.println(quickest + " " + (double) garbage / RUNS + " " + wrap(16) + " " + wrap(64 << 20));
    }

    private static double wrap(int bytes) {
        ByteBuffer memory = ByteBuffer.allocateDirect(bytes);
        double[] rounds = new double[ROUNDS];
        for (int round = 0; round < ROUNDS; ++round) {
            long begin = System.nanoTime();
            for (int i = 0; i < WRAPS; ++i) Tensor.wrap(memory, ElementType.UINT8, bytes).close();
            rounds[round] = (double) (System.nanoTime() - begin) / WRAPS;
        }
        return Arrays.stream(rounds).min().getAsDouble();
    }
}
