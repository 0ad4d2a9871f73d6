"""Proves that saved models compute what the original computes, in Folio and in ONNX Runtime.

Every model.onnx and model.ort below FOLIO_TEST_MODELS (a folder in the ONNX test layout) is
converted without and with optimization to .onnx, to .onnx with external data and to .ort; `folio
test` runs the results on the original's data, `folio compare` runs them in the ONNX Runtime that
FOLIO_ORT_LIBRARY names. Those with large weights are also written with their weights in a pack file
alone, which ONNX Runtime cannot read. Skipped with a message where a variable is not set. By hand:

    FOLIO_BINARY_DIR=build/release python3 tests/tools/saved_models_test.py FOLDER [LIBONNXRUNTIME]

ONNX Runtime adds no casts to .ort models: float16 ones it runs only as optimized here, which adds
them (ORT_CANNOT).
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import skipping

FOLIO = str(pathlib.Path(os.environ["FOLIO_BINARY_DIR"]) / "bin" / "folio")
VARIANTS = [("none", "onnx", []), ("none", "ort", []), ("all", "onnx", []), ("all", "ort", []),
            ("all", "onnx", ["--external-data", "weights.bin"])]
ORT_CANNOT = ("none_ort", "Could not find an implementation")


def folio(*arguments):
    return subprocess.run([FOLIO, *map(str, arguments)], capture_output=True, text=True,
                          check=False)


def convert(source, folder, optimize, form, options):
    """The folder of the converted model in the ONNX test layout, or why there is none."""
    folder.mkdir(parents=True)
    out = folder / f"model.{form}"
    done = folio("convert", source, "-o", out, "--optimize", optimize, *options)
    for data in [*source.parent.glob("test_data_set_*"), *source.parent.glob("data.json")]:
        (folder / data.name).symlink_to(data)
    return "" if done.returncode == 0 else done.stderr.strip()


def replace(source, folder):
    """The folder of the model whose weights stand in a pack file, or why there is none."""
    folder.mkdir(parents=True)
    done = folio("pack", "--replace", source, "-o", folder / "model.onnx")
    if "nothing to replace" in done.stderr:
        return ""
    for data in [*source.parent.glob("test_data_set_*"), *source.parent.glob("data.json")]:
        (folder / data.name).symlink_to(data)
    return "" if done.returncode == 0 else done.stderr.strip()


def check_replaced(models, sources):
    failures = []
    with tempfile.TemporaryDirectory() as name:
        for source in sources:
            label = "-".join(source.relative_to(models).with_suffix("").parts[:-1]) or "model"
            why = replace(source, pathlib.Path(name) / f"{label}_{source.suffix[1:]}")
            if why:
                failures.append(f"pack --replace {source}: {why}")
        return failures + run_in_folio(name)


def run_in_folio(folder):
    done = folio("test", folder, "--in-process")
    return [line for line in done.stdout.splitlines() if not line.startswith("PASS")][:-1]


def run_in_ort(folder, library):
    """What compare found: (model, result, reasons) of those that do not agree."""
    done = folio("compare", folder, "--ort", library, "--json", "--rounds", 1, "--warmup", 0,
                 "--iterations", 1, "--threads", 1)
    found = [json.loads(line) for line in done.stdout.splitlines()]
    return [(one["model"], one["result"], one["reasons"]) for one in found
            if one["result"] != "agree"]


def check(models, library):
    failures = []
    sources = sorted([*models.glob("**/model.onnx"), *models.glob("**/model.ort")])
    print(f"{len(sources)} models, {len(VARIANTS)} variants of each")
    failures += check_replaced(models, sources)
    with tempfile.TemporaryDirectory() as name:
        work = pathlib.Path(name)
        for source in sources:
            label = "-".join(source.relative_to(models).with_suffix("").parts[:-1]) or "model"
            for optimize, form, options in VARIANTS:
                folder = work / f"{label}_{source.suffix[1:]}" / (
                    f"{optimize}_{form}" + ("_external" if options else ""))
                why = convert(source, folder, optimize, form, options)
                if why:
                    failures.append(f"convert {source} {optimize} {form}: {why}")
        failures += run_in_folio(work)
        if library:
            originals = {model for model, _, _ in run_in_ort(models, library)}
            for model, result, reasons in run_in_ort(work, library):
                if ORT_CANNOT[0] in model and ORT_CANNOT[1] in str(reasons):
                    continue
                failures.append(f"ORT: {result} {model} {reasons}")
            print(f"ONNX Runtime and Folio do not agree on originals: {sorted(originals)}")
        else:
            print("not run in ONNX Runtime: FOLIO_ORT_LIBRARY is not set")
    return failures


def main():
    models = sys.argv[1] if len(sys.argv) > 1 else os.environ.get("FOLIO_TEST_MODELS")
    library = sys.argv[2] if len(sys.argv) > 2 else os.environ.get("FOLIO_ORT_LIBRARY")
    if not models:
        skipping.leave("FOLIO_TEST_MODELS names no folder of models")
    failures = check(pathlib.Path(models), library)
    for line in failures:
        print(line)
    print(f"{len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
