"""The Debian packages, installed by dpkg into a root of their own, serve programs that know nothing of this tree.

dpkg needs no rights for that. What is not ours (libc6 ...) is not in the root: those dependencies are left out, ours are
checked. The programs are built in an empty folder, by CMake's find_package and by pkg-config.
"""

import gzip
import os
import re
import shutil
import sys
import tempfile
import unittest
from pathlib import Path

import package_support
from package_support import BUILD, MODELS, PACKAGES, ROOT, SPEECH, environment, run

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
import skipping
from page_links import dead_links

CMAKE = os.environ.get("CMAKE", "cmake")
# What lintian says of packages that are not made for Debian's own archive.
LINTIAN_EXCEPTIONS = {"initial-upload-closes-no-bugs": "no bug report asked Debian for them"}
# What Debian's packaging says; its first line is "folio (VERSION) ...".
CHANGELOG = (ROOT / "cmake/debian/changelog").read_text()
VERSION = CHANGELOG.partition("(")[2].partition(")")[0]
CC, CXX = os.environ.get("CC", "cc"), os.environ.get("CXX", "c++")
DPKG = ("dpkg", "--force-not-root", "--force-script-chrootless", "--force-bad-path")
PROJECT = """\
cmake_minimum_required(VERSION 3.16)
project(consumer LANGUAGES C CXX)
find_package(folio 0.1 CONFIG REQUIRED)
foreach(program speech_timeline.c run_model.cpp)
  cmake_path(GET program STEM name)
  add_executable(${name} ${program})
  target_link_libraries(${name} PRIVATE folio::folio ${CMAKE_DL_LIBS})
endforeach()
"""


def debs():
    return {path.name.split("_")[0]: path for path in sorted(PACKAGES.glob("*.deb"))}


def fields(package):
    lines = run("dpkg-deb", "-f", package).splitlines()
    return dict(line.split(": ", 1) for line in lines if line and not line.startswith(" "))


def dependencies(package):
    return re.findall(r"([a-z0-9.+-]+)(?: \(([^)]*)\))?", fields(package).get("Depends", ""))


@unittest.skipUnless(shutil.which("dpkg") and debs(), "no Debian packages were made")
class Installed(package_support.Packages):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.base = Path(folder.name)
        cls.root = cls.base / "root"
        for name in ("info", "updates", "triggers"):
            (cls.root / "var/lib/dpkg" / name).mkdir(parents=True)
        (cls.root / "var/lib/dpkg/status").touch()
        foreign = {name for deb in debs().values() for name, _ in dependencies(deb)} - set(debs())
        cls.dpkg("--ignore-depends=" + ",".join(sorted(foreign)), "-i", *debs().values())

    @classmethod
    def dpkg(cls, *arguments, status=0):
        path = f"{os.environ['PATH']}:/usr/sbin:/sbin"
        return run(*DPKG, f"--root={cls.root}", *arguments, status=status, env=environment(PATH=path))

    def setUp(self):
        super().setUp()
        self.usr = self.root / "usr"
        (library,) = self.usr.rglob("libfolio.so.1")
        self.lib = library.parent
        self.found = environment(LD_LIBRARY_PATH=str(self.lib))


