"""Reads what the ONNX test layout and `folio run` write: TensorProto (.pb) and .npy."""

import ast
import struct

# ONNX's numbers of types that may stand in a field of their own, and how they are laid out.
FLOAT_DATA, INT32_DATA, INT64_DATA, NAME, RAW_DATA, DOUBLE_DATA = 4, 5, 7, 8, 9, 10
INT32_FORMATS = {2: "B", 3: "b", 4: "H", 5: "h", 6: "i", 9: "?", 10: "H", 16: "H"}


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def fields(data):
    """Yields (number, value): an int, or bytes."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        number, wire = key >> 3, key & 7
        if wire == 0:
            value, at = varint(data, at)
        else:
            count, at = varint(data, at) if wire == 2 else ((8 if wire == 1 else 4), at)
            value, at = data[at:at + count], at + count
        yield number, value


def varints(value):
    if isinstance(value, int):
        return [value]
    result, at = [], 0
    while at < len(value):
        one, at = varint(value, at)
        result.append(one)
    return result


def signed(value):
    return value - (1 << 64) if value >= 1 << 63 else value


def read_pb(path):
    """(name, type, dims, bytes) of a tensor."""
    name, kind, dims, raw = "", 0, [], b""
    for number, value in fields(path.read_bytes()):
        if number == 1:
            dims += varints(value)
        elif number == 2:
            kind = value
        elif number == NAME:
            name = value.decode()
        elif number in (FLOAT_DATA, RAW_DATA, DOUBLE_DATA):
            raw += value
        elif number == INT64_DATA:
            raw += b"".join(struct.pack("<q", signed(v)) for v in varints(value))
        elif number == INT32_DATA:
            raw += b"".join(struct.pack("<" + INT32_FORMATS[kind], signed(v)) for v in varints(value))
        elif number == 6:
            raise ValueError(f"{path}: a tensor of strings")
    return name, kind, dims, raw


def read_npy(path):
    """(dims, bytes); of strings each in UTF-8 with a NUL."""
    data = path.read_bytes()
    bytes_before = 10 + struct.unpack_from("<H", data, 8)[0]
    header = ast.literal_eval(data[10:bytes_before].decode().strip())
    raw, kind = data[bytes_before:], header["descr"]
    if kind.startswith("<U"):
        step = 4 * int(kind[2:])
        texts = [raw[at:at + step].decode("utf-32-le").rstrip("\0") for at in range(0, len(raw), step)] if step else []
        raw = b"".join(text.encode() + b"\0" for text in texts)
    return list(header["shape"]), raw
