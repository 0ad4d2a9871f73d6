"""The jar and the NuGet package, each in an empty folder, run a program that knows nothing of this tree.

The program is the speech sample where FOLIO_TEST_MODELS has silero_vad_v5 (its timeline must be the same from every
package), else samples that run make_model's models. On CoreCLR: dotnet_test.py. The Debian packages: deb_test.py.
"""

import json
import re
import shutil
import subprocess
import sys
import unittest
import zipfile
from pathlib import Path

import package_support
from package_support import BUILD, MODELS, PACKAGES, PROGRAM_CS, ROOT, SPEECH, environment, one, run

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
import skipping
from page_links import dead_links


def feature_version(java):
    """17 of "17.0.13", 25 of "25"; 0 where it does not start."""
    done = subprocess.run([str(java), "-version"], capture_output=True, text=True, check=False)
    found = re.search(r'version "(\d+)', done.stderr)
    return int(found.group(1)) if found else 0


@unittest.skipUnless(shutil.which("javac") and (PACKAGES / "maven").is_dir(), "no jar was made")
class Jar(package_support.Packages):
    PROGRAM = """\
import dev.foliort.*;
public class Program {
    public static void main(String[] arguments) {
        try (Model model = Model.open(arguments[0]); Session session = model.session()) {
            System.out.println(session.inputs());
        }
    }
}
"""

    TWICE = """\
import dev.foliort.*;
public class Program {
    public static void main(String[] arguments) {
        try { Model.open(arguments[0]); } catch (LinkageError e) { System.out.println(e); }
        try { Tensor.allocate(ElementType.FLOAT, 1); } catch (LinkageError e) { System.out.println(e); }
    }
}
"""

    def setUp(self):
        super().setUp()
        self.jar = shutil.copy(one("maven/dev/foliort/folio/*/folio-*[0-9].jar"), self.work / "folio.jar")
        (self.work / "Program.java").write_text(self.PROGRAM)
        run("javac", "-cp", self.jar, "-d", self.work, self.work / "Program.java")

    def program(self, *options, prefix=(), status=0, **variables):
        return run(*prefix, "java", *options, "-cp", f"{self.jar}:{self.work}", "Program", MODELS / "mlp.onnx",
                   status=status, env=environment(**variables))

    def test_the_jar_alone_is_enough_and_leaves_nothing_behind(self):
        temporary = self.work / "temporary"
        temporary.mkdir()
        self.assertIn("x FLOAT[-1, 32]", self.program(f"-Djava.io.tmpdir={temporary}"))
        self.assertEqual(list(temporary.glob("folio-*")), [])

    def test_the_speech_sample_runs(self):
        if not SPEECH.is_file():
            self.skipTest("FOLIO_TEST_MODELS has no silero_vad_v5")
        run("javac", "-cp", self.jar, "-d", self.work, ROOT / "samples/java/SpeechTimeline.java")
        self.same_timeline(run("java", "-cp", f"{self.jar}:{self.work}", "SpeechTimeline", SPEECH, self.wav,
                               env=environment()))

    def test_a_temporary_folder_that_cannot_be_written_is_passed_over(self):
        self.assertIn("FLOAT", self.program("-Djava.io.tmpdir=/proc/none"))

    def test_a_temporary_folder_without_programs_is_passed_over(self):
        folder = self.work / "noexec"
        folder.mkdir()
        script = f'mount -t tmpfs -o noexec none {folder} && exec "$@"'
        prefix = ("unshare", "-rm", "bash", "-c", script, "bash")
        if subprocess.run([*prefix, "true"], capture_output=True, check=False).returncode != 0:
            self.skipTest("this user may not mount")
        self.assertIn("FLOAT", self.program(f"-Djava.io.tmpdir={folder}", prefix=prefix))

    def test_a_folder_that_is_named_is_the_only_one(self):
        self.assertIn("FLOAT", self.program(f"-Dfolio.native.path={BUILD / 'bundle'}", "-Djava.io.tmpdir=/proc/none"))
        self.assertIn("FLOAT", self.program(FOLIO_NATIVE_PATH=str(BUILD / "bundle")))
        for how, said in (({"options": ["-Dfolio.native.path=/nowhere"]}, "-Dfolio.native.path names"),
                          ({"variables": {"FOLIO_NATIVE_PATH": "/nowhere"}}, "variable FOLIO_NATIVE_PATH names")):
            with self.subTest(how=how):
                error = self.program(*how.get("options", ()), status=1, **how.get("variables", {}))
                self.assertIn("UnsatisfiedLinkError: /nowhere/libfolio_jni.so does not exist; ", error)
                self.assertIn(said, error)

    def test_a_library_that_is_nowhere_is_an_error_that_says_what_to_do(self):
        self.jar.unlink()
        shutil.copy(BUILD / "lib/folio.jar", self.jar)  # without a native part
        error = self.program(status=1)
        self.assertIn(f"libfolio_jni.so is neither beside the jar (in {self.work}) nor in the jar, ", error)
        for part in ("no folio_jni in java.library.path: /", "-Dfolio.native.path=FOLDER", "FOLIO_NATIVE_PATH",
                     "dev.foliort:folio", "libfolio-java"):
            self.assertIn(part, error)
        (self.work / "Program.java").write_text(self.TWICE)
        run("javac", "-cp", self.jar, "-d", self.work, self.work / "Program.java")
        first, second = self.program().splitlines()
        self.assertIn("FOLIO_NATIVE_PATH", first)
        self.assertEqual(second, first, "of another class, later")

    def test_jdk_24_and_later_have_nothing_to_warn_of_when_native_access_is_allowed(self):
        javas = [java for java in Path("/usr/lib/jvm").glob("*/bin/java") if feature_version(java) >= 24]
        if not javas:
            self.skipTest("no JDK 24 or later is installed")
        model = str(MODELS / "mlp.onnx")
        for java in javas:
            for options, is_quiet in (
                    (["--enable-native-access=ALL-UNNAMED", "-cp", f"{self.jar}:{self.work}", "Program"], True),
                    (["--enable-native-access=dev.foliort", "-p", str(self.jar), "--add-modules", "dev.foliort", "-cp",
                      str(self.work), "Program"], True),
                    (["-cp", f"{self.jar}:{self.work}", "Program"], False)):
                done = subprocess.run([str(java), *options, model], capture_output=True, text=True, check=False,
                                      env=environment())
                self.assertIn("x FLOAT[-1, 32]", done.stdout, done.stderr)
                self.assertEqual("restricted" not in done.stderr, is_quiet, done.stderr)

    def test_graalvm_is_told_of_all_that_native_code_looks_up(self):
        native = (ROOT / "bindings/jni_support.h").read_text()
        classes = set(re.findall(r'find_class\(env, "([\w/]+)"\)', native))
        methods = set(re.findall(r'GetStaticMethodID\(\w+,\s*"(\w+)"', native))
        config = json.loads((ROOT / "java/meta/jni-config.json").read_text())
        self.assertEqual({entry["name"].replace(".", "/") for entry in config}, classes)
        self.assertEqual({method["name"] for entry in config for method in entry["methods"]}, methods)

    def test_sources_documentation_pom_and_hints_are_there(self):
        sources = zipfile.ZipFile(one("maven/dev/foliort/folio/*/*-sources.jar")).namelist()
        self.assertIn("dev/foliort/Session.java", sources)
        pages = zipfile.ZipFile(one("maven/dev/foliort/folio/*/*-javadoc.jar")).namelist()
        self.assertIn("dev/foliort/Session.html", pages)
        self.assertEqual([p for p in pages if "/Native" in p], [])
        self.assertIn("<artifactId>folio</artifactId>", one("maven/dev/foliort/folio/*/*.pom").read_text())
        jar = zipfile.ZipFile(self.jar)
        self.assertIn("META-INF/native-image/dev.foliort/folio/jni-config.json", jar.namelist())
        self.assertIn("META-INF/LICENSE", jar.namelist())
        self.assertIn("Automatic-Module-Name: dev.foliort", jar.read("META-INF/MANIFEST.MF").decode())