class Programs(Installed):
    def consumer(self):
        """An empty folder with two programs' sources, nothing else."""
        folder = self.work / "consumer"
        folder.mkdir()
        shutil.copy(ROOT / "samples/c/speech_timeline.c", folder)
        shutil.copy(ROOT / "samples/cpp/run_model.cpp", folder)
        return folder

    def check_programs(self, folder):
        needed = run("readelf", "-d", folder / "run_model")
        self.assertIn("libfolio.so.1", needed)
        self.assertIn("y", run(folder / "run_model", MODELS / "mlp.onnx", env=self.found))
        if SPEECH.is_file():
            self.same_timeline(run(folder / "speech_timeline", SPEECH, self.wav, env=self.found))
        else:
            run(folder / "speech_timeline", MODELS / "none.onnx", self.wav, status=3, env=self.found)

    def test_a_project_of_cmake_finds_builds_and_runs(self):
        folder = self.consumer()
        (folder / "CMakeLists.txt").write_text(PROJECT)
        build = self.work / "build"
        run(CMAKE, "-S", folder, "-B", build, f"-DCMAKE_PREFIX_PATH={self.usr}", "-DCMAKE_BUILD_TYPE=Release", env=environment())
        run(CMAKE, "--build", build, env=environment())
        self.check_programs(build)

    def test_another_major_version_is_not_found(self):
        folder = self.consumer()
        (folder / "CMakeLists.txt").write_text(PROJECT.replace("folio 0.1", "folio 1.0"))
        run(CMAKE, "-S", folder, "-B", self.work / "build", f"-DCMAKE_PREFIX_PATH={self.usr}", status=1, env=environment())

    @unittest.skipUnless(shutil.which("pkg-config"), "pkg-config is not installed")
    def test_programs_build_and_run_by_pkg_config(self):
        folder = self.consumer()
        lookup = environment(PKG_CONFIG_LIBDIR=str(self.lib / "pkgconfig"))
        flags = run("pkg-config", "--cflags", "--libs", "folio", env=lookup).split()
        self.assertEqual([os.path.normpath(f[2:]) for f in flags if f.startswith("-I")], [f"{self.usr}/include"])
        run(CC, "-std=c99", folder / "speech_timeline.c", *flags, "-ldl", "-o", folder / "speech_timeline")
        run(CXX, "-std=c++17", folder / "run_model.cpp", *flags, "-o", folder / "run_model")
        self.check_programs(folder)
        self.assertEqual(run("pkg-config", "--modversion", "folio", env=lookup).strip(), VERSION.partition("-")[0])

    def test_all_samples_build(self):
        build = self.work / "build"
        run(CMAKE, "-S", ROOT / "samples", "-B", build, f"-DCMAKE_PREFIX_PATH={self.usr}", "-DCMAKE_BUILD_TYPE=Release",
            env=environment())
        run(CMAKE, "--build", build, env=environment())
        self.assertIn("y", run(build / "run_model_cpp", MODELS / "mlp.onnx", env=self.found))

    def test_the_command_runs(self):
        self.assertIn("MatMul", run(self.usr / "bin/folio", "inspect", MODELS / "mlp.onnx", env=self.found))

    def test_jar_and_assembly_of_the_packages_run(self):
        if not SPEECH.is_file():
            self.skipTest("FOLIO_TEST_MODELS has no silero_vad_v5")
        if "libfolio-java" in debs():
            (jar,) = self.usr.rglob("folio.jar")
            run("javac", "-cp", jar, "-d", self.work, ROOT / "samples/java/SpeechTimeline.java")
            self.same_timeline(run("java", "-cp", f"{jar}:{self.work}", "SpeechTimeline", SPEECH, self.wav, env=self.found))
        if "libfolio-cil" in debs():
            (assembly,) = self.usr.rglob("FolioRuntime.dll")
            program = self.work / "SpeechTimeline.exe"
            run("mcs", "-nologo", f"-out:{program}", f"-reference:{assembly}", ROOT / "samples/csharp/SpeechTimeline.cs")
            self.same_timeline(run("mono", program, SPEECH, self.wav, env=dict(self.found, MONO_PATH=str(assembly.parent))))


class Control(Installed):
    def test_all_are_installed_and_whole(self):
        states = run("dpkg-query", f"--root={self.root}", "-W", "-f=${Package} ${db:Status-Status}\\n").split()
        self.assertEqual(dict(zip(states[::2], states[1::2])), {name: "installed" for name in debs()})
        self.assertEqual(self.dpkg("--verify"), "")

    def test_none_has_a_file_of_another(self):
        files = [f for name in debs() for f in run("dpkg-query", f"--root={self.root}", "-L", name).splitlines()
                 if not (self.root / f.lstrip("/")).is_dir()]
        self.assertEqual(sorted(files), sorted(set(files)))
        self.assertTrue({"/usr/include/folio/folio.hpp", "/usr/bin/folio"} <= set(files), files)

    def test_the_library_cannot_go_before_those_that_need_it(self):
        self.dpkg("-r", "libfolio1", status=1)
        self.assertTrue((self.lib / "libfolio.so.1").exists())

    def test_what_they_say_of_themselves(self):
        names = debs()
        self.assertLessEqual({"libfolio1", "libfolio-dev"}, set(names))
        summaries = set()
        for name, deb in names.items():
            told = fields(deb)
            self.assertEqual((told["Package"], told["Architecture"]), (name, "amd64"))
            self.assertEqual(told["Version"], VERSION)
            self.assertTrue(int(told["Installed-Size"]) > 0 and told["Maintainer"] and told["Section"])
            summaries.add(run("dpkg-deb", "-f", deb, "Description"))
            ours = {other: version for other, version in dependencies(deb) if other in names}
            self.assertEqual(ours, {} if name in ("libfolio1", "libfolio-onnxruntime")
                             else {"libfolio1": f"= {told['Version']}"}, name)
            control = self.work / name
            run("dpkg-deb", "-e", deb, control)
            self.assertTrue((control / "md5sums").read_text(), name)
            self.assertEqual([path.name for path in control.glob("p*")], [], f"{name} has scripts that dpkg's triggers spare it")
        self.assertEqual(len(summaries), len(names), "two packages say the same of themselves")
        runtime = dict(dependencies(names["libfolio1"]))
        self.assertRegex(runtime["libc6"], r">= 2\.")
        self.assertIn("libstdc++6", runtime)
        self.assertIn("libfolio 1 libfolio1", (self.work / "libfolio1/shlibs").read_text())
        self.assertEqual((self.work / "libfolio1/triggers").read_text(), "activate-noawait ldconfig\n")


    def test_they_ask_for_a_glibc_that_reads_their_relocations(self):
        """Packed ones (cmake/library.cmake) take 2.36, which no symbol tells."""
        for name, deb in debs().items():
            files = [self.root / line.lstrip("/") for line in run("dpkg-query", f"--root={self.root}", "-L", name).splitlines()]
            binaries = [f for f in files if f.is_file() and not f.is_symlink() and f.read_bytes()[:4] == b"\x7fELF"]
            if any("GLIBC_ABI_DT_RELR" in run("readelf", "-VW", binary) for binary in binaries):
                version = dict(dependencies(deb))["libc6"].removeprefix(">= ")
                self.assertGreaterEqual([int(part) for part in version.split(".")], [2, 36], name)


