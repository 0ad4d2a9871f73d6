"""Runs ONNX's own operator cases (Debian's libonnx-testdata) through `folio test`.

Every case of an operator that Folio has must pass. What it lacks is listed here, so that neither a
loss nor a gain goes unnoticed.
"""

import os
import re
import subprocess
import sys
import unittest
from pathlib import Path

FOLIO = Path(os.environ.get("FOLIO_BINARY_DIR", "build/release")) / "bin" / "folio"
CASES = Path("/usr/share/libonnx-testdata/data")
SKIP = 77

# The values are bfloat16 in the model and uint16 in its .pb files.
WRONG_CASES = {
    "test_cast_BFLOAT16_to_FLOAT", "test_cast_FLOAT_to_BFLOAT16", "test_castlike_BFLOAT16_to_FLOAT",
    "test_castlike_BFLOAT16_to_FLOAT_expanded", "test_castlike_FLOAT_to_BFLOAT16",
    "test_castlike_FLOAT_to_BFLOAT16_expanded",
}
# Random numbers, which no two runtimes make alike.
RANDOM_CASES = {f"test_bernoulli{kind}{form}" for kind in ("", "_double", "_seed")
                for form in ("", "_expanded")}

# Training is out of scope.
MISSING_OPERATORS = {f"ai.onnx.preview.training.{name}"
                     for name in ("Adagrad", "Adam", "Gradient", "Momentum")}


class OnnxConformance(unittest.TestCase):
    def test_every_case_passes_or_needs_an_operator_known_to_be_missing(self):
        folders = [CASES / name for name in ("node", "simple", "pytorch-operator",
                                             "pytorch-converted")]
        done = subprocess.run([FOLIO, "test", *folders, "--jobs", "2"], capture_output=True,
                              text=True, check=False)
        missing, failed, passed = set(), [], 0
        for line in done.stdout.splitlines():
            state, _, rest = line.partition(" ")
            case = Path(rest.partition(" ")[0]).parent.name
            if state == "PASS":
                passed += 1
            elif state == "UNSUPPORTED":
                missing |= set(re.findall(r"  ([\w.]+) \(opset \d+\)", rest))
            elif state == "FAIL" and case not in WRONG_CASES | RANDOM_CASES:
                failed.append(line)
        self.assertEqual(failed, [])
        self.assertEqual(missing, MISSING_OPERATORS)
        self.assertGreater(passed, 1000, done.stderr)


if __name__ == "__main__":
    if not CASES.is_dir() or not FOLIO.exists():
        print("skipped: no libonnx-testdata, or no folio command")
        sys.exit(SKIP)
    unittest.main(verbosity=2)
