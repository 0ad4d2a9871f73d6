package dev.foliort;

import java.nio.file.Path;

/** Pack files and pack stores on disk. Each answer is a JSON object (docs/packs.md). */
public final class PackFiles {
    static {
        NativeLibrary.require();
    }

    private PackFiles() {}

    /**
     * What a pack file holds. With `verify`, every part is compared with its checksum.
     *
     * @param file a pack file
     * @param verify whether to compare every blob with its checksum
     * @return a JSON object
     */
    public static String describe(Path file, boolean verify) {
        return Text.of(FolioNative.packFile(Text.utf8(file.toString()), verify));
    }

    /**
     * The packs of a store, and their sizes.
     *
     * @param folder of the store
     * @return a JSON object
     */
    public static String listStore(Path folder) {
        return store(folder, 0, 0);
    }

    /**
     * What a store holds, every part compared with its checksum.
     *
     * @param folder of the store
     * @return a JSON object
     */
    public static String verifyStore(Path folder) {
        return store(folder, 1, 0);
    }

    /**
     * Removes leftovers and damaged packs and, above the limit in bytes (0: none), the oldest.
     *
     * @param folder of the store
     * @param limitBytes what the store may hold; 0 for no limit
     * @return a JSON object
     */
    public static String collectStore(Path folder, long limitBytes) {
        return store(folder, 2, limitBytes);
    }

    private static String store(Path folder, int action, long limitBytes) {
        return Text.of(FolioNative.packStore(Text.utf8(folder.toString()), action, limitBytes));
    }
}
