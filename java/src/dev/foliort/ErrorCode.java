package dev.foliort;

/** What went wrong. The numbers are the C interface's. */
public enum ErrorCode {
    /** A defect in Folio, or a failure without a better code. */
    FAIL(1),
    /** The call is wrong: a name, a type, a shape, a null, a configuration key. */
    INVALID_ARGUMENT(2),
    /** There is no file at that path. */
    NO_SUCHFILE(3),
    /** The file is neither .onnx nor .ort. */
    NO_MODEL(4),
    /** Not used. */
    RUNTIME_EXCEPTION(6),
    /** The bytes of the model are damaged. */
    INVALID_PROTOBUF(7),
    /** Valid, but Folio does not do it. */
    NOT_IMPLEMENTED(9),
    /** The bytes are sound, the graph is not. */
    INVALID_GRAPH(10),
    /** An open or create was cancelled. */
    MODEL_LOAD_CANCELED(12),
    /** A run was cancelled or its time ran out. */
    CANCELLED(100),
    /** Memory or address space is exhausted. */
    OUT_OF_MEMORY(101),
    /** The model has an operator that Folio lacks. */
    UNSUPPORTED_OPERATOR(102),
    /** The model's file changed while it was open. */
    MODEL_CHANGED(103),
    /** The object was closed. */
    CLOSED(104),
    /** The operating system refused to open, read or map. */
    IO(105),
    /** A number that this version does not know. */
    UNKNOWN(-1);

    private final int number;

    ErrorCode(int number) {
        this.number = number;
    }

    /** {@return the C interface's number} */
    public int number() {
        return number;
    }

    static ErrorCode of(int number) {
        for (ErrorCode code : values()) {
            if (code.number == number) return code;
        }
        return UNKNOWN;
    }
}
