"""Proves what scripts rely on of `folio compare`: exit codes, JSON keys, whose failure it was.

Against Folio itself; what needs ONNX Runtime is skipped unless FOLIO_ORT_LIBRARY names it.
"""

import json
import os
import struct
import sys
import unittest
import xml.etree.ElementTree
from pathlib import Path

from folio_cli_test import (BOOL, DOUBLE, FLOAT, FLOAT16, FOLIO, INT64, STRING, UINT8,
                            UNKNOWN_MODEL, FolioCase, double_model, folio, identity_model,
                            matmul_model, model, node, npy, number, port, text)

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
import skipping

ORT = os.environ.get("FOLIO_ORT_LIBRARY")
SVG = "{http://www.w3.org/2000/svg}"
METRICS = ["init_ms", "load_ms", "first_run_ms", "run_p50_ms", "run_min_ms", "anon_init",
           "anon_load", "anon_run", "peak_anon_load"]
QUICK = ["--rounds", "1", "--warmup", "0", "--iterations", "1", "--threads", "1"]


class CompareCase(FolioCase):
    AGAINST = ["--against", "folio"]

    def compare(self, code, *arguments):
        return self.check(folio("compare", *arguments, *self.AGAINST, *QUICK), code)

    def objects(self, code, *arguments):
        lines = self.compare(code, *arguments, "--json").stdout.splitlines()
        return [json.loads(line) for line in lines]

    def one(self, code, *arguments):
        objects = self.objects(code, *arguments)
        self.assertEqual(len(objects), 1)
        return objects[0]


class Usage(FolioCase):
    def test_a_library_is_needed(self):
        path = self.write("m.onnx", double_model())
        environment = {k: v for k, v in os.environ.items() if k != "FOLIO_ORT_LIBRARY"}
        line = self.one_error_line(folio("compare", path, env=environment), 2)
        self.assertIn("FOLIO_ORT_LIBRARY", line)
        self.assertIn("--ort", line)

    def test_a_library_that_is_not_there_or_not_the_right_one_is_3(self):
        path = self.write("m.onnx", double_model())
        line = self.one_error_line(folio("compare", path, "--ort", self.folder / "no.so"), 3)
        self.assertIn("no.so: cannot open", line)
        self.assertIn("--ort (or FOLIO_ORT_LIBRARY) names its shared library", line)
        line = self.one_error_line(folio("compare", path, "--ort", "libm.so.6"), 3)
        self.assertIn("OrtGetApiBase", line)
        environment = dict(os.environ, FOLIO_ORT_LIBRARY="libm.so.6")
        line = self.one_error_line(folio("compare", path, env=environment), 3)
        self.assertIn("OrtGetApiBase", line)

    def test_bad_options_are_2(self):
        path = self.write("m.onnx", double_model())
        folio_side = ["--against", "folio"]
        for arguments in ([], [path, "--against", "nobody"], [path, *folio_side, "--rounds", "0"],
                          [path, *folio_side, "--iterations", "0"],
                          [path, *folio_side, "--dim", "n"], [path, *folio_side, "--rtol", "-1"],
                          [path, *folio_side, "--against-config", "x"],
                          [path, *folio_side, "--against-config", "folio.nonesuch=1"],
                          [path, *folio_side, "--config", "folio.nonesuch=1"],
                          [path, "--ort", "x", "--against-library", "y"],
                          [path, *folio_side, "--plot", self.folder / "none/plot.svg"],
                          [path, *folio_side, "--dim", "nobody=2"]):
            self.one_error_line(folio("compare", *arguments, *QUICK), 2)


