package dev.foliort;

import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.function.Function;

/** How a model is compiled. Not for several threads at once. */
public final class SessionOptions {
    private static final int PENDING_LIMIT = 1024;

    private final Options config = new Options();
    private final Map<String, Long> dimensions = new LinkedHashMap<>();
    private final Map<String, Tensor> initializers = new LinkedHashMap<>();
    private PackCache cache;
    private int pendingLimit = PENDING_LIMIT;

    /** The library's defaults. */
    public SessionOptions() {}

    /**
     * Sets a configuration key; docs/config_keys.md lists them.
     *
     * @param key its name
     * @param value its value
     * @return this
     */
    public SessionOptions config(String key, String value) {
        config.put(key, value);
        return this;
    }

    /**
     * Threads that compute one run, the calling thread included; 0 lets Folio choose.
     *
     * @param count at least 0
     * @return this
     */
    public SessionOptions threads(int count) {
        return config("folio.threads", Integer.toString(count));
    }

    /**
     * Records the steps of all runs and their times, for a file whose path begins so:
     * {@link Session#endProfiling()} writes it and tells its name.
     *
     * @param beginning a path without its end
     * @return this
     */
    public SessionOptions profile(Path beginning) {
        return config("folio.profile", beginning.toString());
    }

    /**
     * Fixes every dim called `name`.
     *
     * @param name of the dim ("batch")
     * @param value at least 0
     * @return this
     */
    public SessionOptions freeDimension(String name, long value) {
        dimensions.put(name, value);
        return this;
    }

    /**
     * Replaces a constant of the graph by a tensor of the same type and shape, which must not be changed any more.
     *
     * @param name of the constant
     * @param value its replacement
     * @return this
     */
    public SessionOptions initializer(String name, Tensor value) {
        if (value == null) throw FolioException.invalid("the value of '" + name + "' is null");
        initializers.put(name, value);
        return this;
    }

    /**
     * Whose packed weights to use; null for the cache that the process shares.
     *
     * @param cache or null
     * @return this
     */
    public SessionOptions packCache(PackCache cache) {
        this.cache = cache;
        return this;
    }

    /**
     * Who hears how far a create has come; null for nobody.
     *
     * @param listener or null
     * @return this
     */
    public SessionOptions progress(ProgressListener listener) {
        config.listener = listener;
        return this;
    }

    /**
     * What another thread can stop a create with; null for nothing. It does not stop runs.
     *
     * @param cancel or null
     * @return this
     */
    public SessionOptions cancel(Cancel cancel) {
        config.cancel = cancel;
        return this;
    }

    /**
     * How many runs of {@link Session#runAsync} may wait or run at once; more are rejected. 1024 if not set.
     *
     * @param count at least 1
     * @return this
     */
    public SessionOptions pendingLimit(int count) {
        if (count < 1) throw FolioException.invalid("the limit of pending runs is " + count + ", less than 1");
        pendingLimit = count;
        return this;
    }

    int pendingLimit() {
        return pendingLimit;
    }

    /** Calls `action` with native options, which live through the call. */
    <T> T use(Function<NativeSessionOptions, T> action) {
        NativeSessionOptions result = new NativeSessionOptions();
        try {
            config.give(result::config, result::setProgress, result::setCancel);
            dimensions.forEach((name, value) -> result.freeDimension(Text.utf8(name), value));
            initializers.forEach((name, value) -> value.call(handle -> {
                result.initializer(Text.utf8(name), handle);
                return null;
            }));
            if (cache != null) {
                cache.call(handle -> {
                    result.setPackCache(handle);
                    return null;
                });
            }
            return config.rethrowing(() -> action.apply(result));
        } finally {
            result.delete();
        }
    }
}
