"""Proves that `folio pack` of several models packs those that it can, and says which it cannot."""

import json
import sys
from pathlib import Path

from folio_cli_test import (FLOAT, FOLIO, UNKNOWN_MODEL, FolioCase, folio, matmul_model, model, node,
                            port)

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
import skipping


class SeveralModels(FolioCase):
    def setUp(self):
        super().setUp()
        self.first = self.write("first.onnx", matmul_model())
        self.bad = self.write("bad.onnx", b"no model")
        self.odd = self.write("odd.onnx", UNKNOWN_MODEL)
        self.last = self.write("last.onnx", matmul_model())

    def test_the_others_are_packed_and_each_failure_is_a_line(self):
        result = self.check(folio("pack", self.first, self.bad, self.odd, self.last), 3)
        self.assertEqual([line.split(":")[0] for line in result.stdout.splitlines()],
                         [f"{self.first}.fpack", f"{self.last}.fpack"])
        for path in (self.first, self.last):
            self.assertTrue(Path(f"{path}.fpack").exists())
        bad, odd, summary = result.stderr.splitlines()
        self.assertIn(f"folio: {self.bad}: ", bad)
        self.assertIn(f"folio: {self.odd}: ", odd)
        self.assertEqual(summary, "folio: 2 of 4 models could not be packed")

    def test_json_has_an_object_for_each(self):
        result = self.check(folio("pack", "--json", self.bad, self.last), 3)
        bad, last = map(json.loads, result.stdout.splitlines())
        self.assertEqual(list(bad), ["model", "error"])
        self.assertEqual((bad["model"], last["model"]), (str(self.bad), str(self.last)))
        self.assertIn("not an ONNX", bad["error"])
        self.assertEqual(last["written_blob_count"], 1)

    def test_the_exit_code_is_the_worst(self):
        self.check(folio("pack", self.odd, self.last), 4)
        self.check(folio("pack", self.odd, self.bad), 3)
        result = self.check(folio("pack", "--check", self.first, self.odd), 4)
        self.assertIn("0 weights found, 1 missing", result.stdout)
        self.assertTrue(result.stderr.endswith("1 of 2 models could not be checked\n"))
        self.check(folio("pack", "--check", self.first, self.last), 1)

    def test_lines_of_a_store_name_the_models(self):
        store = self.folder / "store"
        result = self.check(folio("pack", self.first, self.last, "--store", store), 0)
        self.assertEqual(result.stdout.splitlines(),
                         [f"{self.first} in {store}: 1 weights packed, 100.0 KB",
                          f"{self.last} in {store}: 0 weights packed, 0 bytes, 1 were there"])

    def test_one_model_has_one_line(self):
        self.one_error_line(folio("pack", self.bad), 3)

    def test_what_no_model_could_take_ends_the_command(self):
        for wrong in (["--config", "folio.nothing=1"], ["--isa", "foo"], ["--dim", "n"]):
            with self.subTest(wrong=wrong):
                self.one_error_line(folio("pack", self.first, self.last, *wrong), 2)

    def test_a_dim_that_one_of_them_lacks_does_not(self):
        free = self.write("free.onnx", model([node("Relu", ["x"], ["y"])],
                                             [port("x", FLOAT, ["n"])], [port("y", FLOAT, ["n"])]))
        result = self.check(folio("pack", self.first, free, "--dim", "n=2"), 3)
        self.assertIn(f"{self.first}: --dim n: ", result.stderr)
        self.assertTrue(Path(f"{free}.fpack").exists())
        self.one_error_line(folio("pack", self.first, "--dim", "n=2"), 2)


if __name__ == "__main__":
    if not FOLIO.exists():
        skipping.leave(f"{FOLIO} is not built")
    skipping.main()
