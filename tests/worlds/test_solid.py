"""Regions that are a body's shape or the inside of a mesh: liquid, fluid and tracers fill them."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ecs_fluid as ef
from ecs_fluid.component import Array
from ecs_fluid.components import Position, Volume
from ecs_fluid.components.liquid import Liquid
from ecs_fluid.errors import FluidError, FluidWarning, RecipeError
from ecs_fluid.kernels.bodies.rotation import matrix_of
from ecs_fluid.worlds import meshes
from ecs_fluid.worlds.liquid import LiquidRecipe
from ecs_fluid.worlds.regions import Solid

trimesh = pytest.importorskip("trimesh")


def made(**entity: Any) -> ef.Entity:
    return ef.load({"entity": [{"name": "it", **entity}]})["it"]


def places(**solid: Any) -> Array:
    """Places of tracers in the middles of cells of 0.05 m, one in each."""
    found = made(kind="tracers", cell=0.05, per_cell=1, jitter=0.0, solid=solid)
    return np.asarray(found[Position].x.astype(np.float64))


@pytest.fixture
def torus(tmp_path: Path) -> str:
    """A ring of R = 1 m and r = 0.35 m, 2 m up, in a file in mm."""
    pytest.importorskip("pyvista")
    mesh = trimesh.creation.torus(1.0, 0.35, major_sections=96, minor_sections=48)
    mesh.apply_translation([0.0, 0.0, 2.0])
    mesh.apply_scale(1000.0)
    mesh.export(tmp_path / "ring.ply")
    return str(tmp_path / "ring.ply")


@pytest.mark.parametrize("kind", ["liquid", "fluid_block"])
def test_a_ring_keeps_its_hole_and_its_volume(torus: str, kind: str) -> None:
    """2 pi^2 R r^2, less what 48 sides leave out, to half a per cent with cells of 0.05 m; no axis."""
    entity = made(kind=kind, spacing=0.05, solid={"shape": {"shape": "mesh", "file": torus, "scale": 1e-3}})
    volume = entity[Liquid].volume if kind == "liquid" else entity[Volume].volume
    inscribed = np.sin(2 * np.pi / 48) / (2 * np.pi / 48)
    assert np.isclose(volume.sum(), 2 * np.pi**2 * 0.35**2 * inscribed, rtol=5e-3)
    x = entity[Position].x
    assert np.hypot(x[:, 0], x[:, 1]).min() > 0.64
    np.testing.assert_allclose(x.mean(axis=0), [0.0, 0.0, 2.0], atol=1e-4)


def test_where_it_is_put(torus: str) -> None:
    """A quarter turn about x lays the axis along -y; `center` is that of mass, wherever the file has it."""
    x = places(
        shape={"shape": "mesh", "file": torus, "scale": 1e-3},
        center=[1.0, 2.0, 3.0],
        rotation=[np.pi / 2, 0, 0],
    )
    x = x - [1.0, 2.0, 3.0]
    assert np.hypot(np.hypot(x[:, 0], x[:, 2]) - 1.0, x[:, 1]).max() < 0.351
    assert np.hypot(x[:, 0], x[:, 2]).min() > 0.64


@pytest.mark.parametrize(
    ("shape", "volume"),
    [
        ({"shape": "ball", "radius": 0.5}, np.pi / 6),
        ({"shape": "box", "size": [1.0, 0.5, 0.3]}, 0.15),
        ({"shape": "cylinder", "radius": 0.4, "height": 0.5, "sides": 64}, np.pi * 0.08),
        ({"shape": "octahedron", "radius": 0.8}, 4 / 3 * 0.8**3),
        ({"shape": "wedge", "length": 1.0, "width": 0.6, "height": 0.5}, 0.15),
    ],
    ids=lambda value: value["shape"] if isinstance(value, dict) else "",
)
@pytest.mark.parametrize("turn", [[0.0, 0.0, 0.0], [0.3, -0.8, 0.5]])
def test_shapes_of_bodies(shape: dict[str, Any], volume: float, turn: list[float]) -> None:
    """Volumes to what a lattice of 0.02 m tells of their surfaces; places turn with it."""
    solid = Solid.model_validate({"shape": shape, "center": [3.0, -1.0, 2.0], "rotation": turn})
    liquid = LiquidRecipe(name="it", solid=solid, spacing=0.02)
    world = ef.World(precision="double")
    liquid.build(world)
    x, volumes = world["it"][Position].x, world["it"][Liquid].volume
    assert np.isclose(volumes.sum(), volume, rtol=0.02)
    np.testing.assert_allclose(x.mean(axis=0), [3.0, -1.0, 2.0], atol=0.004)
    straight = LiquidRecipe(name="it", solid=Solid.model_validate({"shape": shape}), spacing=0.02)
    world = ef.World(precision="double")
    straight.build(world)
    first = world["it"][Position].x
    first = first - first.mean(axis=0)
    np.testing.assert_allclose(
        np.linalg.norm(x - x.mean(axis=0), axis=1), np.linalg.norm(first, axis=1), atol=1e-12
    )


def test_a_box_is_filled_as_a_box_is() -> None:
    """A solid box and the region `box`: the same lattice, edges along faces and all."""
    given = made(kind="liquid", spacing=0.1, box={"low": [-0.5, -0.25, 0.0], "high": [0.5, 0.25, 1.0]})
    solid = {"shape": {"shape": "box", "size": [1.0, 0.5, 1.0]}, "center": [0.0, 0.0, 0.5]}
    other = made(kind="liquid", spacing=0.1, solid=solid)
    np.testing.assert_allclose(given[Position].x, other[Position].x, atol=1e-7)
    np.testing.assert_array_equal(given[Liquid].volume, other[Liquid].volume)


def test_meshes_without_an_inside(tmp_path: Path) -> None:
    """Points alone and a flat sheet are refused; a box with a hole, or a face the wrong way, is told."""
    pytest.importorskip("pyvista")
    shape = {"shape": "mesh", "file": str(tmp_path / "it.obj")}
    corners = "".join(f"v {a} {b} {c}\n" for a in (0, 1) for b in (0, 1) for c in (0, 1))
    (tmp_path / "it.obj").write_text(corners)
    with pytest.raises(RecipeError, match=r"'.*it\.obj' cannot be filled: its faces enclose no volume"):
        places(shape=shape)
    (tmp_path / "it.obj").write_text(corners + "f 1 2 4\nf 1 4 3\n")
    with pytest.raises(RecipeError, match="its faces enclose no volume"):
        places(shape=shape)
    box = trimesh.creation.box((1.0, 1.0, 1.0))
    for faces, said in (
        (box.faces[:-1], "3 of 18 edges"),
        (np.vstack([box.faces[:-1], box.faces[-1:, ::-1]]), "3 of 18 edges"),
    ):
        trimesh.Trimesh(box.vertices, faces, process=False).export(tmp_path / "it.obj")
        with pytest.warns(FluidWarning, match=rf"not closed, or not all of its faces face outward: {said}"):
            places(shape=shape)
    box.export(tmp_path / "it.obj")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(places(shape=shape)) == 8_000


def test_a_sheet_that_leans(tmp_path: Path) -> None:
    """Its volume is that of rounding, not nothing; a plate of a hundredth of its width has an inside."""
    pytest.importorskip("pyvista")
    shape = {"shape": "mesh", "file": str(tmp_path / "it.ply")}
    box = trimesh.creation.box((1.0, 1.0, 0.01))
    box.apply_transform(trimesh.transformations.rotation_matrix(0.4, [1.0, 2.0, 3.0], [7.0, 0.0, 1.0]))
    box.export(tmp_path / "it.ply")
    assert len(places(shape=shape))
    top = box.faces[box.face_normals @ box.face_normals[0] > 0.9]
    trimesh.Trimesh(box.vertices, top, process=False).export(tmp_path / "it.ply")
    with pytest.raises(RecipeError, match="its faces enclose no volume"):
        places(shape=shape)


def test_parts_that_face_inward(tmp_path: Path) -> None:
    """A ball beside a larger one that is inside out: both filled, and told; a hollow ball is neither."""
    pytest.importorskip("pyvista")
    shape = {"shape": "mesh", "file": str(tmp_path / "it.ply")}
    ball, other, hollow = (trimesh.creation.icosphere(2, r) for r in (0.5, 0.6, 0.3))
    other.apply_translation([3.0, 0.0, 0.0])
    other.invert()
    hollow.invert()
    trimesh.util.concatenate([ball, other]).export(tmp_path / "it.ply")
    with pytest.warns(FluidWarning, match="outward and .* inward; all are filled, but the centre"):
        x = places(shape=shape)
    for center, radius in (([0.0, 0.0, 0.0], 0.5), ([3.0, 0.0, 0.0], 0.6)):
        volume = np.count_nonzero(np.linalg.norm(x - center, axis=1) < radius) * 0.05**3
        assert np.isclose(volume, 4 / 3 * np.pi * radius**3, rtol=0.06)
    other.apply_scale(0.5 / 0.6)
    trimesh.util.concatenate([ball, other]).export(tmp_path / "it.ply")
    with pytest.raises(RecipeError, match="as much as those that face outward"):
        places(shape=shape)
    trimesh.util.concatenate([ball, hollow]).export(tmp_path / "it.ply")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.linalg.norm(places(shape=shape), axis=1).min() > 0.29


def test_too_many_pairs_are_refused(torus: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A mesh of large triangles everywhere would be looked at for days."""
    monkeypatch.setattr(meshes, "MOST_LOOKED_AT", 1_000)
    with pytest.raises(RecipeError, match=r"places and 9,216 triangles make .* pairs, but at most 1e\+03"):
        places(shape={"shape": "mesh", "file": torus, "scale": 1e-3})


