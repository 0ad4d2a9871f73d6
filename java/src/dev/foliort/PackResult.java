package dev.foliort;

/**
 * What making a pack file did.
 *
 * @param writtenBlobCount packed weights that were written
 * @param writtenBlobBytes their bytes
 * @param foundBlobCount were there already
 * @param missingBlobCount of a check: a session would pack these
 * @param rawBlobCount of a replacement: of those written, weights that no kernel packs
 * @param rawBlobBytes their bytes
 */
public record PackResult(long writtenBlobCount, long writtenBlobBytes, long foundBlobCount, long missingBlobCount,
        long rawBlobCount, long rawBlobBytes) {
    static PackResult of(long[] n) {
        return new PackResult(n[0], n[1], n[2], n[3], n[4], n[5]);
    }
}
