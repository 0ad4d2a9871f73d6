package dev.foliort;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** A compiled model. Any number of threads may run it at once. */
public final class Session implements AutoCloseable {
    private final NativeSession handle;
    private final Lease lease;
    private final List<ValueInfo> inputs;
    private final List<ValueInfo> outputs;
    private final List<String> outputNames = new ArrayList<>();

    Session(NativeSession handle) {
        this.handle = handle;
        lease = new Lease("session", handle::delete);
        lease.closeWith(this);
        inputs = ValueInfo.listOf(handle.inputs());
        outputs = ValueInfo.listOf(handle.outputs());
        for (ValueInfo output : outputs) outputNames.add(output.name());
    }

    /** Inputs that a run has to be given. Also after close. */
    public List<ValueInfo> inputs() {
        return inputs;
    }

    /** Also after close. */
    public List<ValueInfo> outputs() {
        return outputs;
    }

    /** Computes all outputs, as new values. */
    public Outputs run(Map<String, ? extends Value> inputs) {
        return run(inputs, outputNames, null);
    }

    /** Computes the outputs named, and only what they need. `options` may be null. */
    public Outputs run(Map<String, ? extends Value> inputs, List<String> names, RunOptions options) {
        NativeValue[] values = new NativeValue[names.size()];
        try {
            for (int i = 0; i < values.length; ++i) values[i] = new NativeValue();
            runInto(inputs, names, values, options);
            Outputs result = new Outputs();
            for (int i = 0; i < values.length; ++i) {
                NativeValue value = values[i];
                values[i] = null;
                result.put(names.get(i), Value.of(value));
            }
            return result;
        } finally {
            for (NativeValue value : values) {
                if (value != null) value.delete();
            }
        }
    }

    /** Computes the outputs named into tensors of their type and shape. Nothing is copied. */
    public void run(Map<String, ? extends Value> inputs, Map<String, Tensor> outputs) {
        run(inputs, outputs, null);
    }

    /** The same; `options` may be null. */
    public void run(Map<String, ? extends Value> inputs, Map<String, Tensor> outputs, RunOptions options) {
        List<Lease> leases = new ArrayList<>();
        List<String> names = new ArrayList<>();
        NativeValue[] values = new NativeValue[outputs.size()];
        try {
            for (Map.Entry<String, Tensor> output : outputs.entrySet()) {
                values[names.size()] = enter(output.getValue(), output.getKey(), leases);
                names.add(output.getKey());
            }
            runInto(inputs, names, values, options);
        } finally {
            leases.forEach(Lease::leave);
        }
    }

    /**
     * True when all weights are packed; packs in this thread what nobody has begun. Results do not depend on it.
     * 0 milliseconds only ask, -1 wait as long as it takes; closing the session ends the wait.
     */
    public boolean waitPacked(long milliseconds) {
        lease.enter();
        try {
            return handle.waitPacked(milliseconds);
        } finally {
            lease.leave();
        }
    }

    /** Waits for the runs in flight; new ones are refused at once. Closing again is fine. */
    @Override
    public void close() {
        close(CloseMode.WAIT);
    }

    /** Closes, and decides about the runs in flight. Returns when there are none. Not from inside a run. */
    public void close(CloseMode mode) {
        if (!lease.enterEvenIfClosed()) return;
        try {
            lease.close();
            handle.close(mode.ordinal());
        } finally {
            lease.leave();
        }
    }

    private void runInto(Map<String, ? extends Value> inputs, List<String> outputNames, NativeValue[] outputs,
            RunOptions options) {
        List<Lease> leases = new ArrayList<>();
        try {
            enter(lease, leases);
            List<String> names = new ArrayList<>();
            long[] addresses = new long[inputs.size()];
            for (Map.Entry<String, ? extends Value> input : inputs.entrySet()) {
                NativeValue value = enter(input.getValue(), input.getKey(), leases);
                addresses[names.size()] = NativeValue.getCPtr(value);
                names.add(input.getKey());
            }
            RunOptions used = options == null ? Defaults.RUN_OPTIONS : options;
            enter(used.lease(), leases);
            handle.run(Text.join(names), addresses, Text.join(outputNames), addressesOf(outputs), used.handle());
        } finally {
            leases.forEach(Lease::leave);
        }
    }

    private static long[] addressesOf(NativeValue[] values) {
        long[] result = new long[values.length];
        for (int i = 0; i < values.length; ++i) result[i] = NativeValue.getCPtr(values[i]);
        return result;
    }

    private static void enter(Lease lease, List<Lease> leases) {
        lease.enter();
        leases.add(lease);
    }

    private static NativeValue enter(Value value, String name, List<Lease> leases) {
        if (value == null) throw FolioException.invalid("the value of '" + name + "' is null");
        enter(value.lease(), leases);
        return value.handle();
    }

    /** Made with the first run that names no options. */
    private static final class Defaults {
        static final RunOptions RUN_OPTIONS = new RunOptions();
    }
}
