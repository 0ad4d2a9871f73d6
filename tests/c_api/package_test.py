"""An installed Folio is usable from elsewhere: by CMake (folio::folio), by pkg-config, and after being moved."""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
import skipping
from page_links import dead_links

BINARY_DIR = Path(os.environ["FOLIO_BINARY_DIR"])
CMAKE = os.environ.get("CMAKE", "cmake")
CC = os.environ.get("CC", "cc")
SANITIZERS = os.environ.get("FOLIO_SANITIZE", "")

MAIN_C = """\
#include <folio/folio_c_api.h>
int main(void) { return FolioGetApiBase() == 0; }
"""
CMAKE_LISTS = """\
cmake_minimum_required(VERSION 3.25)
project(consumer LANGUAGES C)
find_package(folio 0.1 REQUIRED CONFIG)
add_executable(consumer main.c)
target_link_libraries(consumer PRIVATE folio::folio)
"""


def run(*command, **options):
    result = subprocess.run(command, capture_output=True, text=True, **options)
    if result.returncode != 0:
        raise AssertionError(f"{command} returned {result.returncode}:\n{result.stdout}{result.stderr}")
    return result.stdout.strip()


@unittest.skipIf(SANITIZERS, "a sanitized library is not for others to link")
class Package(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.work = Path(folder.name)
        run(CMAKE, "--install", str(BINARY_DIR), "--prefix", str(self.work / "first"))
        shutil.move(self.work / "first", self.work / "prefix")  # nothing may remember the first place
        self.prefix = self.work / "prefix"
        (self.work / "main.c").write_text(MAIN_C)

    def library_dir(self):
        (library,) = self.prefix.rglob("libfolio.so")
        return library.parent

    def test_cmake_package_links_and_runs(self):
        (self.work / "CMakeLists.txt").write_text(CMAKE_LISTS)
        build = self.work / "build"
        run(CMAKE, "-S", str(self.work), "-B", str(build), f"-DCMAKE_PREFIX_PATH={self.prefix}", f"-DCMAKE_C_COMPILER={CC}")
        run(CMAKE, "--build", str(build))
        run(str(build / "consumer"))

    @unittest.skipUnless(shutil.which("pkg-config"), "pkg-config is not installed")
    def test_pkg_config_links_and_runs(self):
        environment = dict(os.environ, PKG_CONFIG_PATH=str(self.library_dir() / "pkgconfig"))
        flags = run("pkg-config", "--cflags", "--libs", "folio", env=environment).split()
        program = str(self.work / "consumer")
        run(CC, "-std=c99", str(self.work / "main.c"), *flags, "-o", program)
        run(program, env=dict(os.environ, LD_LIBRARY_PATH=str(self.library_dir())))

    def test_licences_and_pages_are_installed(self):
        names = {path.name for path in self.prefix.rglob("share/doc/folio/*")}
        docs = Path(__file__).resolve().parents[2] / "docs"  # which headers and messages refer to
        pages = {page.name for page in docs.iterdir() if page.suffix in (".md", ".svg")}
        self.assertEqual(names, {"LICENSE", "THIRD-PARTY-NOTICES", "CHANGELOG.md"} | pages)

    def test_links_of_pages_lead_somewhere(self):
        pages = list(self.prefix.rglob("share/doc/**/*.md"))
        self.assertLessEqual({"CHANGELOG.md", "packs.md"}, {page.name for page in pages})
        dead = [f"{page.relative_to(self.prefix)}:{line}: {link}: {what}" for page in pages
                for line, link, what in dead_links(page)]
        self.assertEqual(dead, [])

    def test_nothing_of_core_is_installed(self):
        headers = {path.relative_to(self.prefix).parts[1] for path in self.prefix.glob("include/**/*.h*")}
        self.assertEqual(headers, {"folio"})
        self.assertEqual(list(self.prefix.rglob("*.a")), [])


if __name__ == "__main__":
    skipping.main()
