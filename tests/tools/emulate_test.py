"""What tools/emulate.py takes from an emulated machine; the machine itself is the lane `emulated` of build.sh."""

import contextlib
import io
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
sys.path.insert(0, str(ROOT / "tools"))
sys.dont_write_bytecode = True
import emulate
import skipping


class Machine:
    """A process that has ended, or never does."""

    def __init__(self, ended):
        self.ended = ended

    def poll(self):
        return 0 if self.ended else None


class EmulateTest(unittest.TestCase):
    def follow(self, printed, ended=True, seconds=5):
        """(code, what was shown)"""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "serial"
            if printed is not None:
                path.write_bytes(printed)
            shown = io.StringIO()
            with contextlib.redirect_stdout(shown):
                code = emulate.follow(emulate.Serial(path), Machine(ended), seconds)
            return code, shown.getvalue()

    def test_shows_what_the_program_prints_and_ends_with_its_code(self):
        printed = b"boot\r\n== begin\r\nfirst\r\nsecond \xff\n== end 3\r\nreboot\r\n"
        self.assertEqual(self.follow(printed), (3, "first\nsecond \ufffd\n"))

    def test_a_machine_that_stops_early_has_no_code(self):
        self.assertEqual(self.follow(b"== begin\nfirst\n"), (None, "first\n"))
        self.assertEqual(self.follow(b"kernel panic\n"), (None, ""))
        self.assertEqual(self.follow(None), (None, ""))

    def test_lines_come_whole_though_they_are_written_in_pieces(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "serial"
            serial = emulate.Serial(path)
            path.write_bytes(b"one\ntw")
            self.assertEqual(serial.lines(), ["one"])
            path.write_bytes(b"one\ntwo\n")
            self.assertEqual(serial.lines(), ["two"])

    def test_time_is_limited(self):
        with self.assertRaises(TimeoutError):
            self.follow(b"== begin\n", ended=False, seconds=0)

    def test_without_an_emulator_nothing_runs(self):
        done = subprocess.run(
            [sys.executable, ROOT / "tools/emulate.py", "--bochs", "no-such-emulator", "/bin/true"],
            capture_output=True, text=True, env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"})
        self.assertEqual(done.returncode, 125)
        self.assertEqual(done.stderr, "emulate.py: no-such-emulator is not installed\n")


if __name__ == "__main__":
    skipping.main()
