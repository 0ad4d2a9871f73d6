"""The server samples serve, several at once on one mapping of the model, and the Python sample gives C's numbers."""

import array
import os
import re
import subprocess
import sys
import unittest
import urllib.error
import urllib.request
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
import skipping

ROOT = Path(os.environ["FOLIO_TESTS_DIR"]).parent
BUILD = Path(os.environ["FOLIO_BINARY_DIR"])
LIB = BUILD / "lib"
MODEL = BUILD / "bindings/models/wide.onnx"
WIDTH = 256
WORKERS = 2


def fetch(port, path, data=None):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", data=data, timeout=30) as answer:
        return answer.read()


def by_python(numbers):
    program = [sys.executable, "-B", ROOT / "samples/python/run_model.py", LIB / "libfolio.so.1", MODEL, f"1,{WIDTH}"]
    done = subprocess.run([*map(str, program), *map(str, numbers)], capture_output=True, text=True, check=True)
    return [float(word) for word in done.stdout.split()]


class Samples(unittest.TestCase):
    def serve(self, command, **variables):
        """Starts the workers; returns their ports."""
        ports = []
        for _ in range(WORKERS):
            worker = subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, text=True,
                                      env=dict(os.environ, LC_ALL="C.UTF-8", **variables))
            self.addCleanup(worker.stdout.close)
            self.addCleanup(worker.wait)
            self.addCleanup(worker.kill)
            ports.append(int(re.fullmatch(r"READY (\d+)\n", worker.stdout.readline()).group(1)))
        return ports

    def check_servers(self, command, **variables):
        numbers = [0.25 * i for i in range(8)] + [0.0] * (WIDTH - 8)
        expected = array.array("f", by_python(numbers[:8])).tobytes()
        ports = self.serve(command, **variables)
        for port in ports:
            self.assertEqual(fetch(port, "/run", array.array("f", numbers).tobytes()), expected)
        for port in ports:
            memory = fetch(port, "/memory").decode()
            self.assertIn("wide.onnx", memory)
            print(memory, file=sys.stderr)
            self.assertIn("folio_", fetch(port, "/metrics").decode())
        with self.assertRaises(urllib.error.HTTPError) as refused:
            fetch(ports[0], "/run", b"12345")
        self.assertEqual(refused.exception.code, 400)
        self.assertIn(b"INVALID", refused.exception.read().upper())

    @unittest.skipUnless((BUILD / "java/samples/ModelServer.class").exists(), "Java was left out of this build")
    def test_java_server(self):
        self.check_servers(["java", "-Xmx64m", "-cp", f"{LIB / 'folio.jar'}:{BUILD / 'java/samples'}", "ModelServer", MODEL])

    @unittest.skipUnless((BUILD / "csharp/ModelServer.exe").exists(), "C# was left out of this build")
    def test_csharp_server(self):
        self.check_servers(["mono", BUILD / "csharp/ModelServer.exe", MODEL], MONO_PATH=str(LIB))

    def python_error(self, status, *arguments):
        program = [sys.executable, "-B", ROOT / "samples/python/run_model.py", *arguments]
        done = subprocess.run([*map(str, program)], capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stdout), (status, ""), done.stderr)
        self.assertNotIn("Traceback", done.stderr)
        return done.stderr

    def test_python_sample_fits_a_page_and_says_what_is_wrong(self):
        self.assertLessEqual(len((ROOT / "samples/python/run_model.py").read_text().splitlines()), 72)
        self.assertIn("/nothing.onnx", self.python_error(1, LIB / "libfolio.so.1", "/nothing.onnx", "1"))
        self.assertIn("the path of libfolio.so.1", self.python_error(1, "/nothing.so", MODEL, "1"))

    def test_python_sample_without_arguments_says_how_it_is_used(self):
        library = LIB / "libfolio.so.1"
        for wrong in ([], [library], [library, MODEL], [library, MODEL, "a"], [library, MODEL, "1", "a"],
                      [library, MODEL, "1", "2", "3"]):
            with self.subTest(arguments=wrong):
                self.assertIn("python3 run_model.py LIBFOLIO.so.1 MODEL DIM", self.python_error(2, *wrong))


if __name__ == "__main__":
    skipping.main()
