package dev.foliort;

import java.net.URISyntaxException;
import java.nio.file.FileSystemNotFoundException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.CodeSource;

/**
 * Loads libfolio_jni.so, which brings libfolio.so from its own folder. Looks in the folder that the system property
 * folio.library.path or the environment variable FOLIO_LIBRARY_PATH names; beside the jar; where the system looks.
 */
final class NativeLibrary {
    private static final String FILE = "libfolio_jni.so";

    private NativeLibrary() {}

    static {
        load();
    }

    /** Returns with the library loaded, or throws UnsatisfiedLinkError. */
    static void require() {}

    private static void load() {
        String folder = System.getProperty("folio.library.path", System.getenv("FOLIO_LIBRARY_PATH"));
        if (folder != null && !folder.isEmpty()) {
            System.load(Path.of(folder, FILE).toAbsolutePath().toString());
            return;
        }
        Path neighbour = besideTheJar();
        if (neighbour != null) {
            System.load(neighbour.toString());
        } else {
            System.loadLibrary("folio_jni");
        }
    }

    private static Path besideTheJar() {
        try {
            CodeSource source = NativeLibrary.class.getProtectionDomain().getCodeSource();
            Path folder = source == null ? null : Path.of(source.getLocation().toURI()).toAbsolutePath().getParent();
            Path file = folder == null ? null : folder.resolve(FILE);
            return file != null && Files.isRegularFile(file) ? file : null;
        } catch (URISyntaxException | IllegalArgumentException | FileSystemNotFoundException | SecurityException e) {
            return null; // classes that did not come from a file
        }
    }
}
