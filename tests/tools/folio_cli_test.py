"""Proves what scripts rely on of the `folio` command: exit codes, lines, JSON keys, files."""

import ast
import json
import os
import re
import struct
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
import skipping

BUILD = Path(os.environ.get("FOLIO_BINARY_DIR", "build/release"))
FOLIO = BUILD / "bin" / "folio"

FLOAT, UINT8, INT8, UINT16, INT16, INT32, INT64, STRING, BOOL, FLOAT16, DOUBLE = range(1, 12)
UINT32, UINT64, BFLOAT16, INT4 = 12, 13, 16, 22


# ---- protobuf, as much as a small model takes ----


def varint(value):
    value &= (1 << 64) - 1
    out = b""
    while value >= 0x80:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def number(field, value):
    return varint(field << 3) + varint(value)


def text(field, value):
    value = value.encode() if isinstance(value, str) else value
    return varint(field << 3 | 2) + varint(len(value)) + value


def port(name, dtype, dims):
    shape = b"".join(text(1, number(1, d) if isinstance(d, int) else text(2, d)) for d in dims)
    return text(1, name) + text(2, text(1, number(1, dtype) + text(2, shape)))


def node(op, inputs, outputs, name=""):
    parts = [text(1, i) for i in inputs] + [text(2, o) for o in outputs]
    return b"".join(parts) + text(3, name) + text(4, op)


def model(nodes, inputs, outputs, initializers=()):
    graph = b"".join(text(1, n) for n in nodes) + text(2, "g")
    graph += b"".join(text(5, i) for i in initializers)
    graph += b"".join(text(11, i) for i in inputs) + b"".join(text(12, o) for o in outputs)
    entry = text(1, "author") + text(2, "nobody")
    opset = text(1, "") + number(2, 17)
    return number(1, 8) + text(2, "test") + text(7, graph) + text(8, opset) + text(14, entry)


def tensor(dtype, dims, raw=None, floats=None):
    out = b"".join(number(1, d) for d in dims) + number(2, dtype)
    if raw is not None:
        return out + text(9, raw)
    return out + text(4, struct.pack(f"<{len(floats)}f", *floats))


def double_model():
    return model([node("Add", ["x", "x"], ["y"], "twice")], [port("x", FLOAT, ["n"])],
                 [port("y", FLOAT, ["n"])])


def identity_model(dtype, dims):
    return model([node("Identity", ["x"], ["y"])], [port("x", dtype, dims)],
                 [port("y", dtype, dims)])


UNKNOWN_MODEL = model([node("Nonesuch", ["x"], ["y"], "odd one")], [port("x", FLOAT, [1])],
                      [port("y", FLOAT, [1])])


# ---- .npy ----


def npy(descr, shape, data, fortran=False):
    header = f"{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {tuple(shape)}, }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data


def read_npy(path):
    """descr, shape, data"""
    raw = path.read_bytes()
    assert raw[:8] == b"\x93NUMPY\x01\x00", raw[:8]
    size = struct.unpack("<H", raw[8:10])[0]
    assert (10 + size) % 64 == 0
    header = ast.literal_eval(raw[10:10 + size].decode())
    assert header["fortran_order"] is False
    return header["descr"], header["shape"], raw[10 + size:]


# ---- random inputs: the rule of the benches, written a second time ----


def random_floats(name, count, seed=1, lo=-1.0, hi=1.0):
    mask = (1 << 64) - 1
    state = seed
    for byte in name.encode():
        state = (state * 131 + byte) & mask
    for _ in range(count):
        state = (state + 0x9E3779B97F4A7C15) & mask
        z = ((state ^ state >> 30) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ z >> 27) * 0x94D049BB133111EB) & mask
        z ^= z >> 31
        yield lo + (z >> 11) * 2.0**-53 * (hi - lo)


def folio(*arguments, **options):
    return subprocess.run([FOLIO, *map(str, arguments)], capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, timeout=300, **options)


