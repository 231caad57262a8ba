"""Mirror images of vortons behind flat faces of bodies: `mirrors` of the VelocitySystem."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ecs_fluid as ef
from ecs_fluid.component import Array
from ecs_fluid.kernels.bodies.rotation import matrix_of, quaternion_of

pytestmark = pytest.mark.filterwarnings("ignore::ecs_fluid.errors.FluidWarning")

TURN = (0.3, -0.4, 0.2)
MIDDLE = np.array([1.0, 2.0, 4.0])
CORNER = np.array([-4.0, -1.0, -4.0])


ROOM = {
    "kind": "container", "name": "room", "shape": {"shape": "box", "size": [8.0, 8.0, 8.0]},
    "center": MIDDLE.tolist(), "rotation": TURN,
}  # fmt: skip


def vortons(world: ef.World, x: Array, alpha: Array, core: float, *more: ef.Component) -> None:
    """Vortons of equal cores, with velocities of all vortons."""
    world.spawn("vortons", ef.Position(x), ef.Strength(alpha), ef.CoreRadius(np.full(len(x), core)), *more)


def world_of(entities: list[dict[str, Any]], velocity: dict[str, Any], **world: Any) -> ef.World:
    """A world of double precision with these entities and this velocity."""
    world = {"dt": 0.02, "duration": 1.0, "precision": "double"} | world
    return ef.load({"world": world, "fluid": {"velocity": velocity}, "entity": entities})


def reflected(y: Array, alpha: Array, axis: int, plane: float) -> tuple[Array, Array]:
    """Images of vortons in the plane y[axis] = plane: place mirrored, strength mirrored and turned round."""
    y, alpha = y.copy(), -alpha
    y[:, axis], alpha[:, axis] = 2 * plane - y[:, axis], -alpha[:, axis]
    return y, alpha


@pytest.mark.parametrize("solver", ["direct", "tree", "fmm", "pppm", "auto"])
def test_flow_is_that_of_images(solver: str) -> None:
    """Flow and gradient of 2,200 vortons in a corner of a turned room, against the direct sum with images.

    Single precision. fmm, pppm and auto keep their tolerance of 1e-3; the tree has 0.02 without images, too.
    Across the walls there is no flow, to rounding, for any solver.
    """
    rng, turn = np.random.default_rng(1), matrix_of(quaternion_of(np.array(TURN)))
    y, alpha = rng.random((2200, 3)) + CORNER, rng.standard_normal((2200, 3))
    mirrors = [{"body": "room", "side": side} for side in ("-z", "-x")]
    world = world_of([ROOM], {"solver": solver, "mirrors": mirrors}, precision="single")
    vortons(world, y @ turn.T + MIDDLE, alpha @ turn.T, 0.1)
    world.add_systems([ef.StretchSystem(), ef.AdvectionSystem()])
    once = reflected(y, alpha, 2, -4.0)
    every = [(y, alpha), once, reflected(y, alpha, 0, -4.0), reflected(*once, 0, -4.0)]
    plain = ef.World(precision="double")
    plain.add_system(ef.VelocitySystem())
    places, strengths = (np.concatenate(columns) for columns in zip(*every, strict=True))
    vortons(plain, places @ turn.T + MIDDLE, strengths @ turn.T, 0.1)
    points = y[:200] @ turn.T + MIDDLE
    found = world.require(ef.VelocitySystem).flow_at(y @ turn.T + MIDDLE)
    exact = plain.require(ef.VelocitySystem).flow_at(y @ turn.T + MIDDLE)
    assert exact.du is not None and found.du is not None
    most = 0.03 if solver == "tree" else 1e-3
    for one, other in ((found.u, exact.u), (found.du, exact.du)):
        assert np.sqrt(((one - other) ** 2).sum() / (other**2).sum()) < most
    for axis in (0, 2):
        points = rng.random((50, 3)) + CORNER
        points[:, axis] = -4.0
        u = world.velocity(points @ turn.T + MIDDLE) @ turn
        assert np.abs(u[:, axis]).max() < 2e-6 * np.abs(u).max()


RING = {
    "kind": "vortex_ring", "name": "ring", "radius": 1.0, "core": 0.25, "spacing": 0.2,
    "center": [0.0, 0.0, 0.4], "axis": [0.0, 0.0, -1.0], "amplitude": 0.05, "wavenumber": 3,
}  # fmt: skip
DYE = {"kind": "tracers", "name": "dye", "fills": "ring", "per_cell": 1}
GROUND = {
    "kind": "body", "name": "ground", "shape": {"shape": "box", "size": [8.0, 8.0, 1.0]},
    "center": [0.0, 0.0, -0.5], "motion": "fixed",
}  # fmt: skip
ON_GROUND = {"mirrors": [{"body": "ground", "side": "+z"}]}


@pytest.mark.parametrize("tracers", ["grid", "cells", "solver"])
def test_ring_above_the_ground_is_half_of_a_pair(tracers: str) -> None:
    """A ring that meets the ground moves as one that meets its mirror image; the energy is half of theirs.

    Tracers that read a grid read another one around both rings. They may be 2 % of their path apart (rms).
    """
    fluid = {"tracers": tracers}
    one = world_of([GROUND, RING, DYE], ON_GROUND | fluid, dt=0.05)
    two = world_of([RING, DYE], fluid, dt=0.05)
    ring = two["ring"]
    x, alpha = reflected(ring[ef.Position].x, ring[ef.Strength].alpha, 2, 0.0)
    two.spawn("lower", ef.Position(x), ef.Strength(alpha), ef.CoreRadius(ring[ef.CoreRadius].sigma.copy()))
    start = two["dye"][ef.Position].x.copy()
    for world in (one, two):
        world.step(20)
    for kind, column in ((ef.Position, "x"), (ef.Strength, "alpha")):
        found, wanted = (getattr(world["ring"][kind], column) for world in (one, two))
        assert np.allclose(found, wanted, rtol=0, atol=1e-12)
    assert np.ptp(one["ring"][ef.Position].x[:, 0]) > 2.3
    apart = one["dye"][ef.Position].x - two["dye"][ef.Position].x
    path = two["dye"][ef.Position].x - start
    assert (apart**2).sum() < (1e-24 if tracers == "solver" else 0.02**2) * (path**2).sum()
    records = [world.require(ef.DiagnosticsSystem).measure() for world in (one, two)]
    for name in ("energy", "enstrophy"):
        assert 2 * records[0][name] == pytest.approx(records[1][name], rel=1e-12)


@pytest.mark.parametrize("model", ["boussinesq", "full"])
def test_warm_cloud_at_a_wall_is_half_of_one(model: str) -> None:
    """Half a warm cloud at an upright mirror rises as it does beside its mirror image, and looks as warm.

    An edge of the cloud at the wall would make five times the vorticity of its middle there, and dye at it
    would be 38 K too cold. The temperatures are read on grids that lie 0.5 K apart.
    """
    warm = {
        "kind": "fluid_block", "name": "air", "box": {"low": [0.0, -0.4, -0.4], "high": [0.4, 0.4, 0.4]},
        "spacing": 0.2, "temperature": "300 + 150*exp(-((abs(x)-0.1)**2 + y**2 + z**2)/0.09)",
    }  # fmt: skip
    both = warm | {"box": {"low": [-0.4, -0.4, -0.4], "high": [0.4, 0.4, 0.4]}}
    dye = DYE | {"box": {"low": [0.0, -0.2, -0.2], "high": [0.2, 0.2, 0.2]}, "cell": 0.1}
    del dye["fills"]
    wall = GROUND | {"shape": {"shape": "box", "size": [1.0, 8.0, 8.0]}, "center": [-0.5, 0.0, 0.0]}
    worlds = []
    for entities, mirrors in (([wall, warm, dye], [{"body": "ground", "side": "+x"}]), ([both, dye], [])):
        world = world_of(entities, {"tracers": "solver", "mirrors": mirrors}, dt=0.05)
        world.set_fluid(law="ideal_gas")
        world.add_systems([ef.BaroclinicSystem(model=model), ef.SamplingSystem()])
        world.step(3)
        worlds.append(world)
    before = [world["air"][ef.Position].x[:, 0] > 0.0 for world in worlds]
    for name, kind, column, most in (
        ("air", ef.Strength, "alpha", 1e-12), ("air", ef.Position, "x", 1e-12),
        ("dye", ef.Position, "x", 1e-12), ("dye", ef.Temperature, "T", 0.5),
    ):  # fmt: skip
        found, wanted = (
            getattr(world[name][kind], column)[rows if name == "air" else ...]
            for world, rows in zip(worlds, before, strict=True)
        )
        assert np.allclose(found, wanted, rtol=0, atol=most)
    assert worlds[0]["air"][ef.Velocity].u[:, 2].max() > 0.1


def test_gas_that_swells_does_not_go_through_the_ground() -> None:
    """The source flow of a vorton that swells by rate Q, at height h: Q r / (2 pi (r^2 + h^2)^1.5) along it.

    That is twice the flow along the ground of a source in free space, far from its core.
    """
    world = world_of([GROUND], ON_GROUND)
    swelling = ef.Volume([0.1]), ef.Temperature([300.0]), ef.Dilatation([300.0], [3.0])
    vortons(world, np.array([[0.0, 0.0, 0.5]]), np.zeros((1, 3)), 0.01, *swelling)
    u = world.velocity([[0.7, 0.0, 0.0], [0.0, -2.0, 0.0]])
    exact = [0.3 * r / (2 * np.pi * (r**2 + 0.25) ** 1.5) for r in (0.7, -2.0)]
    assert u[:, 2] == pytest.approx([0.0, 0.0], abs=1e-15)
    assert [u[0, 0], u[1, 1]] == pytest.approx(exact, rel=1e-6)


def test_errors_of_velocities_are_those_of_the_sum_with_images() -> None:
    """The recorded error of tracers that read a coarse grid, against sums at all of them."""
    velocity = ON_GROUND | {"tracers": "grid", "interpolation": "linear"}
    world = world_of([GROUND, RING, DYE], velocity, dt=0.05)
    world.require(ef.DiagnosticsSystem).every = 1
    world.step()
    told = world.history[-1]["velocity_error"]
    before = world_of([GROUND, RING, DYE], velocity, dt=0.05)
    x, u = before["dye"][ef.Position].x, world["dye"][ef.Velocity].u
    exact = before.velocity(x)
    assert told == pytest.approx(np.sqrt(((u - exact) ** 2).sum() / (exact**2).sum()), rel=0.5)


def test_vortex_in_a_corner_of_a_plane() -> None:
    """Its three images move it so that x z / sqrt(x^2 + z^2) stays: 1/x^2 + 1/z^2 = 2 from (1, 1) on.

    The images at (-x, z), (x, -z) and (-x, -z) have strengths -1, -1 and 1, which makes the energy
    Gamma^2/(4 pi) ln(x z / sqrt(x^2 + z^2)) and a constant.
    """
    side = GROUND | {"name": "side", "center": [-4.0, 0.0, 0.0]}
    mirrors = [{"body": "ground", "side": "+z"}, {"body": "side", "side": "+x"}]
    plane = {"dimension": 2, "plane": "xz", "integrator": "rk4"}
    world = world_of([GROUND, side], {"mirrors": mirrors}, dt=0.2, **plane)
    world.spawn(
        "vortons", ef.Position([[1.0, 0.0, 1.0]]), ef.Strength([[0.0, -1.0, 0.0]]), ef.CoreRadius([1e-3])
    )
    world.step(100)
    x, _, z = world["vortons"][ef.Position].x[0]
    assert max(x, z) > 2.0
    assert 1 / x**2 + 1 / z**2 == pytest.approx(2.0, rel=1e-6)


BALL = {"kind": "body", "name": "ball", "shape": {"shape": "ball", "radius": 0.2}, "motion": "fixed"}
WRONG = [
    ([GROUND | {"motion": "free"}], ON_GROUND, "mirrors names 'ground', which may move; a fixed body"),
    ([], ON_GROUND, "mirrors names 'ground'"),
    ([BALL], {"mirrors": [{"body": "ball", "side": "+z"}]}, "'ball'; one body with flat faces"),
    (
        [ROOM | {"shape": {"shape": "octahedron", "radius": 4.0}}],
        {"mirrors": [{"body": "room", "side": "-z"}]},
        "and side = '-z', but no face of it points along that axis",
    ),
    (
        [ROOM], {"mirrors": [{"body": "room", "side": "-z"}, {"body": "room", "side": "+z"}]},
        "the planes of mirrors must be at right angles to each other",
    ),
    ([GROUND], ON_GROUND | {"solver": "hybrid"}, "mirrors is for solvers of unbounded space"),
    ([GROUND], ON_GROUND | {"solver": "container"}, "mirrors is for solvers of unbounded space"),
]  # fmt: skip


@pytest.mark.parametrize("entities,velocity,text", WRONG)
def test_what_cannot_mirror_is_refused(entities: Any, velocity: Any, text: str) -> None:
    with pytest.raises(ef.FluidError, match=text):
        world_of([RING, *entities], velocity)


def test_world_that_repeats_has_no_mirrors() -> None:
    with pytest.raises(ef.FluidError, match="mirrors is not for a world that repeats"):
        ef.World(periodic=(4.0, 0.0, 0.0)).add_system(
            ef.VelocitySystem(mirrors=({"body": "a", "side": "+z"},))
        )


def test_layers_have_no_images() -> None:
    world = world_of([GROUND, RING], ON_GROUND)
    with pytest.raises(ef.FluidError, match="boundary = 'layer' does not know mirror images"):
        world.add_system(ef.BoundarySystem(boundary="layer"))


def test_box_above_the_ground_sheds_as_one_of_a_pair() -> None:
    """A box that sets off and turns beside the ground, against two that mirror each other in free space.

    The flow and what each body gives to the fluid are the same: to rounding in the first tick, in the fifth
    to the tolerance that is left by the solutions for the sheets.
    """

    def box(name: str, side: float) -> dict[str, Any]:
        return {
            "kind": "body", "name": name, "shape": {"shape": "box", "size": [0.4, 0.3, 0.4]},
            "center": [0.0, 0.0, 0.35 * side], "velocity": [0.3, 0.0, -0.2 * side],
            "angular_velocity": [0.0, 2.0 * side, 0.0], "motion": "scripted",
        }  # fmt: skip

    one = world_of([GROUND, box("upper", 1.0)], ON_GROUND)
    two = world_of([box("upper", 1.0), box("lower", -1.0)], {})
    for world in (one, two):
        world.add_system(ef.BoundarySystem(boundary="panels", panels_across=4, tolerance=1e-4, sweeps=50))
    points = np.random.default_rng(0).uniform([-0.6, -0.6, 0.0], [0.6, 0.6, 0.05], (50, 3))
    for ticks, most in ((1, 1e-12), (4, 1e-3)):
        for world in (one, two):
            world.step(ticks)
        found, wanted = one.velocity(points), two.velocity(points)
        assert np.abs(found - wanted).max() < most * np.abs(wanted).max()
        books = [world["upper"][ef.BoundaryExchange] for world in (one, two)]
        for column in ("impulse", "moment"):
            mine, pairs = (getattr(book, column) for book in books)
            assert np.abs(mine - pairs).max() < most * np.abs(books[1].impulse).max()
    assert len(one["wake"]) > 100


def test_several_processes_have_no_mirrors() -> None:
    from ecs_fluid.ranks.team import _share

    with pytest.raises(ef.FluidError, match="mirrors of the VelocitySystem are for one process only"):
        _share(world_of([GROUND, RING], ON_GROUND), None)  # type: ignore[arg-type]


class Plain(ef.Solver):
    """The direct sum of a user."""

    def prepare(self, sources: ef.Sources, grid: ef.Grid) -> None:
        self.x, self.alpha, self.sigma = sources.x.T, sources.alpha.T, sources.sigma

    def fill(self, targets: ef.Targets) -> None:
        apart = targets.x[:, None] - self.x
        square = (apart**2).sum(axis=-1) + self.sigma**2  # Rosenhead and Moore's regularisation
        targets.u[...] = (np.cross(self.alpha, apart) / (4 * np.pi * square[..., None] ** 1.5)).sum(axis=1)


def test_solver_of_ones_own_has_images() -> None:
    """The flow of a user's solver with mirrors is that of the shipped sum with the same regularisation."""
    velocity = ON_GROUND | {"kernel": "rosenhead_moore"}
    worlds = [world_of([GROUND], velocity | {"solver": name}) for name in ("plain", "direct")]
    ring = world_of([RING], {})["ring"]
    for world in worlds:
        vortons(world, ring[ef.Position].x, ring[ef.Strength].alpha, 0.1)
    points = np.random.default_rng(0).random((20, 3)) * [2, 2, 1]
    mine, shipped = (world.velocity(points) for world in worlds)
    assert np.allclose(mine, shipped, rtol=0, atol=1e-13)