@unittest.skipUnless(any(PACKAGES.glob("*.nupkg")), "no NuGet package was made")
class NuGet(package_support.Packages):
    def setUp(self):
        super().setUp()
        self.package = one("FolioRuntime.*.nupkg")
        zipfile.ZipFile(self.package).extractall(self.work / "package")

    def test_the_package_has_its_parts(self):
        names = set(zipfile.ZipFile(self.package).namelist())
        self.assertLessEqual({"[Content_Types].xml", "_rels/.rels", "FolioRuntime.nuspec", "README.md", "LICENSE",
                              "lib/net472/FolioRuntime.dll", "lib/net472/FolioRuntime.xml",
                              "runtimes/linux-x64/native/libfolio.so.1", "runtimes/linux-x64/native/libfolio_csharp.so",
                              "build/net472/FolioRuntime.targets"}, names)

    def test_its_page_has_no_link_to_pages_that_it_lacks(self):
        self.assertEqual(list(dead_links(self.work / "package/README.md")), [])

    def test_a_program_on_mono_runs(self):
        """As the .targets lay it out: the native part beside the program."""
        if not shutil.which("mcs"):
            self.skipTest("mono is not installed")
        program = self.work / "program"
        program.mkdir()
        shutil.copy(self.work / "package/lib/net472/FolioRuntime.dll", program)
        for native in (self.work / "package/runtimes/linux-x64/native").iterdir():
            shutil.copy(native, program)
        self.check_program(["mono", self.compiled(program, PROGRAM_CS), MODELS / "mlp.onnx"])
        if SPEECH.is_file():
            speech = self.compiled(program, (ROOT / "samples/csharp/SpeechTimeline.cs").read_text())
            self.same_timeline(run("mono", speech, SPEECH, self.wav, env=environment()))
        (program / "libfolio_csharp.so").unlink()
        command = ["mono", self.compiled(program, PROGRAM_CS), MODELS / "mlp.onnx"]
        self.check_program(command, FOLIO_NATIVE_PATH=str(self.work / "package/runtimes/linux-x64/native"))
        error = run(*command, status=1, env=environment())
        self.assertIn(f"libfolio_csharp.so is not in {program}, {program}/runtimes/linux-x64/native, and the system says: "
                      "libfolio_csharp.so: cannot open shared object file", error)
        for part in ("FOLIO_NATIVE_PATH", "folio.native.path", "NuGet package FolioRuntime", "libfolio-cil"):
            self.assertIn(part, error)
        error = run(*command, status=1, env=environment(FOLIO_NATIVE_PATH="/nowhere"))
        self.assertIn("/nowhere/libfolio_csharp.so does not exist; the environment variable FOLIO_NATIVE_PATH names", error)

    def compiled(self, folder, text):
        (folder / "Program.cs").write_text(text)
        run("mcs", "-nologo", f"-out:{folder}/Program.exe", f"-reference:{folder}/FolioRuntime.dll", folder / "Program.cs")
        return folder / "Program.exe"

    def check_program(self, command, **variables):
        self.assertIn("x Float[-1, 32]", run(*command, env=environment(**variables)))


if __name__ == "__main__":
    skipping.main()
