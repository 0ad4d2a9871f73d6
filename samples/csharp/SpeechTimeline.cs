using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.Globalization;
using System.IO;
using FolioRuntime;

/// <summary>
/// Who speaks when: runs the Silero voice activity model over a recording, 32 ms at a time, and prints where there is
/// speech. The same as samples/c/speech_timeline.c.
///
///   mono SpeechTimeline.exe silero_vad_v5.onnx RECORDING.wav
///
/// The recording is 16 bit mono PCM at 16 kHz. The model looks at 512 samples, with the 64 before them as context, and
/// hands a state of 2 x 1 x 128 numbers from each call to the next; it answers with the probability that somebody
/// speaks. All tensors lie over arrays of this program, which are made once: a call copies no tensor.
/// </summary>
public static class SpeechTimeline
{
    private const int SampleRate = 16000;
    private const int Window = 512; // samples, 32 ms
    private const int Context = 64;
    private const int Input = Context + Window;
    private const int State = 2 * 1 * 128;
    private const int PauseMs = 300; // a shorter pause is part of the speech around it
    private const int PictureColumns = 72;
    private const int MaxWavBytes = 1 << 30;
    private const float Threshold = 0.5f;

    /// <summary>Windows from Begin on, before End, of speech.</summary>
    private sealed class Segment
    {
        internal int Begin;
        internal int End;
    }

    public static int Main(string[] arguments)
    {
        if (arguments.Length != 2)
        {
            Console.Error.WriteLine("usage: SpeechTimeline MODEL RECORDING.wav");
            return 2;
        }
        try
        {
            ShowSpeech(arguments[0], arguments[1]);
            return 0;
        }
        catch (FolioException e)
        {
            Console.Error.WriteLine(e.Code + ": " + e.Message);
        }
        catch (Exception e) when (e is IOException || e is UnauthorizedAccessException)
        {
            Console.Error.WriteLine(arguments[1] + ": " + e.Message);
        }
        return 3;
    }

    private static void ShowSpeech(string modelPath, string wavPath)
    {
        float[] samples = ReadWav(wavPath);
        Stopwatch watch = Stopwatch.StartNew();
        using (Model model = Model.Open(modelPath))
        using (Session session = model.Session())
        {
            double opened = watch.Elapsed.TotalMilliseconds;
            float[] probabilities = FindSpeech(session, samples);
            double done = watch.Elapsed.TotalMilliseconds;
            Print("{0}: {1:F1} s of sound; model opened in {2:F1} ms, {3} windows in {4:F1} ms", wavPath,
                (double)samples.Length / SampleRate, opened, probabilities.Length, done - opened);
            if (probabilities.Length != 0) PrintTimeline(FindSegments(probabilities), probabilities.Length);
        }
    }

    // The recording.

    private static float[] ReadWav(string path)
    {
        if (new FileInfo(path).Length > MaxWavBytes) throw new IOException("is no recording of at most 1 GiB");
        byte[] file = File.ReadAllBytes(path);
        if (file.Length < 12 || !HasId(file, 0, "RIFF") || !HasId(file, 8, "WAVE"))
        {
            throw new IOException("is no WAV file");
        }
        int format = FindChunk(file, "fmt ", out int formatBytes);
        int data = FindChunk(file, "data", out int dataBytes);
        if (format < 0 || formatBytes < 16 || data < 0) throw new IOException("is no WAV file");
        if (BitConverter.ToInt16(file, format) != 1 || BitConverter.ToInt16(file, format + 2) != 1 ||
            BitConverter.ToInt32(file, format + 4) != SampleRate || BitConverter.ToInt16(file, format + 14) != 16)
        {
            throw new IOException("is not 16 bit mono PCM at 16 kHz");
        }
        var samples = new float[dataBytes / 2];
        for (int i = 0; i < samples.Length; ++i) samples[i] = BitConverter.ToInt16(file, data + 2 * i) / 32768f;
        return samples;
    }

