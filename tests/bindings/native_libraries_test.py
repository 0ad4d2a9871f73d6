"""The native halves of the bindings: what they export and need, in the build and in the packages."""

import os
import re
import subprocess
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
import skipping

BUILD = Path(os.environ["FOLIO_BINARY_DIR"])
GLIBC_MAX = (2, 36)  # Debian 12
SYSTEM = {"libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2"}
CXX_RUNTIME = {"libstdc++.so.6", "libgcc_s.so.1"}
EXPORTS = {
    "libfolio.so.1": r"FolioGetApiBase$",
    "libfolio_jni.so": r"(Java_|JNI_OnLoad$|SWIGRegister)",
    "libfolio_csharp.so": r"(CSharp_|SWIGRegister)",
}


def output_of(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def libraries():
    return [(folder, BUILD / folder / name) for folder in ("lib", "bundle") for name in EXPORTS
            if (BUILD / folder / name).exists()]


class NativeLibraries(unittest.TestCase):
    def setUp(self):
        if not (BUILD / "bundle").is_dir():
            self.skipTest("the bindings were left out of this build")
        self.assertGreaterEqual(len(libraries()), 4)

    def test_export_what_their_caller_looks_for_and_nothing_else(self):
        for _, library in libraries():
            names = [line.split()[-1] for line in output_of("nm", "-D", "--defined-only", str(library)).splitlines()]
            self.assertTrue(names, library)
            self.assertEqual([n for n in names if not re.match(EXPORTS[library.name], n)], [], library)

    def test_those_in_packages_bring_their_cxx_runtime(self):
        for folder, library in libraries():
            needed = set(re.findall(r"\(NEEDED\).*\[(.*)\]", output_of("readelf", "-dW", str(library))))
            allowed = SYSTEM | {"libfolio.so.1"} | (CXX_RUNTIME if folder == "lib" else set())
            self.assertEqual(needed - allowed, set(), library)

    def test_glibc_2_36_will_do(self):
        for _, library in libraries():
            versions = re.findall(r"GLIBC_(\d+)\.(\d+)", output_of("objdump", "-T", str(library)))
            self.assertTrue(versions, library)
            self.assertLessEqual(max((int(a), int(b)) for a, b in versions), GLIBC_MAX, library)

    def test_pages_of_16_kib_and_read_only_relocations(self):
        for _, library in libraries():
            segments = output_of("readelf", "-lW", str(library))
            alignments = {int(a, 16) for a in re.findall(r"^\s+LOAD\s.*(0x[0-9a-f]+)$", segments, re.M)}
            self.assertTrue(alignments and min(alignments) >= 16384, f"{library}: {alignments}")
            self.assertIn("GNU_RELRO", segments)
            self.assertNotRegex(segments, r"GNU_STACK.*RWE")

    def test_find_libfolio_beside_themselves(self):
        for folder, library in libraries():
            if library.name == "libfolio.so.1":
                continue
            paths = re.findall(r"\((?:RPATH|RUNPATH)\).*\[(.*)\]", output_of("readelf", "-dW", str(library)))
            self.assertTrue(paths and paths[0].startswith("$ORIGIN"), f"{library}: {paths}")
            if folder == "bundle":
                self.assertEqual(paths, ["$ORIGIN"], library)


if __name__ == "__main__":
    skipping.main()
