import dev.foliort.FolioException;
import dev.foliort.Model;
import dev.foliort.Session;
import dev.foliort.Tensor;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.FloatBuffer;
import java.nio.LongBuffer;
import java.nio.ShortBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;

/**
 * Who speaks when: runs the Silero voice activity model over a recording, 32 ms at a time, and prints where there is
 * speech. The same as samples/c/speech_timeline.c.
 *
 * <pre>java -cp folio.jar:. SpeechTimeline silero_vad_v5.onnx RECORDING.wav</pre>
 *
 * The recording is 16 bit mono PCM at 16 kHz. The model looks at 512 samples, with the 64 before them as context, and
 * hands a state of 2 x 1 x 128 numbers from each call to the next; it answers with the probability that somebody
 * speaks. All tensors lie over direct buffers, which are made once: a call copies no tensor.
 */
public final class SpeechTimeline {
    private static final int SAMPLE_RATE = 16000;
    private static final int WINDOW = 512; // samples, 32 ms
    private static final int CONTEXT = 64;
    private static final int INPUT = CONTEXT + WINDOW;
    private static final int STATE = 2 * 1 * 128;
    private static final int PAUSE_MS = 300; // a shorter pause is part of the speech around it
    private static final int PICTURE_COLUMNS = 72;
    private static final int MAX_WAV_BYTES = 1 << 30;
    private static final float THRESHOLD = 0.5f;

    /** Windows from begin on, before end, of speech. */
    private static final class Segment {
        final int begin;
        int end;

        Segment(int begin) {
            this.begin = begin;
            end = begin + 1;
        }
    }

    private SpeechTimeline() {}

    public static void main(String[] arguments) {
        if (arguments.length != 2) {
            System.err.println("usage: SpeechTimeline MODEL RECORDING.wav");
            System.exit(2);
        }
        try {
            showSpeech(arguments[0], arguments[1]);
        } catch (FolioException e) {
            System.err.println(e.code() + ": " + e.getMessage());
            System.exit(3);
        } catch (IOException e) {
            System.err.println(arguments[1] + ": " + e.getMessage());
            System.exit(3);
        }
    }

    private static void showSpeech(String modelPath, String wavPath) throws IOException {
        float[] samples = readWav(wavPath);
        long started = System.nanoTime();
        try (Model model = Model.open(modelPath); Session session = model.session()) {
            long opened = System.nanoTime();
            float[] probabilities = findSpeech(session, samples);
            long done = System.nanoTime();
            print("%s: %.1f s of sound; model opened in %.1f ms, %d windows in %.1f ms%n", wavPath,
                    (double) samples.length / SAMPLE_RATE, (opened - started) / 1e6, probabilities.length,
                    (done - opened) / 1e6);
            if (probabilities.length != 0) printTimeline(findSegments(probabilities), probabilities.length);
        }
    }

    // The recording.

    private static float[] readWav(String path) throws IOException {
        if (Files.size(Path.of(path)) > MAX_WAV_BYTES) throw new IOException("is no recording of at most 1 GiB");
        ByteBuffer file = ByteBuffer.wrap(Files.readAllBytes(Path.of(path))).order(ByteOrder.LITTLE_ENDIAN);
        if (file.capacity() < 12 || file.getInt(0) != chunkId("RIFF") || file.getInt(8) != chunkId("WAVE")) {
            throw new IOException("is no WAV file");
        }
        ByteBuffer format = findChunk(file, "fmt ");
        ByteBuffer data = findChunk(file, "data");
        if (format == null || format.capacity() < 16 || data == null) throw new IOException("is no WAV file");
        if (format.getShort(0) != 1 || format.getShort(2) != 1 || format.getInt(4) != SAMPLE_RATE
                || format.getShort(14) != 16) {
            throw new IOException("is not 16 bit mono PCM at 16 kHz");
        }
        ShortBuffer values = data.asShortBuffer();
        float[] samples = new float[values.capacity()];
        for (int i = 0; i < samples.length; ++i) samples[i] = values.get(i) / 32768f;
        return samples;
    }

    private static int chunkId(String id) {
        return id.charAt(0) | id.charAt(1) << 8 | id.charAt(2) << 16 | id.charAt(3) << 24;
    }

