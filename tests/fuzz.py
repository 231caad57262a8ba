"""Coverage-guided fuzzing of what reads files of strangers, by atheris (Linux, ``pip install atheris``):

    python tests/fuzz.py world|checkpoint -max_total_time=300 [folder with a corpus]

Ends with the input that raised anything but a FluidError, took longer than ``-timeout`` or more memory than
``-rss_limit_mb``. Python code alone is watched, not the libraries and not the compiled kernels. It is no
test that pytest collects.
"""

from __future__ import annotations

import hashlib
import io
import sys
import tempfile
import warnings
import zipfile
from pathlib import Path

import atheris

WATCHED = ("recipe", "explain", "io.checkpoint", "io.untrusted", "worlds.world_recipe")

with atheris.instrument_imports(include=[f"ecs_fluid.{name}" for name in WATCHED] + ["tomllib._parser"]):
    from ecs_fluid.errors import FluidError
    from ecs_fluid.io.checkpoint import load_checkpoint
    from ecs_fluid.world_files import read_tables
    from ecs_fluid.worlds.world_recipe import WorldRecipe

FOLDER = Path(tempfile.mkdtemp(dir="/dev/shm" if Path("/dev/shm").is_dir() else None))


def world(data: bytes) -> None:
    """The loader, up to the checked recipe; making its particles may take the memory that they take."""
    path = FOLDER / ("a.json" if data[:1] == b"{" else "a.toml")
    path.write_bytes(data)
    WorldRecipe.from_tables(read_tables(path), path.name, False, FOLDER)


def checkpoint(data: bytes) -> None:
    """A zip under a seal that fits: any bytes, or a sound one whose header and array are any bytes."""
    if data[:1] < b"\x80":
        body = data + b"ecs_fluid checkpoint format 000001 blake2b "
    else:
        header, _, array = data[1:].partition(b"\n\n")
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as archive:
            archive.writestr("checkpoint.json", header)
            archive.writestr("x.npy", array)
            archive.comment = b"ecs_fluid checkpoint format 000001 blake2b " + b"0" * 64
        body = buffer.getvalue()[:-64]
    path = FOLDER / "a.npz"
    path.write_bytes(body + hashlib.blake2b(body, digest_size=32).hexdigest().encode())
    load_checkpoint(path)


def main() -> None:
    """The first argument chooses what is read; the others are those of libFuzzer."""
    warnings.simplefilter("ignore")
    read = {"world": world, "checkpoint": checkpoint}[sys.argv.pop(1)]

    def once(data: bytes) -> None:
        try:
            read(data)
        except FluidError as error:
            if "\n" in str(error):
                raise AssertionError(f"more than one line: {error}") from error

    atheris.Setup(sys.argv, once)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
