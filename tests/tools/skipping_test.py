"""tests/support/skipping.py: a script of which nothing ran is skipped (77), never passed; and every script uses it."""

import re
import subprocess
import sys
import tempfile
import textwrap
import unittest
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS / "support"))
import skipping

GOOD = "def test_good(self): pass"
BAD = "def test_bad(self): self.fail()"
SKIPPED = 'def test_skipped(self): self.skipTest("no moon")'


class Skipping(unittest.TestCase):
    def script(self, *cases, before="", main="skipping.main()", arguments=()):
        body = textwrap.indent("\n".join(cases) or "pass", "    ")
        text = f"import sys, unittest\nsys.path.insert(0, {str(TESTS / 'support')!r})\nimport skipping\n" \
               f"{before}\nclass Case(unittest.TestCase):\n{body}\n{main}\n"
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "script.py"
            path.write_text(text)
            return subprocess.run([sys.executable, "-B", path, *arguments], capture_output=True, text=True, check=False)

    def expect(self, code, said, *cases, **options):
        done = self.script(*cases, **options)
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertEqual(re.findall(r"^skipped: (.*)", done.stdout, re.M), said)

    def test_all_passed_is_passed(self):
        self.expect(0, [], GOOD)

    def test_all_skipped_is_skipped_with_the_reasons(self):
        self.expect(77, ["Case.test_skipped: no moon"], SKIPPED)
        other = '@unittest.skip("no sun")\ndef test_other(self): pass'
        self.expect(77, ["Case.test_other: no sun", "Case.test_skipped: no moon"], SKIPPED, other)

    def test_many_of_one_reason_are_one_line(self):
        many = [SKIPPED.replace("skipped", f"{i}") for i in range(4)]
        self.expect(77, ["4 cases: no moon"], *many)

    def test_a_class_that_is_skipped_counts(self):
        self.expect(77, ["Case.test_good: no jar"], GOOD, before='@unittest.skip("no jar")')
        whole = '@classmethod\ndef setUpClass(cls): raise unittest.SkipTest("no class")'
        done = self.script(GOOD, whole)
        self.assertEqual(done.returncode, 77, done.stderr)
        self.assertIn("no class", done.stdout)

    def test_one_that_passed_is_enough(self):
        self.expect(0, ["Case.test_skipped: no moon"], GOOD, SKIPPED)
        self.expect(0, ["Case.test_skipped: no moon"], SKIPPED, "@unittest.expectedFailure\n" + BAD)

    def test_a_failure_is_a_failure(self):
        self.expect(1, ["Case.test_skipped: no moon"], SKIPPED, BAD)
        self.expect(1, [], BAD)
        self.expect(1, [], "@unittest.expectedFailure\n" + GOOD)

    def test_no_case_at_all_is_a_failure(self):
        self.expect(1, [])

    def test_a_reason_known_before_leaves_at_once(self):
        self.expect(77, ["no npm"], BAD, main='skipping.main("no npm")')
        self.expect(77, ["no npm"], BAD, main='skipping.leave("no npm")')

    def test_one_case_by_its_name(self):
        self.expect(0, [], GOOD, BAD, arguments=["Case.test_good"])

    def test_every_script_ends_by_it(self):
        scripts = sorted(TESTS.glob("*/*_test.py"))
        self.assertGreater(len(scripts), 25)
        for script in scripts:
            text = script.read_text()
            self.assertTrue(re.search(r"^ +skipping\.(main|leave)\(", text, re.M), script)
            self.assertFalse(re.search(r"^ +unittest\.main\(|\bSKIP\b", text, re.M), script)


if __name__ == "__main__":
    skipping.main()
