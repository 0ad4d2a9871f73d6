"""The Java API's documentation is complete: comments, parameters, results. (C#'s compilers refuse members without comments:
-doc and -warnaserror in csharp/CMakeLists.txt, and FolioRuntime.csproj.)"""

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


# A comment, attributes, then a public method, constructor or operator: what it is, and its parameters.
CSHARP_METHOD = re.compile(
    r"((?:^ *///.*\n)+)(?: *\[[^\]]*\]\n)* *public (?!(?:sealed |static |readonly )*(?:class|enum|struct|delegate)\b|override)"
    r"([^{};=]*?)\(([^{;]*?)\)(?=\s*(?:\{|where|:))", re.M)


def undocumented(text):
    """(methods, what they say nothing of) of a C# source. Whether each has a comment at all, its compiler checks."""
    methods = CSHARP_METHOD.findall(text)
    missing = []
    for comment, declaration, parameters in methods:
        *result, name = declaration.split()
        names = [word.split("=")[0].split()[-1] for word in re.split(r",(?![^<]*>)", parameters) if word.strip()]
        wanted = [f'param name="{word}"' for word in names]
        wanted += [f'typeparam name="{word}"' for word in re.findall(r"<(\w+)>$", name)]
        wanted += ["returns"] if result and "void" not in result else []
        missing += [f"{name}: {tag}" for tag in wanted if f"<{tag}>" not in comment]
    return len(methods), missing


class DocumentedCsharp(unittest.TestCase):
    def test_parameters_and_results_have_a_word(self):
        found = {file.name: undocumented(file.read_text()) for file in (ROOT / "csharp/src").glob("*.cs")}
        self.assertGreater(sum(count for count, _ in found.values()), 70)
        self.assertEqual({name: missing for name, (_, missing) in found.items() if missing}, {})

    def test_it_would_find_one_without(self):
        text = (ROOT / "csharp/src/Session.cs").read_text()
        text = re.sub(r" */// <param name=.token.*\n", "", text)
        self.assertEqual(undocumented(text)[1], ['RunAsync<TValue>: param name="token"'])


if __name__ == "__main__":
    skipping.main()
