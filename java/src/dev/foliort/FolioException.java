package dev.foliort;

import java.nio.charset.StandardCharsets;

/** What every failure throws: a code to branch on, and a line for people. */
public final class FolioException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    /** What went wrong. */
    private final ErrorCode code;

    FolioException(ErrorCode code, String message) {
        super(message);
        this.code = code;
    }

    /** Called by the native library. */
    static FolioException of(int code, byte[] message) {
        return new FolioException(ErrorCode.of(code), new String(message, StandardCharsets.UTF_8));
    }

    static FolioException invalid(String message) {
        return new FolioException(ErrorCode.INVALID_ARGUMENT, message);
    }

    static FolioException closed(String what) {
        return new FolioException(ErrorCode.CLOSED, "the " + what + " is closed");
    }

    /** {@return what went wrong} */
    public ErrorCode code() {
        return code;
    }
}
