"""Writes stand-ins of popular architectures: graphs as PyTorch exports them, with random weights, to be measured.

Usage: python3 tools/zoo [--seed N] FOLDER [NAME]...
       python3 tools/zoo --list

  python3 tools/zoo /tmp/zoo unet crnn
  folio compare /tmp/zoo --threads 1 --config folio.packing=load

Each NAME (default: all, 1.3 GB) becomes FOLDER/NAME/model.onnx. The same seed gives the same bytes. Many are narrower
or have fewer layers than what they stand for, as --list says; what they compute means nothing. docs/performance.md has
what some of them need to be run, and what differences of their outputs say.

Needs the Debian packages python3-onnx and python3-numpy. Exit code 1 if a model cannot be written, 2 on misuse.
"""

import argparse
import importlib
import os
import signal
import sys
from pathlib import Path

MODULES = ("classification", "detection", "generation", "audio", "language", "other")
PACKAGES = {"numpy": "python3-numpy", "onnx": "python3-onnx"}


def load_architectures():
    """{name: function}; here and not above is imported what needs the packages, so that --help does without."""
    for module in MODULES:
        importlib.import_module(module)
    return importlib.import_module("registry").ARCHITECTURES


def write_model(build, name, seed, folder):
    """Under a temporary name first, so that nobody finds half a model; returns its nodes and bytes."""
    network = importlib.import_module("network").Network(name, seed)
    build(network)
    data = network.model().SerializeToString()
    path = folder / name / "model.onnx"
    partial = path.with_name(f".model.onnx.{os.getpid()}")
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        partial.write_bytes(data)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
    return len(network.nodes), len(data)


def seed_number(text):
    seed = int(text)
    if seed < 0:
        raise argparse.ArgumentTypeError(f"{seed} is negative")
    return seed


def parse_arguments():
    parser = argparse.ArgumentParser(prog="python3 tools/zoo", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true", help="print the names and what they stand for")
    parser.add_argument("--seed", type=seed_number, default=1, metavar="N", help="of the weights (default: 1)")
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
        for name, build in architectures.items():
            print(f"{name:30} {build.__doc__}")
        return 0
    unknown = [name for name in args.names if name not in architectures]
    if unknown:
        print(f"zoo: no architecture {', '.join(unknown)}; known: {', '.join(architectures)}", file=sys.stderr)
        return 2
    for name in args.names or architectures:
        try:
            node_count, byte_count = write_model(architectures[name], name, args.seed, args.folder)
        except OSError as error:
            print(f"zoo: {name}: {error}", file=sys.stderr)
            return 1
        print(f"{name:30} {node_count:4} nodes {byte_count / 1e6:7.1f} MB", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
