"""The .NET SDK's lane: Roslyn builds the sources, `dotnet pack` makes a package, and projects that restore it, offline and in
an empty folder, run on CoreCLR: the whole NUnit suite, and the speech sample (with CMake's package, too).

Needs FOLIO_DOTNET_SDK, the folder of `dotnet` (docs/csharp.md says where to get one); skipped with a message without it.
"""

import os
import re
import sys
import tempfile
import unittest
import zipfile
from pathlib import Path

import package_support
from package_support import BUILD, MODELS, PACKAGES, PROGRAM_CS, ROOT, SPEECH, environment, one, run

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
import skipping

SDK = Path(os.environ.get("FOLIO_DOTNET_SDK") or "/nowhere")
NUNIT = Path("/usr/lib/cli/nunit.framework-2.6.3/nunit.framework.dll")
ALONE = ("-p:UseSharedCompilation=false",)  # leaves no compiler behind that waits for more
NATIVE = "runtimes/linux-x64/native/"
# The SDK looks for OpenSSL 1.1, which Debian 12 lacks: three functions that 3.0 calls otherwise.
SHIM = """\
int EVP_MD_get_size(const void*);
void* SSL_get1_peer_certificate(const void*);
int EVP_MD_size(const void* md) { return EVP_MD_get_size(md); }
void* SSL_get_peer_certificate(const void* ssl) { return SSL_get1_peer_certificate(ssl); }
void ERR_put_error(int a, int b, int c, const char* d, int e) { (void)a; (void)b; (void)c; (void)d; (void)e; }
"""
PROJECT = """\
<Project Sdk="Microsoft.NET.Sdk">
  <PropertyGroup>
    <OutputType>Exe</OutputType>
    <TargetFramework>netcoreapp3.1</TargetFramework>
    <LangVersion>7.2</LangVersion>
    <AllowUnsafeBlocks>true</AllowUnsafeBlocks>
    <UseAppHost>false</UseAppHost>
    <AutoGenerateBindingRedirects>false</AutoGenerateBindingRedirects>
  </PropertyGroup>
  <ItemGroup>
    <PackageReference Include="FolioRuntime" Version="*" />
    {items}
  </ItemGroup>
  {more}
</Project>
"""


