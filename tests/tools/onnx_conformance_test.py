"""Runs ONNX's own operator cases (Debian's libonnx-testdata) through `folio test`.

onnx_conformance_names.txt lists the cases that pass, MISSES the others and why. Every case is one
or the other, so neither a loss nor a gain goes unnoticed; docs/operators.md names the misses, too.
"""

import os
import subprocess
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
import skipping

FOLIO = Path(os.environ.get("FOLIO_BINARY_DIR", "build/release")) / "bin" / "folio"
CASES = Path("/usr/share/libonnx-testdata/data")
HERE = Path(__file__).parent
NAMES = HERE / "onnx_conformance_names.txt"
DOCS = HERE.parent.parent / "docs" / "operators.md"
SUITES = ("node", "simple", "pytorch-operator", "pytorch-converted")

# Another library's random numbers: a case may pass by luck.
RANDOM = {f"node/test_bernoulli{kind}{form}" for kind in ("", "_double", "_seed")
          for form in ("", "_expanded")}
DROPOUT = {f"node/test_training_dropout{form}" for form in ("", "_default", "_mask",
                                                            "_default_mask")}
MISSES = RANDOM | DROPOUT | {
    # The data was cut to bfloat16; newer cases round, as Folio does.
    "node/test_cast_FLOAT_to_BFLOAT16",
    # The model declares like[3,4], the data has like[1].
    "node/test_castlike_BFLOAT16_to_FLOAT", "node/test_castlike_BFLOAT16_to_FLOAT_expanded",
    "node/test_castlike_FLOAT_to_BFLOAT16", "node/test_castlike_FLOAT_to_BFLOAT16_expanded",
    # The data was made with an epsilon that the model does not have.
    "node/test_adam_multiple",
    # Gradient, an operator that is not here.
    "simple/test_gradient_of_add", "simple/test_gradient_of_add_and_mul",
}


def run_suites():
    """The lines of `folio test` by case."""
    done = subprocess.run([FOLIO, "test", *(CASES / name for name in SUITES), "--jobs", "2"],
                          capture_output=True, text=True, check=False)
    lines = {}
    for line in done.stdout.splitlines():
        state, _, rest = line.partition(" ")
        if state in ("PASS", "FAIL", "UNSUPPORTED"):
            folder = Path(rest.partition(" ")[0]).parent
            lines[str(folder.relative_to(CASES))] = line
    return lines


class OnnxConformance(unittest.TestCase):
    maxDiff = None

    def test_the_named_cases_pass_and_no_others(self):
        lines = run_suites()
        passed = {name for name, line in lines.items() if line.startswith("PASS ")}
        named = set(NAMES.read_text(encoding="utf-8").split())
        self.assertEqual([lines.get(name, f"{name}: is not there")
                          for name in sorted(named - passed)], [])
        self.assertEqual(sorted(passed - named - RANDOM), [], "gains: to be named")
        self.assertEqual(sorted(set(lines) - named), sorted(MISSES))

    def test_the_docs_name_each_miss(self):
        text = DOCS.read_text(encoding="utf-8")
        self.assertEqual([name for name in sorted(MISSES)
                          if f"`{name.partition('/')[2]}`" not in text], [])


if __name__ == "__main__":
    if not CASES.is_dir() or not FOLIO.exists():
        skipping.leave("no libonnx-testdata, or no folio command")
    skipping.main(verbosity=2)
