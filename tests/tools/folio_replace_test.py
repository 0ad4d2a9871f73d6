"""Proves what scripts rely on of `folio pack --replace`: files, JSON keys, and exit codes; that ONNX
tools and `folio convert` get the weights back."""

import json
import sys
from pathlib import Path

from folio_cli_test import FOLIO, FolioCase, folio, matmul_model

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
import skipping


class Replace(FolioCase):
    def replaced(self):
        """A model, and the same with its weight in a pack file alone."""
        source = self.write("m.onnx", matmul_model())
        out = self.folder / "r.onnx"
        self.check(folio("pack", "--replace", source, "-o", out), 0)
        return source, out

    def outputs(self, path, *arguments):
        folder = self.folder / "outputs"
        self.check(folio("run", path, "--output-dir", folder, *arguments), 0)
        return {file.name: file.read_bytes() for file in folder.iterdir()}

    def test_the_weight_stands_in_the_pack_file_alone(self):
        source, out = self.replaced()
        pack = self.folder / "r.onnx.fpack"
        self.assertLess(out.stat().st_size, 2000)
        sizes = out.stat().st_size + pack.stat().st_size
        self.assertLess(sizes, source.stat().st_size * 1.1, "102 KiB, and a page for the header")
        self.assertEqual(self.outputs(out), self.outputs(source))
        unpacked = ("--config", "session.disable_prepacking=1")
        self.assertEqual(self.outputs(out, *unpacked), self.outputs(source, *unpacked))

    def test_in_place(self):
        source = self.write("m.onnx", matmul_model())
        before = self.outputs(source)
        result = self.check(folio("pack", source, "--replace"), 0)
        self.assertIn("1 weights packed", result.stdout)
        self.assertEqual(self.outputs(source), before)
        self.assertIn("already", self.one_error_line(folio("pack", source, "--replace"), 3))

    def test_json_is_one_object(self):
        source = self.write("m.onnx", matmul_model())
        result = self.check(folio("pack", source, "--replace", "--json"), 0)
        report = json.loads(result.stdout)
        self.assertEqual(report["target"], f"{source}.fpack")
        self.assertEqual((report["written_blob_count"], report["raw_blob_count"]), (1, 0))
        self.assertEqual((report["written_blob_bytes"], report["raw_blob_bytes"]), (102400, 0))

    def test_the_pack_file_says_what_it_is(self):
        _, out = self.replaced()
        pack = f"{out}.fpack"
        self.assertIn("only copy", self.check(folio("inspect", pack), 0).stdout)
        report = json.loads(self.check(folio("inspect", pack, "--json"), 0).stdout)
        self.assertTrue(report["is_only_copy"])
        self.assertIn("only copy", self.one_error_line(folio("pack", out), 3))
        self.assertEqual(len(self.outputs(out)), 1)

    def test_the_model_says_what_its_weights_are(self):
        source, out = self.replaced()
        reports = [json.loads(self.check(folio("inspect", path, "--json"), 0).stdout)
                   for path in (source, out)]
        for key in ("inputs", "outputs", "operators", "metadata", "initializer_bytes"):
            self.assertEqual(reports[0].get(key), reports[1].get(key), key)

    def test_nothing_is_packed_by_a_load(self):
        _, out = self.replaced()
        report = json.loads(self.check(folio("bench", out, "--json", "--iterations", 2), 0).stdout)
        packs = report["pack"]
        self.assertEqual((packs["source"], packs["misses"], packs["found"]), ("file", 1, 1))
        self.assertEqual((packs["packed"], packs["heap_bytes"]), (0, 0))
        self.assertEqual(packs["sidecar_bytes"], 102400)
        text = self.check(folio("bench", out, "--iterations", 2), 0).stdout
        self.assertIn("packed weights: 0 made, 1 found, from: a pack file", text)

    def test_convert_gives_the_weights_back(self):
        source, out = self.replaced()
        back = self.folder / "back.onnx"
        self.check(folio("convert", out, "-o", back, "--optimize", "none"), 0)
        (self.folder / "r.onnx.fpack").unlink()
        self.assertEqual(self.outputs(back), self.outputs(source))
        weight = source.read_bytes()
        weight = weight[weight.index(bytes(4) + b"\x00\x00\x80\x3f\x00\x00\x00\x40"):][:102400]
        self.assertIn(weight, back.read_bytes())

    def test_without_its_pack_file_a_model_is_no_model(self):
        _, out = self.replaced()
        (self.folder / "r.onnx.fpack").unlink()
        line = self.one_error_line(folio("run", out), 3)
        self.assertIn("r.onnx.fpack", line)

    def test_exit_codes(self):
        source = self.write("m.onnx", matmul_model())
        for more in (("--check",), ("--store", self.folder), ("--isa", "avx2"), ("--dim", "N=1")):
            self.check(folio("pack", source, "--replace", *more), 2)
        self.check(folio("pack", source, source, "--replace", "-o", self.folder / "r.onnx"), 2)
        self.assertIn("folio convert", self.one_error_line(
            folio("pack", source, "--replace", "-o", self.folder / "r.ort"), 3))
        self.one_error_line(folio("pack", source, "--replace", "-o", self.folder / "no/r.onnx"), 3)


if __name__ == "__main__":
    if not FOLIO.exists():
        skipping.leave(f"{FOLIO} is not built")
    skipping.main()
