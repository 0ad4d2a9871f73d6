"""Every public member of the Java API has a comment. (C#'s compiler refuses those without, see csharp/CMakeLists.txt.)"""

import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(os.environ["FOLIO_TESTS_DIR"]).parent
GENERATED = Path(os.environ["FOLIO_BINARY_DIR"]) / "generated/java"


class Documented(unittest.TestCase):
    @unittest.skipUnless(shutil.which("javac") and GENERATED.is_dir(), "Java was left out of this build")
    def test_no_public_member_lacks_a_comment(self):
        sources = sorted(map(str, (ROOT / "java/src/dev/foliort").glob("*.java")))
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(
                ["javac", "--release", "17", "-encoding", "UTF-8", "-Xdoclint:missing/public", "-Xmaxwarns", "10000",
                 "-implicit:class", "-sourcepath", f"{ROOT}/java/src:{GENERATED}", "-d", folder, *sources],
                capture_output=True, text=True, check=True)
        lacking = [line for line in done.stderr.splitlines() if "no comment" in line and "/Native" not in line]
        # Accessors of records are described by @param, and overridden methods by what they override.
        self.assertEqual(lacking, [])


if __name__ == "__main__":
    unittest.main()
