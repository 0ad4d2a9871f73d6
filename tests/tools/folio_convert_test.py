"""Proves what scripts rely on of `folio convert`: files, levels, JSON keys and exit codes."""

import json
import sys
from pathlib import Path

from folio_cli_test import (FLOAT, FOLIO, UNKNOWN_MODEL, FolioCase, double_model, folio,
                            matmul_model, model, node, port)

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
import skipping


def chain_model():
    """x -> Identity -> Relu -> y: basic optimization takes the Identity away."""
    return model([node("Identity", ["x"], ["same"]), node("Relu", ["same"], ["y"])],
                 [port("x", FLOAT, [3])], [port("y", FLOAT, [3])])


class Convert(FolioCase):
    def operators(self, path):
        return json.loads(self.check(folio("inspect", path, "--json"), 0).stdout)["operators"]

    def test_the_name_says_the_format(self):
        source = self.write("m.onnx", double_model())
        for name, form in (("out.onnx", "onnx"), ("out.ort", "ort"), ("out.bin", "onnx")):
            out = self.folder / name
            self.check(folio("convert", source, "-o", out), 0)
            report = json.loads(self.check(folio("inspect", out, "--json"), 0).stdout)
            self.assertEqual(report["format"], form)
            self.assertEqual(report["metadata"], {"author": "nobody"})
        self.check(folio("convert", source, "-o", out, "--format", "ORT"), 0)
        self.assertEqual(json.loads(folio("inspect", out, "--json").stdout)["format"], "ort")

    def test_levels(self):
        source = self.write("m.onnx", chain_model())
        out = self.folder / "out.onnx"
        for level, left in (("none", {"Identity": 1, "Relu": 1}), ("basic", {"Relu": 1}),
                            ("extended", {"Relu": 1}), ("all", {"Relu": 1})):
            self.check(folio("convert", source, "-o", out, "--optimize", level), 0)
            self.assertEqual(self.operators(out), left, level)

    def test_json_is_one_object_with_the_sizes(self):
        source = self.write("m.onnx", double_model())
        out = self.folder / "out.ort"
        result = self.check(folio("convert", source, "-o", out, "--json"), 0)
        report = json.loads(result.stdout)
        self.assertEqual(result.stderr, "")
        self.assertEqual(report["output"], str(out))
        self.assertEqual(report["file_bytes"], out.stat().st_size)
        self.assertEqual((report["data_bytes"], report["nodes_before"], report["nodes"]),
                         (0, 1, 1))
        self.assertNotIn("data_file", report)

    def test_the_pack_file_is_named(self):
        source = self.write("m.onnx", matmul_model())
        out = self.folder / "out.onnx"
        text = self.check(folio("convert", source, "-o", out, "--pack"), 0).stdout
        self.assertEqual(text.splitlines()[-1], f"{out}.fpack: 1 weights packed, 100.0 KB")
        self.assertTrue(Path(f"{out}.fpack").exists())
        report = json.loads(folio("convert", source, "-o", out, "--pack", "--json").stdout)
        self.assertEqual(report["pack_file"], f"{out}.fpack")
        self.assertEqual((report["written_blob_count"], report["written_blob_bytes"]), (1, 102400))
        self.assertNotIn("pack_file", json.loads(folio("convert", source, "-o", out, "--json").stdout))

    def test_exit_codes(self):
        source = self.write("m.onnx", double_model())
        out = self.folder / "out.onnx"
        self.check(folio("convert", source), 2)
        self.check(folio("convert", source, "-o", out, "--optimize", "most"), 2)
        self.check(folio("convert", source, "-o", out, "--external-data", "../w"), 2)
        self.one_error_line(folio("convert", self.folder / "missing.onnx", "-o", out), 3)
        line = self.one_error_line(folio("convert", source, "-o", self.folder / "no/m.onnx"), 3)
        self.assertIn("no/m.onnx", line)
        odd = self.write("odd.onnx", UNKNOWN_MODEL)
        self.one_error_line(folio("convert", odd, "-o", out), 4)
        self.assertFalse(out.exists())


if __name__ == "__main__":
    if not FOLIO.exists():
        skipping.leave(f"{FOLIO} is not built")
    skipping.main()
