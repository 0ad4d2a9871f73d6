"""The ABI is what c_api/abi.golden says: entries with place and signature, structs, enums.

    python3 tests/c_api/abi_test.py --write    writes the golden file anew: only for a new version's additions
"""

import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
import skipping

ROOT = Path(__file__).resolve().parents[2]
HEADERS = [ROOT / "c_api/include/folio" / name for name in ("folio_c_types.h", "folio_c_api.h")]
GOLDEN = ROOT / "c_api/abi.golden"
CC = os.environ.get("CC", "cc")


def header_text():
    text = re.sub(r"/\*.*?\*/", " ", "".join(header.read_text() for header in HEADERS), flags=re.S)
    return re.sub(r"^#.*$", "", text, flags=re.M)


def squeeze(text):
    return re.sub(r"\s+", " ", text).strip().replace("( ", "(").replace(" )", ")")


def members_of(body):
    """(name, declaration) of each member, in order."""
    result = []
    for declaration in filter(None, map(squeeze, body.split(";"))):
        match = re.search(r"\(\*(\w+)\)", declaration) or re.search(r"(\w+)(\[\w+\])?$", declaration)
        result.append((match.group(1), declaration))
    return result


def probe():
    """A C program that prints the golden text, made from the header's declarations."""
    text = header_text()
    lines = []
    for name, body in re.findall(r"typedef enum (\w+) FOLIO_INT_ENUM \{(.*?)\}", text, flags=re.S):
        for value in re.findall(r"(\w+) = -?\d+", body):
            lines.append(f'printf("enum {name} {value} %d\\n", (int){value});')
    for name, body in re.findall(r"typedef struct (\w+) \{(.*?)\} \1;", text, flags=re.S):
        table = name in ("FolioApi", "FolioApiBase")
        if not table:
            lines.append(f'printf("struct {name} %zu\\n", sizeof({name}));')
        for member, declaration in members_of(body):
            what = "entry" if table else "member"
            lines.append(f'printf("{what} {name} %zu {declaration}\\n", offsetof({name}, {member}));')
    for declaration in re.findall(r"typedef [^;{]*\(\*\w+\)[^;]*;", text):
        lines.append(f'printf("type {squeeze(declaration)}\\n");')
    return ('#include <folio/folio_c_api.h>\n#include <stdio.h>\nint main(void) {\n' + "\n".join(lines)
            + "\nreturn 0;\n}\n")


def abi():
    with tempfile.TemporaryDirectory() as folder:
        source, program = Path(folder) / "probe.c", Path(folder) / "probe"
        source.write_text(probe())
        subprocess.run([CC, "-std=c99", f"-I{ROOT / 'c_api/include'}", str(source), "-o", str(program)], check=True)
        return subprocess.run([str(program)], check=True, capture_output=True, text=True).stdout


class Abi(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.found = abi().splitlines()
        self.golden = GOLDEN.read_text().splitlines()

    def test_equals_the_golden_file(self):
        self.assertEqual(self.golden, self.found)

    def test_golden_file_lists_the_whole_table(self):
        table = [line.split()[2] for line in self.golden if line.startswith("entry FolioApi ")]
        self.assertEqual(table, [str(8 * i) for i in range(len(table))])
        self.assertGreaterEqual(len(table), 116)

    def test_structs_that_are_filled_by_either_side_begin_with_their_size(self):
        offsets = dict(re.findall(r"member (\w+) (\d+) size_t size$", "\n".join(self.golden), flags=re.M))
        structs = set(re.findall(r"^struct (\w+)", "\n".join(self.golden), flags=re.M))
        self.assertEqual(set(offsets), structs)
        self.assertEqual(set(offsets.values()), {"0"})


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        GOLDEN.write_text(abi())
    else:
        skipping.main()
