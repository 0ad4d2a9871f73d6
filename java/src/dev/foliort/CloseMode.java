package dev.foliort;

/** What {@link Session#close(CloseMode)} does with runs in flight; it returns after the last of them either way. */
public enum CloseMode {
    /** Lets them finish. */
    WAIT,
    /** Makes them throw {@link ErrorCode#CANCELLED} at their next step. */
    CANCEL
}
