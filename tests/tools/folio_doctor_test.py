"""Proves that `folio doctor` shows every environment variable that Folio reads, and what is wrong with it."""

import json
import os
import re
import sys
import unittest
from pathlib import Path

from folio_cli_test import FOLIO, FolioCase, folio, matmul_model

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
import skipping

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ("core", "c_api", "bindings", "tools/folio", "java/src", "csharp/src")
# A call that reads a variable by its name, or the name of one of ours.
READS = re.compile(r'(?:getenv|GetEnvironmentVariable|envname)\("(\w+)"\)|"(FOLIO_[A-Z_]+)"')


class Doctor(FolioCase):
    def doctor(self, **variables):
        """With none of ours set but `variables`."""
        environment = {k: v for k, v in os.environ.items() if not k.startswith("FOLIO_")}
        result = self.check(folio("doctor", "--json", env=dict(environment, **variables)), 0)
        self.assertEqual(result.stderr, "")
        return json.loads(result.stdout)

    def warnings(self, **variables):
        """Those that the same machine has not without `variables`."""
        before = self.doctor()["warnings"]
        return [line for line in self.doctor(**variables)["warnings"] if line not in before]

    def test_json_has_sections_of_fields(self):
        report = json.loads(self.check(folio("doctor", "--json"), 0).stdout)
        self.assertEqual(list(report), ["versions", "cpu", "environment", "limits", "memory", "warnings"])
        keys = [key for section in report.values() if section != report["warnings"]
                for key in section]
        self.assertEqual([key for key in keys if not re.fullmatch("[a-z0-9_]+", key)], [])
        for section, key in (("memory", "total_kib"), ("memory", "page_bytes"),
                             ("limits", "mappings"), ("cpu", "affinity_cpus")):
            self.assertIsInstance(report[section][key], int)
        self.assertIsInstance(report["cpu"]["features"], list)
        self.assertIn("kernels in use", self.check(folio("doctor"), 0).stdout)

    def test_it_names_what_folio_cpu_takes(self):
        def cpu(**variables):
            return self.doctor(**variables)["cpu"]

        known = cpu()
        again = cpu(FOLIO_CPU=known["folio_cpu"])
        self.assertEqual(again["kernels"], known["kernels"])
        self.assertEqual(cpu(FOLIO_CPU="ref")["folio_cpu"], "ref")

    def test_every_variable_that_is_read_is_shown_and_documented(self):
        names = {name for folder in SOURCES for path in (ROOT / folder).rglob("*")
                 if path.suffix in (".cc", ".h", ".java", ".cs")
                 for match in READS.findall(path.read_text()) for name in match if name}
        self.assertLessEqual({"FOLIO_CONFIG", "FOLIO_NATIVE_PATH", "FOLIO_ORT_LIBRARY", "HOME"}, names)
        environment = self.doctor()["environment"]
        text = self.check(folio("doctor"), 0).stdout
        page = (ROOT / "docs/config_keys.md").read_text()
        for name in names | {"TMPDIR"}:
            with self.subTest(name=name):
                self.assertIn(name.lower(), environment)
                self.assertIn(f"  {name} ", text)
                self.assertIn(f"| `{name}` |", page)
        self.assertIsNone(environment["folio_config"])
        self.assertEqual(self.doctor(FOLIO_CONFIG="folio.packing=load")["environment"]["folio_config"],
                         "folio.packing=load")

    def test_what_the_library_does_not_take_is_a_warning(self):
        for variables, said in (
                ({"FOLIO_CONFIG": "folio.pack_ing=load"}, "FOLIO_CONFIG.*folio.packing"),
                ({"FOLIO_CONFIG": "folio.threads=many"}, "FOLIO_CONFIG.*folio.threads.*many"),
                ({"FOLIO_CONFIG": "nonsense"}, "FOLIO_CONFIG.*'nonsense' is not KEY=VALUE"),
                ({"FOLIO_THREADS": "0"}, "FOLIO_THREADS='0'"),
                ({"FOLIO_CPU": "fast"}, "FOLIO_CPU='fast'.*expected ref")):
            with self.subTest(variables=variables):
                (warning,) = self.warnings(**variables)
                self.assertRegex(warning, said)
        self.assertEqual(self.warnings(FOLIO_CONFIG="folio.threads=1; folio.packing=load",
                                       FOLIO_THREADS="1"), [])

    def store(self, folder, **variables):
        (store,) = self.doctor(**{"FOLIO_PACK_STORE": str(folder), **variables})["environment"][
            "pack_stores"]
        return store

    def test_pack_stores_and_what_they_hold(self):
        folder = self.folder / "store"
        self.assertNotIn("pack_stores", self.doctor()["environment"])
        self.assertEqual(self.store(folder),
                         {"path": str(folder), "state": "missing", "writable": True,
                          "pack_count": 0, "blob_count": 0, "bytes": 0, "error": None})
        self.assertFalse(folder.exists(), "looking makes none")
        self.assertEqual(self.warnings(FOLIO_PACK_STORE=str(folder)), [])
        folder.mkdir(mode=0o700)
        self.assertEqual(self.store(folder)["state"], "empty")
        self.assertEqual(self.warnings(FOLIO_PACK_STORE=str(folder)), [])
        self.check(folio("pack", self.write("m.onnx", matmul_model()), "--store", folder), 0)
        store = self.store(folder)
        self.assertEqual((store["state"], store["pack_count"], store["blob_count"]), ("packs", 1, 1))
        self.assertGreater(store["bytes"], 102400)
        text = folio("doctor", env=dict(os.environ, FOLIO_PACK_STORE=str(folder))).stdout
        self.assertRegex(text, f"pack store {folder} +1 packs, 1 blobs, [0-9.]+ KB, writable")
        self.assertEqual(self.warnings(FOLIO_PACK_STORE=str(folder)), [])
        self.assertEqual(self.store("/nowhere", FOLIO_CONFIG=f"folio.pack_store={folder}"), store)

    def test_pack_stores_that_are_not_used(self):
        open_to_all = self.folder / "open"
        open_to_all.mkdir()
        open_to_all.chmod(0o777)
        path = self.write("m.onnx", matmul_model())
        for folder, said in ((open_to_all, "written by its group or others"),
                             (path, "Not a directory"), (path / "store", "Not a directory")):
            with self.subTest(folder=folder):
                store = self.store(folder)
                self.assertEqual(store["state"], "unusable")
                self.assertIn(said, store["error"])
                (warning,) = self.warnings(FOLIO_PACK_STORE=str(folder))
                self.assertRegex(warning, f"^FOLIO_PACK_STORE: .*{said}.*; this pack store is not used")
        (warning,) = self.warnings(FOLIO_PACK_STORE=f"/nowhere:{self.folder}/store")
        self.assertIn("'/nowhere' is not there, and only the last store is made", warning)

    @unittest.skipIf(os.geteuid() == 0, "root may write everywhere")
    def test_a_store_that_cannot_be_written_is_a_warning(self):
        folder = self.folder / "read"
        folder.mkdir()
        folder.chmod(0o555)
        for store, said in ((folder, "written"), (folder / "store", "made")):
            (warning,) = self.warnings(FOLIO_PACK_STORE=str(store))
            self.assertIn(f"FOLIO_PACK_STORE: '{store}' cannot be {said}: ", warning)
            self.assertFalse(self.store(store)["writable"])


if __name__ == "__main__":
    if not FOLIO.exists():
        skipping.leave(f"{FOLIO} is not built")
    skipping.main()
