package dev.foliort;

import java.lang.ref.Reference;

/** How {@link Model#save} writes (docs/saving.md). Not for several threads at once. */
public final class SaveOptions {
    private final Options loading = new Options();
    private String optimize = "";
    private String format = "";
    private String externalFile = "";
    private long externalMinBytes;

    /** Optimized with "all", in the format of the path's end, all in one file. */
    public SaveOptions() {}

    /**
     * How far to optimize; all levels keep to operators that other runtimes have.
     *
     * @param level "none", "basic", "extended" or "all"
     * @return this
     */
    public SaveOptions optimize(String level) {
        optimize = level;
        return this;
    }

    /**
     * The format, whatever the path's end.
     *
     * @param name "ONNX" or "ORT"
     * @return this
     */
    public SaveOptions format(String name) {
        format = name;
        return this;
    }

    /**
     * Puts large initializers of an ONNX model into a file beside it.
     *
     * @param name of that file, without a folder
     * @return this
     */
    public SaveOptions externalFile(String name) {
        externalFile = name;
        return this;
    }

    /**
     * Which initializers are large.
     *
     * @param bytes from this size on; 0: 1024
     * @return this
     */
    public SaveOptions externalMinBytes(long bytes) {
        externalMinBytes = bytes;
        return this;
    }

    /**
     * Who hears how far a save has come; null for nobody. Returning false cancels, with {@link ErrorCode#CANCELLED}.
     *
     * @param listener or null
     * @return this
     */
    public SaveOptions progress(ProgressListener listener) {
        loading.listener = listener;
        return this;
    }

    /**
     * What another thread can stop a save with, with {@link ErrorCode#CANCELLED}; null for nothing.
     *
     * @param cancel or null
     * @return this
     */
    public SaveOptions cancel(Cancel cancel) {
        loading.cancel = cancel;
        return this;
    }

    SaveResult save(NativeModel model, byte[] path) {
        Cancel cancel = loading.cancel;
        NativeSaveOptions given = new NativeSaveOptions();
        try {
            given.set(Text.utf8(optimize), Text.utf8(format), Text.utf8(externalFile), externalMinBytes);
            loading.give((key, value) -> {}, given::setProgress, given::setCancel);
            return loading.rethrowing(() -> SaveResult.of(model.save(path, given)));
        } finally {
            given.delete();
            Reference.reachabilityFence(cancel); // the native options borrow it
        }
    }
}
