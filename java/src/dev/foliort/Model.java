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

    /**
     * Maps the file (.onnx or .ort), parses and verifies it. Weights are not read.
     *
     * @param path of a .onnx or .ort file
     * @return the model, to be closed
     */
    public static Model open(String path) {
        return open(path, new ModelOptions());
    }

    /**
     * Maps the file, parses and verifies it.
     *
     * @param path of a .onnx or .ort file
     * @return the model, to be closed
     */
    public static Model open(Path path) {
        return open(path.toString(), new ModelOptions());
    }

    /**
     * Maps the file, parses and verifies it, with options.
     *
     * @param path of a .onnx or .ort file
     * @param options how to open it
     * @return the model, to be closed
     */
    public static Model open(Path path, ModelOptions options) {
        return open(path.toString(), options);
    }

    /**
     * Maps the file, parses and verifies it, with options.
     *
     * @param path of a .onnx or .ort file
     * @param options how to open it
     * @return the model, to be closed
     */
    public static Model open(String path, ModelOptions options) {
        return open(Env.shared(), path, options);
    }

    /**
     * Maps the file, parses and verifies it, in an environment; its sessions are in it too.
     *
     * @param env whose threads and log it has
     * @param path of a .onnx or .ort file
     * @param options how to open it
     * @return the model, to be closed
     */
    public static Model open(Env env, String path, ModelOptions options) {
        byte[] utf8 = Text.utf8(path);
        return options.use(given -> env.call(raw -> new Model(NativeModel.open(raw, utf8, given))));
    }

    /**
     * Opens a model from its bytes, which are copied.
     *
     * @param bytes of a .onnx or .ort file
     * @param options how to open it
     * @return the model, to be closed
     */
    public static Model copyOf(byte[] bytes, ModelOptions options) {
        return options.use(given ->
                Env.shared().call(raw -> new Model(NativeModel.openMemory(raw, bytes, given))));
    }

    /**
     * Opens a model over its bytes, which are not copied: those between the position and limit of a direct buffer. They
     * must not change as long as the model and its sessions live; the buffer stays alive as long as that, too.
     *
     * @param bytes of a .onnx or .ort file, in a direct buffer
     * @param options how to open it
     * @return the model, to be closed
     */
    public static Model wrap(ByteBuffer bytes, ModelOptions options) {
        ByteBuffer slice = ModelOptions.direct(bytes, "the model's bytes");
        return options.use(given -> Env.shared().call(
                raw -> new Model(NativeModel.openWrapped(raw, slice, slice.remaining(), given))));
    }

    /** {@return the version of the native library} */
    public static String libraryVersion() {
        return Text.of(FolioNative.versionString());
    }

    /** {@return inputs that a run has to be given} */
    public List<ValueInfo> inputs() {
        return call(model -> ValueInfo.listOf(model.inputs()));
    }

    /** {@return what a run can compute} */
    public List<ValueInfo> outputs() {
        return call(model -> ValueInfo.listOf(model.outputs()));
    }

    /** {@return inputs that have a default in the model, which a run may override} */
    public List<ValueInfo> overridableInitializers() {
        return call(model -> ValueInfo.listOf(model.overridableInitializers()));
    }

    /** {@return what the file says of itself} */
    public ModelInfo info() {
        return call(model -> ModelInfo.of(Text.split(model.infoTexts()), model.infoNumbers()));
    }

    /** {@return nodes that keep the model from becoming a session; none: none that can be told without compiling} */
    public List<UnsupportedOperator> unsupportedOperators() {
        return UnsupportedOperator.listOf(Text.split(call(NativeModel::unsupportedOperators)));
    }

    /** {@return operator sets that the model imports: domain ("" is ONNX's own) and version} */
    public Map<String, Long> opsets() {
        return numbersOf(call(NativeModel::opsets));
    }

    /** {@return operators ("Conv", "com.microsoft.Gelu") and how many nodes are of them, in subgraphs too} */
    public Map<String, Long> operators() {
        return numbersOf(call(NativeModel::operators));
    }

    /** {@return what the model holds} */
    public MemoryReport memoryReport() {
        return MemoryReport.of(call(NativeModel::memoryReport));
    }

    /** {@return the model's own pairs of strings, in the order of the file} */
    public Map<String, String> metadata() {
        List<String> texts = Text.split(call(NativeModel::metadata));
        Map<String, String> result = new LinkedHashMap<>();
        for (int i = 0; i + 1 < texts.size(); i += 2) result.put(texts.get(i), texts.get(i + 1));
        return Collections.unmodifiableMap(result);
    }

    /**
     * Opens what stands at the model's path now, with the options of this model. This one and
     * its sessions go on as they are; a file that did not change is not mapped again.
     *
     * @return another model, to be closed
     */
    public Model reload() {
        return call(model -> new Model(model.reload()));
    }

    /**
     * Writes the model, optimized with "all", as .onnx or .ort by the path's end.
     *
     * @param path of the file to write
     * @return what was written
     */
    public SaveResult save(Path path) {
        return save(path, new SaveOptions());
    }

    /**
     * Writes the model (docs/saving.md). A file of that name is replaced in one step, or stays when anything fails.
     *
     * @param path of the file to write
     * @param options how
     * @return what was written
     */
    public SaveResult save(Path path, SaveOptions options) {
        byte[] utf8 = Text.utf8(path.toString());
        return call(model -> options.save(model, utf8));
    }

    /**
     * Makes, or checks, the pack file for sessions with the default options (docs/packs.md).
     *
     * @param options what to write, and where
     * @return what was written or found
     */
    public PackResult pack(PackOptions options) {
        return pack(options, new SessionOptions());
    }

    /**
     * Makes, or checks, the pack file for sessions with these options.
     *
     * @param options what to write, and where
     * @param session options of the sessions to come
     * @return what was written or found
     */
    public PackResult pack(PackOptions options, SessionOptions session) {
        return session.use(given -> PackResult.of(call(model -> options.pack(model, given))));
    }

    /**
     * Compiles the model.
     *
     * @return the session, to be closed
     */
    public Session session() {
        return session(new SessionOptions());
    }

    /**
     * Compiles the model, with options.
     *
     * @param options how to compile it
     * @return the session, to be closed
     */
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
