package dev.foliort;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Profiles of runs: when they begin, what they hold, when they are written. */
class ProfileTest {
    @TempDir
    Path folder;

    private SessionOptions profiled() {
        return new SessionOptions().profile(folder.resolve("p 😀"));
    }

    private List<Path> files() throws IOException {
        try (Stream<Path> files = Files.list(folder)) {
            return files.collect(Collectors.toList());
        }
    }

    private static void run(Session session) {
        try (Tensor x = Tensor.allocate(ElementType.FLOAT, 1, Models.WIDTH)) {
            session.run(Map.of("x", x)).close();
        }
    }

    @Test
    void aProfileHasTheStepsOfTheRunsBeforeItsEnd() throws IOException {
        Instant before = Instant.now();
        try (Model model = Model.open(Models.path("mlp")); Session session = model.session(profiled())) {
            Duration late = Duration.between(before, session.profilingStart().orElseThrow());
            assertTrue(!late.plusSeconds(1).isNegative() && late.getSeconds() < 60, late.toString());
            run(session);
            Path file = session.endProfiling().orElseThrow();
            assertEquals(List.of(file), files());
            assertTrue(file.getFileName().toString().startsWith("p 😀_"), file.toString());
            String trace = Files.readString(file);
            assertTrue(trace.contains("session_initialization"), trace);
            assertTrue(trace.contains("layer0/MatMul_kernel_time"), trace);
            run(session);
            assertEquals(Optional.empty(), session.endProfiling());
            assertEquals(trace, Files.readString(file));
        }
        assertEquals(1, files().size());
    }

    @Test
    void aProfileIsWrittenWhenItsSessionCloses() throws IOException {
        Session session;
        try (Model model = Model.open(Models.path("mlp"))) {
            session = model.session(profiled());
        }
        run(session);
        session.close();
        assertEquals(1, files().size());
        assertTrue(Files.readString(files().get(0)).contains("MatMul"));
        Models.assertFails(ErrorCode.CLOSED, "session", session::endProfiling);
        Models.assertFails(ErrorCode.CLOSED, "session", session::profilingStart);
    }

    @Test
    void aProfileThatCannotBeWrittenFailsTheSession() {
        try (Model model = Model.open(Models.path("mlp"))) {
            Models.assertFails(ErrorCode.NO_SUCHFILE, "no/such",
                    () -> model.session(new SessionOptions().profile(folder.resolve("no/such/p"))));
        }
    }

    @Test
    void withoutAProfileThereIsNothingToEnd() {
        try (Session session = Models.session("mlp")) {
            assertEquals(Optional.empty(), session.endProfiling());
            assertEquals(Optional.empty(), session.profilingStart());
        }
    }
}
