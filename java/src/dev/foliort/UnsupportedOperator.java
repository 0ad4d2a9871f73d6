package dev.foliort;

import java.util.ArrayList;
import java.util.List;

/**
 * A node that keeps a model from becoming a session.
 *
 * @param domain "" is ONNX's own
 * @param opType the operator
 * @param opsetVersion that the model imports for this domain
 * @param nodeName "" where the node has none
 * @param reason "unknown operator", "opset 30 is newer than 28" ...
 */
public record UnsupportedOperator(String domain, String opType, long opsetVersion, String nodeName, String reason) {
    static List<UnsupportedOperator> listOf(List<String> texts) {
        List<UnsupportedOperator> result = new ArrayList<>();
        for (int i = 0; i + 4 < texts.size(); i += 5) {
            result.add(new UnsupportedOperator(texts.get(i), texts.get(i + 1), Long.parseLong(texts.get(i + 2)),
                    texts.get(i + 3), texts.get(i + 4)));
        }
        return List.copyOf(result);
    }
}
