"""OpenVDB: the volumes of `volumes`, one .vdb per frame with a grid for each field. Needs no OpenVDB library.

The tree is the standard one of three levels, 8^3 leaves in 16^3 and 32^3 nodes, file version 224, without
compression but with inactive voxels left out. Leaves without any active voxel are left out too.

Source: OpenVDB's file format, as its library reads it (`io/Archive`, `tree/RootNode`, `InternalNode`,
`LeafNode`: readTopology, then readBuffers).
"""

from __future__ import annotations

import itertools
import math
import struct
import uuid
from typing import Any, BinaryIO

import numpy as np

from ecs_fluid.exports.frames import Job
from ecs_fluid.exports.target import frame_file
from ecs_fluid.exports.volumes import Volume, Volumes

_MAGIC, _FILE_VERSION, _LIBRARY = 0x56444220, 224, (10, 0)
_ACTIVE_MASK = 2  # compression flag: of every node only active values are stored
_NO_MASK_OR_INACTIVE_VALUES = 0  # all inactive values of a node are the background
LEAF, LOWER, UPPER = 8, 16, 32
"""Children per axis of a leaf, of a node above leaves, and of a node above those."""


def write(job: Job) -> dict[str, Any]:
    """Write ``volume.NUMBER.vdb``."""
    volumes, files = Volumes(job), []
    for volume in volumes:
        file = frame_file("volume", volume.frame.file, "vdb")
        with open(job.folder / file, "wb") as handle:
            write_vdb(handle, volume)
        files.append(file)
    return {"files": files, **volumes.about()}


def write_vdb(handle: BinaryIO, volume: Volume) -> None:
    """Write one file: header, then every grid, each with the file offsets of its parts."""
    handle.write(struct.pack("<qIIIB", _MAGIC, _FILE_VERSION, *_LIBRARY, 1))
    # The file's unique id is made from its content, so that the same run gives the same bytes.
    digest = uuid.uuid5(uuid.NAMESPACE_OID, f"{volume.frame.tick} {volume.voxel} {volume.first.tolist()}")
    handle.write(str(digest).encode())
    handle.write(_metadata({"creator": "ecs_fluid", "time": volume.frame.time, "unit": "m"}))
    handle.write(struct.pack("<I", len(volume.arrays)))
    for name, array in volume.arrays.items():
        _write_grid(handle, name, array, volume)


def _write_grid(handle: BinaryIO, name: str, array: np.ndarray, volume: Volume) -> None:
    """Write a field: its description, the topology of its tree, and the values of its leaves."""
    vector = array.ndim == 4
    handle.write(_text(name) + _text("Tree_vec3s_5_4_3" if vector else "Tree_float_5_4_3") + _text(""))
    places = handle.tell()
    handle.write(b"\0" * 24)
    start = handle.tell()
    kind: dict[str, str | float] = {"class": "fog volume" if name == "density" else "unknown", "name": name}
    if vector:
        kind["vector_type"] = "contravariant relative" if name == "velocity" else "invariant"
    handle.write(struct.pack("<I", _ACTIVE_MASK) + _metadata(kind))
    handle.write(_transform(volume.voxel))
    handle.write(struct.pack("<I", 1))  # one buffer per leaf
    rest = np.float32(volume.at_rest.get(name, 0.0))
    masks, values, corners = leaves_of(array, volume.first, rest)
    _write_topology(handle, masks, corners, np.full(3 if vector else 1, rest, "<f4").tobytes())
    blocks = handle.tell()
    for mask, leaf in zip(masks, values, strict=True):
        handle.write(_bits(mask) + bytes([_NO_MASK_OR_INACTIVE_VALUES]) + leaf[mask].tobytes())
    end = handle.tell()
    handle.seek(places)
    handle.write(struct.pack("<qqq", start, blocks, end))
    handle.seek(end)


