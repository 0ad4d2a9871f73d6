package dev.foliort;

import java.lang.reflect.UndeclaredThrowableException;

/** Where native code calls back. Nothing that the user's code throws goes on from here into native code. */
final class Callbacks {
    private Callbacks() {}

    /** One load's listener, and what it threw. */
    static final class Progress {
        private final ProgressListener listener;
        private Throwable thrown;

        Progress(ProgressListener listener) {
            this.listener = listener;
        }

        /** Throws what the listener threw, if it did. */
        void rethrow() {
            if (thrown instanceof RuntimeException) throw (RuntimeException) thrown;
            if (thrown instanceof Error) throw (Error) thrown;
            if (thrown != null) throw new UndeclaredThrowableException(thrown);
        }
    }

    /** Called by the native library, in the thread that loads. False cancels. */
    static boolean progress(Object holder, byte[] stage, double fraction) {
        Progress progress = (Progress) holder;
        try {
            return progress.listener.onProgress(Text.of(stage), fraction);
        } catch (Throwable e) {
            progress.thrown = e;
            return false;
        }
    }

    /** Called by the native library, from any thread. */
    static void log(Object logger, int level, byte[] message) {
        try {
            ((System.Logger) logger).log(EnvOptions.levelOf(level), Text.of(message));
        } catch (Throwable e) {
            // A line of the log is lost; there is nobody to tell.
        }
    }
}
