package dev.foliort;

/** What a value is. */
public enum ValueKind {
    UNKNOWN,
    TENSOR,
    SEQUENCE,
    MAP,
    OPAQUE,
    SPARSE_TENSOR,
    OPTIONAL;

    static ValueKind of(int number) {
        ValueKind[] all = values();
        return number >= 0 && number < all.length ? all[number] : UNKNOWN;
    }
}
