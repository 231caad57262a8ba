"""Recipes of bodies and containers: shapes, mass, scripts, and what is refused."""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from scipy.spatial import ConvexHull

import ecs_fluid as ef
from ecs_fluid.exports.bodies import rotation_matrix
from ecs_fluid.worlds.hulls import hull_of_planes, hull_of_vertices
from ecs_fluid.worlds.shapes import PointsShape
from ecs_fluid.worlds.world_recipe import WorldRecipe
from tests.resuming import resumed

BOX = {"shape": "box", "size": [1.0, 2.0, 0.5]}


def built(
    *entities: dict[str, Any],
    system: tuple[dict[str, Any], ...] = (),
    fluid: dict[str, Any] | None = None,
    **world: Any,
) -> ef.World:
    """The world of these entity tables."""
    tables = {
        "world": {"dt": 0.1, "precision": "double", **world},
        "fluid": fluid or {},
        "entity": list(entities),
        "system": system,
    }
    return ef.load(WorldRecipe.from_tables(tables))


def test_body_gets_its_shapes_mass() -> None:
    """Mass = density x volume and the box's tensor m (b^2 + c^2)/12; a ball 4/3 pi r^3 and 2/5 m r^2."""
    world = built(
        {"kind": "body", "name": "crate", "shape": BOX, "density": 500.0, "center": [0, 0, 3]},
        {"kind": "body", "name": "ball", "shape": {"shape": "ball", "radius": 0.5}, "mass": 2.0},
    )
    crate, ball = world["crate"][ef.Body], world["ball"][ef.Body]
    assert np.isclose(crate.mass[0], 500.0, rtol=1e-14)
    assert np.allclose(crate.inertia[0], 500 / 12 * np.diag([4.25, 1.25, 5.0]), atol=1e-11)
    assert ball.mass[0] == 2.0 and np.allclose(ball.inertia[0], 0.2 * np.eye(3), atol=1e-15)


def test_points_stay_where_they_are() -> None:
    """Without a center a shape's own coordinates are the world's: a tetrahedron's centroid is its mean."""
    points = [[0, 0, 0], [4, 0, 0], [0, 4, 0], [0, 0, 4]]
    world = built(
        {"kind": "body", "name": "rock", "shape": {"shape": "points", "points": points}, "motion": "fixed"}
    )
    assert np.allclose(world["rock"][ef.Pose].x, [[1, 1, 1]], atol=1e-14)
    table = world["rock"][ef.HullTable]
    corners = table.vertices + world["rock"][ef.Pose].x
    assert {tuple(np.round(corner, 12)) for corner in corners} == {tuple(map(float, p)) for p in points}


def test_mesh_file_gives_its_hull(tmp_path: Path) -> None:
    """An STL box of 2 x 3 x 4 read by PyVista: volume 24; its folder is the world file's."""
    pyvista = pytest.importorskip("pyvista")
    pyvista.Box((0, 2, 0, 3, 0, 4)).triangulate().save(tmp_path / "crate.stl")
    (tmp_path / "w.toml").write_text(
        '[[entity]]\nkind = "body"\nname = "crate"\ndensity = 1.0\n'
        'shape = {shape = "mesh", file = "crate.stl"}\n'
    )
    world = ef.load(tmp_path / "w.toml")
    assert np.isclose(world["crate"][ef.Body].mass[0], 24, rtol=1e-6)
    assert np.allclose(world["crate"][ef.Pose].x, [[1, 1.5, 2]], atol=1e-6)
    with pytest.raises(ef.RecipeError, match=r"\.\./crate\.stl"):
        ef.load(tmp_path / "w.toml", 'crate.shape.file="../crate.stl"')
    (tmp_path / "crate.stl").write_text("solid nothing")
    with pytest.raises(ef.RecipeError, match="crate"):
        ef.load(tmp_path / "w.toml")


