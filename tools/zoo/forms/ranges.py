"""Ranges of values, from a run of the model by the `folio` command with inputs that it makes up."""

import subprocess
import tempfile
from pathlib import Path
from typing import NamedTuple

import numpy as np
import onnx
from onnx import TensorProto, helper

from forms import FormError


class Sample(NamedTuple):
    """How a model is run."""

    folio: str  # the command
    seed: int
    ranges: dict  # input -> (lowest, highest)
    dims: dict  # free dim -> number

    def measure(self, model, names):
        """{value: (lowest, highest)}."""
        with tempfile.TemporaryDirectory(prefix="zoo_") as folder:
            path = Path(folder, "model.onnx")
            path.write_bytes(_with_extremes(model, names).SerializeToString())
            self._run(path, folder)
            found = {}
            for i, name in enumerate(names):
                found[name] = tuple(float(np.load(Path(folder, f"{kind}_{i}.npy"))) for kind in ("low", "high"))
                if not np.isfinite(found[name]).all():
                    raise FormError(f"{name} is not finite")
        return found

    def _run(self, path, folder):
        command = [self.folio, "run", str(path), "--output-dir", folder, "--seed", str(self.seed), "--threads", "1"]
        for name, (low, high) in self.ranges.items():
            command += ["--range", f"{name}={low}:{high}"]
        for name, number in self.dims.items():
            command += ["--dim", f"{name}={number}"]
        try:
            result = subprocess.run(command, capture_output=True, text=True, check=False)
        except OSError as error:
            raise FormError(f"cannot run {self.folio} ({error.strerror}), which ranges need: see --folio") from error
        if result.returncode != 0:
            raise FormError(f"{self.folio} run: {result.stderr.strip() or f'exit code {result.returncode}'}")


def _with_extremes(model, names):
    """A copy whose outputs are the lowest and the highest of each value."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    del copy.graph.output[:]
    for i, name in enumerate(names):
        for kind, operator in (("low", "ReduceMin"), ("high", "ReduceMax")):
            output = f"{kind}_{i}"
            copy.graph.node.append(helper.make_node(operator, [name], [output], keepdims=0))
            copy.graph.output.append(helper.make_tensor_value_info(output, TensorProto.FLOAT, []))
    return copy
