package dev.foliort;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.List;

/**
 * Inputs and outputs fixed beforehand, for loops: {@link #run()} makes no garbage and copies nothing. It holds what is
 * bound to it, so tensors may be closed once they are bound. A cache of keys and values may be bound as input and as
 * output, and is then written in place. Calls on one binding wait for each other.
 */
public final class Binding implements AutoCloseable {
    private final Session session;
    private final NativeBinding handle;
    private final Lease lease;
    private int runs; // under way; all of the thread that has the monitor, from each other's callbacks
    private boolean heldForRuns;

    Binding(Session session, NativeBinding handle) {
        this.session = session;
        this.handle = handle;
        lease = new Lease("binding", handle::delete);
        lease.closeWith(this);
    }

    /**
     * Binds, or replaces what was bound to `name`.
     *
     * @param name of the input or output
     * @param value a tensor, sequence, map or optional
     * @return this
     */
    public synchronized Binding bindInput(String name, Value value) {
        withValue(value, name, raw -> handle.bindInput(Text.utf8(name), raw));
        return this;
    }

    /**
     * Asks for output `name`; each run makes a new value.
     *
     * @param name of the input or output
     * @return this
     */
    public synchronized Binding bindOutput(String name) {
        return enter(() -> handle.bindOutput(Text.utf8(name)));
    }

    /**
     * Asks for output `name`; each run writes into the tensor, which must be of its type and shape.
     *
     * @param name of the input or output
     * @param tensor memory for the result
     * @return this
     */
    public synchronized Binding bindOutput(String name, Tensor tensor) {
        withValue(tensor, name, raw -> handle.bindOutputTo(Text.utf8(name), raw));
        return this;
    }

    /**
     * Asks for output `name` in direct memory that has room for it: each run makes a tensor over the front of the bytes
     * between the buffer's position and limit, or fails and says how many it takes.
     *
     * @param name of the input or output
     * @param memory a direct buffer that is not read-only, in the machine's byte order if elements are wider than a byte
     * @return this
     */
    public synchronized Binding bindOutputWithCapacity(String name, ByteBuffer memory) {
        if (!memory.isDirect() || memory.isReadOnly()) {
            throw FolioException.invalid("the buffer for '" + name + "' is not direct, or read-only");
        }
        if (memory.order() != ByteOrder.nativeOrder() && hasWideElements(name)) {
            throw FolioException.invalid("the byte order of the buffer for '" + name + "' is " + memory.order()
                    + ", not the machine's: order(ByteOrder.nativeOrder()) changes it");
        }
        ByteBuffer slice = memory.slice().order(ByteOrder.nativeOrder());
        return enter(() -> handle.bindOutputWithCapacity(Text.utf8(name), slice, slice.remaining()));
    }

    /**
     * Forgets all inputs.
     *
     * @return this
     */
    public synchronized Binding clearInputs() {
        return enter(handle::clearInputs);
    }

    /**
     * Forgets all outputs.
     *
     * @return this
     */
    public synchronized Binding clearOutputs() {
        return enter(handle::clearOutputs);
    }

    /** Runs with what is bound. */
    public synchronized void run() {
        session.lease().enter();
        try {
            // The monitor keeps others from closing meanwhile: no need to count this call in the lease.
            lease.check();
            ++runs;
            try {
                session.handle().runBound(handle);
            } finally {
                if (--runs == 0 && heldForRuns) endHold();
            }
        } finally {
            session.lease().leave();
        }
    }

    private void endHold() {
        heldForRuns = false;
        lease.leave();
    }

    /**
     * Runs with what is bound.
     *
     * @param options of this run; null for the defaults
     */
    public synchronized void run(RunOptions options) {
        if (options == null) {
            run();
            return;
        }
        Leases leases = new Leases();
        try {
            leases.enter(session.lease());
            leases.enter(lease);
            leases.enter(options.lease());
            session.handle().runBoundWith(handle, options.handle());
        } finally {
            leases.run();
        }
    }

    /** {@return outputs, in the order in which they were bound} */
    public synchronized List<String> outputNames() {
        List<String> result = new ArrayList<>();
        enter(() -> {
            long count = handle.outputCount();
            for (long i = 0; i < count; ++i) result.add(Text.of(handle.outputName(i)));
        });
        return result;
    }

    /**
     * The tensor that the last run gave for `name`: the caller's own, over the same data.
     *
     * @param name of an output
     * @return the tensor, to be closed
     */
    public Tensor get(String name) {
        Value value = value(name);
        if (value instanceof Tensor) return (Tensor) value;
        ValueKind kind = value.kind();
        value.close();
        throw FolioException.invalid("output '" + name + "' is no tensor but a " + kind);
    }

    /**
     * The value that the last run gave for `name`: the caller's own, over the same data.
     *
     * @param name of an output
     * @return the value, to be closed
     */
    public synchronized Value value(String name) {
        int index = outputNames().indexOf(name);
        if (index < 0) throw FolioException.invalid("there is no output '" + name + "' among " + outputNames());
        Value[] result = new Value[1];
        enter(() -> result[0] = Value.of(handle.output(index)));
        return result[0];
    }

    /** What was bound stays as long as others use it. Waits for a run. Closing again is fine. */
    @Override
    public synchronized void close() {
        if (runs > 0 && !heldForRuns) heldForRuns = lease.enterEvenIfClosed(); // called by a callback of a run
        lease.close();
    }

    /** False for names that there are not: native code says so. */
    private boolean hasWideElements(String output) {
        return session.outputs().stream()
                .anyMatch(info -> info.name().equals(output) && info.type().bits() > Byte.SIZE);
    }

    private Binding enter(Runnable action) {
        lease.enter();
        try {
            action.run();
        } finally {
            lease.leave();
        }
        return this;
    }

    private void withValue(Value value, String name, java.util.function.Consumer<NativeValue> action) {
        if (value == null) throw FolioException.invalid("the value of '" + name + "' is null");
        enter(() -> value.call(raw -> {
            action.accept(raw);
            return null;
        }));
    }
}
