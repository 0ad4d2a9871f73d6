#!/usr/bin/env python3
"""Checks what the compiler does not: who includes whom, sizes, words, and symbols of ISA objects.

Usage: tidy.py [--root DIR] [--build DIR] [--json]

  layers       includes follow tools/layers.txt and are written from the root of the repository
  third-party  a third party's headers stay in the rooms that layers.txt names
  isa-std      folders with ISA flags reach no C++ standard header, not even through another header
  std-header   names of namespace std come from a header that the file includes, itself or through ours
               (tools/std_headers.txt): precompiled headers hide from the compiler what is missing
  file-size    no file above 800 lines
  function-size no function above 70 lines (kernel bodies below core/kernels/<isa>/ may be longer)
  words        unfinished-work marks: a to-do needs an issue number, the others are never right
  header-comment  a header starts with a comment: purpose, flow, owns, threads, errors
  link         what a Markdown page links to beside it is there, headings of pages too
  weak-symbol  objects built with ISA flags define no weak symbol (--build DIR names a release build):
               the linker keeps one copy for everybody, and if it keeps the AVX-512 one, older machines crash

Prints one line per finding (path:line: [check] message), then the numbers. Exit code 1 if there is a finding, 2 on misuse.
Generated files that are committed say "generated" in their first line; sizes are not counted there.
"""

import argparse
import ast
import fnmatch
import functools
import json
import os
import re
import subprocess
import sys
from pathlib import Path

from page_links import dead_links

FILE_LINES_MAX = 800
FUNCTION_LINES_MAX = 70

CODE_FOLDERS = ("bindings", "c_api", "cmake", "core", "csharp", "java", "samples", "tests", "tools")
PAGE_FOLDERS = CODE_FOLDERS + ("docs",)
SKIPPED_FOLDERS = re.compile(r"^(build.*|out|bin|obj|target|node_modules|__pycache__|\..*)$")
CXX_SUFFIXES = (".h", ".hpp", ".cc", ".c")
CODE_SUFFIXES = CXX_SUFFIXES + (".py", ".cmake", ".sh", ".i", ".java", ".cs")
# Written while building, by cmake/ops.cmake, cmake/isa.cmake and cmake/flatbuffers.cmake.
GENERATED_INCLUDES = ("op_list.inc", "isa_list.inc", "core/formats/ort/ort_schema_generated.h",
                      "core/prepack/fpack_schema_generated.h")

INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)')
STD_NAME = re.compile(r"\bstd::(\w+)")
UNFINISHED = re.compile(r"\b(?:TO[D]O\b(?!\(#\d+\))|FIX[M]E\b|XX[X]\b)")


class Layers:
    """The rules of layers.txt."""

    def __init__(self, text):
        self.rooms = {}  # folder -> places
        self.extras = {}  # path pattern -> places
        self.third_parties = {}  # header prefix -> places
        for number, line in enumerate(text.splitlines(), 1):
            line = line.split("#", 1)[0].strip()
            if not line:
                continue
            key, colon, places = line.partition(":")
            if not colon:
                raise ValueError(f"layers.txt:{number}: expected 'folder: places', found '{line}'")
            self._table_of(key)[key.strip("<> ")] = places.split()

    def _table_of(self, key):
        if key.startswith("<"):
            return self.third_parties
        return self.extras if "*" in key else self.rooms

    def room_of(self, path):
        rooms = [room for room in self.rooms if is_below(path, room)]
        return max(rooms, key=len, default=None)

    def allows(self, path, target):
        room = self.room_of(path)
        places = [room] + self.rooms[room]
        for pattern, extra in self.extras.items():
            if fnmatch.fnmatchcase(path, pattern):
                places += extra
        return any(is_below(target, place) for place in places)


def is_below(path, place):
    if "*" in place:
        return fnmatch.fnmatchcase(path, place)
    return path == place or path.startswith(place + "/")


