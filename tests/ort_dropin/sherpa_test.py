"""sherpa-onnx-node on Folio's drop-in library: finds the same speech as on ONNX Runtime's.

Needs node, espeak-ng, the packages from npm (npm_packages.py), and the Silero VAD model: from npm too, or in the folder
that FOLIO_ORT_TEST_MODELS names. Skipped otherwise.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
import wave
from pathlib import Path

from npm_packages import DROPIN, find

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
import skipping

HERE = Path(__file__).resolve().parent
SHERPA = ("sherpa-onnx-node@1.13.8", "sherpa-onnx-linux-x64@1.13.8")
VAD = "@ricky0123/vad-web@0.0.31"
SENTENCES = ("Hello, this is the first sentence.", "And here is another one.")


def find_model():
    given = os.environ.get("FOLIO_ORT_TEST_MODELS")
    path = Path(given or ".") / "silero_vad_v5/model.onnx"
    if given and path.is_file():
        return path, None
    modules, why = find(VAD)
    return (None, why) if why else (modules / "@ricky0123/vad-web/dist/silero_vad_v5.onnx", None)


def find_all():
    if shutil.which("espeak-ng") is None:
        return None, None, "espeak-ng is not installed"
    modules, why = find(*SHERPA)
    if why:
        return None, None, why
    model, why = find_model()
    return modules, model, why


MODULES, MODEL, WHY = find_all()


def speak(folder):
    """Both sentences with a second of silence before, between and after."""
    target = folder / "speech.wav"
    with wave.open(str(target), "wb") as out:
        for i, sentence in enumerate(SENTENCES):
            part = folder / f"{i}.wav"
            subprocess.run(["espeak-ng", "-w", str(part), sentence], check=True, capture_output=True)
            with wave.open(str(part)) as spoken:
                if i == 0:
                    out.setparams(spoken.getparams())
                silence = bytes(2 * spoken.getframerate())
                out.writeframes(silence + spoken.readframes(spoken.getnframes()))
        out.writeframes(silence)
    return target


def segments(modules, speech):
    result = subprocess.run(["node", str(HERE / "sherpa_client.js"), str(MODEL), str(speech)], capture_output=True,
                            text=True, timeout=300, env=dict(os.environ, NODE_PATH=str(modules)))
    if result.returncode != 0:
        raise AssertionError(result.stderr)
    return json.loads(result.stdout)


class Sherpa(unittest.TestCase):
    def test_finds_the_speech_that_it_finds_on_onnx_runtime(self):
        with tempfile.TemporaryDirectory() as folder:
            folder = Path(folder)
            speech = speak(folder)
            expected = segments(MODULES, speech)
            modules = folder / "node_modules"
            for package in SHERPA:  # its RPATH comes before LD_LIBRARY_PATH: the file is replaced
                name = package.rpartition("@")[0]
                shutil.copytree(MODULES / name, modules / name)
            shutil.copy(DROPIN / "libonnxruntime.so.1", modules / "sherpa-onnx-linux-x64/libonnxruntime.so")
            found = segments(modules, speech)
        self.assertEqual(len(found), len(SENTENCES), found)
        self.assertEqual(len(expected), len(found))
        for (start, end), (expected_start, expected_end) in zip(found, expected):
            self.assertAlmostEqual(start, expected_start, delta=0.033)  # one window of 512 samples
            self.assertAlmostEqual(end, expected_end, delta=0.033)


if __name__ == "__main__":
    skipping.main(WHY)
