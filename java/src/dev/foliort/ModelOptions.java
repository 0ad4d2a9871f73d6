package dev.foliort;

import java.nio.ByteBuffer;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.function.Consumer;
import java.util.function.Function;

/** How a model is opened. Not for several threads at once. */
public final class ModelOptions {
    private final Options config = new Options();
    private final Map<String, Consumer<NativeModelOptions>> externalFiles = new LinkedHashMap<>();

    /** A file that becomes shorter must not end the virtual machine: see docs/files_that_change.md. */
    public ModelOptions() {
        config.put("folio.sigbus_guard", "1");
    }

    /**
     * Sets a configuration key; docs/config_keys.md lists them.
     *
     * @param key its name
     * @param value its value
     * @return this
     */
    public ModelOptions config(String key, String value) {
        config.put(key, value);
        return this;
    }

    /**
     * Who hears how far an open has come; null for nobody.
     *
     * @param listener or null
     * @return this
     */
    public ModelOptions progress(ProgressListener listener) {
        config.listener = listener;
        return this;
    }

    /**
     * What another thread can stop an open with; null for nothing.
     *
     * @param cancel or null
     * @return this
     */
    public ModelOptions cancel(Cancel cancel) {
        config.cancel = cancel;
        return this;
    }

    /**
     * Bytes, which are copied at each open, to be used where the model names the external data file `name`.
     *
     * @param name as the model writes it
     * @param bytes of the file
     * @return this
     */
    public ModelOptions copyExternalFile(String name, byte[] bytes) {
        if (bytes == null) throw FolioException.invalid("the bytes of '" + name + "' are null");
        byte[] utf8 = Text.utf8(name);
        externalFiles.put(name, options -> options.copyExternalFile(utf8, bytes));
        return this;
    }

    /**
     * Bytes, which are read in place, to be used where the model names the external data file `name`: those between the
     * position and limit of a direct buffer. They must not change as long as there are models and sessions that use
     * them; the buffer stays alive as long as that, too.
     *
     * @param name as the model writes it
     * @param bytes of the file, in a direct buffer
     * @return this
     */
    public ModelOptions externalFile(String name, ByteBuffer bytes) {
        ByteBuffer slice = direct(bytes, "the bytes of '" + name + "'");
        byte[] utf8 = Text.utf8(name);
        externalFiles.put(name, options -> options.externalFile(utf8, slice, slice.remaining()));
        return this;
    }

    /** The part of a buffer that counts, for native code to read in place. */
    static ByteBuffer direct(ByteBuffer bytes, String what) {
        if (bytes == null) throw FolioException.invalid(what + " are null");
        if (!bytes.isDirect()) throw FolioException.invalid(what + " are not in a direct buffer");
        return bytes.slice(); // begins at the position
    }

    /** Calls `action` with native options, which live through the call. */
    <T> T use(Function<NativeModelOptions, T> action) {
        NativeModelOptions result = new NativeModelOptions();
        try {
            config.give(result::config, result::setProgress, result::setCancel);
            externalFiles.values().forEach(file -> file.accept(result));
            return config.rethrowing(() -> action.apply(result));
        } finally {
            result.delete();
        }
    }
}