def test_in_a_plane() -> None:
    """What the plane cuts out of a box that is turned in it; one that leans is refused, as a ring is."""
    block: dict[str, Any] = {"kind": "fluid_block", "name": "it", "spacing": 0.02, "density": 0.9}
    shape = {"shape": "box", "size": [1.0, 0.5, 0.3]}
    tables: dict[str, Any] = {
        "world": {"dimension": 2},
        "entity": [{**block, "solid": {"shape": shape, "rotation": [0, 0, 0.6]}}],
    }
    entity = ef.load(tables)["it"]
    assert not entity[Position].x[:, 2].any()
    assert np.isclose(entity[Volume].volume.sum(), 0.5, rtol=1e-5)
    for region in (
        {"solid": {"shape": shape, "rotation": [0.3, 0, 0]}},
        {"torus": {"axis": [1, 0, 1], "radius": 1, "core": 0.2}},
    ):
        tables["entity"] = [{**block, **region}]
        with pytest.raises(
            RecipeError, match="leans out of the plane of a world of dimension = 2; turn it about z"
        ):
            ef.load(tables)


@pytest.mark.parametrize(
    "region",
    [
        {"box": {"low": [0, 0, 1], "high": [1, 1, 2]}},
        {"sphere": {"center": [0, 0, -2], "radius": 1}},
        {"solid": {"shape": {"shape": "ball", "radius": 1}, "center": [0, 0, 1.1]}},
    ],
)
def test_off_the_plane(region: dict[str, Any]) -> None:
    """A box 1 m above it filled it all the same; of others no cell was said to be small enough."""
    block = {"kind": "fluid_block", "name": "it", "spacing": 0.1, "density": 0.9, **region}
    with pytest.raises(RecipeError, match=r"does not reach the plane of a world of .* move it along z"):
        ef.load({"world": {"dimension": 2}, "entity": [block]})
    source = {"kind": "emitter", "name": "it", "into": "smoke", **region}
    if "solid" in region:
        with pytest.raises(RecipeError, match="does not reach the plane"):
            ef.load({"world": {"dimension": 2}, "entity": [source]})