class Tree:
    """The files of the repository, read once."""

    def __init__(self, root):
        self.root = Path(root)
        self.texts = {}  # path from the root -> text
        self.pages = []  # Markdown files, with the root
        self.findings = []
        for here, folders, names in os.walk(self.root):
            if Path(here) == self.root:
                folders[:] = [f for f in folders if f in PAGE_FOLDERS]
            else:
                folders[:] = [f for f in folders if not SKIPPED_FOLDERS.match(f)]
            for name in names:
                if name.endswith(CODE_SUFFIXES) or name == "CMakeLists.txt":
                    self._read(Path(here) / name)
                elif name.endswith(".md"):
                    self.pages.append(Path(here) / name)
        self.texts = dict(sorted(self.texts.items()))

    def _read(self, path):
        self.texts[path.relative_to(self.root).as_posix()] = path.read_text(errors="replace")

    def report(self, path, line, check, message):
        self.findings.append({"path": path, "line": line, "check": check, "message": message})

    def cxx_files(self):
        return {p: t for p, t in self.texts.items() if p.endswith(CXX_SUFFIXES)}


def is_generated(text):
    return "generated" in text.split("\n", 1)[0].lower()


# Includes ---------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=None)  # a header is looked at for each file that it reaches
def includes_of(text):
    """A list of (line, name, is_quoted)."""
    matches = [(number, INCLUDE.match(line)) for number, line in enumerate(text.splitlines(), 1)]
    return [(number, m.group(1) or m.group(2), m.group(1) is not None) for number, m in matches if m]


def project_path(tree, name):
    """The path of an included file of ours, or None."""
    if name.startswith("folio/"):
        return "c_api/include/" + name
    return name if (tree.root / name).is_file() else None


def check_includes(tree, layers):
    for path, text in tree.cxx_files().items():
        room = layers.room_of(path)
        if room is None:
            tree.report(path, 1, "layers", "this folder has no line in tools/layers.txt")
            continue
        for line, name, is_quoted in includes_of(text):
            check_third_party(tree, layers, path, line, name)
            target = project_path(tree, name)
            if target is not None:
                if not layers.allows(path, target):
                    tree.report(path, line, "layers", f"{room} may not include {target}")
            elif is_quoted and name not in GENERATED_INCLUDES and not is_third_party(layers, name):
                message = f'"{name}" is no file, as seen from the root of the repository'
                tree.report(path, line, "layers", message)


def is_third_party(layers, name):
    return any(name.startswith(prefix) for prefix in layers.third_parties)


def check_third_party(tree, layers, path, line, name):
    for prefix, places in layers.third_parties.items():
        if name.startswith(prefix) and not any(is_below(path, place) for place in places):
            allowed = ", ".join(places)
            tree.report(path, line, "third-party", f"<{name}> belongs in {allowed} only")


# ISA folders ------------------------------------------------------------------------------------


def isa_folders(tree):
    """Folders of core/kernels that are compiled with flags of their own."""
    for path, text in tree.texts.items():
        if re.fullmatch(r"core/kernels/[^/]+/isa\.cmake", path):
            if re.search(r"^[^#\n]*ISA_FLAGS\s+[^)\s]", text, re.MULTILINE):
                yield path.rsplit("/", 1)[0]


def check_isa_includes(tree):
    for folder in isa_folders(tree):
        for path in [p for p in tree.cxx_files() if is_below(p, folder)]:
            for chain, line, name, is_quoted in foreign_includes(tree, path):
                if is_quoted or name.endswith(".h"):
                    continue
                via = "" if len(chain) == 1 else " through " + " -> ".join(chain[1:])
                message = f"<{name}> is a C++ header; ISA folders use C headers and intrinsics{via}"
                tree.report(path, line, "isa-std", message)


def foreign_includes(tree, path):
    """Yields (chain of files, line in the first file, name, is_quoted) of what is no file of ours."""
    seen = {path}
    todo = [((path,), 0)]
    while todo:
        chain, first_line = todo.pop()
        for line, name, is_quoted in includes_of(tree.texts.get(chain[-1], "")):
            line = first_line or line
            target = project_path(tree, name)
            if target is None:
                yield chain, line, name, is_quoted
            elif target not in seen:
                seen.add(target)
                todo.append((chain + (target,), line))


# Names of the standard library -------------------------------------------------------------------


def read_std_headers(text):
    """{name: headers that have it}"""
    headers = {}
    for line in text.splitlines():
        header, colon, names = line.split("#", 1)[0].partition(":")
        for name in names.split():
            headers.setdefault(name, set()).add(header)
    return headers


def check_std_headers(tree, headers):
    for path, text in tree.cxx_files().items():
        reached = {name for _, _, name, _ in foreign_includes(tree, path)}
        reported = set()
        for number, line in enumerate(code_only(text).splitlines(), 1):
            for name in STD_NAME.findall(line):
                if name in headers and name not in reported and not headers[name] & reached:
                    reported.add(name)
                    message = f"std::{name} is in <{'>, <'.join(sorted(headers[name]))}>, which is not included"
                    tree.report(path, number, "std-header", message)