def test_a_body_is_put_by_its_own_origin() -> None:
    """Points of a box from 0 to (2, 4, 6), turned by 90 degrees about z: (x, y, z) goes to (-y, x, z).

    Its centre (1, 2, 3) lies at origin + (-2, 1, 3), and each corner where it would be in another program;
    also with a hinge at a point, by which the frame of the body then is.
    """
    points = [[float(x), float(y), float(z)] for x in (0, 2) for y in (0, 4) for z in (0, 6)]
    put = {"origin": [10.0, 20.0, 30.0], "rotation": [0.0, 0.0, np.pi / 2]}
    body = {"kind": "body", "name": "rock", "shape": {"shape": "points", "points": points}, **put}
    room = body | {"kind": "container", "name": "room"}
    hinge = {"axis": [0.0, 0.0, 1.0], "point": [10.0, 20.0, 30.0]}
    for table, place in ((body, (8, 21, 33)), (room, (8, 21, 33)), (body | {"hinge": hinge}, (10, 20, 30))):
        recipe = WorldRecipe.from_tables({"entity": [table]})
        entity = recipe.build()[table["name"]]
        np.testing.assert_allclose(entity[ef.Pose].x, [place], atol=1e-12)
        corners = entity[ef.HullTable].vertices @ rotation_matrix(entity[ef.Pose].q[0]).T + entity[ef.Pose].x
        expected = np.array([[10 - y, 20 + x, 30 + z] for x, y, z in points])
        own = [0.0, 0.0, 0.0] if "hinge" in table else [-1.0, -2.0, -3.0]
        np.testing.assert_allclose(cast("Any", recipe.entity[0]).own_origin, own, atol=1e-12)
        assert {tuple(row) for row in corners.round(9)} == {tuple(row) for row in expected.round(9)}
    with pytest.raises(ef.RecipeError, match="center and origin are both given; only one of them is allowed"):
        ef.load({"entity": [body | {"center": [0.0, 0.0, 0.0]}]})


def test_a_container_may_be_a_ball() -> None:
    """180 faces that enclose 4/3 pi r^3, with corners 2 % out and faces 1 % in, to which tracers fill it."""
    room = {
        "kind": "container",
        "name": "globe",
        "shape": {"shape": "ball", "radius": 0.5},
        "center": [3, 0, 0],
    }
    snow = {"kind": "tracers", "name": "snow", "fills": "globe", "cell": 0.05, "per_cell": 1, "jitter": 0.0}
    world = ef.load({"entity": [room, snow]})
    table = world["globe"][ef.HullTable]
    assert ConvexHull(table.vertices).volume == pytest.approx(4 / 3 * np.pi * 0.5**3, rel=1e-6)
    assert len(table.planes) == 180 and table.planes[:, 3].min() > 0.49
    away = np.linalg.norm(world["snow"][ef.Position].x - [3.0, 0.0, 0.0], axis=1)
    assert 0.48 < away.max() < 0.511
    assert len(away) * 0.05**3 == pytest.approx(4 / 3 * np.pi * 0.5**3, rel=0.03)


def test_a_frame_off_by_rounding_is_none() -> None:
    """Of four blades around an axis the centre of mass is on it to 1e-17 m, which was told as an offset."""
    blade = {
        "shape": {"shape": "box", "size": [0.25, 0.08, 0.6]},
        "center": [0, 0, 0.5],
        "rotation": [0, 0, 0.5],
    }
    shape = {"shape": "compound", "parts": [{**blade, "copies": 4, "around": [1, 0, 0]}]}
    recipe = WorldRecipe.from_tables({"entity": [{"kind": "body", "name": "mill", "shape": shape}]})
    recipe.build()
    assert not cast("Any", recipe.entity[0]).own_origin.any()


