package dev.foliort;

import java.io.IOException;
import java.net.URISyntaxException;
import java.nio.file.FileSystemNotFoundException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.CodeSource;

/**
 * Loads libfolio_jni.so, which brings libfolio.so.1 from its own folder. Looks in the folder that the system property
 * folio.native.path or the environment variable FOLIO_NATIVE_PATH names; beside the jar; in the jar; where the system
 * looks. The order is in docs/java.md.
 */
final class NativeLibrary {
    static final String FILE = "libfolio_jni.so";
    private static final String PROPERTY = "folio.native.path";
    private static final String VARIABLE = "FOLIO_NATIVE_PATH";
    private static final String GLIBC = "2.36"; // what the build needs; tests/c_api/exports_test.py

    private NativeLibrary() {}

    static {
        load();
    }

    /** Returns with the library loaded, or throws UnsatisfiedLinkError. */
    static void require() {}

    private static void load() {
        String platform = System.getProperty("os.name") + " " + System.getProperty("os.arch");
        String named = System.getProperty(PROPERTY, System.getenv(VARIABLE));
        if (named != null && !named.isEmpty()) {
            loadFile(Path.of(named, FILE).toAbsolutePath());
            return;
        }
        Path neighbour = besideTheJar();
        if (neighbour != null) {
            loadFile(neighbour);
        } else if (!platform.equals("Linux amd64")) {
            throw new UnsatisfiedLinkError("Folio runs on Linux on x86-64, not on " + platform);
        } else if (!NativeResource.load()) {
            loadFromSystem();
        }
    }

    static void loadFile(Path file) {
        try {
            System.load(file.toString());
        } catch (UnsatisfiedLinkError e) {
            throw explained(e);
        }
    }

    private static void loadFromSystem() {
        try {
            System.loadLibrary("folio_jni");
        } catch (UnsatisfiedLinkError e) {
            throw explained(e);
        }
    }

    private static UnsatisfiedLinkError explained(UnsatisfiedLinkError e) {
        UnsatisfiedLinkError result = new UnsatisfiedLinkError(explain(e.getMessage(), mappings()));
        result.initCause(e);
        return result;
    }

    /** The linker's message and, where it follows from that, what to do about it. */
    static String explain(String message, String mappings) {
        if (mappings.contains("/ld-musl-")) {
            return message + "; this system's C library is musl, Folio needs glibc " + GLIBC
                    + " or later: use an image that is not Alpine";
        }
        if (message.contains("GLIBC_") && message.contains("not found")) {
            return message + "; this system's glibc is too old, Folio needs " + GLIBC
                    + " or later: Debian 12, Ubuntu 22.10, RHEL 10";
        }
        if (message.contains("failed to map segment")) {
            return message + "; the folder is on a file system that forbids programs (noexec): name another with -D"
                    + PROPERTY + " or " + VARIABLE;
        }
        return message;
    }

    private static String mappings() {
        try {
            return Files.readString(Path.of("/proc/self/maps"));
        } catch (IOException e) {
            return "";
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
