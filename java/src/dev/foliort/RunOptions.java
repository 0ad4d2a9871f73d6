package dev.foliort;

import java.time.Duration;

/** How runs go: their time limit, and the flag that stops them. May serve many runs at once; lives until collected. */
public final class RunOptions {
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
     * @param limit at least 0; 0 for none
     * @return this
     */
    public RunOptions timeout(Duration limit) {
        return call(() -> options.setTimeout(limit.toMillis()));
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
