package dev.foliort;

import java.util.function.Consumer;

/** A flag that stops opens and creates. One may serve any number of them; once requested it stays so. */
public final class Cancel {
    private final NativeCancel handle;
    private final Lease lease;

    static {
        NativeLibrary.require();
    }

    /** A flag that is not set. */
    public Cancel() {
        NativeCancel created = new NativeCancel();
        handle = created;
        lease = new Lease("cancel", created::delete);
        lease.closeWith(this);
    }

    /** Makes the calls that have it throw {@link ErrorCode#MODEL_LOAD_CANCELED}. From any thread. */
    public void request() {
        give(NativeCancel::request);
    }

    /** {@return whether somebody has requested it} */
    public boolean isRequested() {
        boolean[] result = new boolean[1];
        give(cancel -> result[0] = cancel.isRequested());
        return result[0];
    }

    void give(Consumer<NativeCancel> taker) {
        lease.enter();
        try {
            taker.accept(handle);
        } finally {
            lease.leave();
        }
    }
}
