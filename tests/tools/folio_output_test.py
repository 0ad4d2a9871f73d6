"""Proves what holds for the output of every command of `folio`, whatever it does."""

import json
import os
import subprocess
import sys
from pathlib import Path

from folio_cli_test import FOLIO, FolioCase, folio, matmul_model

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


if __name__ == "__main__":
    if not FOLIO.exists():
        skipping.leave(f"{FOLIO} is not built")
    skipping.main()