def check_weak_symbols(tree, build):
    for folder in isa_folders(tree):
        isa = folder.rsplit("/", 1)[1]
        objects = sorted((Path(build) / "CMakeFiles" / f"folio_isa_{isa}.dir").rglob("*.o"))
        if not objects:
            tree.report(folder, 1, "weak-symbol", f"no objects of {isa} in {build}: build it first")
        for item in objects:
            names = subprocess.run(["nm", "--defined-only", "--demangle", str(item)], check=True,
                                   capture_output=True, text=True).stdout
            for line in names.splitlines():
                match = re.match(r"[0-9a-f]* *([WVu]) (.*)", line)
                if match:
                    message = f"{item.name} defines the weak symbol {match.group(2)} ({match.group(1)})"
                    tree.report(folder, 1, "weak-symbol", message)


# Sizes ------------------------------------------------------------------------------------------

# Comments, then strings (raw, plain), then characters; a digit separator as in 1'000 is no character.
NOT_CODE = re.compile(
    r'//(?:[^\n\\]|\\.|\\\n)*|/\*.*?\*/'
    r'|\bR"(?P<mark>[^()\s\\]*)\(.*?\)(?P=mark)"|"(?:[^"\\\n]|\\.)*"'
    r"|(?<![0-9a-fA-F])'(?:[^'\\\n]|\\.)+'", re.DOTALL)
DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n\\]|\\.|\\\n)*", re.MULTILINE | re.DOTALL)
CONTAINER = re.compile(
    r"(?:template\s*<.*>\s*|inline\s+|static\s+|constexpr\s+|const\s+|typedef\s+|export\s+)*"
    r"(?:namespace|class|struct|union|enum)\b", re.DOTALL)
FUNCTION_END = re.compile(r"\)\s*(?:const|noexcept|override|final|mutable|try|&&?|\s)*$")


def code_only(text):
    """The text with comments, strings and directives made blank; line breaks stay."""

    def blank(match):
        found = match.group(0)
        lines = "\n" * found.count("\n")
        return f'""{lines}' if found[0] in "\"'R" else lines

    return DIRECTIVE.sub(lambda m: "\n" * m.group(0).count("\n"), NOT_CODE.sub(blank, text))


def brace_kind(code, at, head):
    """What the brace at code[at] opens outside of functions: container, initializer or function."""
    head = head.strip()
    if CONTAINER.match(head) and not FUNCTION_END.search(head):
        return "container"
    if re.match(r'extern\s*""$', head) or not head:
        return "container"
    if code[at - 1] not in " \n" or head.endswith(("=", ",", "(")):
        return "initializer"  # `name_{x}`, `kRows[] = {`
    return "function" if "(" in head else "initializer"


def cxx_functions(text):
    """Yields (name, first line, line count) of the functions; meant for text formatted by clang-format."""
    code = code_only(text)
    stack = []  # kinds of the open braces; nothing is classified inside a function or initializer
    head_start = 0
    for match in re.finditer(r"[{};]|\b(?:public|private|protected)\s*:", code):
        at = match.start()
        opaque = bool(stack) and stack[-1][0] != "container"
        if match.group(0) == "{":
            kind = "nested" if opaque else brace_kind(code, at, code[head_start:at])
            stack.append((kind, head_start, code[head_start:at]))
            if kind in ("container", "function"):
                head_start = at + 1
        elif match.group(0) == "}":
            if not stack:
                continue  # braces split over #if branches: give up on this one, not on the file
            kind, start, head = stack.pop()
            if kind == "function":
                yield function_span(code, start, head, at)
            if kind in ("container", "function"):
                head_start = at + 1
        elif not opaque:
            head_start = match.end()


def function_span(code, start, head, end):
    start += len(head) - len(head.lstrip())
    first = code.count("\n", 0, start) + 1
    last = code.count("\n", 0, end) + 1
    name = re.search(r"([~\w:]+(?:\s*operator\S+)?|operator[^(]*)\s*\(", head)
    label = " ".join(head.split()) if name is None else name.group(1)
    if label.startswith("TEST"):
        label = " ".join(head.split())
    return label, first, last - first + 1


def python_functions(text):
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node.name, node.lineno, node.end_lineno - node.lineno + 1