def born(seconds: float = 1.0, **emitter: Any) -> ef.World:
    """A world after a second of 20,000 births."""
    table = {"kind": "emitter", "name": "source", "into": "smoke", "rate": 20_000, **emitter}
    world = ef.load({"world": {"dt": 0.1, "precision": "double"}, "entity": [table]})
    for _ in range(round(seconds / 0.1)):
        world.step()
    return world


def test_births_in_a_solid() -> None:
    """In a pyramid of six sides: an eighth in half of its height, a quarter in half of its width."""
    corners = [[np.cos(a), np.sin(a), 0.0] for a in np.arange(6) * np.pi / 3] + [[0.0, 0.0, 2.0]]
    solid = {"shape": {"shape": "points", "points": corners}, "center": [0.0, 0.0, 0.5]}
    x = born(center=[3.0, 0.0, 0.0], solid=solid)["smoke"][Position].x - [3.0, 0.0, 0.0]
    assert len(x) == 20_000
    # Standard error of a mean of 20,000 heights: sqrt(3/80) 2 m / sqrt(20,000) = 0.003 m.
    np.testing.assert_allclose(x.mean(axis=0), [0.0, 0.0, 0.5], atol=0.015)
    normals = [[np.cos(a), np.sin(a)] for a in (np.arange(6) + 0.5) * np.pi / 3]
    out = (x[:, :2] @ np.transpose(normals)).max(axis=1) / np.sqrt(0.75)
    assert (out + x[:, 2] / 2).max() < 1.12
    assert np.isclose(np.count_nonzero(x[:, 2] > 1.0), 20_000 / 8, rtol=0.1)
    assert np.isclose(np.count_nonzero(out < 0.5 - x[:, 2] / 4), 20_000 / 4, rtol=0.05)


