package dev.foliort;

import java.util.LinkedHashMap;
import java.util.Map;
import java.util.function.Function;

/** How a model is opened. Not for several threads at once. */
public final class ModelOptions {
    private final Options config = new Options();
    private final Map<String, byte[]> externalFiles = new LinkedHashMap<>();

    /** A file that becomes shorter must not end the virtual machine: see docs/files_that_change.md. */
    public ModelOptions() {
        config.put("folio.sigbus_guard", "1");
    }

    /** Sets a configuration key; docs/config_keys.md lists them. */
    public ModelOptions config(String key, String value) {
        config.put(key, value);
        return this;
    }

    /** Who hears how far an open has come; null for nobody. */
    public ModelOptions progress(ProgressListener listener) {
        config.listener = listener;
        return this;
    }

    /** What another thread can stop an open with; null for nothing. */
    public ModelOptions cancel(Cancel cancel) {
        config.cancel = cancel;
        return this;
    }

    /** Bytes, which are copied at each open, to be used where the model names the external data file `name`. */
    public ModelOptions copyExternalFile(String name, byte[] bytes) {
        if (bytes == null) throw FolioException.invalid("the bytes of '" + name + "' are null");
        externalFiles.put(name, bytes);
        return this;
    }

    /** Calls `action` with native options, which live through the call. */
    <T> T use(Function<NativeModelOptions, T> action) {
        NativeModelOptions result = new NativeModelOptions();
        try {
            config.give(result::config, result::setProgress, result::setCancel);
            externalFiles.forEach((name, bytes) -> result.copyExternalFile(Text.utf8(name), bytes));
            return config.rethrowing(() -> action.apply(result));
        } finally {
            result.delete();
        }
    }
}
