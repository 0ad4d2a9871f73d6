package dev.foliort;

import java.util.ArrayList;
import java.util.List;

/**
 * Where the bytes were at one moment. What several sessions share stands in it once.
 *
 * @param entries one for each mapping, buffer and so on
 * @param mappedBytes files, pack files too: address space, not memory
 * @param residentBytes of these: touched by this process and in memory
 * @param pssBytes of these: this process's share of what others have touched too
 * @param privateBytes memory that Folio allocated
 * @param packedSidecarBytes packed weights in the model's own pack file
 * @param packedStoreBytes packed weights in pack stores
 * @param packedHeapBytes packed weights in memory of this process
 * @param constantBytes constants that were computed or copied
 * @param savedFileBytes model files that the second and every later session did not need again
 * @param savedPackedBytes the same of packed weights and constants
 * @param arenaBytes scratch memory of runs; this and the next four only in the report of an {@link Env}
 * @param processRssBytes what the process has in memory
 * @param processPssBytes what the process takes of the machine
 * @param processAnonymousBytes pages that no file stands behind
 * @param processPageTableBytes the kernel's tables for the process
 * @param json the whole report as one JSON object
 * @param text the whole report as a table for people
 */
public record MemoryReport(List<Entry> entries, long mappedBytes, long residentBytes, long pssBytes,
        long privateBytes, long packedSidecarBytes, long packedStoreBytes, long packedHeapBytes, long constantBytes,
        long savedFileBytes, long savedPackedBytes, long arenaBytes, long processRssBytes, long processPssBytes,
        long processAnonymousBytes, long processPageTableBytes, String json, String text) {
    /**
     * One thing that takes memory.
     *
     * @param name the file's path, "packed weights", "constants" ...
     * @param kind "mapping", "memory", "packed", "constant", "arena" or "buffer"
     * @param bytes address space that it takes
     * @param residentBytes of pages of files: touched by this process and in memory
     * @param pssBytes of these, this process's share
     * @param isPrivate memory that Folio allocated; else the page cache's, or the caller's
     */
    public record Entry(String name, String kind, long bytes, long residentBytes, long pssBytes, boolean isPrivate) {}

    /** Reads and deletes `report`. */
    static MemoryReport of(NativeMemoryReport report) {
        try {
            List<String> texts = Text.split(report.entryTexts());
            long[] numbers = report.entryNumbers();
            List<Entry> entries = new ArrayList<>();
            for (int i = 0; 2 * i + 1 < texts.size(); ++i) {
                entries.add(new Entry(texts.get(2 * i), texts.get(2 * i + 1), numbers[4 * i], numbers[4 * i + 1],
                        numbers[4 * i + 2], numbers[4 * i + 3] != 0));
            }
            long[] n = report.summary();
            return new MemoryReport(List.copyOf(entries), n[0], n[1], n[2], n[3], n[4], n[5], n[6], n[7], n[8], n[9],
                    n[10], n[11], n[12], n[13], n[14], Text.of(report.json()), Text.of(report.text()));
        } finally {
            report.delete();
        }
    }

    @Override
    public String toString() {
        return text;
    }
}
