package dev.foliort;

import java.lang.ref.Cleaner;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * A run that an executor does later. Its inputs stay until it has ended, also if they are closed before; if the executor
 * forgets it, until it is collected.
 */
final class AsyncRun extends CompletableFuture<Outputs> implements Runnable {
    /** What has to be given back; knows nothing of the run, so that the run can be collected. */
    private static final class Held implements Runnable {
        final Leases leases = new Leases();
        final AtomicInteger pending;

        Held(AtomicInteger pending) {
            this.pending = pending;
        }

        @Override
        public void run() {
            leases.run();
            pending.decrementAndGet();
        }
    }

    private final Session session;
    private final Map<String, Value> inputs;
    private final List<String> names;
    private final RunOptions options;
    private final Cleaner.Cleanable held;

    /** The caller has counted it in `pending`; from here on it counts itself out, also if this throws. */
    AsyncRun(Session session, Map<String, Value> inputs, List<String> names, RunOptions options,
            AtomicInteger pending) {
        this.session = session;
        this.inputs = inputs;
        this.names = names;
        this.options = options;
        Held toGiveBack = new Held(pending);
        held = Lease.CLEANER.register(this, toGiveBack);
        try {
            this.inputs.forEach((name, value) -> toGiveBack.leases.enter(value, name));
        } catch (RuntimeException e) {
            giveBack();
            throw e;
        }
    }

    void giveBack() {
        held.clean();
    }

    @Override
    public void run() {
        try {
            if (isDone()) return;
            Outputs result = session.runEntered(inputs, names, options);
            if (!complete(result)) result.close(); // cancelled meanwhile
        } catch (Throwable e) {
            completeExceptionally(e);
        } finally {
            giveBack();
        }
    }

    /** Stops the run at its next step, or before its first. */
    @Override
    public boolean cancel(boolean mayInterruptIfRunning) {
        boolean result = super.cancel(mayInterruptIfRunning);
        if (result) options.cancel();
        return result;
    }
}
