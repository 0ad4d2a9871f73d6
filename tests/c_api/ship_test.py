"""`cmake --build DIR --target ship` makes all that `cmake --install DIR` takes: who builds the one can do the other."""

import os
import re
import subprocess
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
import skipping

BUILD = Path(os.environ["FOLIO_BINARY_DIR"]).resolve()
MADE_BY_CMAKE = re.compile(r"(/CMakeFiles/|/debian/|/pages/|/folio(-config-version\.cmake|\.pc)$|cmake_install\.cmake$)")


class Ship(unittest.TestCase):
    def test_makes_all_that_is_installed(self):
        if not (BUILD / "build.ninja").is_file():
            self.skipTest("only Ninja tells what a target needs")
        graph = subprocess.run(["ninja", "-C", str(BUILD), "-t", "graph", "ship"], check=True, capture_output=True,
                               text=True).stdout  # with what a target only waits for, which `-t inputs` leaves out
        shipped = {os.path.realpath(BUILD / label) for label in re.findall(r'label="([^"]+)"', graph)}
        installed = set()
        for script in BUILD.rglob("cmake_install.cmake"):
            installed.update(re.findall(rf'"({re.escape(str(BUILD))}/[^"$]*)"', script.read_text()))
        built = {path for path in installed if not MADE_BY_CMAKE.search(path) and not os.path.islink(path)}
        self.assertGreater(len(built), 1)
        self.assertEqual(sorted(path for path in built if os.path.realpath(path) not in shipped), [])


if __name__ == "__main__":
    skipping.main()