class InputsFromFiles(CompareCase):
    def test_both_sides_run_them(self):
        path = self.write("m.onnx", double_model())
        source = self.write("x.npy", npy("<f4", [3], struct.pack("<3f", 1, 2, float("inf"))))
        report = self.one(0, path, "--input", f"x={source}")
        self.assertEqual((report["result"], report["inputs"]), ("agree", f"x={source}"))
        self.assertEqual(self.one(0, path)["inputs"], "made up")
        wrong = self.write("y.npy", npy("<i8", [3], struct.pack("<3q", 1, 2, 3)))
        self.assertIn("float", self.one(3, path, "--input", f"x={wrong}")["folio"]["error"])

    def test_test_data_beside_the_model_is_not_used_then(self):
        path = self.write("m.onnx", double_model())
        (self.folder / "test_data_set_0").mkdir()  # without inputs
        source = self.write("x.npy", npy("<f4", [3], struct.pack("<3f", 1, 2, 3)))
        self.assertEqual(self.one(0, path, "--input", f"x={source}")["result"], "agree")

    def test_what_does_not_fit_is_2(self):
        path = self.write("m.onnx", double_model())
        source = self.write("x.npy", npy("<f4", [3], struct.pack("<3f", 1, 2, 3)))
        for arguments in ([path, "--input", f"z={source}"], [path, "--input", "x"],
                          [path, path, "--input", f"x={source}"],
                          [path, "--input", f"x={source}", "--input", f"x={source}"]):
            self.one_error_line(folio("compare", *arguments, *self.AGAINST, *QUICK), 2)


