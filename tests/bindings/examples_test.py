"""The programs with which docs/java.md and docs/csharp.md begin compile as they stand there, by the commands below them,
and run."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
import skipping

ROOT = Path(os.environ["FOLIO_TESTS_DIR"]).parent
BUILD = Path(os.environ["FOLIO_BINARY_DIR"])
LIB = BUILD / "lib"


class Examples(unittest.TestCase):
    def setUp(self):
        if not (BUILD / "bin/make_model").exists():
            self.skipTest("the tools were left out of this build")
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.work = Path(folder.name)

    def run_here(self, command):
        done = subprocess.run(command, shell=True, cwd=self.work, capture_output=True, text=True, check=False,
                              env=dict(os.environ, LC_ALL="C.UTF-8"))
        self.assertEqual(done.returncode, 0, f"{command}\n{done.stdout}{done.stderr}")
        return done

    def check(self, page, language, program, library, input_line):
        """`library`: the file that the command names, and how it is to be found here."""
        text = (ROOT / "docs" / page).read_text()
        code, command = re.search(rf"```{language}\n(.*?)```\n\n    (.*?)\n", text, re.S).groups()
        (self.work / program).write_text(code)
        for word, place in library.items():
            self.assertIn(word, command)
            command = command.replace(word, str(place))
        self.assertIn("model.onnx", self.run_here(command).stderr)  # there is none: the program says so
        self.run_here(f"{BUILD / 'bin/make_model'} mlp --width 3 -o model.onnx")
        done = self.run_here(command)
        self.assertEqual(done.stderr, "")
        self.assertEqual(done.stdout.splitlines()[-1], input_line)
        self.assertIn(f"// {input_line}\n", code)

    @unittest.skipUnless(shutil.which("javac") and (LIB / "folio.jar").exists(), "Java was left out of this build")
    def test_java(self):
        self.check("java.md", "java", "Program.java", {"folio.jar": LIB / "folio.jar"}, "x FLOAT[-1, 3]")

    @unittest.skipUnless(shutil.which("mcs") and (LIB / "FolioRuntime.dll").exists(), "C# was left out of this build")
    def test_csharp(self):
        self.check("csharp.md", "csharp", "Program.cs",
                   {"FolioRuntime.dll": LIB / "FolioRuntime.dll", "FOLDER-OF-THE-DLL": LIB}, "x Float[-1, 3]")


if __name__ == "__main__":
    skipping.main()
