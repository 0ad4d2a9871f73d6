"""Operators against ONNX Runtime 1.30: OrtOracle of test_properties with the library that npm has; skipped without npm."""

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "ort_dropin"))
sys.path.insert(0, str(HERE.parent / "support"))

import skipping  # noqa: E402
from npm_packages import BUILD, find  # noqa: E402

LIBRARY = "onnxruntime-node/bin/napi-v6/linux/x64/libonnxruntime.so.1"


def main():
    if os.environ.get("FOLIO_SANITIZE"):
        skipping.leave("ONNX Runtime is not built with sanitizers")
    modules, why = find("onnxruntime-node@1.30.0")
    if modules is None:
        skipping.leave(why)
    # Models of opsets that are not released yet are compared too.
    environment = dict(os.environ, FOLIO_PROPERTIES_ORT=str(modules / LIBRARY), ALLOW_RELEASED_ONNX_OPSET_ONLY="0",
                       FOLIO_RANDOM_TRACE="1")
    result = subprocess.run([str(BUILD / "bin/test_properties"), "--gtest_filter=OrtOracle.*"], env=environment,
                            capture_output=True, text=True, errors="replace", timeout=300)
    print(result.stdout)
    if result.returncode < 0:
        operators = [line for line in result.stderr.splitlines() if " since " in line]
        print(f"ended by signal {-result.returncode} at {operators[-1] if operators else 'the start'}")
    return 1 if result.returncode else 0


if __name__ == "__main__":
    sys.exit(main())
