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
    private static final String NAME_IT = "name its folder with -D" + PROPERTY + "=FOLDER or the environment variable "
            + VARIABLE + ", or take the jar from Maven (dev.foliort:folio), which has it inside, or from the Debian package"
            + " libfolio-java, which has it beside it";
    // Not thrown by this class's initializer: the next caller would be told of the class only.
    private static final UnsatisfiedLinkError FAILURE = failureOfLoad();

    private NativeLibrary() {}

    /** Returns with the library loaded, or throws UnsatisfiedLinkError. */
    static void require() {
        if (FAILURE != null) throw caused(FAILURE.getMessage(), FAILURE);
    }

    private static UnsatisfiedLinkError failureOfLoad() {
        try {
            load();
            return null;
        } catch (UnsatisfiedLinkError e) {
            return e;
        }
    }

    private static void load() {
        String platform = System.getProperty("os.name") + " " + System.getProperty("os.arch");
        String property = System.getProperty(PROPERTY);
        String named = property != null ? property : System.getenv(VARIABLE);
        if (named != null && !named.isEmpty()) {
            loadNamed(named, property != null ? "-D" + PROPERTY : "the environment variable " + VARIABLE);
            return;
        }
        Path folder = folderOfTheJar();
        if (folder != null && Files.isRegularFile(folder.resolve(FILE))) {
            loadFile(folder.resolve(FILE));
        } else if (!platform.equals("Linux amd64")) {
            throw new UnsatisfiedLinkError("Folio runs on Linux on x86-64, not on " + platform);
        } else if (!NativeResource.load()) {
            loadFromSystem(folder);
        }
    }

    private static void loadNamed(String folder, String namedBy) {
        Path file = Path.of(folder, FILE).toAbsolutePath();
        if (!Files.exists(file)) {
            throw new UnsatisfiedLinkError(file + " does not exist; " + namedBy + " names this folder: it must be the one of "
                    + FILE + " and libfolio.so.1, or not be set");
        }
        loadFile(file);
    }

    static void loadFile(Path file) {
        try {
            System.load(file.toString());
        } catch (UnsatisfiedLinkError e) {
            throw explained(e);
        }
    }

    private static void loadFromSystem(Path folderOfTheJar) {
        try {
            System.loadLibrary("folio_jni");
        } catch (UnsatisfiedLinkError e) {
            String places = folderOfTheJar == null ? "not" : "neither beside the jar (in " + folderOfTheJar + ") nor";
            String said = explain(e.getMessage(), mappings());
            throw caused(FILE + " is " + places + " in the jar, and the system says: " + said + "; " + NAME_IT, e);
        }
    }

    private static UnsatisfiedLinkError explained(UnsatisfiedLinkError e) {
        return caused(explain(e.getMessage(), mappings()), e);
    }

    private static UnsatisfiedLinkError caused(String message, UnsatisfiedLinkError cause) {
        UnsatisfiedLinkError result = new UnsatisfiedLinkError(message);
        result.initCause(cause);
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

    /** Null for classes that did not come from a file. */
    private static Path folderOfTheJar() {
        try {
            CodeSource source = NativeLibrary.class.getProtectionDomain().getCodeSource();
            return source == null ? null : Path.of(source.getLocation().toURI()).toAbsolutePath().getParent();
        } catch (URISyntaxException | IllegalArgumentException | FileSystemNotFoundException | SecurityException e) {
            return null;
        }
    }
}