    /** A size that reaches over the end, as programs write that do not know it yet, means the rest of the file. */
    private static ByteBuffer findChunk(ByteBuffer file, String id) {
        long at = 12;
        while (at + 8 <= file.capacity()) {
            int begin = (int) at + 8;
            long size = Math.min(file.getInt((int) at + 4) & 0xffffffffL, file.capacity() - begin);
            if (file.getInt((int) at) == chunkId(id)) {
                return file.slice(begin, (int) size).order(ByteOrder.LITTLE_ENDIAN);
            }
            at += 8 + size + (size & 1); // chunks begin at even places
        }
        return null;
    }

    // The model.

    private static ByteBuffer room(int bytes) {
        return ByteBuffer.allocateDirect(bytes).order(ByteOrder.nativeOrder());
    }

    /** The probability of speech in each window. */
    private static float[] findSpeech(Session session, float[] recording) {
        FloatBuffer samples = room(INPUT * Float.BYTES).asFloatBuffer();
        FloatBuffer probability = room(Float.BYTES).asFloatBuffer();
        LongBuffer sampleRate = room(Long.BYTES).asLongBuffer().put(0, SAMPLE_RATE);
        float[] probabilities = new float[(recording.length + WINDOW - 1) / WINDOW];
        float[] silence = new float[WINDOW];
        try (Tensor input = Tensor.wrap(samples, 1, INPUT);
                Tensor rate = Tensor.wrap(sampleRate);
                Tensor output = Tensor.wrap(probability, 1, 1);
                Tensor even = Tensor.wrap(room(STATE * Float.BYTES).asFloatBuffer(), 2, 1, 128);
                Tensor odd = Tensor.wrap(room(STATE * Float.BYTES).asFloatBuffer(), 2, 1, 128)) {
            for (int window = 0; window < probabilities.length; ++window) {
                int start = window * WINDOW;
                int count = Math.min(WINDOW, recording.length - start);
                for (int i = 0; i < CONTEXT; ++i) samples.put(i, samples.get(WINDOW + i));
                samples.put(CONTEXT, recording, start, count);
                samples.put(CONTEXT + count, silence, 0, WINDOW - count);
                // One state is read, the other written; the next call reads what this one wrote.
                Tensor state = window % 2 == 0 ? even : odd;
                Tensor nextState = window % 2 == 0 ? odd : even;
                session.run(Map.of("input", input, "state", state, "sr", rate),
                        Map.of("output", output, "stateN", nextState));
                probabilities[window] = probability.get(0);
            }
        }
        return probabilities;
    }

    // The timeline.

    private static double seconds(int window) {
        return (double) (window * (long) WINDOW) / SAMPLE_RATE;
    }

    private static List<Segment> findSegments(float[] probabilities) {
        int pauseWindows = PAUSE_MS * (SAMPLE_RATE / 1000) / WINDOW;
        List<Segment> segments = new ArrayList<>();
        Segment last = null;
        for (int window = 0; window < probabilities.length; ++window) {
            if (probabilities[window] < THRESHOLD) continue;
            if (last != null && window - last.end <= pauseWindows) {
                last.end = window + 1;
            } else {
                last = new Segment(window);
                segments.add(last);
            }
        }
        return segments;
    }

    private static void printTimeline(List<Segment> segments, int windowCount) {
        StringBuilder picture = new StringBuilder(".".repeat(PICTURE_COLUMNS));
        for (Segment segment : segments) {
            int first = (int) ((long) segment.begin * PICTURE_COLUMNS / windowCount);
            int last = (int) ((segment.end - 1L) * PICTURE_COLUMNS / windowCount);
            for (int column = first; column <= last; ++column) picture.setCharAt(column, '#');
        }
        print("  |%s| %.1f s%n", picture, seconds(windowCount));
        int number = 0;
        for (Segment segment : segments) {
            double begin = seconds(segment.begin);
            double end = seconds(segment.end);
            print("  segment %d: %6.2f s - %6.2f s  (%.2f s)%n", ++number, begin, end, end - begin);
        }
        print("%d segments of speech%n", segments.size());
    }

    private static void print(String format, Object... values) {
        System.out.printf(Locale.ROOT, format, values);
    }
}
