#!/usr/bin/env python3
"""Runs a program on an emulated CPU: kernels of instruction sets that this machine lacks are tested there.

Usage: emulate.py [--cpu MODEL] [--bochs PROGRAM] [--with FILE]... [--timeout SECONDS] PROGRAM [ARGUMENT]...

  emulate.py build/release/bin/test_kernels --gtest_filter='GemmU8.*'

Bochs boots Debian's kernel with PROGRAM, the shared libraries it asks for and FILEs as its whole system; what PROGRAM
prints comes here as it is printed, and its exit code is ours (124: SECONDS are over; 125: nothing ran). Variables that
begin with FOLIO_ or GTEST_ are passed on. Debian's Bochs 2.7 has AVX-512 with VNNI (tigerlake, the default;
`bochs --help cpu` lists the others). It takes a minute to begin and is hundreds of times slower than a CPU: it says
whether results are right, never how fast they come.

Needs the Debian packages bochs bochsbios isolinux syslinux-common xorriso cpio busybox-static. The kernel is fetched as
a package and unpacked in build/emulate, not installed.
"""

import argparse
import contextlib
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

KERNEL = "linux-image-cloud-amd64"
BEGIN, END = "== begin", "== end"

# 580 is FSRM: Bochs claims it without ERMS, and memmove of Linux 6.1 goes astray then. 600 is AMX_TILE: Linux takes it
# for granted that a CPU with tiles has XFD, which Bochs has not.
KERNEL_OPTIONS = "console=ttyS0,115200 quiet loglevel=1 clearcpuid=580,600 panic=-1"

INIT = """#!/bin/busybox sh
/bin/busybox mount -t proc proc /proc
/bin/busybox mount -t sysfs sys /sys
/bin/busybox mount -t devtmpfs dev /dev
/bin/busybox mount -t tmpfs tmp /tmp
/bin/busybox stty -onlcr < /dev/ttyS0
cd /work
echo "{begin}"
{command}
echo "{end} $?"
/bin/busybox sleep 1
/bin/busybox poweroff -f
"""

BOCHS_OPTIONS = """display_library: {display}
romimage: file=/usr/share/bochs/BIOS-bochs-latest
vgaromimage: file=/usr/share/bochs/VGABIOS-lgpl-latest
memory: guest=2048, host=2048
cpu: model={cpu}, count=1, ips=200000000
clock: sync=none, time0=utc
ata0-master: type=cdrom, path={work}/boot.iso, status=inserted
boot: cdrom
com1: enabled=1, mode=file, dev={work}/serial
log: {work}/log
panic: action=report
error: action=ignore
info: action=ignore
debug: action=ignore
"""


class CannotRun(Exception):
    pass


def run(*command, **options):
    try:
        return subprocess.run(command, check=True, capture_output=True, text=True, **options).stdout
    except FileNotFoundError as error:
        raise CannotRun(f"{command[0]} is not installed") from error
    except subprocess.CalledProcessError as error:
        raise CannotRun(f"{shlex.join(map(str, command))}: {error.stderr.strip()}") from error


def find_kernel(cache):
    """Debian's kernel, fetched once."""
    if not list(cache.glob("boot/vmlinuz-*")):
        cache.mkdir(parents=True, exist_ok=True)
        depends = re.search(r"Depends: (linux-image-\S+)", run("apt-cache", "depends", KERNEL))
        if not depends:
            raise CannotRun(f"no package {KERNEL}: run apt-get update")
        run("apt-get", "download", depends[1], cwd=cache)
        for package in cache.glob("linux-image-*.deb"):
            run("dpkg-deb", "--extract", package, cache)
            package.unlink()
    return max(cache.glob("boot/vmlinuz-*"))


def libraries_of(program):
    """Shared libraries and the loader, as /lib/... paths."""
    lines = subprocess.run(["ldd", program], capture_output=True, text=True).stdout.splitlines()
    return [m[1] for m in (re.search(r"(/\S+) \(0x", line) for line in lines) if m]


