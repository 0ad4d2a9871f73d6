package dev.foliort;

/** What a value is. */
public enum ValueKind {
    /** The model does not say. */
    UNKNOWN,
    /** A {@link Tensor}. */
    TENSOR,
    /** Any number of tensors. */
    SEQUENCE,
    /** Keys and values, two tensors. */
    MAP,
    /** Not supported. */
    OPAQUE,
    /** Not supported. */
    SPARSE_TENSOR,
    /** One value, or none. */
    OPTIONAL;

    static ValueKind of(int number) {
        ValueKind[] all = values();
        return number >= 0 && number < all.length ? all[number] : UNKNOWN;
    }
}