class AgainstFolio(CompareCase):
    def test_json_has_both_sides_and_their_ratios(self):
        report = self.one(0, self.write("m.onnx", double_model()))
        self.assertEqual(report["result"], "agree")
        self.assertEqual(report["reasons"], [])
        self.assertEqual((report["folio"]["backend"], report["against"]["backend"]),
                         ("folio", "folio"))
        for side in (report["folio"], report["against"]):
            self.assertIsNone(side["error"])
            for metric in METRICS:
                self.assertGreater(side[metric], 0, metric)
        for metric in METRICS:
            self.assertAlmostEqual(report["ratio"][metric],
                                   report["folio"][metric] / report["against"][metric])
        output = report["outputs"][0]
        self.assertEqual((output["name"], output["type"], output["elements"], output["beyond"]),
                         ("y", "float[1]", 1, 0))
        self.assertEqual((output["absolute"], output["relative"]), (0, 0))
        self.assertGreater(output["magnitude"], 0)
        self.assertAlmostEqual(output["cosine"], 1)
        self.assertEqual(output["rows"], 0)  # of one element

    def test_where_packed_weights_come_from_is_said(self):
        path = self.write("m.onnx", matmul_model())
        other = ["--against-config", "session.disable_prepacking=1"]
        self.assertIn("Folio: packed weights: 1 made, 0 found, from: memory\n"
                      "other: packed weights: 0 made, 0 found, from: none\n",
                      self.compare(0, path, *other).stdout)
        self.check(folio("pack", path), 0)
        report = self.one(0, path, *other)
        self.assertEqual((report["folio"]["pack"]["source"], report["folio"]["pack"]["found"]),
                         ("file", 1))
        self.assertEqual(report["folio"]["pack"]["sidecar_bytes"], 102400)
        self.assertEqual(report["against"]["pack"]["source"], "none")
        self.assertIn("Folio: packed weights: 0 made, 1 found, from: a pack file\n",
                      self.compare(0, path).stdout)
        store = ["--config", f"folio.pack_store={self.folder}/store",
                 "--config", "folio.pack_sidecar=off"]
        self.assertIn("Folio: packed weights: 1 made, 0 found, from: a store\n",
                      self.compare(0, path, *store).stdout)
        self.assertIn("Folio: packed weights: 0 made, 1 found, from: a store\n",
                      self.compare(0, path, *store).stdout)
        several = self.compare(0, path, self.write("d.onnx", double_model())).stdout
        self.assertIn(f"{path}: Folio: packed weights: 0 made, 1 found, from: a pack file\n", several)
        self.assertNotIn("d.onnx: Folio", several)

    def test_free_dims_are_named_unless_given(self):
        path = self.write("m.onnx", double_model())
        self.assertEqual(self.one(0, path)["free_dims"], ["n"])
        self.assertIn("taken as 1 (see --dim): n", self.compare(0, path).stdout)
        report = self.one(0, path, "--dim", "n=3")
        self.assertEqual((report["free_dims"], report["outputs"][0]["elements"]), ([], 3))

    def test_inputs_are_those_of_test_data_beside_the_model(self):
        self.write_test("t", (2, 5))
        report = self.one(0, self.folder)
        self.assertTrue(report["inputs"].endswith("test_data_set_0"))
        self.assertEqual((report["outputs"][0]["elements"], report["outputs"][0]["magnitude"]),
                         (2, 5))
        report = self.one(0, self.folder, "--made-up")
        self.assertEqual((report["inputs"], report["outputs"][0]["elements"]), ("made up", 1))

    def test_outputs_that_differ_are_1_and_say_where(self):
        self.write_test("t", (), inputs=(3, 1e-40))
        flush = ["--against-config", "session.set_denormal_as_zero=1"]
        report = self.one(1, self.folder, *flush, "--atol", "0")
        output = report["outputs"][0]
        self.assertEqual((report["result"], output["elements"], output["beyond"]),
                         ("differ", 2, 1))
        self.assertAlmostEqual(output["absolute"] * 1e40, 2, 3)
        self.assertEqual((output["absolute_at"], output["relative"]), ("[1]", 0))
        self.assertEqual((output["magnitude"], output["relative_at"]), (6, ""))
        self.assertAlmostEqual(output["cosine"], 1)
        self.assertEqual((output["rows"], output["same_top"]), (1, 1))
        self.assertIn("expected 0", output["difference"])
        self.assertEqual(report["reasons"], [output["difference"]])
        self.one(0, self.folder, *flush)
        self.write("t/data.json", b'{"atol": 0}')
        self.one(1, self.folder, *flush)

    def test_a_model_that_fails_is_one_line_of_several(self):
        self.write("bad/model.onnx", b"\x07nothing")
        self.write("good/model.onnx", double_model())
        reports = self.objects(3, self.folder)
        self.assertEqual([r["result"] for r in reports], ["failed", "agree"])
        self.assertEqual((reports[0]["folio"]["stage"], reports[0]["outputs"]), ("load", []))
        self.assertTrue(reports[0]["folio"]["error"])
        self.assertIsNone(reports[0]["ratio"]["run_p50_ms"])
        lines = self.compare(3, self.folder).stdout.splitlines()
        self.assertRegex(lines[1], r"^bad .* failed$")
        self.assertRegex(lines[2], r"^good .* agree$")
        self.assertTrue(any(line.startswith("bad: Folio: load: ") for line in lines))

    def test_unsupported_is_4(self):
        report = self.one(4, self.write("m.onnx", UNKNOWN_MODEL), "--against-config",
                          "session.disable_prepacking=1")
        self.assertEqual(report["folio"]["stage"], "load")

    def test_a_process_that_takes_too_long_is_stopped(self):
        path = self.write("m.onnx", double_model())
        result = folio("compare", path, *self.AGAINST, "--iterations", "1000000000", "--timeout", "1",
                       "--json")
        report = json.loads(self.check(result, 3).stdout)
        self.assertIn("not done after 1 s", report["folio"]["error"])

    def test_rounds_and_names_of_several_models(self):
        paths = [self.write(f"{name}.onnx", double_model()) for name in "ab"]
        result = folio("compare", *paths, *self.AGAINST, "--iterations", "2", "--dim", "other=3")
        lines = self.check(result, 0).stdout.splitlines()
        self.assertEqual(lines[0].split()[:2], ["model", "difference"])
        self.assertEqual([line.split()[0] for line in lines[1:4]], [*map(str, paths), "geometric"])

    def test_json_has_every_round(self):
        path = self.write("m.onnx", double_model())
        result = folio("compare", path, *self.AGAINST, *QUICK[2:], "--rounds", "3", "--json")
        report = json.loads(self.check(result, 0).stdout)
        for side in (report["folio"], report["against"]):
            self.assertEqual(sorted(side["samples"]), sorted(METRICS))
            for metric in METRICS:
                rounds = side["samples"][metric]
                self.assertEqual((len(rounds), sorted(rounds)[1]), (3, side[metric]))

    def test_a_picture_has_dots_on_the_side_of_1_where_they_belong(self):
        for name in ("a", "b"):
            self.write(f"{name}/model.onnx", double_model())
        self.write("bad/model.onnx", b"\x07nothing")
        plot = self.folder / "plot.svg"
        reports = self.objects(3, self.folder, "--plot", plot)
        root = xml.etree.ElementTree.parse(plot).getroot()
        texts = {text.text: text for text in root.iter(SVG + "text")}
        for label in ("a", "b", "bad (failed)", "geometric mean", "load"):
            self.assertIn(label, texts)
        one = float(texts["1"].get("x"))
        shares = {r["model"].split("/")[-2]: r["ratio"]["run_p50_ms"] for r in reports}
        height = {label: float(texts[label].get("y")) for label in ("a", "b", "bad (failed)")}
        dots = [(float(c.get("cx")), float(c.get("cy"))) for c in root.iter(SVG + "circle")]
        self.assertEqual(len(dots), 4, "the legend's, those of two models and their mean")
        for name in ("a", "b"):
            x, = [x for x, y in dots if abs(y + 4 - height[name]) < 1]
            self.assertEqual(x > one + 0.01, shares[name] > 1.0001, name)
        self.assertLess(max(height["a"], height["b"]), height["bad (failed)"])
        first = min(shares["a"], shares["b"])
        self.assertEqual(height["a"] < height["b"], shares["a"] == first, "the fastest is on top")

    def test_folders_have_short_names(self):
        for path in ("a/model.onnx", "a/model.ort", "b/c/model.onnx"):
            self.write(path, b"none")
        folders = [self.folder / "a/", self.folder / "b"]
        lines = self.compare(3, *folders).stdout.splitlines()
        self.assertEqual([line.split()[0] for line in lines[1:4]], ["a", "a/model.ort", "c"])

    def test_strings_and_small_types(self):
        for dtype in (STRING, BOOL, UINT8, INT64, FLOAT16, DOUBLE):
            report = self.one(0, self.write("m.onnx", identity_model(dtype, [2, 3])))
            self.assertEqual(report["outputs"][0]["elements"], 6)


