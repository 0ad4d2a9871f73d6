"""Proves what holds for the output of every command of `folio`, whatever it does."""

import json
import os
import signal
import subprocess
import sys
import time
import unittest
from pathlib import Path

from folio_cli_test import FOLIO, FolioCase, double_model, folio, matmul_model

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


class Progress(FolioCase):
    def shown(self, *arguments):
        """What the command writes on standard error when that is a terminal."""
        ours, theirs = os.openpty()
        with open(ours, "rb", buffering=0) as terminal:
            result = subprocess.run([FOLIO, *map(str, arguments)], stdout=subprocess.DEVNULL,
                                    stderr=theirs, stdin=subprocess.DEVNULL, timeout=300)
            os.close(theirs)
            self.assertEqual(result.returncode, 0)
            said = b""
            try:
                while piece := terminal.read(4096):
                    said += piece
            except OSError:  # the end, as Linux says it
                pass
        self.assertTrue(said.endswith(b"\r\033[K"), "and takes it away")
        return said.decode()

    def test_what_may_take_long_shows_it_on_a_terminal(self):
        model = self.write("m.onnx", matmul_model())
        store = self.folder / "store"
        for arguments, words in (
                (["pack", model], "packing .*: [0-9]+ %"),
                (["pack", model, "--store", store], "packing "),
                (["bench", model, "--seconds", "1"], "running .*: [1-9][0-9]* %"),
                (["bench", model], "loading .*: [0-9]+ %.*running .*: [0-9]+ %"),
                (["run", model, "--config", "folio.packing=load"], "loading .*: [0-9]+ %"),
                (["inspect", f"{model}.fpack"], "comparing .*fpack with its checksums"),
                (["store", "verify", store], "comparing the packs of ")):
            with self.subTest(arguments=arguments):
                self.assertRegex(self.shown(*arguments), "(?s)" + words)

    def test_nothing_is_shown_elsewhere(self):
        model = self.write("m.onnx", matmul_model())
        result = self.check(folio("bench", model, "--seconds", "0.2"), 0)
        self.assertEqual(result.stderr, "")


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
