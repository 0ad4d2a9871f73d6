package dev.foliort;

import java.nio.file.Path;

/** Where {@link Model#pack} writes, and what. Not for several threads at once. */
public final class PackOptions {
    private String path = "";
    private String store = "";
    private String levels = "";
    private boolean check;
    private boolean replace;

    /** Writes the pack file beside the model. */
    public PackOptions() {}

    /**
     * Writes this file.
     *
     * @param file its path
     * @return this
     */
    public PackOptions path(Path file) {
        path = file.toString();
        return this;
    }

    /**
     * Adds to this pack store.
     *
     * @param folder of the store
     * @return this
     */
    public PackOptions store(Path folder) {
        store = folder.toString();
        return this;
    }

    /**
     * For these kernels too: names as {@link CpuInfo#level} has them, separated by commas.
     *
     * @param names separated by commas
     * @return this
     */
    public PackOptions levels(String names) {
        levels = names;
        return this;
    }

    /**
     * Writes nothing, counts what is missing.
     *
     * @param enabled whether to
     * @return this
     */
    public PackOptions check(boolean enabled) {
        check = enabled;
        return this;
    }

    /**
     * Writes the model anew, with its large weights in the pack file and nowhere else; see docs/packs.md.
     *
     * @param enabled whether to
     * @return this
     */
    public PackOptions replace(boolean enabled) {
        replace = enabled;
        return this;
    }

    long[] pack(NativeModel model, NativeSessionOptions session) {
        return FolioNative.packModel(model, session, Text.utf8(path), Text.utf8(store), Text.utf8(levels), check,
                replace);
    }
}