def functions_of(path, text):
    if path.endswith(CXX_SUFFIXES):
        return list(cxx_functions(text))
    return list(python_functions(text)) if path.endswith(".py") else []


def check_sizes(tree):
    """Reports what is too long; returns {path: (line count, [function line counts])}."""
    sizes = {}
    for path, text in tree.texts.items():
        if is_generated(text):
            continue
        lines = text.count("\n")
        if lines > FILE_LINES_MAX:
            tree.report(path, lines, "file-size", f"{lines} lines, the limit is {FILE_LINES_MAX}")
        functions = functions_of(path, text)
        sizes[path] = (lines, [count for _, _, count in functions])
        if re.match(r"core/kernels/[^/]+/", path):
            continue  # unrolled kernels
        for name, first, count in functions:
            if count > FUNCTION_LINES_MAX:
                message = f"{name} has {count} lines, the limit is {FUNCTION_LINES_MAX}"
                tree.report(path, first, "function-size", message)
    return sizes


# Text -------------------------------------------------------------------------------------------


def check_words(tree):
    for path, text in tree.texts.items():
        for number, line in enumerate(text.splitlines(), 1):
            match = UNFINISHED.search(line)
            if match:
                message = f"{match.group(0)}: finish it, or name an issue as in TODO(#12)"
                tree.report(path, number, "words", message)


def check_header_comments(tree):
    for path, text in tree.cxx_files().items():
        if path.endswith((".h", ".hpp")) and not text.startswith(("//", "/*")):
            message = "a header starts with a comment that says what it is for"
            tree.report(path, 1, "header-comment", message)


def check_links(tree):
    for page in sorted(tree.pages):
        for line, link, what in dead_links(page):
            tree.report(page.relative_to(tree.root).as_posix(), line, "link", f"{link}: {what}")


# Numbers ----------------------------------------------------------------------------------------


def percentile(values, share):
    values = sorted(values)
    return values[min(len(values) - 1, int(len(values) * share))] if values else 0


def numbers(sizes):
    """Sizes of the code and, apart from it, of the tests."""
    summary = {}
    for group in ("code", "tests"):
        chosen = [s for p, s in sizes.items()
                  if p.endswith(CXX_SUFFIXES) and p.startswith("tests/") == (group == "tests")]
        files = [lines for lines, _ in chosen]
        functions = [count for _, counts in chosen for count in counts]
        over = sum(count > FUNCTION_LINES_MAX for count in functions)
        summary[group] = {
            "files": len(files), "file_median": percentile(files, 0.5),
            "file_p90": percentile(files, 0.9), "file_max": max(files, default=0),
            "functions": len(functions), "function_median": percentile(functions, 0.5),
            "function_p90": percentile(functions, 0.9), "function_max": max(functions, default=0),
            "functions_over_70": over}
    return summary


def print_text(findings, summary):
    for f in findings:
        print(f"{f['path']}:{f['line']}: [{f['check']}] {f['message']}")
    for group, n in summary.items():
        share = 100 * n["functions_over_70"] / max(1, n["functions"])
        print(f"{group:5} {n['files']:4} files: lines median {n['file_median']}, p90 {n['file_p90']}, "
              f"max {n['file_max']}; {n['functions']:5} functions: median {n['function_median']}, "
              f"p90 {n['function_p90']}, max {n['function_max']}, "
              f"over {FUNCTION_LINES_MAX}: {n['functions_over_70']} ({share:.1f}%)")
    print(f"tidy: {len(findings)} findings")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", default=Path(__file__).resolve().parent.parent)
    parser.add_argument("--build", help="a release build: also checks the symbols of its ISA objects")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    try:
        layers = Layers((Path(options.root) / "tools/layers.txt").read_text())
        std_headers = read_std_headers((Path(__file__).parent / "std_headers.txt").read_text())
    except (OSError, ValueError) as error:
        print(f"tidy: {error}", file=sys.stderr)
        return 2
    tree = Tree(options.root)
    check_includes(tree, layers)
    check_isa_includes(tree)
    check_std_headers(tree, std_headers)
    sizes = check_sizes(tree)
    check_words(tree)
    check_header_comments(tree)
    check_links(tree)
    if options.build:
        check_weak_symbols(tree, options.build)
    if options.json:
        print(json.dumps({"findings": tree.findings, "summary": numbers(sizes)}, indent=2))
    else:
        print_text(tree.findings, numbers(sizes))
    return 1 if tree.findings else 0


if __name__ == "__main__":
    sys.exit(main())
