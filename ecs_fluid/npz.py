"""Arrays of NumPy archives that strangers may have made: numbers or text, never pickled objects."""

from __future__ import annotations

import math
import zipfile

import numpy as np

from ecs_fluid.input_limits import check_bytes


def array_in(
    archive: zipfile.ZipFile,
    entry: zipfile.ZipInfo,
    kinds: str,
    becomes: type[np.generic] | None = None,
    each: float = 0.0,
) -> np.ndarray:
    """A copy of an array of an ``.npz``; `kinds` are NumPy's letters of the dtypes that are allowed.

    It is counted before it is read, as stored and as it `becomes`, or by the bytes that `each` number will
    take later on: a header may claim any shape, and a member that packs well any size. Raises LimitError;
    ValueError for what is no such array, or one of those in `NPZ_DAMAGE`.
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
        data = member.read(size + 1)  # to the end, where the checksum is looked at
    if len(data) != size:
        raise ValueError(f"{name!r} does not have the size it claims")
    return np.frombuffer(data, dtype).reshape(shape, order="F" if fortran else "C").astype(final, order="C")
