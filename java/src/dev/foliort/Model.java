package dev.foliort;

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

    private Model(NativeModel handle) {
        this.handle = handle;
        lease = new Lease("model", handle::delete);
        lease.closeWith(this);
    }

    /** Maps the file (.onnx or .ort), parses and verifies it. Weights are not read. */
    public static Model open(String path) {
        return open(path, new ModelOptions());
    }

    public static Model open(Path path) {
        return open(path.toString(), new ModelOptions());
    }

    public static Model open(Path path, ModelOptions options) {
        return open(path.toString(), options);
    }

    public static Model open(String path, ModelOptions options) {
        NativeModelOptions nativeOptions = options.toNative();
        try {
            return new Model(NativeModel.open(Text.utf8(path), nativeOptions));
        } finally {
            nativeOptions.delete();
        }
    }

    /** Opens a model from its bytes, which are copied. */
    public static Model copyOf(byte[] bytes, ModelOptions options) {
        NativeModelOptions nativeOptions = options.toNative();
        try {
            return new Model(NativeModel.openMemory(bytes, nativeOptions));
        } finally {
            nativeOptions.delete();
        }
    }

    /** The version of the native library. */
    public static String libraryVersion() {
        return Text.of(FolioNative.versionString());
    }

    /** Inputs that a run has to be given. */
    public List<ValueInfo> inputs() {
        return call(model -> ValueInfo.listOf(model.inputs()));
    }

    public List<ValueInfo> outputs() {
        return call(model -> ValueInfo.listOf(model.outputs()));
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

    public void save(Path path) {
        save(path.toString(), "all");
    }

    /** Compiles the model. */
    public Session session() {
        return session(new SessionOptions());
    }

    public Session session(SessionOptions options) {
        NativeSessionOptions nativeOptions = options.toNative();
        try {
            return call(model -> new Session(new NativeSession(model, nativeOptions)));
        } finally {
            nativeOptions.delete();
        }
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
}
