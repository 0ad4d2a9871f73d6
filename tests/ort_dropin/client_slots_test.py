"""The slots that real clients call (client_slots.txt: what onnxruntime-node 1.30, sherpa-onnx 1.13.8, the managed C# binding
and the JNI code of ONNX Runtime call, by place and name) do their work here, and a C++ test calls each."""

import re
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
import skipping

HERE = Path(__file__).resolve().parent
SLOTS = HERE.parents[1] / "c_api/ort_dropin/api_slots.inc"
# They answer what a build without the feature answers.
REFUSED = {
    "RegisterCustomOpsLibrary": "custom operators are not supported",
    "ReleaseTensorRTProviderOptions": "none is ever made", "ReleaseCUDAProviderOptions": "none is ever made",
}


def table():
    """name: (place, whether it does its work)"""
    found = re.findall(r"^ORT_(SLOT|REFUSED)\((\d+), (\w+),", SLOTS.read_text(), re.M)
    return {name: (int(place), kind == "SLOT") for kind, place, name in found}


def called():
    return set(re.findall(r"(?:api\(\)\.|&OrtApi::|\ba\.)(\w+)", "".join(
        path.read_text() for pattern in ("*.cc", "*.h") for path in HERE.glob(pattern))))


class ClientSlots(unittest.TestCase):
    def test_each_stands_in_its_place_and_works(self):
        wanted = [line.split() for line in (HERE / "client_slots.txt").read_text().splitlines()]
        self.assertEqual(len(wanted), 97)
        for place, name in wanted:
            self.assertEqual(table().get(name), (int(place), name not in REFUSED), name)

    def test_every_slot_that_works_is_called_by_a_test(self):
        self.assertEqual([name for name, (_, works) in table().items() if works and name not in called()], [])


if __name__ == "__main__":
    skipping.main()