@unittest.skipUnless(ORT, "FOLIO_ORT_LIBRARY does not name ONNX Runtime's library")
class AgainstOrt(CompareCase):
    AGAINST = ["--ort", str(ORT)]

    def test_both_see_the_same_inputs(self):
        report = self.one(0, self.write("m.onnx", double_model()), "--dim", "n=100")
        self.assertEqual(report["against"]["backend"], "ort")
        self.assertTrue(report["against"]["version"])
        self.assertEqual(report["outputs"][0]["absolute"], 0)
        self.assertEqual(report["outputs"][0]["elements"], 100)

    def test_types_of_elements_mean_the_same(self):
        for dtype in (STRING, BOOL, UINT8, INT64, FLOAT16, DOUBLE):
            report = self.one(0, self.write("m.onnx", identity_model(dtype, [2, 3])))
            self.assertEqual((report["outputs"][0]["elements"], report["outputs"][0]["beyond"]),
                             (6, 0))

    def test_sequences_are_compared_by_part(self):
        two = model([node("SequenceConstruct", ["x", "x"], ["y"])], [port("x", FLOAT, [3])],
                    [text(1, "y") + text(2, text(4, text(1, text(1, number(1, FLOAT)))))])
        report = self.one(0, self.write("m.onnx", two))
        self.assertEqual(report["outputs"][0]["type"], "sequence of 2")
        self.assertEqual(report["outputs"][0]["elements"], 6)

    def test_test_data_goes_to_both(self):
        self.write_test("t", (2, 5))
        self.assertEqual(self.one(0, self.folder)["outputs"][0]["magnitude"], 5)

    def test_whose_failure_it_is(self):
        report = self.one(4, self.write("m.onnx", UNKNOWN_MODEL))
        self.assertIn("Nonesuch", report["against"]["error"])
        self.assertEqual(report["against"]["stage"], "load")

    def test_session_config_entries_reach_it(self):
        path = self.write("m.onnx", double_model())
        self.one(0, path, "--against-config", "session.disable_prepacking=1")

    def test_its_graph_optimizations_can_be_less(self):
        path = self.write("m.onnx", double_model())
        for level in ("0", "99"):
            self.one(0, path, "--against-config", f"graph_optimization_level={level}")
        for level in ("3", "all"):
            self.one_error_line(folio("compare", path, *self.AGAINST, "--against-config",
                                      f"graph_optimization_level={level}"), 2)


if __name__ == "__main__":
    if not FOLIO.exists():
        skipping.leave(f"{FOLIO} is not built")
    skipping.main()