class Dotnet(package_support.Packages):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.base = Path(folder.name)
        (cls.base / "shim.c").write_text(SHIM)
        run(os.environ.get("CC", "cc"), "-shared", "-fPIC", "-o", cls.base / "libssl.so.shim", cls.base / "shim.c",
            "-Wl,--no-as-needed", "-l:libssl.so.3", "-l:libcrypto.so.3")
        cls.made = cls.base / "made"
        version = re.search(r"\bVERSION (\d+\.\d+\.\d+)", (ROOT / "CMakeLists.txt").read_text()).group(1)
        # netstandard2.0 needs packages of nuget.org, which is out of reach: CMake compiles against the SDK's references.
        cls.log = cls.dotnet("pack", ROOT / "csharp/FolioRuntime.csproj", "-c", "Release", f"-p:FolioBuild={BUILD}",
                             f"-p:Version={version}", "-p:TargetFrameworks=netstandard2.1", f"-p:OutputPath={cls.base}/bin/",
                             f"-p:BaseIntermediateOutputPath={cls.base}/obj/", "-p:RestoreSources=", *ALONE, "-o", cls.made)

    @classmethod
    def dotnet(cls, *arguments, **variables):
        return run(SDK / "dotnet", *arguments, env=environment(
            DOTNET_SYSTEM_GLOBALIZATION_INVARIANT="1", CLR_OPENSSL_VERSION_OVERRIDE="shim", LD_LIBRARY_PATH=str(cls.base),
            DOTNET_CLI_TELEMETRY_OPTOUT="1", DOTNET_NOLOGO="1", DOTNET_SKIP_FIRST_TIME_EXPERIENCE="1", HOME=str(cls.base),
            MSBUILDDISABLENODEREUSE="1", **variables))

    def program(self, source, *files, items="", more=""):
        """A project that restores the package of folder `source`: its program, built."""
        project = self.work / "project"
        project.mkdir()
        for file in files:
            (project / Path(file).name).write_bytes(Path(file).read_bytes())
        (project / "nuget.config").write_text(
            f'<configuration><packageSources><clear/><add key="here" value="{source}"/></packageSources></configuration>')
        (project / "program.csproj").write_text(PROJECT.format(items=items, more=more))
        self.dotnet("build", *ALONE, "-c", "Release", "-o", self.work / "out", project, NUGET_PACKAGES=str(self.work / "cache"))
        self.assertTrue(list((self.work / "out").rglob("libfolio_csharp.so")))
        return self.work / "out/program.dll"

    def check_consumer(self, source):
        if SPEECH.is_file():
            program = self.program(source, ROOT / "samples/csharp/SpeechTimeline.cs")
            self.same_timeline(self.dotnet("exec", program, SPEECH, self.wav))
            return
        (self.work / "Program.cs").write_text(PROGRAM_CS)
        program = self.program(source, self.work / "Program.cs")
        self.assertIn("x Float[-1, 32]", self.dotnet("exec", program, MODELS / "mlp.onnx"))

    def test_the_sources_build_without_a_warning(self):
        self.assertIn("FolioRuntime.dll", self.log)
        self.assertNotIn("warning", self.log)

    def test_the_sdks_package_has_what_cmakes_has(self):
        (package,) = self.made.glob("FolioRuntime.*.nupkg")
        ours = zipfile.ZipFile(one("FolioRuntime.*.nupkg"))
        theirs = zipfile.ZipFile(package)
        self.assertEqual(package.name, one("FolioRuntime.*.nupkg").name)
        names = set(theirs.namelist())
        self.assertLessEqual({"FolioRuntime.nuspec", "LICENSE", "lib/netstandard2.1/FolioRuntime.dll",
                              "lib/netstandard2.1/FolioRuntime.xml"}, names)
        natives = {name for name in names if name.startswith("runtimes")}
        self.assertEqual(natives, {NATIVE + "libfolio.so.1", NATIVE + "libfolio_csharp.so"})
        for name in natives:
            self.assertEqual(theirs.read(name), ours.read(name), name)

    def test_its_consumer_runs(self):
        self.check_consumer(self.made)

    def test_the_consumer_of_cmakes_package_runs(self):
        frameworks = {name.split("/")[1] for name in zipfile.ZipFile(one("FolioRuntime.*.nupkg")).namelist()
                      if name.startswith("lib/netstandard")}
        if not frameworks:
            self.skipTest("the build was configured without FOLIO_DOTNET_SDK: its package has no netstandard")
        self.assertEqual(frameworks, {"netstandard2.0", "netstandard2.1"})
        self.check_consumer(PACKAGES)

    def test_the_targets_put_the_native_part_beside_the_program(self):
        """Programs of mono and .NET Framework need that; here a program of CoreCLR takes them over by hand."""
        zipfile.ZipFile(one("FolioRuntime.*.nupkg")).extractall(self.work / "package")
        (self.work / "Program.cs").write_text(PROGRAM_CS)
        self.program(self.made, self.work / "Program.cs",
                     more=f'<Import Project="{self.work}/package/build/net472/FolioRuntime.targets" />')
        for name in ("libfolio.so.1", "libfolio_csharp.so"):
            self.assertEqual((self.work / "out" / name).read_bytes(), (BUILD / "bundle" / name).read_bytes())

    @unittest.skipUnless(NUNIT.is_file(), "nunit is not installed")
    def test_the_nunit_suite_passes_on_coreclr(self):
        program = self.program(self.made, *(ROOT / "csharp/tests").glob("*.cs"),
                               items=f'<Reference Include="nunit.framework"><HintPath>{NUNIT}</HintPath></Reference>')
        output = self.dotnet("exec", program, FOLIO_TEST_MODELS=str(MODELS))
        passed = re.findall(r"^ok (\w+)\.(\w+)", output, flags=re.M)
        written = [test for file in (ROOT / "csharp/tests").glob("*.cs") for test in re.findall(r"\[Test\]", file.read_text())]
        self.assertEqual(len(passed), len(written), output)


if __name__ == "__main__":
    if not (SDK / "dotnet").is_file():
        skipping.leave("FOLIO_DOTNET_SDK names no .NET SDK (docs/csharp.md)")
    skipping.main()
