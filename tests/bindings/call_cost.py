"""What a bound run costs in Java and C# over the same call from C, the garbage that it makes, and what it costs to wrap memory
as a tensor, little and much: equal where nothing is copied. Not a test: the machine should be quiet.

    python3 tests/bindings/call_cost.py build/release [ROUNDS]

The programs take turns; medians of the rounds are printed, times in nanoseconds. Each program gives its quickest of 101 short
rounds: what else the machine does is no part of a call.
"""

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent


def run(*command, **variables):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=True, env=dict(os.environ, **variables))
    return done.stdout.strip()


def main(build, rounds=5):
    lib = Path(build).resolve() / "lib"
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        model = work / "tiny.onnx"
        run(lib.parent / "bin/make_model", "many", "--nodes", 1, "-o", model)
        run("cc", "-std=c99", "-D_POSIX_C_SOURCE=200809L", "-O2", f"-I{ROOT}/c_api/include", HERE / "call_cost.c", "-ldl",
            "-o", work / "c")
        programs = {"C": lambda: run(work / "c", lib / "libfolio.so.1", model)}
        if (lib / "folio.jar").exists():
            run("javac", "-cp", lib / "folio.jar", "-d", work, HERE / "CallCost.java")
            programs["Java"] = lambda: run("java", "-cp", f"{lib / 'folio.jar'}:{work}", "CallCost", model)
        if (lib / "FolioRuntime.dll").exists():
            run("mcs", "-nologo", "-optimize", f"-out:{work}/CallCost.exe", f"-reference:{lib}/FolioRuntime.dll",
                HERE / "CallCost.cs")
            programs["C# on mono"] = lambda: run("mono", work / "CallCost.exe", model, MONO_PATH=str(lib))
        add_coreclr(programs, Path(build), work, model)
        found = {language: [] for language in programs}
        for _ in range(int(rounds)):
            for language, program in programs.items():
                found[language].append([float(number) for number in program().split()])
    base = statistics.median(times[0] for times in found["C"])
    for language, rounds in found.items():
        run_ns, *others = (statistics.median(column) for column in zip(*rounds))
        over = statistics.median(mine[0] - c[0] for mine, c in zip(rounds, found["C"]))
        line = f"{language:18} bound run {run_ns:7.1f}   over C {over:+7.1f} ({over / base:+.0%})"
        if others:
            garbage, small, large = others
            line += f"   garbage {garbage:.2f} bytes a run   wrap and close 16 bytes {small:.0f}, 64 MiB {large:.0f}"
        print(line)


def add_coreclr(programs, build, work, model):
    """The netstandard2.1 assembly on CoreCLR, where the build has it and FOLIO_DOTNET_SDK names an SDK."""
    assembly = build / "csharp/netstandard2.1/FolioRuntime.dll"
    sdk = Path(os.environ.get("FOLIO_DOTNET_SDK") or "/nowhere")
    if not assembly.exists() or not (sdk / "dotnet").exists():
        return
    folder = work / "coreclr"
    folder.mkdir()
    shutil.copy(assembly, folder)
    for library in ("libfolio.so.1", "libfolio_csharp.so"):
        shutil.copy(build / "bundle" / library, folder)
    reference = next(sdk.glob("packs/NETStandard.Library.Ref/2.1.*/ref/netstandard2.1/netstandard.dll"))
    run("mcs", "-nologo", "-optimize", "-nostdlib", "-noconfig", f"-reference:{reference}", f"-reference:{assembly}",
        f"-out:{folder}/CallCost.dll", "-target:exe", HERE / "CallCost.cs")
    (folder / "CallCost.runtimeconfig.json").write_text(
        '{"runtimeOptions": {"framework": {"name": "Microsoft.NETCore.App", "version": "3.1.0"},'
        ' "configProperties": {"System.Globalization.Invariant": true}}}')
    programs["C# on CoreCLR 3.1"] = lambda: run(sdk / "dotnet", "exec", folder / "CallCost.dll", model)


if __name__ == "__main__":
    main(*sys.argv[1:])
