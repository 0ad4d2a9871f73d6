"""The tests of Java and of C# call every entry of the C table, but for those that a line here gives a reason for.

They run once more with reach.c between the bindings and the library.
"""

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

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
BUILD = Path(os.environ["FOLIO_BINARY_DIR"])
LIBRARY = BUILD / "lib/libfolio.so.1"
JUNIT = Path("/usr/share/java/junit-platform-console-standalone.jar")
MONO = shutil.which("mono")
OPENED_APART = "models are opened first, sessions made from them"
NOT_CALLED = {
    "GetErrorName": "ErrorCode has names: same_behaviours_test.py", "GetElementTypeName": "so has ElementType",
    "GetElementTypeBits": "ElementType has bits: same_behaviours_test.py",
    "ModelLookupMetadata": "the metadata is a map",
    "CreateSession": OPENED_APART, "CreateSessionFromArray": OPENED_APART,
    "SessionOptionsAddExternalFileFromMemory": OPENED_APART,
}
NOT_CALLED_IN_CSHARP = {"CancelIsRequested": "a CancellationToken knows that itself"}


def entries():
    return re.findall(r"^entry FolioApi \d+ .*?\(\*(\w+)\)", (ROOT / "c_api/abi.golden").read_text(), flags=re.M)


class Reach(unittest.TestCase):
    def called(self, *command, **variables):
        """Names of the entries that the program called; it must succeed."""
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            subprocess.run([os.environ.get("CC", "cc"), "-shared", "-fPIC", "-O1", "-Wall", f"-I{ROOT}/c_api/include",
                            str(HERE / "reach.c"), "-ldl", "-o", str(folder / "reach.so")], check=True)
            done = subprocess.run(
                list(map(str, command)), capture_output=True, text=True, check=False, cwd=folder,
                env=dict(os.environ, LC_ALL="C.UTF-8", LD_PRELOAD=str(folder / "reach.so"), FOLIO_REACH_LIBRARY=str(LIBRARY),
                         FOLIO_REACH_OUTPUT=str(folder / "called"), **variables))
            self.assertEqual(done.returncode, 0, done.stdout[-4000:] + done.stderr[-4000:])
            return {entries()[int(number)] for number in (folder / "called").read_text().split()}

    def check(self, called, reasons):
        self.assertEqual([name for name in entries() if name not in called and name not in reasons], [], "called by no test")
        self.assertEqual(sorted(set(reasons) & called), [], "these are called: their reasons are out of date")

    @unittest.skipUnless((BUILD / "java/tests").is_dir() and JUNIT.is_file(), "Java's tests were left out of this build")
    def test_java(self):
        jar, classes = BUILD / "lib/folio.jar", BUILD / "java/tests"
        self.check(self.called("java", "-Xmx256m", f"-Dfolio.test.models={BUILD}/bindings/models", "-jar", JUNIT, "-cp",
                               f"{jar}:{classes}", f"--scan-classpath={classes}", "--disable-banner", "--fail-if-no-tests"),
                   NOT_CALLED)

    @unittest.skipUnless((BUILD / "csharp/FolioRuntime.Tests.exe").is_file() and MONO, "C#'s tests were left out of this build")
    def test_csharp(self):
        self.check(self.called(MONO, BUILD / "csharp/FolioRuntime.Tests.exe",
                               MONO_PATH=str(BUILD / "lib"), FOLIO_TEST_MODELS=f"{BUILD}/bindings/models"),
                   {**NOT_CALLED, **NOT_CALLED_IN_CSHARP})


if __name__ == "__main__":
    skipping.main()
