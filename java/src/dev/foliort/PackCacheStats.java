package dev.foliort;

/**
 * What a pack cache has and did. Counts are of packed weights, since the cache was made.
 *
 * @param blobCount alive now
 * @param blobBytes their bytes
 * @param hitCount asked for and found in memory
 * @param missCount asked for and not found in memory
 * @param foundCount of the misses: a pack file had it
 * @param foundBytes their bytes
 * @param packedCount of the misses: packed in memory of this process
 * @param packedBytes their bytes
 * @param writtenCount of the misses: packed into a pack file and mapped from there
 * @param writtenBytes their bytes
 * @param absentCount no pack file had it
 * @param misfitCount a pack file had it with another size
 * @param damagedCount a pack file had it, but not the bytes that were written
 * @param ignoredFileCount pack files and stores that could not be used or trusted
 * @param hashedBytes bytes of model files that had to be read to know them by content
 * @param memoBytes bytes that a pack file, a store or this cache knew
 * @param declaredBytes bytes that the model file declared
 * @param cachedBytes bytes that the user's digest cache knew
 * @param heapBlobCount of those alive: in memory of this process
 * @param heapBlobBytes their bytes
 * @param sidecarBlobCount of those alive: in a pack file beside the model
 * @param sidecarBlobBytes their bytes
 * @param storeBlobCount of those alive: in a pack store
 * @param storeBlobBytes their bytes
 * @param recordedCount what {@link PackCache#write} would write
 * @param recordedBytes their bytes
 */
public record PackCacheStats(long blobCount, long blobBytes, long hitCount, long missCount, long foundCount,
        long foundBytes, long packedCount, long packedBytes, long writtenCount, long writtenBytes, long absentCount,
        long misfitCount, long damagedCount, long ignoredFileCount, long hashedBytes, long memoBytes,
        long declaredBytes, long cachedBytes, long heapBlobCount, long heapBlobBytes, long sidecarBlobCount,
        long sidecarBlobBytes, long storeBlobCount, long storeBlobBytes, long recordedCount, long recordedBytes) {
    static PackCacheStats of(long[] n) {
        return new PackCacheStats(n[0], n[1], n[2], n[3], n[4], n[5], n[6], n[7], n[8], n[9], n[10], n[11], n[12],
                n[13], n[14], n[15], n[16], n[17], n[18], n[19], n[20], n[21], n[22], n[23], n[24], n[25]);
    }
}