def leaves_of(
    array: np.ndarray, first: np.ndarray, background: np.floating | float = 0.0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Cut a dense field whose point (0, 0, 0) has the index ``first`` into the leaves that hold something.

    What differs from the background counts as something. Returns active masks (m, 512), values (m, 512) or
    (m, 512, 3), and the lowest indices (m, 3) of the leaves, in the order in which a tree is written: by
    upper node, then lower node, then leaf.
    """
    low = first // LEAF * LEAF
    high = -(-(first + array.shape[:3]) // LEAF) * LEAF
    tail = array.shape[3:]
    full = np.full((*(high - low), *tail), background, dtype="<f4")
    inner = tuple(slice(a, a + n) for a, n in zip(first - low, array.shape[:3], strict=True))
    full[inner] = array
    blocks = tuple(int(n) for n in (high - low) // LEAF)
    split = full.reshape(blocks[0], LEAF, blocks[1], LEAF, blocks[2], LEAF, *tail)
    values = np.moveaxis(split, (0, 2, 4), (0, 1, 2)).reshape(-1, LEAF**3, *tail)
    masks = (values != background).reshape(len(values), LEAF**3, math.prod(tail)).any(axis=2)
    corners = low + LEAF * np.stack(np.unravel_index(np.arange(len(values)), blocks), axis=1)
    full_leaves = np.flatnonzero(masks.any(axis=1))
    lower, upper = corners[full_leaves] // (LEAF * LOWER), corners[full_leaves] // (LEAF * LOWER * UPPER)
    # Lexicographic order within each level is the order of its children.
    order = full_leaves[np.lexsort((*corners[full_leaves].T[::-1], *lower.T[::-1], *upper.T[::-1]))]
    return masks[order], values[order], corners[order]


def _write_topology(handle: BinaryIO, masks: np.ndarray, corners: np.ndarray, background: bytes) -> None:
    """Write the root, its upper nodes, their lower nodes, and the masks of the leaves of these."""
    upper_size, lower_size = LEAF * LOWER * UPPER, LEAF * LOWER
    uppers = _runs(corners // upper_size)
    handle.write(background + struct.pack("<II", 0, len(uppers)))
    for begin, end in uppers:
        origin = corners[begin] // upper_size * upper_size
        handle.write(struct.pack("<iii", *origin.tolist()))
        lowers = [(begin + a, begin + b) for a, b in _runs(corners[begin:end] // lower_size)]
        firsts = corners[[a for a, _ in lowers]]
        handle.write(_node((firsts - origin) // lower_size, UPPER))
        for low, high in lowers:
            base = corners[low] // lower_size * lower_size
            handle.write(_node((corners[low:high] - base) // LEAF, LOWER))
            for mask in masks[low:high]:
                handle.write(_bits(mask))


def _runs(keys: np.ndarray) -> list[tuple[int, int]]:
    """Where equal rows of ``keys`` begin and end."""
    if not len(keys):
        return []
    starts = np.flatnonzero((keys[1:] != keys[:-1]).any(axis=1)) + 1
    ends = [0, *starts.tolist(), len(keys)]
    return list(itertools.pairwise(ends))


def _node(children: np.ndarray, width: int) -> bytes:
    """An internal node: which children it has, that it has no active tiles, and no values."""
    mask = np.zeros(width**3, dtype=bool)
    mask[np.ravel_multi_index(tuple(children.T), (width,) * 3)] = True
    return _bits(mask) + bytes(width**3 // 8) + bytes([_NO_MASK_OR_INACTIVE_VALUES])


def _bits(mask: np.ndarray) -> bytes:
    return np.packbits(mask, bitorder="little").tobytes()


def _text(text: str) -> bytes:
    data = text.encode()
    return struct.pack("<I", len(data)) + data


def _metadata(entries: dict[str, str | float]) -> bytes:
    """A map of names to texts and doubles."""
    parts = [struct.pack("<I", len(entries))]
    for name, value in entries.items():
        if isinstance(value, str):
            parts.append(_text(name) + _text("string") + _text(value))
        else:
            parts.append(_text(name) + _text("double") + struct.pack("<Id", 8, value))
    return b"".join(parts)


def _transform(voxel: float) -> bytes:
    """Index to world: a uniform scale, with the inverses that the library stores beside it."""
    scale, inverse = voxel, 1.0 / voxel
    numbers = [scale] * 6 + [inverse] * 3 + [inverse * inverse] * 3 + [0.5 * inverse] * 3
    return _text("UniformScaleMap") + struct.pack("<15d", *numbers)