class Policy(Installed):
    """What Debian's policy wants in each package."""

    def doc(self, package, name):
        return self.usr / "share/doc" / package / name

    def test_each_says_whose_it_is_and_what_changed(self):
        for name in debs():
            text = self.doc(name, "copyright").read_text()
            for part in ("Copyright 2026", "/usr/share/common-licenses/Apache-2.0", "FlatBuffers", "xxHash", "Yann Collet"):
                self.assertIn(part, text, name)
            self.assertNotIn("TERMS AND CONDITIONS FOR USE", text, "the licence's text is common to all packages")
            for changes, source in (("changelog.Debian.gz", "cmake/debian/changelog"), ("changelog.gz", "CHANGELOG.md")):
                packed = self.doc(name, changes).read_bytes()
                text = (ROOT / source).read_text().replace("](docs/", "](../folio/")  # where the pages are
                self.assertEqual(gzip.decompress(packed).decode(), text, name)
                self.assertEqual(packed[3:9], b"\0\0\0\0\0\2", f"{name}: a name or a time in it, or not of level 9")

    def test_the_command_has_a_page_that_names_every_command(self):
        page = gzip.decompress((self.usr / "share/man/man1/folio.1.gz").read_bytes()).decode()
        self.assertIn(f'"folio {VERSION.partition("-")[0]}"', page)
        told = re.findall(r"^\.B (\w+)\n(.*)$", page.partition(".SH COMMANDS")[2], re.M)
        listed = run(self.usr / "bin/folio", "--help", env=self.found).partition("Subcommands:\n")[2].partition("\n\n")[0]
        self.assertEqual([one for one in told if one[0].islower()], re.findall(r"^  (\w+) +(.*)$", listed, re.M))

    def test_the_folders_that_the_documentation_names_are_there(self):
        for page in ("dropin", "java", "csharp"):
            for place in re.findall(r"/usr/lib/[\w./-]*folio[\w./-]*\w", (ROOT / f"docs/{page}.md").read_text()):
                self.assertTrue((self.root / place.lstrip("/")).exists(), f"docs/{page}.md: {place}")

    def test_the_pages_that_headers_and_messages_name_are_there(self):
        folder = self.usr / "share/doc/folio"
        headers = "".join(path.read_text() for path in (self.usr / "include/folio").iterdir())
        said = headers + run(self.usr / "bin/folio", "run", "--help", env=self.found)
        named = set(re.findall(r"docs/(\w+\.md)", said))
        self.assertIn("config_keys.md", named)
        self.assertEqual(sorted(name for name in named if not (folder / name).exists()), [])
        dead = [(str(page), *what) for page in self.usr.rglob("share/doc/**/*.md") for what in dead_links(page)]
        self.assertEqual(dead, [])

    @unittest.skipUnless("libfolio-cil" in debs(), "C# was left out of this build")
    def test_the_assembly_has_its_documentation_beside_it(self):
        (assembly,) = self.usr.rglob("FolioRuntime.dll")
        told = assembly.with_suffix(".xml").read_text()
        self.assertIn('<member name="M:FolioRuntime.Session.Close(FolioRuntime.CloseMode)">', told)

    @unittest.skipUnless(shutil.which("lintian"), "lintian is not installed")
    def test_lintian_has_nothing_to_say(self):
        said = run("lintian", "--allow-root", "--fail-on", "none", *debs().values(), env=environment()).splitlines()
        left = [line for line in said if line.split(": ")[-1].split()[0] not in LINTIAN_EXCEPTIONS]
        self.assertEqual(left, [])


class Removed(Installed):
    def test_nothing_stays_behind(self):
        self.dpkg("-P", *debs())
        left = [path for path in self.root.rglob("*") if not path.is_dir() and "var/lib/dpkg" not in str(path)]
        self.assertEqual(left, [])


if __name__ == "__main__":
    skipping.main()
