"""onnxruntime-node on Folio's drop-in library: the same program, unchanged, as on ONNX Runtime's own.

Needs node and the package (npm_packages.py); skipped otherwise. FOLIO_ORT_TEST_MODELS names a folder of models with test data
in the ONNX layout, to run them all.
"""

import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "tools"), str(HERE.parent / "support")]

from folio_cli_test import (BOOL, DOUBLE, FLOAT, FLOAT16, INT8, INT16, INT32, INT64, STRING, UINT8, UINT16,  # noqa: E402
                            UINT32, UINT64, identity_model, model, node, number, port, tensor, text)
import skipping  # noqa: E402
from npm_packages import DROPIN, find  # noqa: E402

PLACE = "onnxruntime-node/bin/napi-v6/linux/x64"
TYPES = {"float32": FLOAT, "uint8": UINT8, "int8": INT8, "uint16": UINT16, "int16": INT16, "int32": INT32, "int64": INT64,
         "string": STRING, "bool": BOOL, "float16": FLOAT16, "float64": DOUBLE, "uint32": UINT32, "uint64": UINT64}


MODULES, WHY = find("onnxruntime-node@1.30.0", "onnxruntime-common@1.30.0")


def client(*arguments, library=None, modules=None, preload=None, **options):
    environment = dict(os.environ, NODE_PATH=str(modules or MODULES))
    environment.pop("LD_LIBRARY_PATH", None)
    if library:
        environment["LD_LIBRARY_PATH"] = str(library)
    if preload:
        environment["LD_PRELOAD"] = str(preload)
    return subprocess.run(["node", str(HERE / "node_client.js"), *map(str, arguments)], capture_output=True, text=True,
                          env=environment, timeout=540, **options)


def external_model():
    where = text(1, "location") + text(2, "weights.bin")
    weight = number(1, 3) + number(2, FLOAT) + text(8, "w") + text(13, where) + number(14, 1)
    return model([node("Add", ["x", "w"], ["y"])], [port("x", FLOAT, ["batch", 3])], [port("y", FLOAT, ["batch", 3])],
                 [weight])


def two_model():
    weight = tensor(FLOAT, [3], floats=[10, 20, 30]) + text(8, "w")
    return model([node("Add", ["x", "w"], ["y"], "adder"), node("Sub", ["x", "w"], ["z"], "subtracter")],
                 [port("x", FLOAT, ["batch", 3])], [port("y", FLOAT, ["batch", 3]), port("z", FLOAT, ["batch", 3])],
                 [weight])


class NodeClient(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def write_models(self, folder):
        folder.mkdir()
        for name, dtype in TYPES.items():
            (folder / f"identity_{name}.onnx").write_bytes(identity_model(dtype, ["n"]))
        (folder / "two.onnx").write_bytes(two_model())
        (folder / "external.onnx").write_bytes(external_model())
        (folder / "weights.bin").write_bytes(struct.pack("<3f", 10, 20, 30))
        return folder

    def report(self, name, **options):
        result = client("api", self.write_models(self.folder / name), **options)
        self.assertEqual(result.returncode, 0, result.stderr)
        return [json.loads(line) for line in result.stdout.splitlines()], result.stderr

    def test_answers_as_on_onnx_runtime(self):
        expected, _ = self.report("ort")
        found, errors = self.report("folio", library=DROPIN)
        self.assertEqual(found, expected)
        self.assertIn("wrong shape:", errors)
        self.assertNotIn("no error", json.dumps(found))

    def test_a_replaced_file_serves_too(self):
        modules = self.folder / "node_modules"
        shutil.copytree(MODULES, modules, symlinks=True, ignore=shutil.ignore_patterns("libonnxruntime.so.1"))
        shutil.copy(DROPIN / "libonnxruntime.so.1", modules / PLACE)
        result = client("api", self.write_models(self.folder / "models"), modules=modules)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn('"profile"', result.stdout)

    def test_preloading_serves_too(self):
        result = client("api", self.write_models(self.folder / "models"), preload=DROPIN / "libonnxruntime.so.1")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("expected", result.stderr)  # a message of Folio's

    @unittest.skipUnless(os.environ.get("FOLIO_ORT_TEST_MODELS"), "FOLIO_ORT_TEST_MODELS names no folder")
    def test_all_models(self):
        result = client("models", os.environ["FOLIO_ORT_TEST_MODELS"], library=DROPIN)
        lines = result.stdout.splitlines()
        failed = [line for line in lines if not line.startswith("PASS ")]
        self.assertGreater(len(lines), len(failed), result.stderr)
        again = self.folder / "again"  # what the binding itself refuses, such as outputs that are sequences
        for line in failed:
            name = line.split()[1].split("/")[0]
            (again / name).parent.mkdir(exist_ok=True)
            if not (again / name).exists():
                (again / name).symlink_to((Path(os.environ["FOLIO_ORT_TEST_MODELS"]) / name).resolve())
        expected = client("models", again).stdout.splitlines() if failed else []
        self.assertEqual(failed, [line for line in expected if not line.startswith("PASS ")])


if __name__ == "__main__":
    skipping.main(WHY)
