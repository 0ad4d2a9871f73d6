import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import dev.foliort.ElementType;
import dev.foliort.Env;
import dev.foliort.FolioException;
import dev.foliort.Model;
import dev.foliort.Outputs;
import dev.foliort.RunOptions;
import dev.foliort.Session;
import dev.foliort.SessionOptions;
import dev.foliort.Tensor;
import dev.foliort.ValueInfo;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Executors;

/**
 * Serves a model of one float input over HTTP, on this machine only. Start as many as there are workers wanted: the
 * model's file is mapped once for all of them.
 *
 * <pre>java -cp folio.jar:. ModelServer MODEL [PORT]
 * curl --data-binary @input.f32 http://127.0.0.1:PORT/run >output.f32</pre>
 *
 * POST /run takes and gives the raw bytes of floats; a dim that the model leaves open is what the bytes make it. GET
 * /memory shows what this worker holds, GET /metrics is for Prometheus. Prints READY and the port when it listens.
 */
public final class ModelServer {
    private static final int MAX_REQUEST_BYTES = 64 << 20;
    private static final int THREADS = 4;

    private final Session session;
    private final ValueInfo input;

    private ModelServer(Session session) {
        this.session = session;
        input = session.inputs().get(0);
    }

    public static void main(String[] arguments) throws IOException {
        if (arguments.length < 1 || arguments.length > 2) {
            System.err.println("usage: ModelServer MODEL [PORT]");
            System.exit(2);
        }
        int port = arguments.length == 2 ? Integer.parseInt(arguments[1]) : 0;
        Session session;
        try (Model model = Model.open(Path.of(arguments[0]))) {
            session = model.session(new SessionOptions().threads(1)); // many requests at once, one thread for each
        }
        ModelServer server = new ModelServer(session);
        HttpServer http = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), port), 0);
        http.createContext("/run", server::run);
        http.createContext("/memory", exchange -> answer(exchange, 200, text(session.memoryReport().text())));
        http.createContext("/metrics", exchange -> answer(exchange, 200, text(Env.shared().metricsText())));
        http.setExecutor(Executors.newFixedThreadPool(THREADS));
        http.start();
        System.out.println("READY " + http.getAddress().getPort());
    }

    private void run(HttpExchange exchange) throws IOException {
        byte[] body = exchange.getRequestBody().readNBytes(MAX_REQUEST_BYTES + 1);
        if (body.length > MAX_REQUEST_BYTES) {
            answer(exchange, 413, text("at most " + MAX_REQUEST_BYTES + " bytes\n"));
            return;
        }
        RunOptions limit = new RunOptions().timeout(Duration.ofSeconds(10));
        String output = session.outputs().get(0).name();
        try (Tensor x = Tensor.copyOf(body, ElementType.FLOAT, shapeOf(body.length / Float.BYTES));
                Outputs outputs = session.run(Map.of(input.name(), x), List.of(output), limit)) {
            ByteBuffer floats = outputs.get(output).bytes().order(ByteOrder.LITTLE_ENDIAN);
            byte[] result = new byte[floats.remaining()];
            floats.get(result);
            answer(exchange, 200, result);
        } catch (FolioException e) {
            answer(exchange, 400, text(e.code() + ": " + e.getMessage() + "\n"));
        }
    }

    /** The input's shape; its first open dim takes what the others leave. */
    private long[] shapeOf(long count) {
        long[] shape = input.shape();
        List<Integer> open = new ArrayList<>();
        for (int i = 0; i < shape.length; ++i) {
            if (shape[i] < 0) open.add(i);
            else if (shape[i] > 0) count /= shape[i];
        }
        for (int i : open) {
            shape[i] = count;
            count = 1;
        }
        return shape;
    }

    private static byte[] text(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    private static void answer(HttpExchange exchange, int status, byte[] body) throws IOException {
        try (exchange) {
            exchange.sendResponseHeaders(status, body.length == 0 ? -1 : body.length);
            exchange.getResponseBody().write(body);
        }
    }
}
