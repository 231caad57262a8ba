"""Data files of worlds that went wrong: random mutations of good ones, reproducible by a number."""

from __future__ import annotations

import io
import random
import zipfile
from pathlib import Path

import numpy as np
import pyvista
from mutations import FORMATTED, forged_array, other

from ecs_fluid.worlds.vtk_files import MESHES

WORLDS = {
    "vortons": "kind = 'vortons_from_arrays'\ncore = 0.2\nfile = {file!r}",
    "velocity": "kind = 'vortons_from_velocity'\nfile = {file!r}",
    "mesh": "kind = 'body'\ndensity = 500.0\nshape = {{ shape = 'mesh', file = {file!r} }}",
}
"""Entities that read a file."""
GOOD: dict[str, bytes] = {}
"""Content of the good files by name, which begins with the entity that reads it."""


def prepare(folder: Path) -> None:
    """Tables of vortons, velocities on a grid and meshes, in all formats and ways to write them."""
    draw = np.random.default_rng(0)
    x, alpha, sigma = draw.normal(size=(9, 3)), draw.normal(size=(9, 3)), draw.uniform(0.2, 0.3, 9)
    parts = [f"{name}_{axis}" for name in ("x", "alpha") for axis in "xyz"]
    header = ",".join(part.removeprefix("x_") for part in parts) + ",sigma\n"
    lines = [",".join(map(repr, map(float, row))) for row in np.column_stack([x, alpha, sigma])]
    GOOD["vortons.csv"] = (header + "\n".join(lines) + "\n").encode()
    columns = dict(zip(header.strip().split(","), np.column_stack([x, alpha, sigma]).T, strict=True))
    field = {"u": draw.normal(size=(4, 3, 5, 3)), "origin": np.zeros(3), "spacing": np.full(3, 0.1)}
    tables = {"vortons-a": {"x": x, "alpha": alpha, "sigma": sigma}, "vortons-b": columns, "velocity": field}
    for name, arrays in tables.items():
        for pack in (np.savez, np.savez_compressed):
            buffer = io.BytesIO()
            pack(buffer, **arrays)
            GOOD[f"{name}-{pack.__name__}.npz"] = buffer.getvalue()
    cloud = pyvista.PolyData(x)
    cloud["alpha"], cloud["sigma"] = alpha, sigma
    shapes = {
        "box": pyvista.Box().triangulate(),
        "ball": pyvista.Icosahedron(),
        "flat": pyvista.Plane(i_resolution=2, j_resolution=2).triangulate(),
        "far": pyvista.Icosahedron(center=(1e30, 0.0, 0.0), radius=1e29),
    }
    for binary in (True, False):
        made = {folder / f"vortons-{binary}.vtp": cloud}
        for name, mesh in shapes.items():
            made |= {folder / f"mesh-{name}-{binary}{end}": mesh for end in MESHES}
        for path, mesh in made.items():
            grid = mesh.cast_to_unstructured_grid() if path.suffix == ".vtu" else mesh
            grid.save(path, binary=binary)
            GOOD[path.name] = path.read_bytes()


def trial(number: int, folder: Path) -> tuple[str, list[list[str]]]:
    """A world that reads such a file is validated, or run for three ticks."""
    draw = random.Random(number)
    kind = draw.choice(
        ("vortons", "vortons", "vortons", "velocity", "velocity", "mesh")
    )  # meshes: 0.3 s each
    name = draw.choice(sorted(each for each in GOOD if each.startswith(kind)))
    data = GOOD[name]
    for _ in range(draw.choice((1, 1, 2, 4))):
        archive = name.endswith(".npz") and draw.random() < 0.7
        data = _archive(draw, data) if archive else draw.choice(FORMATTED)(draw, data)
    if draw.random() < 0.05:
        name = Path(name).stem + draw.choice((".npz", ".csv", *MESHES))
    (folder / name).write_bytes(data)
    world = folder / "world.toml"
    world.write_text("[[entity]]\nname = 'a'\n" + WORLDS[kind].format(file=name))
    run = ["run", str(world), "--ticks", "3", "--out", str(folder / "run")]
    return name, [["validate", str(world)] if number % 2 else run]


def _archive(draw: random.Random, data: bytes) -> bytes:
    """Arrays of an .npz with other numbers, shapes, dtypes or names, gone, twice, forged."""
    try:
        with np.load(io.BytesIO(data)) as stored:
            arrays = {name: np.asarray(stored[name]) for name in stored.files}
    except Exception:  # no archive any more, in whatever way: an earlier mutation has broken it
        return data
    buffer = io.BytesIO()
    way = draw.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA))
    with zipfile.ZipFile(buffer, "w", way) as archive:
        chosen, change = draw.choice([*sorted(arrays), "more"]), draw.randrange(5)
        for name, array in {**arrays, "more": np.zeros(2)}.items():
            member = io.BytesIO()
            changed = name == chosen and change == 0
            np.lib.format.write_array(member, other(draw, array) if changed else array)
            content = member.getvalue()
            if name == chosen and change in (1, 2):
                content = forged_array(draw) if change == 1 else draw.choice(FORMATTED)(draw, content)
            if name == chosen and change == 3:
                name = draw.choice(("", "../a", "/etc/a", "a/" * 40 + "b", "\u202e", "\x1b[31m", "x", "u"))
            if name != chosen or change != 4:
                archive.writestr(name + ".npy", content)
        if draw.random() < 0.03:
            for k in range(2000):
                archive.writestr(f"m{k}.npy", b"")
    return buffer.getvalue()