def test_births_around_a_body_that_carries_them() -> None:
    """In a skin of 0.1 m around a block that leans: volumes off its faces, edges and corners, in its axes.

    Off the faces are 2 (ab + bc + ca) s, off the edges pi s^2 (a + b + c), off the corners 4/3 pi s^3.
    """
    size, skin = np.array([2.0, 1.2, 0.8]), 0.1
    shape = {"shape": "box", "size": size.tolist()}
    block = {"kind": "body", "name": "block", "shape": shape, "center": [2.0, 0.0, 0.0], "motion": "fixed"}
    table = {"kind": "emitter", "name": "source", "into": "smoke", "rate": 20_000, "attached": "block"}
    entities = [{**block, "rotation": [0.3, 0.8, 0.0]}, {**table, "solid": {"shape": shape}, "skin": skin}]
    world = ef.load({"world": {"dt": 1.0, "precision": "double"}, "entity": entities})
    world.step()
    x = world["smoke"][Position].x - [2.0, 0.0, 0.0]
    out = np.abs(x @ matrix_of(world["block"][ef.Pose].q[0])) - size / 2
    away = np.linalg.norm(np.maximum(out, 0.0), axis=1)
    assert len(x) > 19_000  # the others began in the block
    assert out.max(axis=1).min() > -1e-12
    assert away.max() < 1.6 * skin
    a, b, c = size
    faces, edges = 2 * (a * b + b * c + c * a) * skin, np.pi * skin**2 * (a + b + c)
    off_faces = np.count_nonzero((out > 0.0).sum(axis=1) == 1) / len(x)
    assert np.isclose(off_faces, faces / (faces + edges + 4 / 3 * np.pi * skin**3), atol=0.02)
    assert np.isclose(away.mean(), skin / 2, rtol=0.05)


SHAPES = [
    {"shape": "ball", "radius": 0.5},
    {"shape": "wedge", "length": 1.0, "width": 0.6, "height": 0.5},
    {
        "shape": "compound",
        "parts": [
            {"shape": {"shape": "box", "size": [1.0, 0.2, 0.2]}, "center": [0.5, 0.0, 0.0]},
            {"shape": {"shape": "box", "size": [0.2, 0.2, 0.8]}, "center": [0.0, 0.0, 0.3]},
        ],
    },
]


def test_a_skin_is_around_the_body_that_carries_it() -> None:
    """The cells are those of the same shape as `solid`; turned bodies too, as cells are in their axes."""
    for shape in SHAPES:
        body = {"kind": "body", "name": "log", "motion": "fixed", "shape": shape, "rotation": [0.3, 0.1, 2.0]}
        emitter = {"kind": "emitter", "name": "source", "into": "smoke", "skin": 0.1, "attached": "log"}
        solid = {"solid": {"shape": shape, "center": [0.0, 0.0, 0.0]}}
        own, given = (
            ef.load({"world": {"precision": "double"}, "entity": [body, emitter | more]})["source"]
            for more in ({}, solid)
        )
        np.testing.assert_allclose(own[ef.BirthCells].x, given[ef.BirthCells].x, rtol=0, atol=1e-12)


def test_a_skin_without_a_body_is_told() -> None:
    """A container, bodies that are several, and what is not there."""
    tank = {"kind": "container", "name": "tank", "shape": {"shape": "box", "size": [1.0, 1.0, 1.0]}}
    balls = {"kind": "spheres", "name": "balls", "centers": [[0, 0, 0], [3, 0, 0]], "radius": 0.5}
    emitter = {"kind": "emitter", "name": "source", "into": "smoke", "skin": 0.1}
    for name, said in (
        ("tank", r"'tank' names none .*\(known: balls\)"),
        ("Balls", r"'Balls' names none .*\(did you mean 'balls'\?\)"),
        ("balls", "'balls' has several"),
    ):
        with pytest.raises(RecipeError, match=f"{said}.*; give the solid too"):
            ef.load({"entity": [tank, balls, emitter | {"attached": name}]})
    with pytest.raises(RecipeError, match="or attach the emitter to the body that it surrounds"):
        ef.load({"entity": [balls, emitter | {"attached": "balls", "attached_by": "mean"}]})


