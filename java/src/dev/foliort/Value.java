package dev.foliort;

import java.util.List;
import java.util.function.Function;

/**
 * A tensor, or a sequence, map or optional of such. Many threads may use a value, but while a run writes into it, only
 * that run. Close it, or leave it to the collector, which knows little of native memory.
 */
public class Value implements AutoCloseable {
    private final NativeValue handle;
    private final Lease lease;

    static {
        NativeLibrary.require();
    }

    Value(NativeValue handle) {
        this.handle = handle;
        lease = new Lease("value", handle::delete);
        lease.closeWith(this);
    }

    /** Takes `handle` over, also when it throws. */
    static Value of(NativeValue handle) {
        try {
            boolean isTensor = ValueKind.of(handle.kind()) == ValueKind.TENSOR;
            return isTensor ? new Tensor(handle) : new Value(handle);
        } catch (RuntimeException e) {
            handle.delete();
            throw e;
        }
    }

    /**
     * A sequence that holds references to tensors, all of one type.
     *
     * @param type of the elements
     * @param elements any number of tensors
     * @return the sequence, to be closed
     */
    public static Value sequence(ElementType type, List<Tensor> elements) {
        Leases leases = new Leases();
        try {
            long[] addresses = new long[elements.size()];
            for (int i = 0; i < addresses.length; ++i) {
                addresses[i] = NativeValue.getCPtr(leases.enter(elements.get(i), "element " + i));
            }
            return new Value(NativeValue.sequence(type.number(), addresses));
        } finally {
            leases.run();
        }
    }

    /**
     * A map that holds references to two tensors of one dim and equal length; keys of INT64 or STRING.
     *
     * @param keys INT64 or STRING, of one dim
     * @param values as many as keys
     * @return the map, to be closed
     */
    public static Value map(Tensor keys, Tensor values) {
        return keys.call(k -> values.call(v -> new Value(NativeValue.map(k, v))));
    }

    /** {@return what it is} */
    public final ValueKind kind() {
        return ValueKind.of(call(NativeValue::kind));
    }

    /** {@return the element type: of a tensor; of a sequence's tensors; of a map's keys} */
    public final ElementType type() {
        return ElementType.of(call(NativeValue::type));
    }

    /** {@return parts: the length of a sequence, 2 for a map (keys, values), 0 or 1 for an optional, 0 for a tensor} */
    public final int partCount() {
        return (int) (long) call(NativeValue::partCount);
    }

    /**
     * Part `index`, as a value of its own over the same data.
     *
     * @param index from 0
     * @return the part, to be closed
     */
    public final Value part(int index) {
        return call(value -> Value.of(value.part(index)));
    }

    /** Closing again is fine. Views of a tensor stay valid until they are collected. */
    @Override
    public final void close() {
        lease.close();
    }

    final <T> T call(Function<NativeValue, T> function) {
        lease.enter();
        try {
            return function.apply(handle);
        } finally {
            lease.leave();
        }
    }

    final Lease lease() {
        return lease;
    }

    final NativeValue handle() {
        return handle;
    }
}
