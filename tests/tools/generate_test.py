"""Proves what samples/cpp/generate.cpp says of itself: a folder in, the same tokens however its
caches are kept and however many threads compute."""

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
import skipping

BUILD = Path(os.environ.get("FOLIO_BINARY_DIR", "build/release"))
GENERATE = BUILD / "bin" / "generate"
MAKE_MODEL = BUILD / "bin" / "make_model"


def generate(*arguments):
    return subprocess.run(
        [GENERATE, *arguments], capture_output=True, text=True, timeout=120
    )


def tokens_of(done):
    line = done.stdout.splitlines()[0]
    assert line.startswith("tokens:"), done.stdout
    return [int(token) for token in line.split()[1:]]


class GenerateTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        model = self.folder / "decoder.onnx"
        subprocess.run([MAKE_MODEL, "decoder", "-o", model, "--layers", "3"], check=True)

    def tokens(self, *arguments):
        done = generate(self.folder, *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return tokens_of(done)

    def test_caches_in_place_and_copied_give_the_same_tokens(self):
        asked = ["--prompt", "7,300,12,45", "--new", "60"]
        in_place = self.tokens(*asked, "--threads", "1")
        self.assertGreater(len(set(in_place)), 5)
        self.assertEqual(self.tokens(*asked, "--copy"), in_place)
        self.assertEqual(self.tokens(*asked, "--threads", "2"), in_place)
        self.assertEqual(self.tokens(*asked, "--max-length", "500"), in_place)

    def test_a_step_sees_all_tokens_before_it(self):
        first = self.tokens("--prompt", "7,300,12,45", "--new", "12")
        prompt = ",".join(map(str, [7, 300, 12, 45] + first[:6]))
        self.assertEqual(self.tokens("--prompt", prompt, "--new", "6"), first[6:])

    def test_the_seed_decides_what_is_drawn(self):
        asked = ["--new", "30", "--temperature", "5", "--top-k", "50"]
        drawn = self.tokens(*asked, "--seed", "3")
        self.assertEqual(self.tokens(*asked, "--seed", "3"), drawn)
        self.assertNotEqual(self.tokens(*asked, "--seed", "4"), drawn)

    def test_it_tells_speed_and_memory(self):
        done = generate(self.folder, "--new", "5")
        for part in ("load", "first token", "tokens/s", "caches", "mapped files"):
            self.assertIn(part, done.stdout)

    def test_what_is_missing_is_named(self):
        (self.folder / "genai_config.json").unlink()
        done = generate(self.folder)
        self.assertEqual(done.returncode, 1)
        self.assertIn("genai_config.json", done.stderr)

    def test_what_is_no_argument_is_named_with_how_it_is_used(self):
        for wrong, said in (([], "needs the folder"), ([self.folder, "--new"], "--new needs a value"),
                            ([self.folder, "--new", "many"], "--new needs a number, got 'many'"),
                            ([self.folder, "--fast", "1"], "unknown option --fast")):
            with self.subTest(arguments=wrong):
                done = generate(*wrong)
                self.assertEqual(done.returncode, 2)
                self.assertIn(said, done.stderr)
                self.assertIn("usage: generate FOLDER [--prompt 1,2,3] [--new 64]", done.stderr)


if __name__ == "__main__":
    if not GENERATE.exists() or not MAKE_MODEL.exists():
        skipping.leave(f"{GENERATE} was not built")
    skipping.main()
