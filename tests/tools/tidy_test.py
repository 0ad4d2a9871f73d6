"""Proves that each check of tools/tidy.py fires on a bad tree and stays quiet on a good one."""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
import skipping

ROOT = Path(__file__).resolve().parents[2]
UNFINISHED = "TO" + "DO"  # in two parts, or tidy would find it here
CXX = os.environ.get("CXX", "c++")

GOOD = {
    "core/base/status.h": "// Errors.\n#include <string>\n",
    "core/base/cpu_bits.h": "// CPU bits.\n#include <stdint.h>\n",
    "core/base/hash.cc": "#include <xxhash.h>\n",
    "core/os/file.cc": '#include "core/base/status.h"\n#include <string>\n',
    "core/kernels/kernels.h": "/* The table. */\n#include <stddef.h>\n",
    "core/kernels/select.cc": '#include "core/base/cpu_bits.h"\n#include "isa_list.inc"\n',
    "core/kernels/ref/isa.cmake": "set(ISA_RANK 0)\nset(ISA_FLAGS )\n",
    "core/kernels/ref/table.cc": "#include <cmath>\n",
    "core/kernels/x86_avx2/isa.cmake": "set(ISA_RANK 2)\nset(ISA_FLAGS -mavx2)\n",
    "core/kernels/x86_avx2/table.cc": '#include "core/kernels/kernels.h"\n#include <immintrin.h>\n',
    "core/formats/ort/ort_loader.cc": "#include <flatbuffers/flatbuffers.h>\n",
    "core/prepack/fpack_index.cc": '#include "flatbuffers/flatbuffers.h"\n',
    "core/prepack/pack_request.h": "// What an operator asks for.\n",
    "core/ops/add.cc": '#include "core/prepack/pack_request.h"\n// TODO(#7): later.\n',
    "c_api/include/folio/folio_c_api.h": "/* The C ABI. */\n",
    "c_api/api_table.cc": '#include "folio/folio_c_api.h"\n',
    "tools/folio/main.cc": '#include "folio/folio_c_api.h"\n#include <CLI/CLI.hpp>\n',
    "tests/base/status_test.cc": '#include "core/base/status.h"\n#include <gtest/gtest.h>\n',
}


def function(lines):
    return "int f(int x) {\n" + "  ++x;\n" * (lines - 3) + "  return x;\n}\n"


class TidyTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        self.write("tools/layers.txt", (ROOT / "tools/layers.txt").read_text())
        for path, text in GOOD.items():
            self.write(path, text)

    def write(self, path, text):
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text)

    def tidy(self, *options):
        command = [sys.executable, "-B", str(ROOT / "tools/tidy.py"), "--root", str(self.root)]
        result = subprocess.run(command + ["--json", *options], capture_output=True, text=True)
        report = json.loads(result.stdout)
        self.assertEqual(result.returncode, 1 if report["findings"] else 0, result.stderr)
        return report

    def findings(self, *options):
        return [(f["check"], f["path"], f["line"]) for f in self.tidy(*options)["findings"]]

    def expect(self, check, path, text, line=1):
        """The tree with this one file is found bad for this one reason, there."""
        self.write(path, text)
        self.assertEqual(self.findings(), [(check, path, line)])

    def expect_good(self, path, text):
        self.write(path, text)
        self.assertEqual(self.findings(), [])


class Includes(TidyTest):
    def test_good_tree_has_no_findings(self):
        self.assertEqual(self.findings(), [])

    def test_room_above_is_forbidden(self):
        self.expect("layers", "core/base/x.cc", '\n#include "core/os/file.cc"\n', 2)

    def test_file_that_is_not_listed_is_forbidden(self):
        self.write("core/prepack/packed_cache.h", "// Cache.\n")
        self.expect("layers", "core/ops/mul.cc", '#include "core/prepack/packed_cache.h"\n')

    def test_cpu_bits_are_for_select_only(self):
        self.expect("layers", "core/kernels/other.cc", '#include "core/base/cpu_bits.h"\n')

    def test_command_may_not_look_into_core(self):
        self.expect("layers", "tools/folio/x.cc", '#include "core/base/status.h"\n')

    def test_core_may_not_see_the_c_api(self):
        self.expect("layers", "core/base/x.cc", "#include <folio/folio_c_api.h>\n")

    def test_nobody_includes_tests(self):
        self.write("tests/support/x.h", "// Support.\n")
        self.expect("layers", "tools/bench.cc", '#include "tests/support/x.h"\n')

    def test_path_is_written_from_the_root(self):
        self.expect("layers", "core/base/x.cc", '#include "status.h"\n')

    def test_room_without_a_line_is_found(self):
        self.expect("layers", "core/util/x.cc", "\n")

    def test_flatbuffers_stays_in_ort_and_fpack(self):
        text = '#include "flatbuffers/flatbuffers.h"\n'
        self.expect_good("core/formats/ort/x.cc", text)
        self.expect("third-party", "core/prepack/packed_cache.cc", text)

    def test_gtest_stays_in_tests(self):
        self.expect("third-party", "core/base/x.cc", "#include <gtest/gtest.h>\n")


class Links(TidyTest):
    def test_what_is_there_is_good(self):
        self.write("docs/b.md", "# A page\n## Two `words`, or more\n## Again\n## Again\n")
        self.expect_good("docs/a.md", "[b](b.md) [two](b.md#two-words-or-more) [again](b.md#again-1) [`c`](../core)\n"
                         "# Here\n[here](#here) [web](https://nowhere.example/x.md) `[no](link.md)`\n```\n[no](l)\n```\n")

    def test_a_file_that_is_not_there(self):
        self.expect("link", "docs/a.md", "text\n[b](b.md)\n", 2)

    def test_a_heading_that_is_not_there(self):
        self.write("docs/b.md", "# A page\n")
        self.expect("link", "core/README.md", "[b](../docs/b.md#another)\n")

    def test_a_page_at_the_root(self):
        self.expect("link", "README.md", "![picture](docs/none.svg)\n")

    def test_a_link_that_is_code(self):
        self.expect("link", "README.md", "[`code`](docs/none.md)\n")


