"""folio.hpp reaches every entry of the C table: a new entry has its method, or a line here that says why not."""

import re
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
import skipping

HEADERS = Path(__file__).resolve().parents[2] / "c_api/include/folio"
GOLDEN = HEADERS.parents[1] / "abi.golden"
NOT_REACHED = {}  # entry: why
# How the classes name an entry: api().Run(...), f.ValueInfoGetName, &FolioApi::ReleaseValue.
USE = re.compile(r"(?:api\(\)\.|\bf\.|&FolioApi::)(\w+)")


def entries():
    return re.findall(r"^entry FolioApi \d+ .*?\(\*(\w+)\)", GOLDEN.read_text(), flags=re.M)


def used():
    text = "".join(header.read_text() for header in HEADERS.glob("*.hpp"))
    return set(USE.findall(re.sub(r"//.*", "", text)))


class Facade(unittest.TestCase):
    def test_reaches_every_entry(self):
        self.assertGreater(len(entries()), 130)
        self.assertEqual([name for name in entries() if name not in used() and name not in NOT_REACHED], [])

    def test_names_no_entry_that_is_not_there(self):
        self.assertEqual(used() - set(entries()), set())
        self.assertEqual(set(NOT_REACHED) - set(entries()), set())
        self.assertEqual(set(NOT_REACHED) & used(), set())


if __name__ == "__main__":
    skipping.main()