def test_wind_through_the_ground_is_told() -> None:
    """A wind along the ground is fine, one that goes up is not."""
    world = world_of([GROUND, RING], ON_GROUND)
    world.add_system(ef.WindSystem(velocity=(1.0, 0.5, 0.0)))
    assert not any("wind" in text for text in world.lint())
    world.require(ef.WindSystem).velocity = (0.0, 0.0, 0.1)
    assert [text for text in world.lint() if "wind" in text] == [
        "VelocitySystem: the wind blows through the mirror of 'ground'; let it blow along the plane"
    ]


def test_vortons_behind_a_mirror_are_told() -> None:
    """Those of an upright ring that reaches below the top of a slab narrower than itself."""
    slab = GROUND | {"shape": {"shape": "box", "size": [0.2, 0.2, 1.0]}}
    for height in (1.5, 0.9):
        ring = RING | {"center": [0.0, 0.0, height], "axis": [1.0, 0.0, 0.0]}
        world = world_of([slab, ring], ON_GROUND)
        below = int((world["ring"][ef.Position].x[:, 2] < -0.1 * world["ring"][ef.CoreRadius].sigma).sum())
        told = [f"VelocitySystem: {below} vortons lie behind the plane of a mirror"] if below else []
        assert [text.split(",")[0] for text in world.lint() if "behind" in text] == told
    assert below > 1


def test_flow_of_a_stored_frame_has_the_images(tmp_path: Path) -> None:
    """Frames do not hold the shape of the ground; the flow of a stored frame has its mirror all the same."""
    world = world_of([GROUND, RING], ON_GROUND, dt=0.05)
    run = ef.run(world, ticks=2, out=tmp_path / "run", progress=False)
    points = np.random.default_rng(0).uniform(-1.0, 1.0, (20, 3)) * [1.0, 1.0, 0.0]
    found = run[-1].flow.velocity(points)
    assert np.abs(found[:, 2]).max() == 0.0
    assert np.allclose(found, world.velocity(points), rtol=0, atol=1e-6)
