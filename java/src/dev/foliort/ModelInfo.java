package dev.foliort;

import java.util.List;

/**
 * What a model file says of itself; "" where it does not.
 *
 * @param format "onnx" or "ort"
 * @param path as given to open; "" for a model from memory
 * @param producerName the program that made it
 * @param producerVersion its version
 * @param domain the model's name space
 * @param description for people
 * @param graphName the name of the main graph
 * @param modelVersion the model's own version
 * @param irVersion ONNX's format version
 * @param nodeCount nodes of the graph and all its subgraphs, as the two below
 * @param initializerCount constant tensors
 * @param initializerBytes their bytes
 * @param fileBytes of the model file, without external data
 */
public record ModelInfo(String format, String path, String producerName, String producerVersion, String domain,
        String description, String graphName, long modelVersion, long irVersion, long nodeCount,
        long initializerCount, long initializerBytes, long fileBytes) {
    static ModelInfo of(List<String> texts, long[] n) {
        return new ModelInfo(texts.get(0), texts.get(1), texts.get(2), texts.get(3), texts.get(4), texts.get(5),
                texts.get(6), n[0], n[1], n[2], n[3], n[4], n[5]);
    }
}
