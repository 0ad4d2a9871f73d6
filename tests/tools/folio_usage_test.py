"""Proves that `folio` refuses what makes no sense with exit code 2 and one line that says why."""

import os
import subprocess
import sys
from pathlib import Path

from folio_cli_test import FOLIO, UNKNOWN_MODEL, FolioCase, double_model, folio, matmul_model

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
import skipping


class Usage(FolioCase):
    def refused(self, *arguments):
        return self.one_error_line(folio(*arguments), 2)

    def test_a_wrong_command_is_named_with_those_there_are(self):
        line = self.refused("bnech", "m.onnx", "--threads", "1")
        self.assertIn("'bnech' (did you mean bench?)", line)
        self.assertIn("run, test, bench, compare", line)
        self.assertNotIn("did you mean", self.refused("xyzzy"))
        self.assertNotIn("compare-side", self.refused())

    def test_what_a_command_lacks_comes_with_where_to_look(self):
        self.assertIn("MODEL is required; folio run --help shows", self.refused("run"))
        self.assertIn("ACTION is required; folio store --help shows", self.refused("store"))

    def test_a_library_that_is_not_there_comes_with_the_option(self):
        path = self.write("m.onnx", double_model())
        for command in (["run", path], ["bench", path]):
            line = self.one_error_line(folio(*command, "--library", "/nowhere/libfolio.so.1"), 3)
            self.assertIn("/nowhere/libfolio.so.1: cannot open", line)
            self.assertIn("--library names", line)

    def test_numbers_out_of_range_are_refused_with_the_range(self):
        path = self.write("m.onnx", double_model())
        for arguments, said in (
                (("memory", path, "--modes", "--rounds", "0"), "--rounds: needs a whole number from 1"),
                (("test", self.folder, "--jobs", "0"), "--jobs: needs a whole number from 1 to"),
                (("bench", path, "--hold-ms", "-1"), "--hold-ms: needs a whole number from 0 to"),
                (("bench", path, "--threads", "-1"), "from 0 to 9999, got '-1'"),
                (("bench", path, "--threads", "20000"), "from 0 to 9999, got '20000'"),
                (("run", path, "--seed", "x"), "of at least 0, got 'x'"),
                (("convert", path, "-o", "x.onnx", "--external-min-bytes", "0"), "of at least 1"),
                (("bench", path, "--seconds", "-1"), "needs a number of at least 0, got '-1'"),
                (("test", self.folder, "--rtol", "nan"), "needs a number of at least 0, got 'nan'")):
            with self.subTest(arguments=arguments):
                line = self.refused(*arguments)
                self.assertIn(said, line)
                self.assertLess(len(line), 120)

    def test_numbers_are_decimal(self):
        path = self.write("m.onnx", double_model())
        for run, seed in enumerate(("010", "10")):
            self.check(folio("run", path, "--seed", seed, "--output-dir", self.folder / str(run)), 0)
        self.assertEqual((self.folder / "0/y.npy").read_bytes(),
                         (self.folder / "1/y.npy").read_bytes())

    def test_what_the_library_calls_an_invalid_argument_is_usage(self):
        path = self.write("m.onnx", matmul_model())
        self.assertIn("'foo'", self.refused("pack", path, "--isa", "foo"))
        self.assertIn(".ort", self.refused("convert", path, "-o", self.folder / "x.ort",
                                           "--external-data", "w"))

    def test_names_and_ranges_that_mean_nothing(self):
        path = self.write("m.onnx", matmul_model())
        self.assertIn("--dim K", self.refused("pack", path, "--dim", "K=1"))
        self.assertIn("no input has that name; there are: x", self.refused("run", path, "--range", "z=0:1"))
        self.assertFalse((self.folder / "m.onnx.fpack").exists())
        self.assertIn("LO <= HI", self.refused("run", path, "--range", "x=1:0"))
        self.check(folio("run", path, "--range", "x=1:1"), 0)
        free = self.write("free.onnx", double_model())
        self.check(folio("pack", free, "--dim", "n=3"), 0)
        for command in ("run", "pack", "bench"):
            said = self.refused(command, free, "--dim", "m=3")
            self.assertIn("--dim m: no input has a dim of that name; there are: n", said)

    def test_options_that_are_none(self):
        path = self.write("m.onnx", matmul_model())
        for arguments, said in (
                (("bench", "--iteration", "3", path),
                 "no option '--iteration' (did you mean --iterations?)"),
                (("run", path, "--thread", "2"), "no option '--thread' (did you mean --threads?)"),
                (("run", "--hepl"), "no option '--hepl' (did you mean --help?)"),
                (("pack", path, "--nonsense=1"), "no option '--nonsense'; folio pack --help"),
                (("--libary", "x", "run", path), "(did you mean --library?)")):
            with self.subTest(arguments=arguments):
                self.assertIn(said, self.refused(*arguments))

    def test_sizes_name_their_suffixes(self):
        store = self.folder / "store"
        self.check(folio("pack", self.write("m.onnx", matmul_model()), "--store", store), 0)
        for limit in ("10KB", "K", "-1", "1.5G", "99999999999G"):
            self.assertIn("K, M or G", self.refused("store", "gc", store, "--limit", limit))
        self.assertIn("gc", self.refused("store", "ls", store, "--limit", "1G"))
        self.check(folio("store", "gc", store, "--limit", "1G"), 0)

    def test_a_folder_without_a_store_is_left_alone(self):
        self.write("x.tmp", b"")
        for action in ("ls", "verify", "gc"):
            result = folio("store", action, self.folder)
            self.assertEqual(result.returncode, 3, result.stderr)
            self.assertIn("is no pack store", result.stderr)
        self.assertEqual([file.name for file in self.folder.iterdir()], ["x.tmp"])


