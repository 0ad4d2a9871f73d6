"""The dynamic face of the drop-in libonnxruntime.so.1, and its Debian package."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
import skipping

BUILD = Path(os.environ["FOLIO_BINARY_DIR"])
FOLDER = BUILD / "lib/folio/onnxruntime"
LIBRARY = FOLDER / "libonnxruntime.so.1"
SANITIZED = bool(os.environ.get("FOLIO_SANITIZE"))
NEEDED = {"libc.so.6", "libm.so.6", "libstdc++.so.6", "libgcc_s.so.1", "ld-linux-x86-64.so.2"}
# Linked to a release of ONNX Runtime, as its own clients are.
VERSIONED_CLIENT = "const void* OrtGetApiBase(void); int main(void) { return OrtGetApiBase() == 0; }"
VERSIONED_LIBRARY = "const void* OrtGetApiBase(void) { return 0; }"


def run(*command, **options):
    return subprocess.run([str(part) for part in command], check=True, capture_output=True, text=True, **options).stdout


class Exports(unittest.TestCase):
    def test_one_symbol_of_no_version(self):
        lines = run("nm", "-D", "--defined-only", LIBRARY).splitlines()
        self.assertEqual([line.split()[-1] for line in lines], ["OrtGetApiBase"])
        self.assertNotIn("Version definition", run("readelf", "-VW", LIBRARY))

    @unittest.skipIf(SANITIZED, "a sanitizer brings its own library")
    def test_needs_only_the_c_and_cxx_runtime(self):
        dynamic = run("readelf", "-dW", LIBRARY)
        self.assertEqual(set(re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic)) - NEEDED, set())
        self.assertIn("[libonnxruntime.so.1]", dynamic)
        self.assertNotIn("RUNPATH", dynamic)

    def test_is_not_beside_the_libraries_that_are_searched(self):
        self.assertEqual(list((BUILD / "lib").glob("libonnxruntime*")), [])
        self.assertTrue((FOLDER / "libonnxruntime.so").is_symlink())

    @unittest.skipIf(SANITIZED, "a sanitized library wants a sanitized program")
    def test_serves_programs_linked_to_any_release(self):
        cc = os.environ.get("CC", "cc")
        with tempfile.TemporaryDirectory() as folder:
            folder = Path(folder)
            (folder / "client.c").write_text(VERSIONED_CLIENT)
            (folder / "library.c").write_text(VERSIONED_LIBRARY)
            for version in ("VERS_1.28.2", "VERS_1.30.0", "VERS_9.9.9"):
                (folder / "exports.map").write_text(f"{version} {{ global: OrtGetApiBase; local: *; }};")
                theirs = folder / "libonnxruntime.so.1"
                run(cc, "-shared", "-fPIC", folder / "library.c", "-o", theirs, "-Wl,-soname,libonnxruntime.so.1",
                    f"-Wl,--version-script={folder / 'exports.map'}")
                run(cc, folder / "client.c", theirs, "-o", folder / "client")
                run(folder / "client", env=dict(os.environ, LD_LIBRARY_PATH=str(FOLDER)))


PACKAGES = sorted((BUILD / "packages").glob("libfolio-onnxruntime_*.deb"))  # made by the target folio_deb


@unittest.skipUnless(PACKAGES and shutil.which("dpkg-deb"), "no Debian packages were made")
class Package(unittest.TestCase):
    def test_has_the_library_in_its_own_folder_and_nothing_else_of_folio(self):
        (package,) = PACKAGES
        names = [line.split()[5] for line in run("dpkg-deb", "-c", package).splitlines() if not line.endswith("/")]
        control = run("dpkg-deb", "-f", package)
        libraries = [name for name in names if ".so" in name]
        self.assertEqual(len(libraries), 2, names)
        for name in libraries:
            self.assertRegex(name, r"^\./usr/lib/(.*/)?folio/onnxruntime/libonnxruntime\.so(\.1)?$")
        self.assertTrue(any(name.endswith("dropin.md") for name in names), names)
        self.assertFalse([name for name in names if "libfolio." in name or "/bin/" in name], names)
        self.assertIn("Package: libfolio-onnxruntime", control)
        self.assertIn("libc6", control)
        self.assertNotIn("libfolio1", control)


if __name__ == "__main__":
    skipping.main()
