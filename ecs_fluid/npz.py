"""Arrays of NumPy archives that strangers may have made: numbers or text, never pickled objects."""

from __future__ import annotations

import io
import math
import zipfile

import numpy as np


def array_in(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, kinds: str) -> np.ndarray:
    """A copy of an array of an ``.npz``; `kinds` are NumPy's letters of the dtypes that are allowed.

    Memory is taken by the member's size, not by the array's header, which may claim any shape. Raises
    ValueError for what is no such array, or one of those in `NPZ_DAMAGE`.
    """
    name = entry.filename.removesuffix(".npy")
    with archive.open(entry) as member:
        stream = io.BytesIO(member.read(entry.file_size + 1))
    old = np.lib.format.read_magic(stream) == (1, 0)
    read_header = np.lib.format.read_array_header_1_0 if old else np.lib.format.read_array_header_2_0
    shape, fortran, dtype = read_header(stream)
    count = math.prod(shape)
    if dtype.kind not in kinds or dtype.itemsize == 0 != count:
        raise ValueError(f"{name!r} has dtype {dtype}; numbers are needed")
    data = stream.getvalue()
    if count * dtype.itemsize != len(data) - stream.tell():
        raise ValueError(f"{name!r} does not have the size it claims")
    flat = np.frombuffer(data, dtype, count, stream.tell())
    return flat.reshape(shape, order="F" if fortran else "C").copy()
