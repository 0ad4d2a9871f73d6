package dev.foliort;

import java.time.Duration;

/** How runs go: their time limit, and the flag that stops them. May serve many runs at once; lives until collected. */
public final class RunOptions {
    private static final Duration LONGEST = Duration.ofDays(36_600); // the library's own idea of for ever

    private final NativeRunOptions options;
    private final NativeCancel cancel;
    private final Lease lease;

    static {
        NativeLibrary.require();
    }

    /** No time limit. */
    public RunOptions() {
        NativeRunOptions newOptions = new NativeRunOptions();
        NativeCancel newCancel = new NativeCancel();
        options = newOptions;
        cancel = newCancel;
        lease = new Lease("run options", () -> {
            newOptions.delete();
            newCancel.delete();
        });
        lease.closeWith(this);
        options.setCancel(cancel);
    }

    /**
     * A run that takes longer throws {@link ErrorCode#CANCELLED}. Before the first run with these options.
     *
     * @param limit rounded up to milliseconds; {@link Duration#ZERO} for none. What is left until an instant that has
     *     passed is negative, and refused
     * @return this
     */
    public RunOptions timeout(Duration limit) {
        if (limit.isNegative()) throw FolioException.invalid("the timeout is negative: " + limit);
        Duration used = limit.compareTo(LONGEST) < 0 ? limit : LONGEST;
        // 0 has a meaning of its own, which no limit may get by rounding.
        return call(() -> options.setTimeout(used.plusNanos(999_999).toMillis()));
    }

    /**
     * A name for the runs, for messages and the log. Before the first run with these options.
     *
     * @param name of the runs
     * @return this
     */
    public RunOptions tag(String name) {
        return call(() -> options.setTag(Text.utf8(name)));
    }

    /**
     * Sets a configuration key; docs/config_keys.md lists them. Before the first run with these options.
     *
     * @param key its name
     * @param value its value
     * @return this
     */
    public RunOptions config(String key, String value) {
        return call(() -> options.config(Text.utf8(key), Text.utf8(value)));
    }

    /** Makes the runs with these options throw {@link ErrorCode#CANCELLED}, those to come too. From any thread. */
    public void cancel() {
        call(cancel::request);
    }

    private RunOptions call(Runnable action) {
        lease.enter();
        try {
            action.run();
        } finally {
            lease.leave();
        }
        return this;
    }

    Lease lease() {
        return lease;
    }

    NativeRunOptions handle() {
        return options;
    }
}