class MakeModel(FolioCase):
    def test_a_missing_folder_is_the_reason(self):
        program = FOLIO.parent / "make_model"
        if not program.exists():
            self.skipTest("make_model is not built")
        for kind in ("decoder", "mlp"):
            result = subprocess.run([program, kind, "-o", self.folder / "no/model.onnx"],
                                    capture_output=True, text=True, timeout=300)
            self.assertEqual(result.returncode, 3)
            self.assertIn("No such file or directory", result.stderr)


class Failures(FolioCase):
    def test_a_pack_file_cut_short_is_damaged(self):
        path = self.write("m.onnx", matmul_model())
        self.check(folio("pack", path), 0)
        whole = (self.folder / "m.onnx.fpack").read_bytes()
        for size in (len(whole) - 1, 5000, 10, 0):
            self.one_error_line(folio("inspect", self.write("cut.fpack", whole[:size])), 1)
        self.one_error_line(folio("inspect", self.folder / "missing.fpack"), 3)

    def test_memory_says_why_a_process_failed_in_one_line(self):
        odd = self.write("odd.onnx", UNKNOWN_MODEL)
        path = self.write("m.onnx", double_model())
        for option in (["--processes", 1], ["--modes"]):
            with self.subTest(option=option):
                self.assertIn("Nonesuch", self.one_error_line(folio("memory", odd, *option), 4))
                self.one_error_line(folio("memory", self.folder / "none.onnx", *option), 3)
                self.one_error_line(folio("memory", path, "--dim", "z=1", *option), 2)

    def test_a_folder_for_temporary_files_that_is_none_is_named(self):
        path = self.write("m.onnx", matmul_model())
        for wrong, why in ((self.folder / "missing", "No such file"), (path, "Not a directory")):
            for command in (["memory", path, "--modes"], ["bench", path, "--profile"]):
                with self.subTest(TMPDIR=wrong, command=command[0]):
                    line = self.one_error_line(
                        folio(*command, env=dict(os.environ, TMPDIR=str(wrong))), 3)
                    self.assertIn(f"cannot make a temporary folder in '{wrong}': {why}", line)
                    self.assertIn("set TMPDIR to", line)

    def test_a_pack_store_in_a_folder_with_a_colon_is_refused(self):
        folder = self.folder / "a:b"
        folder.mkdir()
        line = self.one_error_line(folio("memory", self.write("m.onnx", matmul_model()), "--modes",
                                         env=dict(os.environ, TMPDIR=str(folder))), 3)
        self.assertIn("set TMPDIR to a folder without one", line)
        self.assertEqual(list(folder.iterdir()), [])


if __name__ == "__main__":
    if not FOLIO.exists():
        skipping.leave(f"{FOLIO} is not built")
    skipping.main()
