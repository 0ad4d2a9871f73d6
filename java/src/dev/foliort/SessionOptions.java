package dev.foliort;

import java.util.LinkedHashMap;
import java.util.Map;

/** How a model is compiled. Not for several threads at once. */
public final class SessionOptions {
    private final Options config = new Options();
    private final Map<String, Long> dimensions = new LinkedHashMap<>();

    /** Sets a configuration key; docs/config_keys.md lists them. */
    public SessionOptions config(String key, String value) {
        config.put(key, value);
        return this;
    }

    /** Threads that compute one run, the calling thread included; 0 lets Folio choose. */
    public SessionOptions threads(int count) {
        return config("folio.threads", Integer.toString(count));
    }

    /** Fixes every dim called `name`. */
    public SessionOptions freeDimension(String name, long value) {
        dimensions.put(name, value);
        return this;
    }

    /** The caller deletes the result. */
    NativeSessionOptions toNative() {
        NativeSessionOptions result = new NativeSessionOptions();
        try {
            config.give(result::config);
            dimensions.forEach((name, value) -> result.freeDimension(Text.utf8(name), value));
            return result;
        } catch (RuntimeException e) {
            result.delete();
            throw e;
        }
    }
}
