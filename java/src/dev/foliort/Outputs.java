package dev.foliort;

import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;

/** The results of a run by name, in the order asked for. Closing closes them all; views of them stay valid. */
public final class Outputs implements AutoCloseable {
    private final Map<String, Value> values = new LinkedHashMap<>();
    private volatile boolean isClosed;

    Outputs() {}

    void put(String name, Value value) {
        values.put(name, value);
    }

    /** {@return names, in the order asked for} Also after close. */
    public Set<String> names() {
        return Collections.unmodifiableSet(values.keySet());
    }

    /**
     * The tensor called `name`.
     *
     * @param name of an output
     * @return the tensor, which closes with the outputs
     */
    public Tensor get(String name) {
        Value value = value(name);
        if (value instanceof Tensor) return (Tensor) value;
        throw FolioException.invalid("output '" + name + "' is no tensor but a " + value.kind());
    }

    /**
     * The value called `name`: a tensor, sequence, map or optional.
     *
     * @param name of an output
     * @return the value, which closes with the outputs
     */
    public Value value(String name) {
        if (isClosed) throw new FolioException(ErrorCode.CLOSED, "the outputs are closed");
        Value value = values.get(name);
        if (value == null) throw FolioException.invalid("there is no output '" + name + "' among " + values.keySet());
        return value;
    }

    /** Closing again is fine. */
    @Override
    public void close() {
        isClosed = true;
        values.values().forEach(Value::close);
    }
}
