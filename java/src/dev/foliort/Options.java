package dev.foliort;

import java.util.LinkedHashMap;
import java.util.Map;
import java.util.function.Consumer;
import java.util.function.Supplier;

/**
 * What the options of models and sessions have in common: pairs of strings (docs/config_keys.md lists them), a listener
 * and a flag.
 */
final class Options {
    /** Takes one pair over to the native library. */
    interface Taker {
        void take(byte[] key, byte[] value);
    }

    ProgressListener listener; // may be null
    Cancel cancel; // may be null
    private final Map<String, String> config = new LinkedHashMap<>();
    private Callbacks.Progress progress;

    void put(String key, String value) {
        if (key == null || value == null) throw FolioException.invalid("a configuration key or value is null");
        config.put(key, value);
    }

    void give(Taker taker, Consumer<Object> progressTaker, Consumer<NativeCancel> cancelTaker) {
        config.forEach((key, value) -> taker.take(Text.utf8(key), Text.utf8(value)));
        progress = listener == null ? null : new Callbacks.Progress(listener);
        if (progress != null) progressTaker.accept(progress);
        if (cancel != null) cancel.give(cancelTaker);
    }

    /** Calls `action`; what the listener threw meanwhile comes before the error that it led to. */
    <T> T rethrowing(Supplier<T> action) {
        try {
            return action.get();
        } catch (FolioException e) {
            if (progress != null) progress.rethrow();
            throw e;
        }
    }
}
