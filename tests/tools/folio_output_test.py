"""Proves what holds for the output of every command of `folio`, whatever it does."""

import json
import os
import signal
import subprocess
import sys
import time
import unittest
from pathlib import Path

from folio_cli_test import FOLIO, FolioCase, double_model, matmul_model

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
import skipping


class Json(FolioCase):
    def raw(self, *arguments):
        """With arguments that need not be UTF-8."""
        return subprocess.run([FOLIO, *map(os.fsencode, arguments)], capture_output=True,
                              stdin=subprocess.DEVNULL, timeout=300)

    def test_paths_need_not_be_utf_8(self):
        model = os.fsencode(self.folder) + b"/m\xff.onnx"
        Path(os.fsdecode(model)).write_bytes(matmul_model())
        for arguments in (["convert", model, "-o", model + b".ort"], ["pack", model],
                          ["inspect", model], ["inspect", model + b".fpack"],
                          ["bench", model, "--iterations", "1"],
                          ["memory", model, "--processes", "1"],
                          ["memory", model, "--modes", "--rounds", "1"]):
            with self.subTest(arguments=arguments):
                result = self.raw(*arguments, "--json")
                self.assertEqual((result.returncode, result.stderr), (0, b""))
                json.loads(result.stdout)
                self.assertIn("m\ufffd.onnx", result.stdout.decode())


class Scratch(FolioCase):
    def stop(self, signal_number, wanted, *arguments):
        """Once the temporary folder has `wanted`; then it must become empty."""
        temporary = self.folder / "tmp"
        temporary.mkdir(exist_ok=True)
        process = subprocess.Popen([FOLIO, *map(str, arguments)], stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                                   env=dict(os.environ, TMPDIR=str(temporary)))
        self.addCleanup(process.kill)
        self.wait_for(lambda: list(temporary.rglob(wanted)))
        process.send_signal(signal_number)
        process.communicate(timeout=60)
        self.assertEqual(process.returncode, -signal_number, "it ends by the signal")
        self.wait_for(lambda: not list(temporary.iterdir()))

    def wait_for(self, is_so):
        end = time.monotonic() + 60
        while not is_so():
            self.assertLess(time.monotonic(), end)
            time.sleep(0.01)

    def test_nothing_is_left_behind_by_signals(self):
        model = self.write("m.onnx", matmul_model())
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            with self.subTest(signal=number):
                self.stop(number, "*.fpack", "memory", model, "--modes", "--rounds", 1000)
                self.stop(number, "folio-*", "bench", model, "--seconds", 100, "--trace", "t")
        self.stop(signal.SIGKILL, "*.fpack", "memory", model, "--modes", "--rounds", 1000)


@unittest.skipUnless(os.path.exists("/dev/full"), "no /dev/full")
class FullDisk(FolioCase):
    def test_output_that_cannot_be_written_is_an_error(self):
        model = self.write("m.onnx", double_model())
        self.write_test("t/good", [2, 5])
        for arguments in (["doctor"], ["doctor", "--json"], ["inspect", model], ["run", model],
                          ["bench", model, "--json"], ["bench", model, "--hold-ms", "1"],
                          ["test", self.folder / "t"], ["store", "--help"], ["--version"]):
            with self.subTest(arguments=arguments), open("/dev/full", "w") as full:
                result = subprocess.run([FOLIO, *arguments], stdout=full, stderr=subprocess.PIPE,
                                        stdin=subprocess.DEVNULL, text=True, timeout=300)
                self.assertEqual(result.returncode, 3, result.stderr)
                self.assertRegex(result.stderr, r"^folio: cannot write to standard output.*\n$")


if __name__ == "__main__":
    if not FOLIO.exists():
        skipping.leave(f"{FOLIO} is not built")
    skipping.main()
