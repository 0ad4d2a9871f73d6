"""npm_packages.py: tests that run at once get whole packages, each fetched once."""

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
import skipping

HERE = Path(__file__).resolve().parent

# Stands for npm: notes the call, then makes the archive of `npm pack NAME@VERSION`, in no hurry.
NPM = """#!/usr/bin/env python3
import io, os, sys, tarfile, time
with open(os.environ["CALLS"], "a") as calls:
    calls.write(sys.argv[2] + "\\n")
time.sleep(0.3)
with tarfile.open("package.tgz", "w:gz") as archive:
    for i in range(200):
        data = b"{}" * 1000
        entry = tarfile.TarInfo("package/package.json" if i == 0 else f"package/{i}.js")
        entry.size = len(data)
        archive.addfile(entry, io.BytesIO(data))
"""
FETCH = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from npm_packages import fetch
sys.exit(next(filter(None, (fetch(Path(sys.argv[2]), package) for package in sys.argv[3:])), None))
"""


class NpmPackages(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        (self.folder / "bin").mkdir()
        (self.folder / "bin/npm").write_text(NPM)
        (self.folder / "bin/npm").chmod(0o755)
        self.calls = self.folder / "calls"
        self.modules = self.folder / "npm/node_modules"

    def start(self, *packages):
        environment = dict(os.environ, CALLS=str(self.calls),
                           PATH=f"{self.folder / 'bin'}{os.pathsep}{os.environ['PATH']}")
        return subprocess.Popen([sys.executable, "-c", FETCH, str(HERE), str(self.modules), *packages],
                                env=environment, stderr=subprocess.PIPE, text=True)

    def test_processes_share_a_folder(self):
        orders = (("a@1", "@s/b@2", "c@3"), ("c@3", "a@1"), ("@s/b@2", "c@3"), ("a@1", "@s/b@2"))
        for process in [self.start(*packages) for packages in orders]:
            _, errors = process.communicate(timeout=60)
            self.assertEqual(process.returncode, 0, errors)
        for name in ("a", "@s/b", "c"):
            self.assertEqual(len(list((self.modules / name).iterdir())), 200)
        self.assertEqual(sorted(self.calls.read_text().split()), ["@s/b@2", "a@1", "c@3"])
        self.assertEqual(list(self.modules.glob(".fetch*")), [])

    def test_a_failure_leaves_nothing(self):
        (self.folder / "bin/npm").write_text("#!/bin/sh\nexit 7\n")
        process = self.start("a@1")
        _, errors = process.communicate(timeout=60)
        self.assertNotEqual(process.returncode, 0)
        self.assertIn("npm could not fetch a@1", errors)
        self.assertEqual([path.name for path in self.modules.iterdir()], [".lock"])


if __name__ == "__main__":
    skipping.main()
