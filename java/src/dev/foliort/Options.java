package dev.foliort;

import java.util.LinkedHashMap;
import java.util.Map;

/** What the options of models and sessions have in common: pairs of strings; docs/config_keys.md lists them. */
final class Options {
    /** Takes one pair over to the native library. */
    interface Taker {
        void take(byte[] key, byte[] value);
    }

    private final Map<String, String> config = new LinkedHashMap<>();

    void put(String key, String value) {
        if (key == null || value == null) throw FolioException.invalid("a configuration key or value is null");
        config.put(key, value);
    }

    void give(Taker taker) {
        config.forEach((key, value) -> taker.take(Text.utf8(key), Text.utf8(value)));
    }
}