def test_births_go_on_without_the_file(torus: str, tmp_path: Path) -> None:
    """A checkpoint has the cells: a resumed world has the bits of the one that went on."""
    world = born(0.3, solid={"shape": {"shape": "mesh", "file": torus, "scale": 1e-3}})
    world.save(tmp_path / "world.npz")
    Path(torus).unlink()
    again = ef.resume(tmp_path / "world.npz")
    for one in (world, again):
        one.step()
        one.step()
    assert len(again["smoke"][Position].x) == 10_000
    assert again.state_hash() == world.state_hash()


def test_a_skin_around_what_is_thinner_than_its_cells(tmp_path: Path) -> None:
    """A leaning sheet of 1 m x 1 m x 3 mm: as much off each hundredth of its face."""
    pytest.importorskip("pyvista")
    sheet = trimesh.creation.box((1.0, 1.0, 0.003))
    turn = trimesh.transformations.rotation_matrix(0.5, [1.0, 0.6, 0.2])
    sheet.apply_transform(turn)
    sheet.export(tmp_path / "it.ply")
    solid = Solid.model_validate({"shape": {"shape": "mesh", "file": str(tmp_path / "it.ply")}})
    x = solid.space().cells(0.1, None)[0] @ turn[:3, :3]
    away = np.linalg.norm(np.maximum(np.abs(x) - [0.5, 0.5, 0.0015], 0.0), axis=1)
    assert away.max() < 0.11
    off = np.abs(x[:, :2]).max(axis=1) < 0.5
    parts = np.histogram2d(*x[off, :2].T, 10)[0]
    assert parts.min() > 0.8 * parts.mean()


def test_cells_of_a_thin_skin_stay_few() -> None:
    """A skin of 0.02 m on a ball of 1 m has 200,000 cells: 50,000 of them stand for all, spread evenly."""
    solid = {"shape": {"shape": "ball", "radius": 0.5}}
    world = born(0.1, solid=solid, skin=0.02)
    x = world["source"][ef.BirthCells].x
    assert len(x) == 50_000
    assert np.abs(x.mean(axis=0)).max() < 2e-3
    np.testing.assert_allclose((x**2).mean(axis=0), (x**2).sum(axis=1).mean() / 3, rtol=5e-3)
    world["source"][ef.BirthCells].x = np.empty((0, 3))
    with pytest.raises(FluidError, match="BirthCells of emitter 'source' has no cells"):
        world.step()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"skin": 0.1}, "skin is given without solid"),
        (
            {"solid": {"shape": {"shape": "ball", "radius": 1}}, "shape": "disc"},
            "only one region of birth is allowed",
        ),
        (
            {"solid": {"shape": {"shape": "ball", "radius": 1}}, "skin": 1e-5},
            "skin is too thin to be resolved by 4,000,000 cells",
        ),
        ({"solid": {"shape": {"shape": "ball"}}}, "'solid.shape.radius' is missing"),
    ],
)
def test_regions_of_birth_that_make_no_sense(given: dict[str, Any], said: str) -> None:
    with pytest.raises(RecipeError, match=said):
        born(0.0, **given)


def test_births_in_a_plane() -> None:
    """In the disk that a plane cuts out of a ball off it: r = sqrt(1 - 0.6^2), all of it alike."""
    solid = {"shape": {"shape": "ball", "radius": 1.0}, "center": [0.0, 0.0, 0.6]}
    table = {"kind": "emitter", "name": "source", "into": "smoke", "rate": 20_000, "solid": solid}
    world = ef.load({"world": {"dt": 0.1, "dimension": 2}, "entity": [table]})
    world.step()
    x = world["smoke"][Position].x
    assert not x[:, 2].any()
    r = np.hypot(x[:, 0], x[:, 1])
    assert r.max() < 0.83
    assert np.isclose((r**2).mean(), 0.32, rtol=0.03)
