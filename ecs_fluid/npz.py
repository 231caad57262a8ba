"""Arrays of NumPy archives that strangers may have made: numbers or text, never pickled objects."""

from __future__ import annotations

import math
import zipfile

import numpy as np

from ecs_fluid.input_limits import check_bytes


def read_array(
    archive: zipfile.ZipFile,
    entry: zipfile.ZipInfo,
    kinds: str,
    becomes: type[np.generic] | None = None,
    each: float = 0.0,
) -> np.ndarray:
    """A copy of an array of an ``.npz``; `kinds` are NumPy's letters of the dtypes that are allowed.

    Its memory is checked before it is read, since a header may claim any shape, and a small file may unpack
    to any size. It counts as stored plus as it `becomes`, or as `each` bytes per number, for later use, if
    that is more. Raises LimitError; ValueError or another error in `NPZ_DAMAGE` if it is no such array.
    """
    name = entry.filename.removesuffix(".npy")
    with archive.open(entry) as member:
        old = np.lib.format.read_magic(member) == (1, 0)
        read_header = np.lib.format.read_array_header_1_0 if old else np.lib.format.read_array_header_2_0
        shape, fortran, dtype = read_header(member)
        count = math.prod(shape)
        if dtype.kind not in kinds or dtype.itemsize == 0 != count:
            raise ValueError(f"{name!r} has dtype {dtype}; numbers are needed")
        if (size := count * dtype.itemsize) != entry.file_size - member.tell():
            raise ValueError(f"{name!r} does not have the size it claims")
        final = np.dtype(becomes or dtype)
        bytes_ = count * max(each, dtype.itemsize + final.itemsize)
        check_bytes(bytes_, f"{archive.filename}: the {count:,} numbers of {name!r} would take")
        data = member.read(size + 1)  # to the end, where zipfile checks the checksum
    if len(data) != size:
        raise ValueError(f"{name!r} does not have the size it claims")
    return np.frombuffer(data, dtype).reshape(shape, order="F" if fortran else "C").astype(final, order="C")
