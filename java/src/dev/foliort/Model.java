package dev.foliort;

import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;

/**
 * An opened, mapped and verified model. Any number of threads may use it. Sessions made from it live on their own: it
 * may be closed before them.
 */
public final class Model implements AutoCloseable {
    private final NativeModel handle;
    private final Lease lease;

    static {
        NativeLibrary.require();
    }

    Model(NativeModel handle) {
        this.handle = handle;
        lease = new Lease("model", handle::delete);
        lease.closeWith(this);
    }

    /** Maps the file (.onnx or .ort), parses and verifies it. Weights are not read. */
    public static Model open(String path) {
        return open(path, new ModelOptions());
    }

    /** The same. */
    public static Model open(Path path) {
        return open(path.toString(), new ModelOptions());
    }

    /** The same, with options. */
    public static Model open(Path path, ModelOptions options) {
        return open(path.toString(), options);
    }

    /** The same, with options. */
    public static Model open(String path, ModelOptions options) {
        return open(Env.shared(), path, options);
    }

    /** The same, in an environment; its sessions are in it too. */
    public static Model open(Env env, String path, ModelOptions options) {
        byte[] utf8 = Text.utf8(path);
        return options.use(given -> env.call(raw -> new Model(NativeModel.open(raw, utf8, given))));
    }

    /** Opens a model from its bytes, which are copied. */
    public static Model copyOf(byte[] bytes, ModelOptions options) {
        return options.use(given ->
                Env.shared().call(raw -> new Model(NativeModel.openMemory(raw, bytes, given))));
    }

    /**
     * Opens a model over its bytes, which are not copied: those between the position and limit of a direct buffer. They
     * must not change as long as the model and its sessions live; the buffer stays alive as long as that, too.
     */
    public static Model wrap(ByteBuffer bytes, ModelOptions options) {
        ByteBuffer slice = ModelOptions.direct(bytes, "the model's bytes");
        return options.use(given -> Env.shared().call(
                raw -> new Model(NativeModel.openWrapped(raw, slice, slice.remaining(), given))));
    }

    /** The version of the native library. */
    public static String libraryVersion() {
        return Text.of(FolioNative.versionString());
    }

    /** Inputs that a run has to be given. */
    public List<ValueInfo> inputs() {
        return call(model -> ValueInfo.listOf(model.inputs()));
    }

    /** What a run can compute. */
    public List<ValueInfo> outputs() {
        return call(model -> ValueInfo.listOf(model.outputs()));
    }

    /** Inputs that have a default in the model, which a run may override. */
    public List<ValueInfo> overridableInitializers() {
        return call(model -> ValueInfo.listOf(model.overridableInitializers()));
    }

    /** What the file says of itself. */
    public ModelInfo info() {
        return call(model -> ModelInfo.of(Text.split(model.infoTexts()), model.infoNumbers()));
    }

    /** Nodes that keep the model from becoming a session; none: none that can be told without compiling. */
    public List<UnsupportedOperator> unsupportedOperators() {
        return UnsupportedOperator.listOf(Text.split(call(NativeModel::unsupportedOperators)));
    }

    /** Operator sets that the model imports: domain ("" is ONNX's own) and version. */
    public Map<String, Long> opsets() {
        return numbersOf(call(NativeModel::opsets));
    }

    /** Operators ("Conv", "com.microsoft.Gelu") and how many nodes are of them, in subgraphs too. */
    public Map<String, Long> operators() {
        return numbersOf(call(NativeModel::operators));
    }

    /** What the model holds. */
    public MemoryReport memoryReport() {
        return MemoryReport.of(call(NativeModel::memoryReport));
    }

    /** The model's own pairs of strings, in the order of the file. */
    public Map<String, String> metadata() {
        List<String> texts = Text.split(call(NativeModel::metadata));
        Map<String, String> result = new LinkedHashMap<>();
        for (int i = 0; i + 1 < texts.size(); i += 2) result.put(texts.get(i), texts.get(i + 1));
        return Collections.unmodifiableMap(result);
    }

    /**
     * Opens what stands at the model's path now, with the options of this model. This one and
     * its sessions go on as they are; a file that did not change is not mapped again.
     */
    public Model reload() {
        return call(model -> new Model(model.reload()));
    }

    /**
     * Writes the model as .onnx or .ort, by the path's end. {@code optimize}: "none", "basic", "extended" or "all", which
     * keep to operators that other runtimes have. A file of that name is replaced in one step, or stays when anything
     * fails.
     */
    public void save(String path, String optimize) {
        call(model -> {
            model.save(Text.utf8(path), Text.utf8(optimize));
            return null;
        });
    }

    /** The same, with "all". */
    public void save(Path path) {
        save(path.toString(), "all");
    }

    /** Makes, or checks, the pack file for sessions with the default options (docs/packs.md). */
    public PackResult pack(PackOptions options) {
        return pack(options, new SessionOptions());
    }

    /** The same for sessions with these options. */
    public PackResult pack(PackOptions options, SessionOptions session) {
        return session.use(given -> PackResult.of(call(model -> options.pack(model, given))));
    }

    /** Compiles the model. */
    public Session session() {
        return session(new SessionOptions());
    }

    /** The same, with options. */
    public Session session(SessionOptions options) {
        int pendingLimit = options.pendingLimit();
        return options.use(given -> call(model -> new Session(new NativeSession(model, given), pendingLimit)));
    }

    /** Closing again is fine. */
    @Override
    public void close() {
        lease.close();
    }

    private <T> T call(Function<NativeModel, T> function) {
        lease.enter();
        try {
            return function.apply(handle);
        } finally {
            lease.leave();
        }
    }

    private static Map<String, Long> numbersOf(byte[] joined) {
        List<String> texts = Text.split(joined);
        Map<String, Long> result = new LinkedHashMap<>();
        for (int i = 0; i + 1 < texts.size(); i += 2) result.put(texts.get(i), Long.parseLong(texts.get(i + 1)));
        return Collections.unmodifiableMap(result);
    }
}
