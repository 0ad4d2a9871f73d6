package dev.foliort;

/** What an environment is made with. Not for several threads at once. */
public final class EnvOptions {
    // The C interface's levels.
    private static final System.Logger.Level[] LEVELS = {System.Logger.Level.DEBUG, System.Logger.Level.INFO,
        System.Logger.Level.WARNING, System.Logger.Level.ERROR};

    private int threads;
    private int maxArenas;
    private System.Logger logger;

    /** The library's defaults. */
    public EnvOptions() {}

    /**
     * Threads that compute one run, the calling thread included, of sessions that do not say; 0 lets Folio choose.
     *
     * @param count all threads that compute; 0 lets Folio choose
     * @return this
     */
    public EnvOptions threads(int count) {
        threads = count;
        return this;
    }

    /**
     * How many idle pieces of scratch memory the process keeps at most; 0 leaves the limit as it is.
     *
     * @param count the most; 0 lets Folio choose
     * @return this
     */
    public EnvOptions maxArenas(int count) {
        maxArenas = count;
        return this;
    }

    /**
     * Who gets the log of the whole process, from any thread, until the environment and all that was made with it are
     * gone. Levels that the logger does not want now are not even made. What it throws is dropped.
     *
     * @param logger gets the lines; null leaves the log as it is
     * @return this
     */
    public EnvOptions log(System.Logger logger) {
        this.logger = logger;
        return this;
    }

    static System.Logger.Level levelOf(int number) {
        return LEVELS[Math.max(0, Math.min(number, LEVELS.length - 1))];
    }

    NativeEnv create() {
        int level = 0;
        while (logger != null && level < LEVELS.length - 1 && !logger.isLoggable(LEVELS[level])) ++level;
        return NativeEnv.create(threads, maxArenas, level, logger);
    }
}