class IsaFolders(TidyTest):
    def test_std_header_is_found(self):
        self.expect("isa-std", "core/kernels/x86_avx2/x.cc", "#include <math.h>\n#include <algorithm>\n", 2)

    def test_std_header_behind_another_header_is_found(self):
        self.write("core/kernels/vec.h", "// Vectors.\n#include <cstdint>\n")
        self.expect("isa-std", "core/kernels/x86_avx2/x.cc", '\n#include "core/kernels/vec.h"\n', 2)

    def compile_avx2(self, text):
        source = self.root / "core/kernels/x86_avx2/table.cc"
        source.write_text(text)
        folder = self.root / "build/CMakeFiles/folio_isa_x86_avx2.dir/core"
        folder.mkdir(parents=True)
        subprocess.run([CXX, "-O0", "-c", str(source), "-o", str(folder / "table.cc.o")], check=True)

    def test_weak_symbol_is_found(self):
        self.compile_avx2("template <class T> T twice(T x) { return x + x; }\nint f(int x) { return twice(x); }\n")
        self.assertEqual(self.findings("--build", str(self.root / "build")),
                         [("weak-symbol", "core/kernels/x86_avx2", 1)])

    def test_internal_linkage_is_good(self):
        self.compile_avx2("template <class T> static T twice(T x) { return x + x; }\nint f(int x) { return twice(x); }\n")
        self.assertEqual(self.findings("--build", str(self.root / "build")), [])

    def test_missing_objects_are_found(self):
        self.assertEqual(self.findings("--build", str(self.root / "build")),
                         [("weak-symbol", "core/kernels/x86_avx2", 1)])


class StdHeaders(TidyTest):
    def test_name_without_its_header_is_found(self):
        self.expect("std-header", "core/base/x.cc", "#include <vector>\nauto f() { return std::sort; }\n", 2)

    def test_our_header_may_bring_it(self):
        self.expect_good("core/base/x.cc", '#include "core/base/status.h"\nstd::string f();\n')

    def test_any_of_its_headers_is_right(self):
        for header in ("cmath", "complex", "cstdlib"):
            self.expect_good("core/base/x.cc", f"#include <{header}>\nauto f() {{ return std::abs(-1); }}\n")

    def test_names_in_comments_and_text_do_not_count(self):
        self.expect_good("core/base/x.cc", '// std::sort\nconst char* s = "std::map";\n')


class Sizes(TidyTest):
    def test_file_limit(self):
        self.expect_good("core/base/x.cc", "\n" * 800)
        self.expect("file-size", "core/base/x.cc", "\n" * 801, 801)

    def test_generated_file_has_no_limit(self):
        self.expect_good("core/base/x.h", "// automatically generated by a tool\n" + "\n" * 900 + function(90))

    def test_function_limit(self):
        self.expect_good("core/base/x.cc", function(70))
        self.expect("function-size", "core/base/x.cc", "\n" + function(71), 2)

    def test_kernel_bodies_have_no_limit(self):
        self.expect_good("core/kernels/x86_avx2/x.cc", function(90))

    def test_python_function_limit(self):
        self.expect("function-size", "tools/x.py", "def f():\n" + "    pass\n" * 71)

    def test_member_after_brace_initializers_is_found(self):
        text = ("namespace folio {\nclass X final : public Y<void()> {\n public:\n  enum class E { kA };\n"
                "  X(int a, O o = {}) : a_{a}, b_({1, 2}) {\n" + "    ++a;\n" * 70 + "  }\n  int a_{3};\n};\n}\n")
        self.expect("function-size", "core/base/x.cc", text, 5)

    def test_braces_in_text_do_not_count(self):
        noise = "  // }}}\n  s = \"}\";\n  c = '}';\n  r = R\"x(\n}}})x\";\n  n = 1'000'000;\n#define A }\n"
        text = "void f() {\n" + noise * 10 + "}\n"
        self.expect("function-size", "core/base/x.cc", text)

    def test_tables_and_classes_are_no_functions(self):
        rows = "    {1, f(2)},\n" * 90
        self.expect_good("core/base/x.cc", "const Row kRows[] = {\n" + rows + "};\n")
        self.expect_good("core/base/x.cc", "struct alignas(64) S {\n" + "  int a(int b);\n" * 90 + "};\n")

    def test_numbers_count_functions_one_by_one(self):
        self.write("core/base/x.cc", function(10) + function(20) + 'extern "C" {\n' + function(30) + "}\n")
        code = self.tidy()["summary"]["code"]
        self.assertEqual((code["functions"], code["function_median"], code["function_max"]), (3, 20, 30))
        self.assertEqual(code["file_max"], 62)


class Text(TidyTest):
    def test_unfinished_work_needs_an_issue(self):
        self.expect("words", "core/base/x.cc", f"\n// {UNFINISHED}: later\n", 2)

    def test_other_marks_are_never_right(self):
        for word in ("FIX" + "ME(#1)", "XX" + "X"):
            self.expect("words", "core/base/x.cc", f"// {word}\n")

    def test_mkstemp_template_is_no_mark(self):
        self.expect_good("core/base/x.cc", 'const char kName[] = "folio-XXXXXX";\n')

    def test_header_starts_with_a_comment(self):
        self.expect("header-comment", "core/base/x.h", "#pragma once\n// Too late.\n")


if __name__ == "__main__":
    skipping.main()
