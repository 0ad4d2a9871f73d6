"""The architectures: functions that add a whole model to a Network, by name.

Their docstrings say what they stand for, where it differs, and what goes in: of images height x width; the batch is 1
and there are three channels where nothing else is said.
"""

ARCHITECTURES = {}


def architecture(build):
    """Decorates one; its name is the model's, its docstring what --list says of it."""
    ARCHITECTURES[build.__name__] = build
    return build
