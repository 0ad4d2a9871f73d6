package dev.foliort;

import java.nio.file.Path;
import java.time.Instant;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Function;

/** A compiled model. Any number of threads may run it at once. */
public final class Session implements AutoCloseable {
    private final NativeSession handle;
    private final Lease lease;
    private final List<ValueInfo> inputs;
    private final List<ValueInfo> outputs;
    private final List<ValueInfo> overridable;
    private final List<String> outputNames = new ArrayList<>();
    private final int pendingLimit;
    private final AtomicInteger pending = new AtomicInteger();

    Session(NativeSession handle, int pendingLimit) {
        this.handle = handle;
        this.pendingLimit = pendingLimit;
        lease = new Lease("session", handle::delete);
        lease.closeWith(this);
        inputs = ValueInfo.listOf(handle.inputs());
        outputs = ValueInfo.listOf(handle.outputs());
        overridable = ValueInfo.listOf(handle.overridableInitializers());
        for (ValueInfo output : outputs) outputNames.add(output.name());
    }

    /** {@return inputs that a run has to be given} Also after close. */
    public List<ValueInfo> inputs() {
        return inputs;
    }

    /** {@return what a run can compute} Also after close. */
    public List<ValueInfo> outputs() {
        return outputs;
    }

    /** {@return inputs that have a default, which a run may override} Also after close. */
    public List<ValueInfo> overridableInitializers() {
        return overridable;
    }

    /**
     * The session's model, for its information; to be closed like any other.
     *
     * @return the model, to be closed
     */
    public Model model() {
        return call(session -> new Model(session.model()));
    }

    /**
     * Computes all outputs, as new values.
     *
     * @param inputs values by the names of the inputs
     * @return the outputs, to be closed
     */
    public Outputs run(Map<String, ? extends Value> inputs) {
        return run(inputs, outputNames, null);
    }

    /**
     * Computes all outputs, as new values, with options.
     *
     * @param inputs values by the names of the inputs
     * @param options of the run; null for the defaults
     * @return the outputs, to be closed
     */
    public Outputs run(Map<String, ? extends Value> inputs, RunOptions options) {
        return run(inputs, outputNames, options);
    }

    /**
     * Computes the outputs named, and only what they need. `options` may be null.
     *
     * @param inputs values by the names of the inputs
     * @param names outputs to compute; null for all
     * @param options of the run; null for the defaults
     * @return the outputs, to be closed
     */
    public Outputs run(Map<String, ? extends Value> inputs, List<String> names, RunOptions options) {
        Leases leases = new Leases();
        try {
            for (Map.Entry<String, ? extends Value> input : inputs.entrySet()) {
                leases.enter(input.getValue(), input.getKey());
            }
            return runEntered(inputs, names == null ? outputNames : names, options);
        } finally {
            leases.run();
        }
    }

    /**
     * Computes the outputs named into tensors of their type and shape. Nothing is copied.
     *
     * @param inputs values by the names of the inputs
     * @param outputs tensors by the names of the outputs
     */
    public void run(Map<String, ? extends Value> inputs, Map<String, Tensor> outputs) {
        run(inputs, outputs, null);
    }

    /**
     * Computes the outputs named into tensors of their type and shape, with options.
     *
     * @param inputs values by the names of the inputs
     * @param outputs tensors by the names of the outputs
     * @param options of the run; null for the defaults
     */
    public void run(Map<String, ? extends Value> inputs, Map<String, Tensor> outputs, RunOptions options) {
        Leases leases = new Leases();
        List<String> names = new ArrayList<>();
        NativeValue[] values = new NativeValue[outputs.size()];
        try {
            for (Map.Entry<String, ? extends Value> input : inputs.entrySet()) {
                leases.enter(input.getValue(), input.getKey());
            }
            for (Map.Entry<String, Tensor> output : outputs.entrySet()) {
                values[names.size()] = leases.enter(output.getValue(), output.getKey());
                names.add(output.getKey());
            }
            runInto(inputs, names, values, options);
        } finally {
            leases.run();
        }
    }

    /**
     * Computes all outputs on a thread of the executor's.
     *
     * @param inputs values by the names of the inputs
     * @param executor whose threads compute
     * @return the outputs to come
     */
    public CompletableFuture<Outputs> runAsync(Map<String, ? extends Value> inputs, Executor executor) {
        return runAsync(inputs, outputNames, null, executor);
    }

    /**
     * Computes the outputs named on a thread of the executor's. The inputs may be closed at once, but not changed.
     * Cancelling the future cancels `options` (null: its own), and so stops the run.
     *
     * @param inputs values by the names of the inputs
     * @param names outputs to compute; null for all
     * @param options of the run; null for its own
     * @param executor whose threads compute
     * @return the outputs to come
     * @throws RejectedExecutionException if {@link SessionOptions#pendingLimit} runs are waiting or running, or the
     *     executor takes no more
     */
    public CompletableFuture<Outputs> runAsync(Map<String, ? extends Value> inputs, List<String> names,
            RunOptions options, Executor executor) {
        RunOptions used = options == null ? new RunOptions() : options;
        Map<String, Value> given = new LinkedHashMap<>(inputs);
        List<String> wanted = List.copyOf(names == null ? outputNames : names);
        if (pending.incrementAndGet() > pendingLimit) {
            pending.decrementAndGet();
            throw new RejectedExecutionException(pendingLimit + " runs of the session are waiting or running");
        }
        AsyncRun run = new AsyncRun(this, given, wanted, used, pending);
        try {
            executor.execute(run);
        } catch (RuntimeException e) {
            run.giveBack();
            throw e;
        }
        return run;
    }

