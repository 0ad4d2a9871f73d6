"""The Java API's documentation is complete: comments, parameters, results. (C#'s compilers refuse members without comments:
-doc and -warnaserror in csharp/CMakeLists.txt, and FolioRuntime.csproj.)"""

import os
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(os.environ["FOLIO_TESTS_DIR"]).parent
GENERATED = Path(os.environ["FOLIO_BINARY_DIR"]) / "generated/java"


@unittest.skipUnless(shutil.which("javadoc") and GENERATED.is_dir(), "Java was left out of this build")
class Documented(unittest.TestCase):
    def javadoc(self, sources):
        """What doclint finds: of all kinds, in all that is shown."""
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(
                ["javadoc", "-quiet", "-Xdoclint:all", "-encoding", "UTF-8", "-notimestamp", "-Xmaxwarns", "10000", "-d", folder,
                 "-sourcepath", f"{sources}:{GENERATED}", "dev.foliort"], capture_output=True, text=True, check=False)
        return done.stderr

    def test_javadoc_finds_nothing_to_complain_of(self):
        self.assertEqual(self.javadoc(ROOT / "java/src"), "")

    def test_it_would_find_a_parameter_without_a_word(self):
        with tempfile.TemporaryDirectory() as folder:
            shutil.copytree(ROOT / "java/src", folder, dirs_exist_ok=True)
            session = Path(folder) / "dev/foliort/Session.java"
            text = session.read_text()
            session.write_text(re.sub(r" +\* @param mode .*\n", "", text))
            self.assertNotEqual(session.read_text(), text)
            self.assertIn("no @param for mode", self.javadoc(folder))


if __name__ == "__main__":
    unittest.main()