def test_spheres_are_rows_of_one_entity() -> None:
    """Radius of all, velocities one each; masses go with the cube of the radius."""
    world = built(
        {
            "kind": "spheres", "name": "bubbles", "centers": [[0, 0, 0], [3, 0, 0]], "radius": [0.5, 1.0],
            "velocity": [[1, 0, 0], [0, 2, 0]], "density": 10.0,
        },
        fluid={"gravity": [0, 0, 0]},
    )  # fmt: skip
    bubbles = world["bubbles"]
    assert len(bubbles) == 2 and np.isclose(bubbles[ef.Body].mass[1], 8 * bubbles[ef.Body].mass[0])
    world.step(5)
    assert np.allclose(bubbles[ef.Pose].x, [[0.5, 0, 0], [3, 1, 0]], atol=1e-14)


def test_keyed_container_carries_its_smoke(tmp_path: Path) -> None:
    """A container keyed to and fro and round keeps all tracers; a chosen BodySystem gets its script too.

    Also through a world file, resumed in the middle: the script is a parameter of the system.
    """
    # It stands still while the emitter fills it: what is born outside a container is none of its business.
    keys = [[0.2, [0, 0, 0]], [1.0, [2.0, 0, 0]], [2.0, [0, 1.0, 0]]]
    tank = {
        "kind": "container", "name": "tank", "shape": BOX, "center": {"keys": keys},
        "rotation": {"keys": [[0.2, [0, 0, 0]], [2.0, [0, 0, 6.0]]]},
    }  # fmt: skip
    smoke = {
        "kind": "emitter", "name": "tap", "into": "smoke", "rate": 3000.0, "spread": [0.5, 0.5, 0.4],
        "stop": 0.15,
    }  # fmt: skip
    world = built(smoke, tank, system=({"kind": "body", "substeps": 2},))
    world.step(2)
    count = len(world["smoke"])
    assert count > 100
    world.step(8)
    assert np.allclose(world["tank"][ef.Pose].x, [[2, 0, 0]], atol=1e-13)
    resumed(world, tmp_path, 10)
    assert np.allclose(world["tank"][ef.Pose].x, [[0, 1, 0]], atol=1e-13)
    overlap = world.system(ef.CollisionSystem).overlap(world["smoke"][ef.Position].x)
    assert len(world["smoke"]) == count and overlap.max() <= 0


MISTAKES = [
    ({"shape": {"shape": "box", "size": [1, 0, 1]}}, "size"),
    ({"shape": {"shape": "blob"}}, "shape"),
    ({"shape": BOX, "density": 0.0}, "density"),
    ({"shape": BOX, "center": {"keys": [[0, [0, 0, 0]]]}}, "scripted"),
    ({"shape": BOX, "motion": "fixed", "angular_velocity": [1, 0, 0]}, "fixed"),
    ({"shape": {"shape": "points", "points": [[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0]]}}, "plane"),
    ({"shape": {"shape": "planes", "planes": [[1, 0, 0, 1]] * 4}}, "open"),
    ({"shape": {"shape": "mesh", "file": "nowhere.stl"}}, "does not exist"),
]


@pytest.mark.parametrize(("given", "word"), MISTAKES)
def test_mistakes_are_named(given: dict[str, Any], word: str) -> None:
    """Each refusal is one sentence that names the entity and what is wrong."""
    with pytest.raises(ef.RecipeError, match=word) as caught:
        built({"kind": "body", "name": "thing", **given})
    assert "thing" in str(caught.value) and "\n" not in str(caught.value)


L_SHAPE = [[0, 0, 0], [2, 0, 0], [2, 1, 0], [1, 1, 0], [1, 2, 0], [0, 2, 0]]


TETRAHEDRON = [[0, 0, 0], [4, 0, 0], [0, 4, 0], [0, 0, 4]]


