import dev.foliort.Binding;
import dev.foliort.ElementType;
import dev.foliort.Model;
import dev.foliort.Session;
import dev.foliort.Tensor;
import java.util.Arrays;

/** Nanoseconds of one bound run of a tiny model: the median of rounds. See call_cost.py. */
public final class CallCost {
    private static final int RUNS = 200_000;
    private static final int ROUNDS = 11;

    public static void main(String[] arguments) {
        double[] rounds = new double[ROUNDS];
        try (Model model = Model.open(arguments[0]);
                Session session = model.session();
                Binding binding = session.binding();
                Tensor x = Tensor.allocate(ElementType.FLOAT, 1, 4);
                Tensor y = Tensor.allocate(ElementType.FLOAT, 1, 4)) {
            binding.bindInput("x", x).bindOutput("y", y);
            for (int round = 0; round < ROUNDS; ++round) {
                long begin = System.nanoTime();
                for (int i = 0; i < RUNS; ++i) binding.run();
                rounds[round] = (double) (System.nanoTime() - begin) / RUNS;
            }
        }
        Arrays.sort(rounds);
        System.out.println(rounds[ROUNDS / 2]);
    }
}