    private static bool HasId(byte[] file, int at, string id)
    {
        for (int i = 0; i < id.Length; ++i)
        {
            if (file[at + i] != id[i]) return false;
        }
        return true;
    }

    /// <summary>
    /// Where the chunk's bytes begin, or -1. A size that reaches over the end, as programs write that do not know it
    /// yet, means the rest of the file.
    /// </summary>
    private static int FindChunk(byte[] file, string id, out int bytes)
    {
        long at = 12;
        while (at + 8 <= file.Length)
        {
            int begin = (int)at + 8;
            long size = Math.Min(BitConverter.ToUInt32(file, (int)at + 4), file.Length - begin);
            bytes = (int)size;
            if (HasId(file, (int)at, id)) return begin;
            at += 8 + size + (size & 1); // chunks begin at even places
        }
        bytes = 0;
        return -1;
    }

    // The model.

    /// <summary>The probability of speech in each window.</summary>
    private static float[] FindSpeech(Session session, float[] recording)
    {
        var samples = new float[Input];
        var probability = new float[1];
        var probabilities = new float[(recording.Length + Window - 1) / Window];
        using (Tensor input = Tensor.Wrap(samples, 1, Input))
        using (Tensor rate = Tensor.Wrap(new long[] { SampleRate }))
        using (Tensor output = Tensor.Wrap(probability, 1, 1))
        using (Tensor even = Tensor.Wrap(new float[State], 2, 1, 128))
        using (Tensor odd = Tensor.Wrap(new float[State], 2, 1, 128))
        {
            var inputs = new Dictionary<string, Tensor> { { "input", input }, { "sr", rate } };
            var outputs = new Dictionary<string, Tensor> { { "output", output } };
            for (int window = 0; window < probabilities.Length; ++window)
            {
                int start = window * Window;
                int count = Math.Min(Window, recording.Length - start);
                Array.Copy(samples, Window, samples, 0, Context);
                Array.Copy(recording, start, samples, Context, count);
                Array.Clear(samples, Context + count, Window - count);
                // One state is read, the other written; the next call reads what this one wrote.
                inputs["state"] = window % 2 == 0 ? even : odd;
                outputs["stateN"] = window % 2 == 0 ? odd : even;
                session.Run(inputs, outputs);
                probabilities[window] = probability[0];
            }
        }
        return probabilities;
    }

    // The timeline.

    private static double Seconds(int window)
    {
        return (double)((long)window * Window) / SampleRate;
    }

    private static List<Segment> FindSegments(float[] probabilities)
    {
        const int pauseWindows = PauseMs * (SampleRate / 1000) / Window;
        var segments = new List<Segment>();
        Segment last = null;
        for (int window = 0; window < probabilities.Length; ++window)
        {
            if (probabilities[window] < Threshold) continue;
            if (last == null || window - last.End > pauseWindows)
            {
                last = new Segment { Begin = window };
                segments.Add(last);
            }
            last.End = window + 1;
        }
        return segments;
    }

    private static void PrintTimeline(List<Segment> segments, int windowCount)
    {
        char[] picture = new string('.', PictureColumns).ToCharArray();
        foreach (Segment segment in segments)
        {
            int first = (int)((long)segment.Begin * PictureColumns / windowCount);
            int last = (int)((segment.End - 1L) * PictureColumns / windowCount);
            for (int column = first; column <= last; ++column) picture[column] = '#';
        }
        Print("  |{0}| {1:F1} s", new string(picture), Seconds(windowCount));
        int number = 0;
        foreach (Segment segment in segments)
        {
            double begin = Seconds(segment.Begin);
            double end = Seconds(segment.End);
            Print("  segment {0}: {1,6:F2} s - {2,6:F2} s  ({3:F2} s)", ++number, begin, end, end - begin);
        }
        Print("{0} segments of speech", segments.Count);
    }

    private static void Print(string format, params object[] values)
    {
        Console.WriteLine(string.Format(CultureInfo.InvariantCulture, format, values));
    }
}