@pytest.mark.parametrize(
    ("dimension", "corners", "within", "depth"),
    [(2, L_SHAPE, [1, 1, 0], "0.707"), (3, TETRAHEDRON, [1, 1, 1], "0.577")],
)
def test_points_within_their_hull_are_told(
    dimension: int, corners: list[list[int]], within: list[int], depth: str
) -> None:
    """By sqrt(1/2) and sqrt(1/3) m, the distance to the face in front; one on an edge is no fault."""
    outside = [point for point in corners if point != within]
    for points, told in (([*outside, within], True), ([*outside, [1, 0, 0]], False)):
        shape = {"shape": "points", "points": points}
        with warnings.catch_warnings(record=True, action="always") as caught:
            built({"kind": "body", "name": "l", "shape": shape}, dimension=dimension)
        assert [str(each.message) for each in caught] == [
            f"1 of the {len(points)} points of a body lie inside its convex hull and do not change it, the "
            f"first, [{', '.join(map(str, within))}], by {depth} m; leave them out, or join convex parts by "
            "shape = 'compound'"
        ] * told


def test_an_outline_on_a_line_is_named() -> None:
    shape = {"shape": "points", "points": [[0, 0, 0], [1, 1, 0], [2, 2, 0]]}
    with pytest.raises(ef.RecipeError, match="'l': the 3 points of an outline lie on a line; they must"):
        built({"kind": "body", "name": "l", "shape": shape}, dimension=2)


def test_planes_that_leave_no_room_are_refused() -> None:
    """Inward normals (empty), a missing side (open), and a normal of zero length."""
    faces = np.array([[s * (k == 0), s * (k == 1), s * (k == 2), 1.0] for k in range(3) for s in (1, -1)])
    assert np.isclose(hull_of_planes(faces).volume, 8)
    with pytest.raises(ef.RecipeError, match="enclose no volume"):
        hull_of_planes(faces * [1, 1, 1, -1])
    with pytest.raises(ef.RecipeError, match="open"):
        hull_of_planes(faces[:5])
    with pytest.raises(ef.RecipeError, match="plane 2"):
        hull_of_planes(faces * np.array([1, 1, 0, 1, 1, 1])[:, None])
    with pytest.raises(ef.RecipeError, match="at least 4"):
        hull_of_vertices(np.zeros((3, 3)))
    assert np.isclose(PointsShape(points=[(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)]).hull().volume, 1 / 6)


def test_bodies_without_a_part_are_refused() -> None:
    """A Pose alone, two shapes, and a hull number beyond the table are named before anything moves."""
    world = ef.World()
    world.spawn("ghost", ef.Pose(np.zeros((1, 3)), np.array([[1.0, 0, 0, 0]])))
    with pytest.raises(ef.FluidError, match=r"ghost.*RigidMotion"):
        world.add_system(ef.CollisionSystem())
    world = built({"kind": "body", "name": "crate", "shape": BOX})
    world["crate"][ef.HullShape].hull[0] = 1
    with pytest.raises(ef.FluidError, match=r"crate.*HullShape\.hull row 0 is 1"):
        world.step()


def test_script_of_a_free_body_is_refused() -> None:
    """Scripts move scripted bodies only."""
    world = built({"kind": "body", "name": "crate", "shape": BOX})
    script = ef.BodyScript(name="crate", center=(0.0, 0.0, 0.0))
    with pytest.raises(ef.RecipeError, match="crate"):
        world.add_system(ef.BodySystem(scripts=[script]))


PLANE: dict[str, Any] = {"dimension": 2}
DISK = {"kind": "body", "name": "disk", "shape": {"shape": "ball", "radius": 0.5}, "motion": "fixed"}


