package dev.foliort;

/** Hears how far an open or a create has come, in the thread that made the call. */
@FunctionalInterface
public interface ProgressListener {
    /**
     * Called a few times. What it throws cancels the call and comes out of it.
     *
     * @param stage one short word: "open", "parse", "optimize", "plan", "pack", "ready" ...
     * @param fraction from 0 to 1, over the whole call
     * @return false to cancel, with {@link ErrorCode#MODEL_LOAD_CANCELED}
     */
    boolean onProgress(String stage, double fraction);
}
