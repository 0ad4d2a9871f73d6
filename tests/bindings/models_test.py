"""The models of FOLIO_TEST_MODELS (a folder in the ONNX test layout) give the same bits from C, Java and C#.

C is the command `folio run`. Skipped with a message where the variable is not set. By hand:

    FOLIO_BINARY_DIR=build/release python3 tests/bindings/models_test.py FOLDER
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import tensor_files

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
import skipping

HERE = Path(__file__).parent
BUILD = Path(os.environ["FOLIO_BINARY_DIR"]).resolve()
LIB = BUILD / "lib"


def run(*command, **variables):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, env=dict(os.environ, **variables))
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout


def write_case(model, folder, lines):
    """Adds the model to the list; returns the arguments of `folio run`."""
    arguments = []
    lines.append(f"model\t{model}")
    for pb in sorted(model.parent.glob("test_data_set_0/input_*.pb")):
        name, kind, dims, raw = tensor_files.read_pb(pb)
        data = folder / f"{pb.stem}.raw"
        data.write_bytes(raw)
        lines.append(f"input\t{name}\t{kind}\t{','.join(map(str, dims))}\t{data}")
        arguments += ["--input", f"{name}={pb}"]
    lines.append("run")
    return arguments


def digests_of_c(model, arguments, folder):
    """Lines as RunCases prints them, in any order."""
    run(BUILD / "bin/folio", "run", model, *arguments, "--output-dir", folder)
    lines = [f"model\t{model}"]
    for file in folder.glob("*.npy"):
        _, data = tensor_files.read_npy(file)
        lines.append(f"output\t{file.stem}\t{hashlib.sha256(data).hexdigest()}")
    return lines


def by_model(lines):
    result, current = {}, None
    for line in lines:
        if line.startswith("model\t"):
            current = result.setdefault(line, set())
        else:
            _, name, digest = line.split("\t")
            current.add((name.replace("/", "_"), digest))
    return result


def in_java(cases, work):
    run("javac", "-cp", LIB / "folio.jar", "-d", work, HERE / "RunCases.java")
    return run("java", "-cp", f"{LIB / 'folio.jar'}:{work}", "RunCases", cases, LC_ALL="C.UTF-8")


def in_csharp(cases, work):
    program = work / "RunCases.exe"
    run("mcs", "-nologo", "-langversion:7.2", f"-out:{program}", f"-reference:{LIB / 'FolioRuntime.dll'}", HERE / "RunCases.cs")
    return run("mono", program, cases, MONO_PATH=str(LIB), LC_ALL="C.UTF-8")


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else os.environ.get("FOLIO_TEST_MODELS")
    if not folder or not Path(folder).is_dir():
        skipping.leave("FOLIO_TEST_MODELS names no folder of models")
    models = sorted(Path(folder).resolve().glob("*/model.onnx"))
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        lines, expected = [], []
        for model in models:
            place = work / model.parent.name
            (place / "out").mkdir(parents=True)
            arguments = write_case(model, place, lines)
            expected += digests_of_c(model, arguments, place / "out")
        cases = work / "cases.txt"
        cases.write_text("\n".join(lines) + "\n")
        languages = [("Java", in_java, LIB / "folio.jar"), ("C#", in_csharp, LIB / "FolioRuntime.dll")]
        failures, wanted = [], by_model(expected)
        for language, program, library in languages:
            if not library.exists():
                print(f"{language}: left out of this build")
                continue
            found = by_model(program(cases, work).splitlines())
            wrong = [m for m in wanted if found.get(m) != wanted[m]]
            print(f"{language}: {len(wanted) - len(wrong)} of {len(wanted)} models, "
                  f"{sum(map(len, wanted.values()))} outputs, equal to C's bit for bit")
            failures += [f"{language}: {m}" for m in wrong]
    print("\n".join(failures))
    return 1 if failures or not wanted else 0


if __name__ == "__main__":
    sys.exit(main())
