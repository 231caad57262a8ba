"""Cache files of compiled code that are safe against damage and against a second process.

numba does not check its files. A file cut short by a power failure or a full disk ended every run with an
error of `pickle` until it was deleted, and zeros in machine code may crash the process. Here a file ends with
a checksum; one that does not agree with it, or cannot be read, is compiled anew. A file that cannot be
written, on a full disk, ended the run too; now it causes a warning.

numba also numbers the files of a function. If two processes compile it at the same time, for single and for
double precision, both use the number 1, and the code of one is then found under the types of the other. Here
the name of a file follows from the types.
"""

from __future__ import annotations

import hashlib
import pickle
import warnings
import zlib
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

from numba.core import caching

CHECKSUM = 4
"""Bytes of the checksum; `pickle` ignores what follows its end."""


class CacheFiles(caching.IndexDataCacheFile):  # type: ignore[misc]
    """Index and compiled code of one function."""

    read: ClassVar[int] = 0
    """How many files of compiled code this process has read."""

    def save(self, key: Any, data: Any) -> None:
        """Store the code for the types and the processor of `key`; warn once if the disk has no room."""
        number = int.from_bytes(hashlib.blake2b(repr(key).encode(), digest_size=8).digest(), "little")
        name = self._data_name(number)
        try:
            self._save_data(name, data)
            self._save_index(self._load_index() | {key: name})
        except OSError as error:
            _warn(error.strerror or str(error))

    def _load_index(self) -> Any:
        try:
            return super()._load_index()
        except Exception:  # damaged bytes make pickle raise almost any kind of exception
            return {}

    def _load_data(self, name: str) -> Any:
        data = Path(self._data_path(name)).read_bytes()
        CacheFiles.read += 1
        if _checksum(data[:-CHECKSUM]) != data[-CHECKSUM:]:
            raise FileNotFoundError(f"{name} is damaged")  # numba then compiles anew
        return pickle.loads(data)

    def _dump(self, obj: Any) -> bytes:
        data: bytes = super()._dump(obj)
        return data + _checksum(data)


class KernelsNotKept(UserWarning):
    """Every run compiles its kernels anew."""


@cache
def _warn(reason: str) -> None:
    warnings.warn(
        f"compiled kernels are not kept ({reason}), so every run compiles them anew; make "
        "room, or set ECS_FLUID_CACHE_DIR to a folder on another disk",
        KernelsNotKept,
        stacklevel=3,
    )


def _checksum(data: bytes) -> bytes:
    return zlib.crc32(data).to_bytes(CHECKSUM, "little")


def use_checked_files(folder: str) -> None:
    """Use `CacheFiles` from now on for compiled code in this folder, and numba's own files elsewhere."""
    usual = caching.IndexDataCacheFile

    def files(cache_path: str, filename_base: str, source_stamp: Any) -> Any:
        kind = CacheFiles if Path(cache_path).is_relative_to(folder) else usual
        return kind(cache_path=cache_path, filename_base=filename_base, source_stamp=source_stamp)

    caching.IndexDataCacheFile = files
