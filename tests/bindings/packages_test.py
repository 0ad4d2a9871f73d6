"""Each package, installed into an empty folder, runs a program that knows nothing of this tree.

The program is the speech sample where FOLIO_TEST_MODELS has silero_vad_v5 (its timeline must be the same from every
package), else samples that run make_model's models. The .NET SDK's part needs FOLIO_DOTNET_SDK (docs/csharp.md).
"""

import array
import math
import os
import random
import shutil
import subprocess
import sys
import tempfile
import unittest
import wave
import zipfile
from pathlib import Path

ROOT = Path(os.environ["FOLIO_TESTS_DIR"]).parent
BUILD = Path(os.environ["FOLIO_BINARY_DIR"])
CMAKE = os.environ.get("CMAKE", "cmake")
PACKAGES = BUILD / "packages"
MODELS = BUILD / "bindings/models"
SPEECH = Path(os.environ.get("FOLIO_TEST_MODELS") or "/nowhere") / "silero_vad_v5/model.onnx"
SDK = Path(os.environ.get("FOLIO_DOTNET_SDK") or "/nowhere")


def run(*command, status=0, **options):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, **options)
    if done.returncode != status:
        raise AssertionError(f"{' '.join(map(str, command))} returned {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def environment(**variables):
    clean = {k: v for k, v in os.environ.items() if not k.startswith("FOLIO_")}
    return dict(clean, LC_ALL="C.UTF-8", **variables)


def write_recording(path):
    """Noise that swells three times: not speech, but every package must make the same of it."""
    noise = random.Random(1)
    samples = array.array("h", (int(noise.uniform(-1, 1) * 9000 * max(0, math.sin(i / 8000)) ** 2 * (1 + math.sin(i / 7)))
                                for i in range(16000 * 4)))
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(16000)
        file.writeframes(samples.tobytes())


def timeline(output):
    return output.splitlines()[1:]  # the first line says how long it took


def one(pattern):
    (found,) = PACKAGES.glob(pattern)
    return found


class Packages(unittest.TestCase):
    expected = None

    def setUp(self):
        if not (BUILD / "bundle").is_dir() or not PACKAGES.is_dir():
            self.skipTest("packages were left out of this build")
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.work = Path(folder.name)
        self.wav = self.work / "recording.wav"
        if SPEECH.is_file():
            write_recording(self.wav)
        else:
            print("note: FOLIO_TEST_MODELS has no silero_vad_v5: other programs are run instead", file=sys.stderr)

    def same_timeline(self, output):
        lines = timeline(output)
        self.assertTrue(lines and lines[-1].endswith("segments of speech"), output)
        if Packages.expected is None:
            Packages.expected = timeline(run(BUILD / "bin/speech_timeline", "--library", BUILD / "lib/libfolio.so.1",
                                             SPEECH, self.wav))
        self.assertEqual(lines, Packages.expected)


@unittest.skipUnless(shutil.which("dpkg-deb") and any(PACKAGES.glob("*.deb")), "no Debian packages were made")
class Deb(Packages):
    def setUp(self):
        super().setUp()
        for package in PACKAGES.glob("*.deb"):
            run("dpkg-deb", "-x", package, self.work / "root")
        self.usr = self.work / "root/usr"
        (library,) = self.usr.rglob("libfolio.so.1")
        self.lib = library.parent

    def test_c_and_cxx_samples_build_and_run(self):
        build = self.work / "build"
        run(CMAKE, "-S", ROOT / "samples", "-B", build, f"-DCMAKE_PREFIX_PATH={self.usr}", "-DCMAKE_BUILD_TYPE=Release",
            env=environment())
        run(CMAKE, "--build", build, "--target", "speech_timeline", "run_model_cpp", env=environment())
        found = run(build / "run_model_cpp", MODELS / "mlp.onnx", env=environment(LD_LIBRARY_PATH=str(self.lib)))
        self.assertIn("y", found)
        if SPEECH.is_file():
            self.same_timeline(run(build / "speech_timeline", "--library", self.lib / "libfolio.so.1", SPEECH, self.wav,
                                   env=environment()))

    def test_pkg_config_finds_what_was_installed(self):
        if not shutil.which("pkg-config"):
            self.skipTest("pkg-config is not installed")
        program = self.work / "main.c"
        program.write_text("#include <folio/folio_c_api.h>\nint main(void) { return FolioGetApiBase() == 0; }\n")
        flags = run("pkg-config", "--cflags", "--libs", "folio",
                    env=environment(PKG_CONFIG_PATH=str(self.lib / "pkgconfig"))).split()
        run(os.environ.get("CC", "cc"), program, *flags, "-o", self.work / "main")
        run(self.work / "main", env=environment(LD_LIBRARY_PATH=str(self.lib)))

    def test_the_command_runs(self):
        found = run(self.usr / "bin/folio", "inspect", MODELS / "mlp.onnx", env=environment(LD_LIBRARY_PATH=str(self.lib)))
        self.assertIn("MatMul", found)

    def test_names_and_what_they_depend_on(self):
        names = {p.name.split("_")[0]: p for p in PACKAGES.glob("*.deb")}
        self.assertLessEqual({"libfolio1", "libfolio-dev"}, set(names))
        runtime = run("dpkg-deb", "-f", names["libfolio1"], "Depends")
        self.assertRegex(runtime, r"libc6 \(>= 2\.")
        self.assertIn("libstdc++6", runtime)
        self.assertIn("libfolio1", run("dpkg-deb", "-f", names["libfolio-dev"], "Depends"))
        control = self.work / "control"
        run("dpkg-deb", "-e", names["libfolio1"], control)
        self.assertIn("libfolio 1 libfolio1", (control / "shlibs").read_text())

    def test_jar_and_assembly_of_the_packages_run(self):
        jars = list(self.usr.rglob("folio.jar"))
        if not jars or not SPEECH.is_file():
            self.skipTest("no jar was packed, or there is no speech model")
        run("javac", "-cp", jars[0], "-d", self.work, ROOT / "samples/java/SpeechTimeline.java")
        self.same_timeline(run("java", "-cp", f"{jars[0]}:{self.work}", "SpeechTimeline", SPEECH, self.wav,
                               env=environment()))


@unittest.skipUnless(shutil.which("javac") and (PACKAGES / "maven").is_dir(), "no jar was made")
class Jar(Packages):
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
        self.program("-Dfolio.native.path=/nowhere", status=1)

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
class NuGet(Packages):
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
        run(*command, status=1, env=environment())

    def compiled(self, folder, text):
        (folder / "Program.cs").write_text(text)
        run("mcs", "-nologo", f"-out:{folder}/Program.exe", f"-reference:{folder}/FolioRuntime.dll", folder / "Program.cs")
        return folder / "Program.exe"

    def check_program(self, command, **variables):
        self.assertIn("x Float[-1, 32]", run(*command, env=environment(**variables)))

    @unittest.skipUnless((SDK / "dotnet").is_file(), "FOLIO_DOTNET_SDK names no .NET SDK")
    def test_projects_of_the_sdk_restore_build_and_run(self):
        frameworks = [p.name for p in (self.work / "package/lib").iterdir() if p.name.startswith("netstandard")]
        self.assertEqual(sorted(frameworks), ["netstandard2.0", "netstandard2.1"])
        source = SPEECH.is_file() and ROOT / "samples/csharp/SpeechTimeline.cs"
        arguments = (SPEECH, self.wav) if source else (MODELS / "mlp.onnx",)
        text = source.read_text() if source else PROGRAM_CS
        project = self.work / "consumer"
        project.mkdir()
        (project / "Program.cs").write_text(text)
        (project / "nuget.config").write_text(
            f'<configuration><packageSources><clear/><add key="here" value="{PACKAGES}"/></packageSources></configuration>')
        (project / "consumer.csproj").write_text(PROJECT)
        variables = self.sdk_environment()
        run(SDK / "dotnet", "build", "-c", "Release", "-o", self.work / "out", project, env=variables)
        self.assertTrue(list((self.work / "out").rglob("libfolio_csharp.so")))
        output = run(SDK / "dotnet", "exec", self.work / "out/consumer.dll", *arguments, env=variables)
        if source:
            self.same_timeline(output)
        else:
            self.assertIn("x Float[-1, 32]", output)

    def sdk_environment(self):
        """The SDK looks for OpenSSL 1.1, which Debian 12 lacks: three functions that 3.0 calls otherwise."""
        (self.work / "shim.c").write_text(SHIM)
        run(os.environ.get("CC", "cc"), "-shared", "-fPIC", "-o", self.work / "libssl.so.shim", self.work / "shim.c",
            "-Wl,--no-as-needed", "-l:libssl.so.3", "-l:libcrypto.so.3")
        return environment(DOTNET_SYSTEM_GLOBALIZATION_INVARIANT="1", CLR_OPENSSL_VERSION_OVERRIDE="shim",
                           LD_LIBRARY_PATH=str(self.work), DOTNET_CLI_TELEMETRY_OPTOUT="1", DOTNET_NOLOGO="1",
                           DOTNET_SKIP_FIRST_TIME_EXPERIENCE="1", NUGET_PACKAGES=str(self.work / "cache"),
                           HOME=str(self.work), MSBUILDDISABLENODEREUSE="1")


PROGRAM_CS = """\
using System;
using FolioRuntime;
public static class Program {
    public static void Main(string[] arguments) {
        using (Model model = Model.Open(arguments[0])) Console.WriteLine(model.Inputs[0]);
    }
}
"""
PROJECT = """\
<Project Sdk="Microsoft.NET.Sdk">
  <PropertyGroup>
    <OutputType>Exe</OutputType>
    <TargetFramework>netcoreapp3.1</TargetFramework>
    <RuntimeIdentifier></RuntimeIdentifier>
    <UseAppHost>false</UseAppHost>
  </PropertyGroup>
  <ItemGroup><PackageReference Include="FolioRuntime" Version="*" /></ItemGroup>
</Project>
"""
SHIM = """\
int EVP_MD_get_size(const void*);
void* SSL_get1_peer_certificate(const void*);
int EVP_MD_size(const void* md) { return EVP_MD_get_size(md); }
void* SSL_get_peer_certificate(const void* ssl) { return SSL_get1_peer_certificate(ssl); }
void ERR_put_error(int a, int b, int c, const char* d, int e) { (void)a; (void)b; (void)c; (void)d; (void)e; }
"""


if __name__ == "__main__":
    unittest.main()
