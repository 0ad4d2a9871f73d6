package dev.foliort;

/** How a model is opened. Not for several threads at once. */
public final class ModelOptions {
    private final Options config = new Options();

    /** A file that becomes shorter must not end the virtual machine: see docs/files_that_change.md. */
    public ModelOptions() {
        config.put("folio.sigbus_guard", "1");
    }

    /** Sets a configuration key; docs/config_keys.md lists them. */
    public ModelOptions config(String key, String value) {
        config.put(key, value);
        return this;
    }

    /** The caller deletes the result. */
    NativeModelOptions toNative() {
        NativeModelOptions result = new NativeModelOptions();
        try {
            config.give(result::config);
            return result;
        } catch (RuntimeException e) {
            result.delete();
            throw e;
        }
    }
}
