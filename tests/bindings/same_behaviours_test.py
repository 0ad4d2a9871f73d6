"""Java and C# are tested for the same behaviours: each test of one language has one of its name in the other. And their
enums have the numbers of the C interface."""

import ctypes
import os
import re
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
import skipping

ROOT = Path(os.environ["FOLIO_TESTS_DIR"]).parent
JAVA_TEST = re.compile(r"@Test\s+void (\w+)\(")
CSHARP_TEST = re.compile(r"\[Test\]\s+public void (\w+)\(")

# What only one of the languages has.
ONLY_JAVA = {
    "BuffersOfEachTypeAreWrapped",  # C#'s Wrap is generic: CopiesOfEachTypeHaveTheElements
    "RunsThatTheExecutorRefusesHoldNothing",  # C# has no executor
    "WrapRefusesWhatItWouldHaveToCopy",  # heap buffers; C# pins them
}
ONLY_CSHARP = {
    "WrappedArraysAreGivenBack",                    # pins
    "ARunThatEndsBeforeAllWasCancelledIsCanceledToo",  # tokens
}


def names(folder, pattern, test):
    found = []
    for file in sorted((ROOT / folder).rglob(pattern)):
        found += [f"{file.stem.removesuffix('s')}.{name[0].upper()}{name[1:]}" for name in test.findall(file.read_text())]
    return found


# ONNX Runtime's codes that Folio has no use for.
NEVER_THROWN = {"ok", "engineerror", "modelloaded", "epfail"}


def enum_of_c(name, prefix):
    golden = (ROOT / "c_api/abi.golden").read_text()
    found = re.findall(rf"^enum {name} {prefix}(\w+) (\d+)$", golden, flags=re.M)
    return {text.replace("_", "").lower(): int(number) for text, number in found}


def enum_of_java(name):
    """Names and what stands behind them in parentheses; or the place."""
    text = re.sub(r"/\*.*?\*/", "", (ROOT / f"java/src/dev/foliort/{name}.java").read_text(), flags=re.S)
    body = re.search(r"enum \w+ \{(.*?)[;}]", text, flags=re.S).group(1)
    members = re.findall(r"\b([A-Z]\w*)(?:\((-?\d+)(?:, (\d+))?\))?", body)
    return {text.replace("_", "").lower(): (int(number) if number else place, int(more) if more else None)
            for place, (text, number, more) in enumerate(members)}


def enum_of_csharp(name):
    text = (ROOT / f"csharp/src/{name}.cs").read_text()
    return {text.lower(): int(number) for text, number in re.findall(r"^ +(\w+) = (\d+),$", text, flags=re.M)}


def element_bits():
    """GetElementTypeBits of the library that was built."""
    library = ctypes.CDLL(os.environ["FOLIO_BINARY_DIR"] + "/lib/libfolio.so.1")
    library.FolioGetApiBase.restype = ctypes.POINTER(ctypes.c_void_p)
    get_api = ctypes.CFUNCTYPE(ctypes.POINTER(ctypes.c_void_p), ctypes.c_uint32)(library.FolioGetApiBase()[0])
    entries = re.findall(r"^entry FolioApi \d+ .*?\(\*(\w+)\)", (ROOT / "c_api/abi.golden").read_text(), flags=re.M)
    return ctypes.CFUNCTYPE(ctypes.c_uint32, ctypes.c_int)(get_api(1)[entries.index("GetElementTypeBits")])


class SameNumbers(unittest.TestCase):
    def test_enums_have_those_of_the_c_interface(self):
        for name, prefix, in_java in (("ErrorCode", "FOLIO_", True), ("ElementType", "FOLIO_", True),
                                      ("ValueKind", "FOLIO_KIND_", True), ("CloseMode", "FOLIO_CLOSE_", True),
                                      ("LogLevel", "FOLIO_LOG_", False)):  # Java's are System.Logger's
            wanted = enum_of_c("Folio" + name, prefix)
            if name == "ErrorCode":
                wanted = {code: number for code, number in wanted.items() if code not in NEVER_THROWN}
            self.assertEqual(enum_of_csharp(name), wanted, name)
            if in_java:
                java = {text: number for text, (number, _) in enum_of_java(name).items() if number >= 0}
                self.assertEqual(java, wanted, name)

    @unittest.skipIf(os.environ.get("FOLIO_SANITIZE"), "python cannot open a library that needs a sanitizer")
    def test_elements_have_as_many_bits_as_the_library_says(self):
        bits = element_bits()
        for name, (number, told) in enum_of_java("ElementType").items():
            self.assertEqual(told, bits(number), name)


class SameBehaviours(unittest.TestCase):
    def test_each_behaviour_is_tested_in_both_languages(self):
        java = names("java/tests", "*Test.java", JAVA_TEST)
        csharp = names("csharp/tests", "*Tests.cs", CSHARP_TEST)
        self.assertGreater(len(java), 70)
        self.assertEqual(len(java), len(set(java)))
        self.assertEqual({n for n in set(java) - set(csharp) if n.split(".")[1] not in ONLY_JAVA}, set())
        self.assertEqual({n for n in set(csharp) - set(java) if n.split(".")[1] not in ONLY_CSHARP}, set())


if __name__ == "__main__":
    skipping.main()
