import dev.foliort.ElementType;
import dev.foliort.Model;
import dev.foliort.Outputs;
import dev.foliort.Session;
import dev.foliort.Tensor;
import dev.foliort.Value;
import dev.foliort.ValueKind;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Map;

/** Runs the models of a list and prints a digest of each output: see models_test.py. Inputs are mapped files. */
public final class RunCases {
    public static void main(String[] arguments) throws Exception {
        Model model = null;
        Map<String, Tensor> inputs = new LinkedHashMap<>();
        for (String line : Files.readAllLines(Path.of(arguments[0]))) {
            String[] words = line.split("\t", -1);
            if (words[0].equals("model")) {
                model = Model.open(words[1]);
                System.out.println(line);
            } else if (words[0].equals("input")) {
                inputs.put(words[1], read(Path.of(words[4]), Integer.parseInt(words[2]), words[3]));
            } else {
                run(model, inputs);
                inputs.values().forEach(Tensor::close);
                inputs.clear();
                model.close();
            }
        }
    }

    private static Tensor read(Path file, int type, String dims) throws Exception {
        long[] shape = dims.isEmpty() ? new long[0] : Arrays.stream(dims.split(",")).mapToLong(Long::parseLong).toArray();
        try (FileChannel channel = FileChannel.open(file)) {
            ByteBuffer bytes = channel.size() == 0 ? ByteBuffer.allocateDirect(0)
                    : channel.map(FileChannel.MapMode.READ_ONLY, 0, channel.size());
            ElementType found = Arrays.stream(ElementType.values()).filter(t -> t.number() == type).findFirst().get();
            return Tensor.wrap(bytes.order(ByteOrder.nativeOrder()), found, shape);
        }
    }

    private static void run(Model model, Map<String, Tensor> inputs) throws Exception {
        try (Session session = model.session(); Outputs outputs = session.run(inputs)) {
            for (String name : outputs.names()) print(name, outputs.value(name));
        }
    }

    /** Parts have the names that `folio run` gives their files. */
    private static void print(String name, Value value) throws Exception {
        for (int i = 0; i < value.partCount(); ++i) {
            String part = value.kind() == ValueKind.MAP ? (i == 0 ? "keys" : "values") : Integer.toString(i);
            print(name + "_" + part, value.part(i));
        }
        if (!(value instanceof Tensor)) return;
        MessageDigest digest = MessageDigest.getInstance("SHA-256");
        if (value.type() == ElementType.STRING) {
            for (String text : ((Tensor) value).strings()) digest.update((text + "\0").getBytes(StandardCharsets.UTF_8));
        } else {
            digest.update(((Tensor) value).bytes());
        }
        StringBuilder hex = new StringBuilder();
        for (byte b : digest.digest()) hex.append(String.format("%02x", b));
        System.out.println("output\t" + name + "\t" + hex);
    }
}
