"""Java and C# are tested for the same behaviours: each test of one language has one of its name in the other."""

import os
import re
import unittest
from pathlib import Path

ROOT = Path(os.environ["FOLIO_TESTS_DIR"]).parent
JAVA_TEST = re.compile(r"@Test\s+void (\w+)\(")
CSHARP_TEST = re.compile(r"\[Test\]\s+public void (\w+)\(")

# What only one of the languages has.
ONLY_JAVA = {
    "BuffersOfEachTypeAreWrapped",  # C#'s Wrap is generic: CopiesOfEachTypeHaveTheElements
    "RunsThatTheExecutorRefusesHoldNothing",  # C# has no executor
    "WrapRefusesWhatItWouldHaveToCopy",  # heap buffers; C# pins them
}
ONLY_CSHARP = {"WrappedArraysAreGivenBack"}  # pins


def names(folder, pattern, test):
    found = []
    for file in sorted((ROOT / folder).rglob(pattern)):
        found += [f"{file.stem.removesuffix('s')}.{name[0].upper()}{name[1:]}" for name in test.findall(file.read_text())]
    return found


class SameBehaviours(unittest.TestCase):
    def test_each_behaviour_is_tested_in_both_languages(self):
        java = names("java/tests", "*Test.java", JAVA_TEST)
        csharp = names("csharp/tests", "*Tests.cs", CSHARP_TEST)
        self.assertGreater(len(java), 70)
        self.assertEqual(len(java), len(set(java)))
        self.assertEqual({n for n in set(java) - set(csharp) if n.split(".")[1] not in ONLY_JAVA}, set())
        self.assertEqual({n for n in set(csharp) - set(java) if n.split(".")[1] not in ONLY_CSHARP}, set())


if __name__ == "__main__":
    unittest.main()
