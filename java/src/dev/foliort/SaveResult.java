package dev.foliort;

/**
 * What a save wrote.
 *
 * @param fileBytes of the model file
 * @param dataBytes of the file beside it; 0: there is none
 * @param nodeCount of the main graph
 * @param initializerCount constants
 * @param initializerBytes their bytes, shared ones once
 */
public record SaveResult(long fileBytes, long dataBytes, long nodeCount, long initializerCount,
        long initializerBytes) {
    static SaveResult of(long[] n) {
        return new SaveResult(n[0], n[1], n[2], n[3], n[4]);
    }
}
