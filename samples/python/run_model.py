"""Runs a model of one float input and one float output through Folio's C API, with ctypes and nothing else.

    python3 run_model.py LIBFOLIO.so.1 MODEL DIM,DIM,... [NUMBER...]

The table of functions is append-only (folio_c_api.h): an entry is known by its place, counted from 0.
"""
import ctypes
import math
import sys
from ctypes import POINTER, byref, c_char_p, c_float, c_int64, c_size_t, c_void_p

FLOAT = 1
PLACES = {"GetErrorMessage": 8, "ReleaseStatus": 9, "CreateSession": 64, "SessionGetInput": 69, "SessionGetOutput": 71,
          "Run": 75, "ValueInfoGetName": 46, "CreateTensorWithData": 89, "GetTensorElementCount": 97,
          "GetTensorData": 99, "ReleaseValue": 104, "ReleaseSession": 81}


class Folio:
    def __init__(self, path):
        try:
            library = ctypes.CDLL(path)
        except OSError as error:
            raise SystemExit(f"{error}; the first argument is the path of libfolio.so.1")
        library.FolioGetApiBase.restype = POINTER(c_void_p)
        get_api = ctypes.CFUNCTYPE(POINTER(c_void_p), ctypes.c_uint32)(library.FolioGetApiBase()[0])
        self.table = get_api(1)

    def call(self, name, *arguments, result=c_void_p):  # entries return NULL, or a status with a message
        status = ctypes.CFUNCTYPE(result)(self.table[PLACES[name]])(*arguments)
        if name.startswith(("Release", "GetError")) or not status:
            return status
        message = self.call("GetErrorMessage", c_void_p(status), result=c_char_p).decode()
        self.call("ReleaseStatus", c_void_p(status), result=None)
        raise SystemExit(message)

    def get(self, name, *arguments, kind=c_void_p):  # for entries whose last argument receives the result
        out = kind()
        self.call(name, *arguments, byref(out))
        return out


def parsed(library, model, dims, *numbers):
    shape = [int(dim) for dim in dims.split(",")]
    return library, model, shape, (c_float * math.prod(shape))(*map(float, numbers))  # what is left out is 0


def main(library, model, shape, data):
    folio = Folio(library)
    session = folio.get("CreateSession", None, c_char_p(model.encode()), None)
    names = [folio.get("ValueInfoGetName", folio.get(entry, session, c_size_t(0)), kind=c_char_p)
             for entry in ("SessionGetInput", "SessionGetOutput")]
    x = folio.get("CreateTensorWithData", data, c_size_t(ctypes.sizeof(data)), (c_int64 * len(shape))(*shape),
                  c_size_t(len(shape)), FLOAT, None, None)
    y = c_void_p()
    folio.call("Run", session, None, byref(names[0]), byref(x), c_size_t(1), byref(names[1]), c_size_t(1), byref(y))
    count = folio.get("GetTensorElementCount", y, kind=c_size_t).value
    result = ctypes.cast(folio.get("GetTensorData", y), POINTER(c_float))
    print(" ".join(f"{result[i]:.9g}" for i in range(count)))
    for value in (x, y):
        folio.call("ReleaseValue", value, result=None)
    folio.call("ReleaseSession", session, result=None)


if __name__ == "__main__":
    try:
        arguments = parsed(*sys.argv[1:])
    except (IndexError, TypeError, ValueError) as error:  # more numbers than elements, too few arguments, no numbers
        print(f"run_model.py: {error}\n\n{__doc__}", file=sys.stderr)
        sys.exit(2)
    main(*arguments)
