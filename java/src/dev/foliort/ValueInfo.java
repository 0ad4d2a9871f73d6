package dev.foliort;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;

/** How a model declares one of its inputs or outputs. */
public final class ValueInfo {
    private final String name;
    private final ValueKind kind;
    private final ElementType type;
    private final long[] shape;
    private final List<String> symbolicDims;
    private final ValueInfo element;

    private ValueInfo(NativeValueInfos infos, long index) {
        name = Text.of(infos.name(index));
        kind = ValueKind.of(infos.kind(index));
        type = ElementType.of(infos.type(index));
        shape = infos.hasShape(index) ? infos.dims(index) : null;
        symbolicDims = Collections.unmodifiableList(Text.split(infos.symbolicDims(index)));
        List<ValueInfo> inner = listOf(infos.element(index));
        element = inner.isEmpty() ? null : inner.get(0);
    }

    /** Reads and deletes `infos`. */
    static List<ValueInfo> listOf(NativeValueInfos infos) {
        try {
            List<ValueInfo> result = new ArrayList<>();
            long count = infos.size();
            for (long i = 0; i < count; ++i) result.add(new ValueInfo(infos, i));
            return Collections.unmodifiableList(result);
        } finally {
            infos.delete();
        }
    }

    /** {@return the name; "" for what is in a sequence or map} */
    public String name() {
        return name;
    }

    /** {@return what it is} */
    public ValueKind kind() {
        return kind;
    }

    /** {@return the element type of a tensor; the key type of a map; else UNDEFINED} */
    public ElementType type() {
        return type;
    }

    /** {@return the dims of a tensor, -1 where one is not fixed; null where the model does not say} */
    public long[] shape() {
        return shape == null ? null : shape.clone();
    }

    /** {@return for each dim its name, or "" if it is fixed or has none} */
    public List<String> symbolicDims() {
        return symbolicDims;
    }

    /** {@return what a sequence or optional contains, a map's values; else null} */
    public ValueInfo element() {
        return element;
    }

    @Override
    public String toString() {
        String text = kind + "(" + (element == null ? type : element) + ")";
        if (kind == ValueKind.TENSOR) text = type + (shape == null ? "" : Arrays.toString(shape));
        return name.isEmpty() ? text : name + " " + text;
    }
}
