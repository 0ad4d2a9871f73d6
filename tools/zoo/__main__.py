"""Writes stand-ins of popular architectures: graphs as PyTorch exports them, with random weights, to be measured.

Usage: python3 tools/zoo [--seed N] [--form FORM] [--folio PATH] FOLDER [NAME]...
       python3 tools/zoo --list

  python3 tools/zoo /tmp/zoo unet crnn
  python3 tools/zoo --form q4 /tmp/zoo_q4 llama_decode
  folio compare /tmp/zoo --threads 1 --config folio.packing=load

Each NAME (default: all, 2.0 GB) becomes FOLDER/NAME/model.onnx. The same seed gives the same bytes. Many are narrower
or have fewer layers than what they stand for, as --list says; what they compute means nothing. docs/performance.md has
what some of them need to be run, and what differences of their outputs say.

--form writes a form in which people download models, as its tool makes it of the plain one; an architecture that has
nothing which the form changes, or has bodies (Loop, Scan, If), is left out, with a line on stderr. The static ones
(qdq_u8, qdq_s8) take ranges of values from a run by the `folio` command: their bytes are the same where that computes
the same.

Needs the Debian packages python3-onnx and python3-numpy. Exit code 1 if a model cannot be written, 2 on misuse.
"""

import argparse
import importlib
import os
import signal
import sys
from pathlib import Path

from forms import FORMS, PLAIN, FormError, convert

MODULES = ("classification", "vision", "vision_transformers", "detection", "queries", "objects", "dense_vision",
           "generation", "audio", "language", "other", "voice", "speech", "sequence", "text", "tabular", "classical")
PACKAGES = {"numpy": "python3-numpy", "onnx": "python3-onnx"}


def load_architectures():
    """{name: function}; here and not above is imported what needs the packages, so that --help does without."""
    for module in MODULES:
        importlib.import_module(module)
    return importlib.import_module("registry").ARCHITECTURES


def make_model(build, name, args):
    """None if the form changes nothing of it."""
    network = importlib.import_module("network").Network(name, args.seed)
    build(network)
    if args.form == PLAIN:
        return network.model()
    sample = importlib.import_module("forms.ranges").Sample(args.folio, args.seed, network.ranges, network.dims)
    return convert(args.form, network.model(), sample.measure)


def write_model(model, path):
    """Under a temporary name first, so that nobody finds half a model; returns its bytes."""
    data = model.SerializeToString()
    partial = path.with_name(f".model.onnx.{os.getpid()}")
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        partial.write_bytes(data)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
    return len(data)


def write_architectures(architectures, args):
    """All that can be. Returns the exit code."""
    exit_code = 0
    for name in args.names or architectures:
        try:
            model = make_model(architectures[name], name, args)
            if model is None:
                print(f"zoo: {name}: {args.form} changes nothing of it, skipped", file=sys.stderr)
                continue
            byte_count = write_model(model, args.folder / name / "model.onnx")
        except (OSError, FormError) as error:
            print(f"zoo: {name}: {error}", file=sys.stderr)
            exit_code = 1
            continue
        print(f"{name:30} {len(model.graph.node):4} nodes {byte_count / 1e6:7.1f} MB", flush=True)
    return exit_code


def print_list(architectures):
    for name, build in architectures.items():
        print(f"{name:30} {build.__doc__}")
    for name, form in FORMS.items():
        print(f"{f'--form {name}':30} {form.description}")


def seed_number(text):
    seed = int(text)
    if seed < 0:
        raise argparse.ArgumentTypeError(f"{seed} is negative")
    return seed


def parse_arguments():
    parser = argparse.ArgumentParser(prog="python3 tools/zoo", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true", help="print names and forms, and what they stand for")
    parser.add_argument("--seed", type=seed_number, default=1, metavar="N", help="of the weights (default: 1)")
    parser.add_argument("--form", choices=FORMS, default=PLAIN, metavar="FORM",
                        help=f"one of {', '.join(FORMS)} (default: {PLAIN})")
    parser.add_argument("--folio", default="folio", metavar="PATH",
                        help="the command that measures ranges for static forms (default: folio)")
    parser.add_argument("folder", nargs="?", type=Path, metavar="FOLDER")
    parser.add_argument("names", nargs="*", metavar="NAME")
    args = parser.parse_args()
    if args.folder is None and not args.list:
        parser.error("FOLDER is missing")
    return args


def main():
    args = parse_arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the partial file goes
    try:
        architectures = load_architectures()
    except ModuleNotFoundError as error:
        if error.name not in PACKAGES:
            raise
        packages = " and ".join(PACKAGES.values())
        print(f"zoo: {sys.executable} has no {error.name}: install the Debian packages {packages}, "
              "and use /usr/bin/python3", file=sys.stderr)
        return 2
    if args.list:
        print_list(architectures)
        return 0
    unknown = [name for name in args.names if name not in architectures]
    if unknown:
        print(f"zoo: no architecture {', '.join(unknown)}; known: {', '.join(architectures)}", file=sys.stderr)
        return 2
    return write_architectures(architectures, args)


if __name__ == "__main__":
    sys.exit(main())