def make_root(root, args, environment):
    for folder in ("bin", "dev", "proc", "sys", "tmp", "work"):
        (root / folder).mkdir(parents=True)
    busybox = shutil.which("busybox")
    if not busybox:
        raise CannotRun("busybox is not installed")
    shutil.copy(busybox, root / "bin/busybox")
    for file in [args.program] + args.files:
        shutil.copy(file, root / "work")
        for library in libraries_of(file):
            target = root / library.lstrip("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(library, target)
    words = [f"{name}={value}" for name, value in environment.items()]
    command = shlex.join(["/bin/busybox", "env", "HOME=/tmp", "LD_LIBRARY_PATH=/work", *words,
                          f"/work/{Path(args.program).name}", *args.arguments])
    init = root / "init"
    init.write_text(INIT.format(begin=BEGIN, end=END, command=command))
    init.chmod(0o755)


def make_disk(work, kernel):
    disk = work / "disk"
    (disk / "isolinux").mkdir(parents=True)
    files = "\n".join(str(p.relative_to(work / "root")) for p in (work / "root").rglob("*"))
    with open(disk / "initrd", "wb") as initrd:
        subprocess.run(["cpio", "--quiet", "-o", "-H", "newc"], cwd=work / "root", check=True,
                       input=files.encode(), stdout=initrd)
    shutil.copy(kernel, disk / "vmlinuz")
    shutil.copy("/usr/lib/ISOLINUX/isolinux.bin", disk / "isolinux")
    shutil.copy("/usr/lib/syslinux/modules/bios/ldlinux.c32", disk / "isolinux")
    (disk / "isolinux/isolinux.cfg").write_text(
        "default folio\nprompt 0\nlabel folio\n kernel /vmlinuz\n"
        f" append initrd=/initrd {KERNEL_OPTIONS}\n")
    run("xorriso", "-as", "mkisofs", "-quiet", "-o", work / "boot.iso", "-b", "isolinux/isolinux.bin",
        "-c", "isolinux/boot.cat", "-no-emul-boot", "-boot-load-size", "4", "-boot-info-table", disk)


class Serial:
    """What the emulated machine prints: lines as they come."""

    def __init__(self, path):
        self.path, self.at, self.rest = path, 0, ""

    def lines(self):
        if not self.path.exists():
            return []
        with open(self.path, "rb") as file:
            file.seek(self.at)
            new = file.read()
        self.at += len(new)
        *lines, self.rest = (self.rest + new.decode("utf-8", "replace")).split("\n")
        return [line.rstrip("\r") for line in lines]


def follow(serial, process, seconds):
    """Prints what stands between the marks; the code behind the second, None where it did not come."""
    deadline = time.monotonic() + seconds
    inside = False
    while True:
        ended = process.poll() is not None
        for line in serial.lines():
            if inside and line.startswith(END):
                return int(line[len(END):])
            if inside:
                print(line, flush=True)
            inside = inside or line == BEGIN
        if ended:
            return None
        if time.monotonic() > deadline:
            raise TimeoutError
        time.sleep(0.5)


def emulate(args, work):
    bochs = shutil.which(args.bochs)
    if not bochs:
        raise CannotRun(f"{args.bochs} is not installed")
    root = Path(__file__).resolve().parent.parent
    kernel = find_kernel(root / "build/emulate")
    passed_on = {n: v for n, v in os.environ.items() if n.startswith(("FOLIO_", "GTEST_"))}
    make_root(work / "root", args, passed_on)
    make_disk(work, kernel)
    (work / "options").write_text(BOCHS_OPTIONS.format(
        cpu=args.cpu, work=work, display=args.display))
    with open(work / "out", "w") as out:
        process = subprocess.Popen([bochs, "-q", "-f", "options"], cwd=work, stdin=subprocess.PIPE,
                                   stdout=out, stderr=subprocess.STDOUT, start_new_session=True)
        process.stdin.write(b"c\n")  # Debian's waits in its debugger
        process.stdin.close()
        try:
            code = follow(Serial(work / "serial"), process, args.timeout)
        finally:
            with contextlib.suppress(ProcessLookupError):  # it has ended by itself
                os.killpg(process.pid, signal.SIGKILL)  # Debian's bochs is a script that starts it
            process.wait()
    if code is None:
        raise CannotRun("Bochs ended before the program did:\n" + (work / "out").read_text()[-2000:])
    return code


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cpu", default="tigerlake")
    parser.add_argument("--bochs", default="bochs")
    parser.add_argument("--display", default='rfb, options="timeout=0"', help="of Bochs: nogui, where it has that")
    parser.add_argument("--with", dest="files", action="append", default=[], metavar="FILE")
    parser.add_argument("--timeout", type=float, default=3600)
    parser.add_argument("program")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the machine ends with us
    try:
        with tempfile.TemporaryDirectory(prefix="folio-emulate-") as work:
            return emulate(args, Path(work))
    except TimeoutError:
        print(f"emulate.py: {args.program} took more than {args.timeout:g} s", file=sys.stderr)
        return 124
    except (CannotRun, OSError) as error:
        print(f"emulate.py: {error}", file=sys.stderr)
        return 125


if __name__ == "__main__":
    sys.exit(main())
