"""What the tests of the packages share: a program for each, the speech sample where its model is there."""

import array
import math
import os
import random
import subprocess
import sys
import tempfile
import unittest
import wave
from pathlib import Path

ROOT = Path(os.environ["FOLIO_TESTS_DIR"]).parent
BUILD = Path(os.environ["FOLIO_BINARY_DIR"])
PACKAGES = BUILD / "packages"
MODELS = BUILD / "bindings/models"
SPEECH = Path(os.environ.get("FOLIO_TEST_MODELS") or "/nowhere") / "silero_vad_v5/model.onnx"


def run(*command, status=0, **options):
    """What it printed: on standard output, or of one that has to fail, on standard error."""
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, **options)
    if done.returncode != status:
        raise AssertionError(f"{' '.join(map(str, command))} returned {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout if status == 0 else done.stderr


def environment(**variables):
    clean = {k: v for k, v in os.environ.items() if not k.startswith("FOLIO_")}
    return dict(clean, LC_ALL="C.UTF-8", **variables)


def write_recording(path):
    """Noise that swells three times: not speech, but every package must make the same of it."""
    noise = random.Random(1)
    samples = array.array("h", (int(noise.uniform(-1, 1) * 9000 * max(0, math.sin(i / 8000)) ** 2 * (1 + math.sin(i / 7)))
                                for i in range(16000 * 4)))
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(16000)
        file.writeframes(samples.tobytes())


def timeline(output):
    return output.splitlines()[1:]  # the first line says how long it took


PROGRAM_CS = """\
using System;
using FolioRuntime;
public static class Program {
    public static void Main(string[] arguments) {
        using (Model model = Model.Open(arguments[0])) Console.WriteLine(model.Inputs[0]);
    }
}
"""


def one(pattern):
    (found,) = PACKAGES.glob(pattern)
    return found


class Packages(unittest.TestCase):
    expected = None

    def setUp(self):
        if not (BUILD / "bundle").is_dir() or not PACKAGES.is_dir():
            self.skipTest("packages were left out of this build")
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.work = Path(folder.name)
        self.wav = self.work / "recording.wav"
        if SPEECH.is_file():
            write_recording(self.wav)
        else:
            print("note: FOLIO_TEST_MODELS has no silero_vad_v5: other programs are run instead", file=sys.stderr)

    def same_timeline(self, output):
        lines = timeline(output)
        self.assertTrue(lines and lines[-1].endswith("segments of speech"), output)
        if Packages.expected is None:
            Packages.expected = timeline(run(BUILD / "bin/speech_timeline", "--library", BUILD / "lib/libfolio.so.1",
                                             SPEECH, self.wav))
        self.assertEqual(lines, Packages.expected)
