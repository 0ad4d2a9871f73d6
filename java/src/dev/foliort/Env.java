package dev.foliort;

import java.util.function.Function;

/**
 * Threads and log of a group of models and sessions, and what the process as a whole holds. Nobody needs one: what is
 * opened without belongs to {@link #shared()}.
 */
public final class Env implements AutoCloseable {
    private final NativeEnv handle;
    private final Lease lease;
    private final boolean isShared;

    static {
        NativeLibrary.require();
    }

    /**
     * An environment of its own. It may be closed before what was made with it.
     *
     * @param options threads, arenas and log
     */
    public Env(EnvOptions options) {
        this(options.create(), false);
    }

    private Env(NativeEnv handle, boolean isShared) {
        this.handle = handle;
        this.isShared = isShared;
        lease = new Lease("env", handle::delete);
        lease.closeWith(this);
    }

    /** {@return the process's own environment} Closing it does nothing. */
    public static Env shared() {
        return Shared.ENV;
    }

    /** {@return what Folio found of the CPU, and which of its kernels it uses} */
    public static CpuInfo cpu() {
        return CpuInfo.of(Text.split(FolioNative.cpuTexts()));
    }

    /** {@return version, compiler and build type in one line, for bug reports} */
    public static String buildInfo() {
        return Text.of(FolioNative.buildInfo());
    }

    /** Gives memory that the runs of the process no longer use back to the system. */
    public void trim() {
        call(env -> {
            env.trim();
            return null;
        });
    }

    /** {@return sums over all sessions of the environment, closed ones included} */
    public Metrics metrics() {
        return Metrics.of(call(NativeEnv::metrics));
    }

    /** {@return the sums in Prometheus' text format} */
    public String metricsText() {
        return Text.of(call(NativeEnv::metricsText));
    }

    /** {@return all that Folio holds in this process, and what the system says of the process} */
    public MemoryReport memoryReport() {
        return MemoryReport.of(call(NativeEnv::memoryReport));
    }

    /** Closing again is fine. */
    @Override
    public void close() {
        if (!isShared) lease.close();
    }

    <T> T call(Function<NativeEnv, T> function) {
        lease.enter();
        try {
            return function.apply(handle);
        } finally {
            lease.leave();
        }
    }

    /** Made when it is first asked for. */
    private static final class Shared {
        static final Env ENV = new Env(new NativeEnv(), true);
    }
}
