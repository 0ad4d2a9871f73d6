package dev.foliort;

import java.lang.ref.Cleaner;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * Counts who uses a native object, so that it is never deleted under a call: its owner until it closes, each call while
 * it lasts, each view while somebody can reach it. The last one out deletes it.
 */
final class Lease {
    static final Cleaner CLEANER = Cleaner.create();

    private final String what;
    private final Runnable delete;
    private final AtomicInteger users = new AtomicInteger(1);
    private final AtomicBoolean closed = new AtomicBoolean();

    Lease(String what, Runnable delete) {
        this.what = what;
        this.delete = delete;
    }

    /** Begins a call; {@link #leave} ends it. */
    void enter() {
        if (closed.get() || !enterEvenIfClosed()) throw FolioException.closed(what);
    }

    /** For who knows that nobody closes it meanwhile. */
    void check() {
        if (closed.get()) throw FolioException.closed(what);
    }

    /** For closing itself: false if the object is gone. */
    boolean enterEvenIfClosed() {
        int count = users.get();
        while (count != 0) {
            if (users.compareAndSet(count, count + 1)) return true;
            count = users.get();
        }
        return false;
    }

    void leave() {
        if (users.decrementAndGet() == 0) delete.run();
    }

    /** From now on nobody enters. Once is enough, more is fine. */
    void close() {
        if (closed.compareAndSet(false, true)) leave();
    }

    boolean isClosed() {
        return closed.get();
    }

    /** Closes when `owner`, which must not be reachable from this lease, is collected. */
    void closeWith(Object owner) {
        CLEANER.register(owner, this::close);
    }

    /** Takes part until `view` is collected; to be called between enter and leave. */
    void holdFor(Object view) {
        users.incrementAndGet();
        CLEANER.register(view, this::leave);
    }
}
