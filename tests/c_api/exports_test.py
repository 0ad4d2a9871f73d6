"""The dynamic face of libfolio.so: one exported symbol, four needed libraries, hardened, not unloaded."""

import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
import skipping

BUILD = Path(os.environ["FOLIO_BINARY_DIR"])
LIBRARY = BUILD / "lib/libfolio.so"
SANITIZED = bool(os.environ.get("FOLIO_SANITIZE"))
NEEDED = {"libc.so.6", "libm.so.6", "libstdc++.so.6", "libgcc_s.so.1", "ld-linux-x86-64.so.2"}
GLIBC_MAX = (2, 36)  # Debian 12
LARGEST_BYTES = 8_000_000  # of the file as it is installed (docs/building.md)


def output_of(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


class Exports(unittest.TestCase):
    def setUp(self):
        self.dynamic = output_of("readelf", "-dW", str(LIBRARY))

    def test_exactly_one_symbol_is_exported(self):
        lines = output_of("nm", "-D", "--defined-only", str(LIBRARY)).splitlines()
        self.assertEqual([line.split()[-1] for line in lines], ["FolioGetApiBase"])

    @unittest.skipIf(SANITIZED, "a sanitizer brings its own library")
    def test_needs_only_the_c_and_cxx_runtime(self):
        needed = set(re.findall(r"\(NEEDED\).*\[(.*)\]", self.dynamic))
        self.assertEqual(needed - NEEDED, set())
        self.assertIn("libc.so.6", needed)

    def test_soname_has_the_abi_version(self):
        self.assertIn("[libfolio.so.1]", self.dynamic)

    def test_stays_loaded_and_binds_at_once(self):
        flags = re.search(r"\(FLAGS_1\).*", self.dynamic).group(0)
        self.assertIn("NODELETE", flags)
        self.assertIn("NOW", flags)

    def test_relocated_data_becomes_read_only(self):
        self.assertIn("GNU_RELRO", output_of("readelf", "-lW", str(LIBRARY)))

    def test_no_text_relocations_and_no_executable_stack(self):
        self.assertNotIn("TEXTREL", self.dynamic)
        stack = re.search(r"GNU_STACK.*", output_of("readelf", "-lW", str(LIBRARY))).group(0)
        self.assertNotIn("RWE", stack)

    @unittest.skipIf(SANITIZED, "a sanitizer brings its own needs")
    def test_needs_no_newer_glibc_than_debian_12_has(self):
        symbols = output_of("readelf", "-VW", str(LIBRARY))
        versions = {tuple(map(int, v.split("."))) for v in re.findall(r"GLIBC_(\d+\.\d+)", symbols)}
        self.assertTrue(versions)
        self.assertLessEqual(max(versions), GLIBC_MAX)

    @unittest.skipIf(SANITIZED, "a sanitizer brings code of its own")
    def test_the_file_is_at_most_8_mb(self):
        if "CMAKE_BUILD_TYPE:STRING=Release" not in (BUILD / "CMakeCache.txt").read_text():
            self.skipTest("this build is not the one that is shipped")
        with tempfile.TemporaryDirectory() as folder:
            stripped = Path(folder) / "libfolio.so.1"
            subprocess.run(["strip", "-o", str(stripped), str(LIBRARY)], check=True)
            self.assertLessEqual(stripped.stat().st_size, LARGEST_BYTES)


if __name__ == "__main__":
    skipping.main()