    /**
     * Inputs and outputs fixed beforehand, for loops.
     *
     * @return an empty binding, to be closed
     */
    public Binding binding() {
        return call(session -> new Binding(this, new NativeBinding(session)));
    }

    /**
     * Plans runs with inputs of these shapes beforehand, so that the first one need not.
     *
     * @param shapes dims by the names of the inputs; those left out must follow from them
     */
    public void prepareShapes(Map<String, long[]> shapes) {
        List<Long> dims = new ArrayList<>();
        List<Long> counts = new ArrayList<>();
        for (long[] shape : shapes.values()) {
            counts.add((long) shape.length);
            for (long dim : shape) dims.add(dim);
        }
        call(session -> {
            session.prepareShapes(Text.join(shapes.keySet()), arrayOf(dims), arrayOf(counts));
            return null;
        });
    }

    /**
     * True when all weights are packed; packs in this thread what nobody has begun. Results do not depend on it.
     * 0 milliseconds only ask, -1 wait as long as it takes; closing the session ends the wait.
     *
     * @param milliseconds the longest wait
     * @return whether all weights are packed
     */
    public boolean waitPacked(long milliseconds) {
        return call(session -> session.waitPacked(milliseconds));
    }

    /**
     * Ends the profile that {@link SessionOptions#profile} began, and writes it, a Chrome trace (ui.perfetto.dev). Runs
     * go on, without being recorded. A session that goes ends its profile itself.
     *
     * @return the file; nothing where there is no profile or it was ended before
     */
    public Optional<Path> endProfiling() {
        String path = Text.of(call(NativeSession::endProfiling));
        return path.isEmpty() ? Optional.empty() : Optional.of(Path.of(path));
    }

    /** {@return when the times of the profile begin; nothing where there is none} */
    public Optional<Instant> profilingStart() {
        long nanoseconds = call(NativeSession::profilingStart);
        return nanoseconds == 0 ? Optional.empty() : Optional.of(Instant.ofEpochSecond(0, nanoseconds));
    }

    /** {@return counters of this session's runs} */
    public Metrics metrics() {
        return Metrics.of(call(NativeSession::metrics));
    }

    /** {@return the counters in Prometheus' text format} */
    public String metricsText() {
        return Text.of(call(NativeSession::metricsText));
    }

    /** {@return what the session and its model hold, alone or with other sessions} */
    public MemoryReport memoryReport() {
        return MemoryReport.of(call(NativeSession::memoryReport));
    }

    /** Waits for the runs in flight; new ones are refused at once. Closing again is fine. */
    @Override
    public void close() {
        close(CloseMode.WAIT);
    }

    /**
     * Closes, and decides about the runs in flight. Returns when there are none. Not from inside a run.
     *
     * @param mode whether to wait for runs in flight or to cancel them
     */
    public void close(CloseMode mode) {
        if (mode == null) throw FolioException.invalid("the close mode is null");
        if (!lease.enterEvenIfClosed()) return;
        try {
            lease.close();
            handle.close(mode.ordinal());
        } finally {
            lease.leave();
        }
    }

    Lease lease() {
        return lease;
    }

    NativeSession handle() {
        return handle;
    }

    /** The same as run, with inputs that the caller has entered, closed or not. */
    Outputs runEntered(Map<String, ? extends Value> inputs, List<String> names, RunOptions options) {
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

    private void runInto(Map<String, ? extends Value> inputs, List<String> outputNames, NativeValue[] outputs,
            RunOptions options) {
        Leases leases = new Leases();
        try {
            leases.enter(lease);
            List<String> names = new ArrayList<>();
            long[] addresses = new long[inputs.size()];
            for (Map.Entry<String, ? extends Value> input : inputs.entrySet()) {
                addresses[names.size()] = NativeValue.getCPtr(input.getValue().handle());
                names.add(input.getKey());
            }
            RunOptions used = options == null ? Defaults.RUN_OPTIONS : options;
            leases.enter(used.lease());
            handle.run(Text.join(names), addresses, Text.join(outputNames), addressesOf(outputs), used.handle());
        } finally {
            leases.run();
        }
    }

    private <T> T call(Function<NativeSession, T> function) {
        lease.enter();
        try {
            return function.apply(handle);
        } finally {
            lease.leave();
        }
    }

    private static long[] addressesOf(NativeValue[] values) {
        long[] result = new long[values.length];
        for (int i = 0; i < values.length; ++i) result[i] = NativeValue.getCPtr(values[i]);
        return result;
    }

    private static long[] arrayOf(List<Long> numbers) {
        return numbers.stream().mapToLong(Long::longValue).toArray();
    }

    /** Made with the first run that names no options. */
    private static final class Defaults {
        static final RunOptions RUN_OPTIONS = new RunOptions();
    }
}