class FolioCase(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def write(self, path, data):
        path = self.folder / path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return path

    def write_test(self, name, expected, inputs=(1, 2.5), model_bytes=None):
        """A folder in the ONNX test layout; the model doubles its input."""
        data = double_model() if model_bytes is None else model_bytes
        self.write(f"{name}/model.onnx", data)
        shape = [len(inputs)]
        self.write(f"{name}/test_data_set_0/input_0.pb", tensor(FLOAT, shape, floats=inputs))
        self.write(f"{name}/test_data_set_0/output_0.pb",
                   tensor(FLOAT, [len(expected)], struct.pack(f"<{len(expected)}f", *expected)))

    def check(self, result, code):
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        return result

    def one_error_line(self, result, code):
        self.check(result, code)
        lines = result.stderr.splitlines()
        self.assertEqual(len(lines), 1, result.stderr)
        self.assertTrue(lines[0].startswith("folio: "), lines[0])
        return lines[0]


class ExitCodes(FolioCase):
    def test_usage_is_2(self):
        for arguments in ([], ["nonesuch"], ["run"], ["run", "m", "--nonesuch"], ["test"],
                          ["test", self.folder / "missing"], ["bench", "m", "--threads", "x"],
                          ["run", "m", "--dim", "n"], ["run", "m", "--range", "x=1"]):
            with self.subTest(arguments=arguments):
                self.one_error_line(folio(*arguments), 2)

    def test_bad_config_key_is_2(self):
        path = self.write("m.onnx", double_model())
        line = self.one_error_line(folio("run", path, "--config", "folio.nonesuch=1"), 2)
        self.assertIn("folio.nonesuch", line)

    def test_what_cannot_be_loaded_is_3(self):
        bad = self.write("bad.onnx", b"no model at all")
        for command in ("run", "bench", "inspect"):
            with self.subTest(command=command):
                self.one_error_line(folio(command, self.folder / "missing.onnx"), 3)
                self.one_error_line(folio(command, bad), 3)
        self.one_error_line(folio("run", bad, "--library", self.folder / "missing.so"), 3)

    def test_unsupported_is_4(self):
        path = self.write("m.onnx", UNKNOWN_MODEL)
        self.assertIn("Nonesuch", self.one_error_line(folio("run", path), 4))
        self.one_error_line(folio("bench", path), 4)
        self.check(folio("inspect", path), 4)

    def test_help_is_0_and_has_examples(self):
        self.check(folio("--help"), 0)
        self.assertRegex(self.check(folio("--version"), 0).stdout, r"^folio \d+\.\d+\.\d+\n$")
        for command in ("run", "test", "bench", "compare", "inspect", "memory"):
            self.assertIn("Example", self.check(folio(command, "--help"), 0).stdout)


class TestCommand(FolioCase):
    def lines(self, code, *arguments):
        return self.check(folio("test", *arguments), code).stdout.splitlines()

    def test_lines_and_exit_codes(self):
        self.write_test("a/good", [2, 5])
        root = self.folder
        self.assertEqual(self.lines(0, root / "a"), [
            f"PASS {root}/a/good/model.onnx", "1 passed, 0 failed, 0 unsupported"])
        self.write_test("a/lost/deep", [2], [1], UNKNOWN_MODEL)
        lines = self.lines(4, root / "a")
        self.assertEqual(lines[0], f"PASS {root}/a/good/model.onnx")
        self.assertTrue(lines[1].startswith(f"UNSUPPORTED {root}/a/lost/deep/model.onnx "), lines)
        self.assertIn("Nonesuch", lines[1])
        self.assertEqual(lines[2], "1 passed, 0 failed, 1 unsupported")
        self.write_test("a/wrong", [2, 7, 6], [1, 2.5, 3])
        lines = self.lines(1, root / "a")
        self.assertEqual(lines[2], f"FAIL {root}/a/wrong/model.onnx test_data_set_0: y[1]: got 5, "
                         "expected 7 (1 of 3 differ, most by 2)")
        self.assertEqual(lines[3], "1 passed, 1 failed, 1 unsupported")

    def test_shape_and_type_must_be_equal(self):
        self.write_test("shape", [2, 5, 0])
        self.assertIn("got float[2], expected float[3]", self.lines(1, self.folder)[0])
        self.write("shape/test_data_set_0/output_0.pb", tensor(DOUBLE, [2], struct.pack("<2d", 2, 5)))
        self.assertIn("got float[2], expected double[2]", self.lines(1, self.folder)[0])

    def test_nan_equals_nan_and_infinity_only_itself(self):
        nan, inf = float("nan"), float("inf")
        self.write_test("nan", [nan, inf, -inf], [nan, inf, -inf])
        self.lines(0, self.folder)
        self.write_test("nan", [inf], [1])
        self.assertIn("got 2, expected inf", self.lines(1, self.folder)[0])
        self.write_test("nan", [1], [nan])
        self.assertIn("got nan, expected 1", self.lines(1, self.folder)[0])

    def test_tolerances(self):
        self.write_test("t", [2.01])
        self.write("t/test_data_set_0/input_0.pb", tensor(FLOAT, [1], floats=[1]))
        self.lines(1, self.folder)
        self.lines(0, self.folder, "--atol", "0.1")
        self.lines(0, self.folder, "--rtol", "0.1")
        self.write("t/data.json", b'{"rtol": 1e-3, "atol": 0.1}')
        self.lines(0, self.folder)
        self.lines(1, self.folder, "--atol", "0")
        self.write("t/data.json", b'{"rtol": 1e-3, "atol": 0.1, "outputs": {"y": {"atol": 1e-5}}}')
        self.lines(1, self.folder)

    def test_integers_are_equal_unless_a_tolerance_is_given(self):
        kinds = {INT32: ("<i", 5000), INT64: ("<q", -2**62), UINT64: ("<Q", 2**64 - 2)}
        for dtype, (form, value) in kinds.items():
            with self.subTest(dtype=dtype):
                self.write("i/model.onnx", identity_model(dtype, [1]))
                self.write("i/test_data_set_0/input_0.pb",
                           tensor(dtype, [1], struct.pack(form, value)))
                for expected in (value, value + 1):
                    self.write("i/test_data_set_0/output_0.pb",
                               tensor(dtype, [1], struct.pack(form, expected)))
                    self.lines(int(expected != value), self.folder)
                self.assertIn("differ, most by 1)", self.lines(1, self.folder)[0])
                self.lines(0, self.folder, "--atol", "1")

    def test_later_sets_count_and_missing_outputs_do_not(self):
        self.write_test("s", [2, 5])
        self.write("s/test_data_set_10/input_0.pb", tensor(FLOAT, [1], floats=[1]))
        self.write("s/test_data_set_10/output_0.pb", tensor(FLOAT, [1], floats=[3]))
        self.assertIn("test_data_set_10: y[0]: got 2", self.lines(1, self.folder)[0])

    def test_links_are_followed_and_circles_end(self):
        self.write_test("real/t", [2, 5])
        (self.folder / "links").mkdir()
        (self.folder / "links/t").symlink_to(self.folder / "real/t")
        (self.folder / "links/up").symlink_to(self.folder / "links")
        self.assertEqual(self.lines(0, self.folder / "links")[-1],
                         "1 passed, 0 failed, 0 unsupported")

    def test_a_folder_without_data_is_no_test(self):
        self.write("m/model.onnx", double_model())
        result = self.check(folio("test", self.folder), 2)
        self.assertEqual(result.stdout, "")
        self.assertIn("m/model.onnx has no test_data_set_0", result.stderr)
        self.assertIn("no test found", result.stderr)
        self.write_test("good", [2, 5])
        self.assertEqual(self.lines(0, self.folder)[-1], "1 passed, 0 failed, 0 unsupported")

    def test_no_test_at_all_is_a_usage_error(self):
        for arguments in ([], ["--json"], ["--in-process"]):
            with self.subTest(arguments=arguments):
                self.assertIn("no test found",
                              self.one_error_line(folio("test", self.folder, *arguments), 2))

    def test_damaged_data_is_a_failure_that_names_the_file(self):
        self.write_test("d", [2, 5])
        for damaged in (b"\xff\xff", tensor(FLOAT, [3], b"abc"), tensor(99, [1], b"a"),
                        tensor(FLOAT, [1 << 40, 1 << 40], b""), b""):
            self.write("d/test_data_set_0/input_0.pb", damaged)
            self.assertIn("input_0.pb: ", self.lines(1, self.folder)[0])

    def test_json_has_nothing_else_and_the_same_verdicts(self):
        self.write_test("good", [2, 5])
        self.write_test("wrong", [9, 9])
        report = json.loads(self.check(folio("test", self.folder, "--json"), 1).stdout)
        self.assertEqual((report["passed"], report["failed"], report["unsupported"]), (1, 1, 0))
        self.assertEqual([t["result"] for t in report["tests"]], ["PASS", "FAIL"])
        self.assertTrue(report["tests"][1]["reason"])

    def test_jobs_and_in_process_give_the_same_lines(self):
        for i in range(5):
            self.write_test(f"t{i}", [2, 5] if i % 2 else [0])
        expected = self.lines(1, self.folder)
        self.assertEqual(self.lines(1, self.folder, "--jobs", "3"), expected)
        self.assertEqual(self.lines(1, self.folder, "--in-process"), expected)


class RunCommand(FolioCase):
    def run_identity(self, dtype, shape, source, target="y.npy"):
        path = self.write("identity.onnx", identity_model(dtype, shape))
        out = self.folder / "out"
        result = self.check(folio("run", path, "--input", f"x={source}", "--output-dir", out), 0)
        self.assertIn("wrote", result.stdout)
        return read_npy(out / target)

    def test_npy_comes_back_as_it_went_in(self):
        types = {FLOAT: "<f4", UINT8: "|u1", INT8: "|i1", UINT16: "<u2", INT16: "<i2",
                 INT32: "<i4", INT64: "<i8", BOOL: "|b1", FLOAT16: "<f2", DOUBLE: "<f8",
                 UINT32: "<u4", UINT64: "<u8", BFLOAT16: "<u2"}
        for dtype, descr in types.items():
            with self.subTest(dtype=dtype):
                data = bytes(i % 2 for i in range(6 * int(descr[2:])))
                source = self.write("x.npy", npy(descr, [2, 3], data))
                self.assertEqual(self.run_identity(dtype, [2, 3], source), (descr, (2, 3), data))

    def test_strings_come_back_as_they_went_in(self):
        words = ["", "abc", "\u00e9\u20ac", "\U0001f600"]
        data = b"".join(w.encode("utf-32-le").ljust(12, b"\0") for w in words)
        source = self.write("x.npy", npy("<U3", [4], data))
        self.assertEqual(self.run_identity(STRING, [4], source), ("<U3", (4,), data))

    def test_column_major_becomes_row_major(self):
        source = self.write("x.npy", npy("<i4", [2, 3], struct.pack("<6i", 0, 3, 1, 4, 2, 5), True))
        self.assertEqual(self.run_identity(INT32, [2, 3], source)[2], struct.pack("<6i", *range(6)))

    def test_scalar_and_empty(self):
        source = self.write("x.npy", npy("<f4", [], struct.pack("<f", 3)))
        self.assertEqual(self.run_identity(FLOAT, [], source), ("<f4", (), struct.pack("<f", 3)))
        source = self.write("x.npy", npy("<f4", [0, 2], b""))
        self.assertEqual(self.run_identity(FLOAT, [0, 2], source), ("<f4", (0, 2), b""))

    def test_pb_input(self):
        source = self.write("x.pb", tensor(FLOAT, [2], floats=[1, 4]))
        self.assertEqual(self.run_identity(FLOAT, [2], source)[2], struct.pack("<2f", 1, 4))

    def test_damaged_npy_is_refused_by_name(self):
        path = self.write("m.onnx", double_model())
        for damaged in (b"", b"\x93NUMPY\x01\x00\xff\xff{", npy("<f4", [3], b"1234"),
                        npy("<f4", [1 << 62, 4], b""), npy(">f4", [1], b"1234"), npy("<U9", [1], b"")):
            source = self.write("x.npy", damaged)
            self.assertIn("x.npy", self.one_error_line(folio("run", path, "--input", f"x={source}"), 3))

    def test_made_up_inputs_follow_the_rule(self):
        path = self.write("identity.onnx", identity_model(FLOAT, ["n", 2]))
        out = self.folder / "out"
        self.check(folio("run", path, "--dim", "n=3", "--output-dir", out), 0)
        expected = struct.pack("<6f", *random_floats("x", 6))
        self.assertEqual(read_npy(out / "y.npy"), ("<f4", (3, 2), expected))
        self.check(folio("run", path, "--range", "x=5:9", "--seed", "7", "--output-dir", out), 0)
        expected = struct.pack("<2f", *random_floats("x", 2, 7, 5, 9))
        self.assertEqual(read_npy(out / "y.npy"), ("<f4", (1, 2), expected))

    def test_names_that_the_model_lacks_are_usage_errors(self):
        path = self.write("m.onnx", double_model())
        source = self.write("x.npy", npy("<f4", [1], b"1234"))
        self.one_error_line(folio("run", path, "--input", f"z={source}"), 2)
        self.one_error_line(folio("run", path, "--dim", "z=1"), 2)
        self.one_error_line(folio("run", path, "--range", "z=0:1"), 2)

    def test_json_has_what_the_text_shows(self):
        path = self.write("m.onnx", identity_model(INT64, [8]))
        values = [-2**62, 1, 2, 3, 4, 5, 6, 7]
        source = self.write("x.npy", npy("<i8", [8], struct.pack("<8q", *values)))
        out = self.folder / "out"
        result = self.check(folio("run", path, "--input", f"x={source}", "--json"), 0)
        report = json.loads(result.stdout)
        self.assertEqual(report["model"], str(path))
        (output,) = report["outputs"]
        self.assertEqual((output["name"], output["kind"], output["type"], output["shape"]),
                         ("y", "tensor", "int64", [8]))
        self.assertEqual((output["first"], output["max"]), (values[:6], 7))
        self.assertNotIn("file", output)
        result = self.check(folio("run", path, "--json", "--output-dir", out), 0)
        self.assertEqual(json.loads(result.stdout)["outputs"][0]["file"], str(out / "y.npy"))
        self.assertEqual(read_npy(out / "y.npy")[1], (8,))

    def test_json_has_no_numbers_for_what_is_not_finite(self):
        path = self.write("m.onnx", identity_model(FLOAT, [3]))
        source = self.write("x.npy", npy("<f4", [3], struct.pack("<3f", 1, float("inf"), 3)))
        result = self.check(folio("run", path, "--input", f"x={source}", "--json"), 0)
        (output,) = json.loads(result.stdout)["outputs"]
        self.assertEqual((output["first"], output["mean"], output["not_finite"]), ([1, None, 3], 2, 1))

    def test_outputs_never_leave_the_folder(self):
        name = "../../evil/y"
        data = model([node("Identity", ["x"], [name])], [port("x", FLOAT, [1])],
                     [port(name, FLOAT, [1])])
        path = self.write("m.onnx", data)
        self.check(folio("run", path, "--output-dir", self.folder / "a/b"), 0)
        self.assertEqual([p.parent for p in self.folder.rglob("*.npy")], [self.folder / "a/b"])


BENCH_KEYS = """backend version model threads sessions init_ms load_ms load_cpu_ms first_load_ms
    first_run_ms ready_ms run_min_ms run_p50_ms run_p90_ms out_count out_sum out_abs mem_init mem_load
    mem_run peak_rss_load peak_anon_load peak_rss minflt_load majflt_load minflt_run majflt_run pack
    arena_bytes vm_pte arithmetic""".split()
MEMORY_KEYS = """rss pss private_clean private_dirty shared_clean shared_dirty anon
    file_huge""".split()


class BenchCommand(FolioCase):
    def bench(self, *arguments):
        path = self.write("m.onnx", double_model())
        return self.check(folio("bench", path, *arguments), 0).stdout

    def test_json_is_one_line_with_the_fields_of_the_benches(self):
        output = self.bench("--json", "--dim", "n=3", "--iterations", "4", "--threads", "1")
        self.assertEqual(output.count("\n"), 1)
        report = json.loads(output)
        self.assertEqual([k for k in BENCH_KEYS if k not in report], [])
        for key in ("mem_init", "mem_load", "mem_run"):
            self.assertEqual(sorted(report[key]), sorted(MEMORY_KEYS))
        self.assertLessEqual({"hits", "misses", "source", "found", "absent", "packed"},
                             set(report["pack"]))
        packs = report["pack"]
        self.assertEqual(packs["misses"], packs["found"] + packs["packed"] + packs["written"])
        self.assertEqual((report["backend"], report["model"]),
                         ("folio", str(self.folder / "m.onnx")))
        self.assertEqual((report["threads"], report["sessions"]), (1, 1))
        self.assertLessEqual(report["run_min_ms"], report["run_p50_ms"])
        self.assertLessEqual(report["run_p50_ms"], report["run_p90_ms"])
        self.assertEqual(report["out_count"], 3)
        singles = struct.unpack("<3f", struct.pack("<3f", *random_floats("x", 3)))
        self.assertAlmostEqual(report["out_sum"], 2 * sum(singles), 5)
        self.assertAlmostEqual(report["out_abs"], 2 * sum(map(abs, singles)), 5)

    @unittest.skipIf(os.environ.get("FOLIO_SANITIZE"), "sanitizers have memory of their own")
    def test_a_small_models_first_session_takes_little_memory(self):
        report = json.loads(self.bench("--json", "--iterations", "1", "--threads", "1"))
        taken = report["mem_run"]["anon"] - report["mem_init"]["anon"]
        self.assertLess(taken, 1024, "KiB: tables that nobody asked for take none")

    def test_inputs_from_files_are_what_is_run(self):
        source = self.write("x.npy", npy("<f4", [3], struct.pack("<3f", 1, 2, -4)))
        report = json.loads(self.bench("--json", "--iterations", "1", "--input", f"x={source}"))
        self.assertEqual((report["out_count"], report["out_sum"], report["out_abs"]), (3, -2, 14))
        for wrong in (f"z={source}", f"x={source.with_suffix('.txt')}", "x"):
            with self.subTest(wrong=wrong):
                path = self.folder / "m.onnx"
                self.one_error_line(folio("bench", path, "--input", wrong), 2)

    def test_threads_are_those_that_the_session_has(self):
        for arguments, threads in ((["--config", "folio.threads=1"], 1), (["--threads", "2"], 2),
                                   (["--threads", "1000"], 256)):
            with self.subTest(arguments=arguments):
                report = json.loads(self.bench("--json", "--iterations", "1", *arguments))
                self.assertEqual(report["threads"], threads)

    def test_table_and_sessions(self):
        self.assertIn("p50", self.bench("--iterations", "2"))
        report = json.loads(self.bench("--json", "--sessions", "3"))
        self.assertEqual(report["sessions"], 3)
        self.assertIn("mem_first", report)

    def test_only_load(self):
        self.assertNotIn("run_p50_ms", json.loads(self.bench("--json", "--iterations", "0")))

    def profile(self, *arguments):
        path = self.write("m.onnx", matmul_model())
        out = self.check(folio("bench", path, "--json", "--threads", "1", *arguments), 0).stdout
        return json.loads(out)

    def test_profile_says_where_the_time_goes(self):
        report = self.profile("--profile", "--iterations", "5", "--warmup", "2")
        profile = report["profile"]
        self.assertEqual(profile["runs"], 5, "the first run and the warm-up do not count")
        for key in ("run_min_ms", "run_p50_ms"):
            self.assertEqual(report[key], profile[key], "without what writing down takes")
        self.assertGreater(profile["peaks"]["float_gflops"], 0)
        self.assertGreater(profile["peaks"]["read_gbs"]["memory"], 0)
        (product,) = profile["nodes"]
        self.assertEqual((product["op_type"], product["calls"]), ("MatMul", 1))
        self.assertEqual(product["operations"], 2 * 2 * 160 * 160)
        self.assertEqual(product["bytes"], 4 * (2 * 160 + 160 * 160 + 2 * 160))
        self.assertLessEqual(product["min_ms"], product["p50_ms"])
        self.assertLessEqual(product["min_ms"], profile["run_p50_ms"])
        self.assertGreater(product["peak_share"], 0)
        (operator,) = profile["operators"]
        self.assertEqual((operator["nodes"], operator["gflops"]), (1, product["gflops"]))

    def test_profile_is_a_table_too(self):
        lines = self.bench("--profile", "--iterations", "2").splitlines()
        self.assertIn("of peak", "".join(lines))
        self.assertTrue(any(line.startswith("Add ") for line in lines), lines)
        self.assertNotIn("node ", "".join(self.bench("--profile", "--top", "0")))

    def test_trace_has_all_runs(self):
        trace = self.folder / "runs.json"
        report = self.profile("--trace", trace, "--iterations", "3", "--warmup", "1")
        self.assertNotIn("profile", report)
        events = json.loads(trace.read_text())
        self.assertEqual(sum(e["name"] == "model_run" for e in events), 5)
        self.assertEqual(sum(e["cat"] == "Node" for e in events), 5)

    def test_profile_needs_runs(self):
        path = self.write("m.onnx", double_model())
        self.check(folio("bench", path, "--profile", "--iterations", "0"), 2)

    def test_arithmetic_and_arena_are_named(self):
        report = self.profile("--iterations", "1")
        self.assertRegex(report["arithmetic"], "^(ref|x86_[a-z0-9]+)$")
        self.assertLessEqual(report["arena_live_bytes"], report["arena_planned_bytes"])

    def test_hold_waits_for_the_end_of_input(self):
        path = self.write("m.onnx", double_model())
        with subprocess.Popen([FOLIO, "bench", path, "--json", "--hold"], text=True,
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            self.assertIn("load_ms", json.loads(process.stdout.readline()))
            self.assertEqual(process.stdout.readline(), "SESSION_READY\n")
            self.assertIsNone(process.poll())
            process.stdin.close()
            self.assertEqual(process.stdout.read(), "")
            self.assertEqual(process.wait(60), 0)

    def test_hold_ms_says_ready_too(self):
        self.assertEqual(self.bench("--json", "--hold-ms", "1").splitlines()[1:], ["SESSION_READY"])


def matmul_model():
    """y = x w: a weight that is packed, large enough to be looked up in files."""
    weight = tensor(FLOAT, [160, 160], struct.pack("<25600f", *(i % 97 for i in range(25600))))
    return model([node("MatMul", ["x", "w"], ["y"])], [port("x", FLOAT, [2, 160])],
                 [port("y", FLOAT, [2, 160])], [weight + text(8, "w")])


class BenchOfPackedModels(FolioCase):
    def test_says_where_the_packed_weights_are(self):
        path = self.write("m.onnx", matmul_model())

        def source(*arguments):
            result = self.check(folio("bench", path, "--json", "--iterations", 0, *arguments), 0)
            return json.loads(result.stdout)["pack"]["source"]

        store = ("--config", f"folio.pack_store={self.folder}/store",
                 "--config", "folio.pack_sidecar=off")
        self.assertEqual(source("--config", "session.disable_prepacking=1"), "none")
        self.assertEqual(source(), "memory")
        self.assertEqual(source(*store), "file", "written and mapped back")
        self.assertEqual(source(*store), "file")
        self.check(folio("pack", path), 0)
        self.assertEqual(source(), "file")


MODE_KEYS = """load_ms first_run_ms peak_anon_load anon_load anon_run pss_file_load pss_file_run
    vm_pte_run""".split()


class MemoryModes(FolioCase):
    def modes(self, path, *arguments, code=0):
        temporary = self.folder / "tmp"
        temporary.mkdir(exist_ok=True)
        result = self.check(folio("memory", path, "--modes", *arguments,
                                  env=dict(os.environ, TMPDIR=str(temporary))), code)
        self.assertEqual(list(temporary.iterdir()), [], "what was made for it is gone")
        return result.stdout

    def test_a_row_per_way_to_load(self):
        path = self.write("m.onnx", matmul_model())
        plot = self.folder / "plot.svg"
        report = json.loads(self.modes(path, "--rounds", 2, "--json", "--plot", plot))
        self.assertEqual((report["model"], report["rounds"]), (str(path), 2))
        rows = report["modes"]
        self.assertEqual([(row["format"], row["mode"]) for row in rows],
                         [("onnx", "read"), ("onnx", "map"), ("onnx", "map + packed")])
        for row in rows:
            self.assertEqual((row["runtime"], row["error"]), ("folio", None))
            for key in MODE_KEYS:
                self.assertGreater(row[key], 0, key)
            self.assertGreaterEqual(row["peak_anon_load"], row["anon_load"])
        self.assertEqual(sorted(p.name for p in self.folder.iterdir()),
                         ["m.onnx", "plot.svg", "tmp"], "nothing beside the model")
        root = xml.etree.ElementTree.parse(plot).getroot()
        self.assertIn("map + packed", "".join(root.itertext()))

    def test_the_other_format_beside_the_model_has_rows_too(self):
        path = self.write("m.onnx", matmul_model())
        self.check(folio("convert", path, "-o", self.folder / "m.ort"), 0)
        lines = self.modes(self.folder / "m.ort", "--rounds", 1).splitlines()
        rows = [line.split()[2] + " " + line.split()[3] for line in lines if line[:5] == "Folio"]
        self.assertEqual(rows, ["ort read", "ort map", "ort map", "onnx read", "onnx map",
                                "onnx map"])
        self.assertIn("PSS files after runs", lines[2])

    def test_usage_and_failures(self):
        path = self.write("m.onnx", matmul_model())
        self.one_error_line(folio("memory", path, "--rounds", 2), 2)
        self.one_error_line(folio("memory", path, "--modes", "--processes", 2), 2)
        self.one_error_line(folio("memory", path, "--modes", "--dim", "nobody=2"), 2)
        self.check(folio("memory", self.folder / "missing.onnx", "--modes"), 3)
        self.check(folio("memory", self.write("odd.onnx", UNKNOWN_MODEL), "--modes"), 4)

    def test_a_row_that_fails_is_named_and_the_others_stand(self):
        path = self.write("m.onnx", matmul_model())
        output = self.modes(path, "--rounds", 1, "--ort", self.folder / "none.so", code=3)
        self.assertIn("ORT onnx, default: start: ", output)
        self.assertRegex(output, r"Folio \S+ +onnx +map \+ packed +\d")


class OtherCommands(FolioCase):
    def test_memory_has_a_row_per_number_of_processes(self):
        path = self.write("m.onnx", double_model())
        plot = self.folder / "plot.svg"
        result = self.check(folio("memory", path, "--processes", 2, "--plot", plot, "--json"), 0)
        rows = json.loads(result.stdout)["rows"]
        self.assertEqual([row["processes"] for row in rows], [1, 2])
        self.assertEqual(rows[1]["one_more_pss"], rows[1]["pss"] - rows[0]["pss"])
        for key in ("rss", "pss", "pss_anon", "pss_file", "private_dirty"):
            self.assertGreater(rows[0][key], 0)
        self.assertTrue(xml.etree.ElementTree.parse(plot).getroot().tag.endswith("svg"))
        self.assertIn("one more PSS", self.check(folio("memory", path, "--processes", 1), 0).stdout)

    def test_memory_passes_on_why_a_process_failed(self):
        path = self.write("m.onnx", UNKNOWN_MODEL)
        result = self.check(folio("memory", path, "--processes", 1), 4)
        self.assertIn("Nonesuch", result.stderr)

    def test_inspect_says_what_is_in_a_model(self):
        path = self.write("m.onnx", double_model())
        report = json.loads(self.check(folio("inspect", path, "--json"), 0).stdout)
        self.assertEqual(report["operators"], {"Add": 1})
        self.assertEqual(report["opsets"], {"": 17})
        self.assertEqual(report["inputs"][0]["type"], "float[n]")
        self.assertEqual(report["inputs"][0]["dims"], ["n"])
        self.assertEqual(report["outputs"][0]["name"], "y")
        self.assertEqual(report["metadata"], {"author": "nobody"})
        self.assertEqual(report["file_bytes"], path.stat().st_size)
        self.assertEqual(report["unsupported"], [])
        self.assertIn("Add", self.check(folio("inspect", path), 0).stdout)

    def test_inspect_names_the_nodes_that_are_not_supported(self):
        path = self.write("m.onnx", UNKNOWN_MODEL)
        report = json.loads(self.check(folio("inspect", path, "--json"), 4).stdout)
        self.assertEqual([(u["node"], u["op_type"]) for u in report["unsupported"]],
                         [("odd one", "Nonesuch")])
        self.assertIn("odd one", self.check(folio("inspect", path), 4).stdout)


if __name__ == "__main__":
    if not FOLIO.exists():
        skipping.leave(f"{FOLIO} is not built")
    skipping.main()
