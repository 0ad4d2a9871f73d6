package dev.foliort;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashSet;
import java.util.Set;

/**
 * The native libraries that a jar may carry. They are unpacked into a new folder that only this user can read, loaded,
 * and removed at once: what is loaded stays. Folders that are read-only or forbid programs (noexec) are passed over.
 */
final class NativeResource {
    private static final String FOLDER = "native/linux-x86_64/";
    private static final String[] FILES = {"libfolio.so.1", NativeLibrary.FILE}; // the second needs the first

    private NativeResource() {}

    /** False if the jar carries none. Throws UnsatisfiedLinkError if it does and no folder would do. */
    static boolean load() {
        if (NativeResource.class.getResource(FOLDER + NativeLibrary.FILE) == null) return false;
        StringBuilder failures = new StringBuilder();
        for (String parent : parents()) {
            try {
                loadFrom(Path.of(parent));
                return true;
            } catch (IOException | UnsatisfiedLinkError e) {
                failures.append("; in ").append(parent).append(": ").append(e.getMessage());
            }
        }
        throw new UnsatisfiedLinkError("no folder would do for the native libraries of the jar" + failures);
    }

    /** Where temporary folders may be made, the usual place first. */
    private static Set<String> parents() {
        Set<String> result = new LinkedHashSet<>();
        result.add(System.getProperty("java.io.tmpdir"));
        result.add(System.getenv("XDG_RUNTIME_DIR"));
        result.add("/tmp");
        result.add("/var/tmp");
        result.add("/dev/shm");
        result.add(System.getProperty("user.home"));
        result.removeIf(parent -> parent == null || parent.isEmpty());
        return result;
    }

    private static void loadFrom(Path parent) throws IOException {
        Path folder = Files.createTempDirectory(parent, "folio-"); // of mode 0700
        try {
            for (String file : FILES) unpack(file, folder);
            NativeLibrary.loadFile(folder.resolve(NativeLibrary.FILE).toAbsolutePath());
        } finally {
            for (String file : FILES) Files.deleteIfExists(folder.resolve(file));
            Files.deleteIfExists(folder);
        }
    }

    private static void unpack(String file, Path folder) throws IOException {
        try (InputStream bytes = NativeResource.class.getResourceAsStream(FOLDER + file)) {
            if (bytes == null) throw new IOException("the jar has no " + file);
            Files.copy(bytes, folder.resolve(file));
        }
    }
}