def test_bodies_in_a_plane_are_what_it_cuts_out() -> None:
    """Disk: m = rho pi r^2, m r^2/2. Rectangle: 2 x 0.5 in y and z, m (2^2 + 0.5^2)/12. Of one metre."""
    for world in ({**PLANE, "plane": "xy"}, {**PLANE, "plane": "xz"}):
        across = 2 if world["plane"] == "xy" else 1
        table = built({**DISK, "density": 100.0}, **world)["disk"][ef.Body]
        assert table.mass[0] == pytest.approx(25 * np.pi, rel=1e-14)
        assert table.inertia[0, across, across] == pytest.approx(25 * np.pi / 8, rel=1e-14)
    crate = {"kind": "body", "name": "crate", "shape": BOX, "motion": "fixed", "density": 10.0}
    table = built(crate, **PLANE)["crate"][ef.Body]
    assert table.mass[0] == pytest.approx(20.0, rel=1e-12)
    assert table.inertia[0, 2, 2] == pytest.approx(20.0 * 5 / 12, rel=1e-12)
    tube = {**DISK, "shape": {"shape": "cylinder", "radius": 0.5, "height": 3.0}}
    assert ef.BallShape in built(tube, **PLANE)["disk"] and ef.BallShape not in built(tube)["disk"]
    upright = built({**tube, "density": 1.0}, plane="xz", **PLANE)["disk"]
    # The middle of a prism of 24 sides and the volume of the cylinder is 1.0058 r wide from corner to corner.
    assert upright[ef.Body].mass[0] == pytest.approx(3.0 * 1.0058, rel=1e-3)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            {"rotation": [0.1, 0, 0]},
            "rotation turns the body out of the plane; only a component along z is allowed",
        ),
        (
            {"motion": "scripted", "angular_velocity": [0, 1.0, 0]},
            "angular_velocity turns the body out of the plane; only a component along z is allowed",
        ),
        (
            {"motion": "scripted", "rotation": {"keys": [[0, [0, 0, 0]], [1, [0, 1, 0]]]}},
            "rotation turns the body out of the plane",
        ),
    ],
)
def test_bodies_that_leave_the_plane_are_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ef.RecipeError, match=re.escape(said)):
        built({**DISK, **given}, **PLANE)


def test_what_a_plane_has_no_bodies_for_is_refused() -> None:
    """Boundary conditions other than the layer; polytopes that are no prisms, by hand."""
    for boundary in ("article", "panels"):
        said = f"boundary = '{boundary}' is for a world of dimension = 3; in a plane use boundary = 'layer'"
        with pytest.raises(ef.RecipeError, match=said):
            built(DISK, system=({"kind": "boundary", "boundary": boundary},), **PLANE)
    solid = built({"kind": "body", "name": "rock", "shape": {"shape": "octahedron", "radius": 1.0}})["rock"]
    world = built(DISK, **PLANE)
    tables = [solid[kind] for kind in (ef.Pose, ef.RigidMotion, ef.HullShape, ef.HullTable)]
    world.spawn("rock", *tables, ef.Body(np.ones(1), np.eye(3)[None], [0]))
    with pytest.raises(ef.FluidError, match="a polytope of 'rock' is not a prism perpendicular to the plane"):
        world.step()
    off = [[0, 0, 1], [1, 0, 1], [0, 1, 1], [0, 0, 2]]
    rock = {"kind": "body", "name": "rock", "shape": {"shape": "points", "points": off}, "motion": "fixed"}
    with pytest.raises(ef.ComponentError, match=r"Pose.x row 0 along z is 1.25; in a world of dimension = 2"):
        built(rock, **PLANE).step()


def test_a_wind_through_a_disk_is_told() -> None:
    world = built(
        DISK, {"kind": "tracers", "name": "smoke", "box": {"low": [1, 0, 0], "high": [2, 1, 0]}, "cell": 0.5},
        system=({"kind": "wind", "velocity": [1.0, 0.0, 0.0]},), **PLANE,
    )  # fmt: skip
    assert any("boundary = 'layer' makes the fluid flow around them" in text for text in world.lint())


def test_schema_knows_bodies() -> None:
    """The exported JSON Schema holds the three kinds and every shape, so that editors complete them."""
    from ecs_fluid.worlds.schema import schema

    text = str(schema())
    for word in ("'spheres'", "'container'", "'dodecahedron'", "'airfoil'", "'mesh'"):
        assert word in text
