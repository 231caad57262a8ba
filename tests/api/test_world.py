"""What a world answers: its flow against closed forms, meshes with fields; entities taken out of it."""

from __future__ import annotations

import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import pyvista as pv
from numpy.typing import NDArray

import ecs_fluid as ef
from ecs_fluid.errors import FluidError, StorageError

SIGMA = 0.3


def blob(x: NDArray, alpha: NDArray) -> tuple[NDArray, NDArray, NDArray]:
    """Velocity, gradient and vorticity of one Winckelmans blob at the origin.

    u = g(r) alpha x r with g = q/(4 pi r^3) = (rho^2 + 5/2) (rho^2 + 1)^-5/2 / (4 pi sigma^3), so that
    du_i/dx_j = g e_iaj alpha_a + (alpha x r)_i r_j g'/r, and its curl is
    alpha (2 g + r g') - r (alpha . r) g'/r.
    """
    rho = np.linalg.norm(x, axis=1) / SIGMA
    g = (rho**2 + 2.5) * (rho**2 + 1) ** -2.5 / (4 * np.pi * SIGMA**3)
    # g'/r = (dg/drho) / (rho sigma^2)
    slope = (2 * (rho**2 + 1) - 5 * (rho**2 + 2.5)) * (rho**2 + 1) ** -3.5 / (4 * np.pi * SIGMA**5)
    swirl = np.cross(alpha, x)
    spin = np.array([[0, -alpha[2], alpha[1]], [alpha[2], 0, -alpha[0]], [-alpha[1], alpha[0], 0]])
    du = g[:, None, None] * spin + slope[:, None, None] * swirl[:, :, None] * x[:, None, :]
    square = (x**2).sum(axis=1)
    curl = alpha * (2 * g + square * slope)[:, None] - x * (x @ alpha * slope)[:, None]
    return g[:, None] * swirl, du, curl


@pytest.fixture
def points() -> NDArray:
    return np.random.default_rng(3).normal(size=(40, 3))


def one_vorton(**options: Any) -> ef.World:
    world = ef.World(dt=0.01, precision="double", **options)
    alpha = [[0.0, 0.0, 2.0]] if world.dimension == 2 else [[0.3, -0.5, 0.8]]
    world.spawn("v", ef.Position([[0.0, 0.0, 0.0]]), ef.Strength(alpha), ef.CoreRadius([SIGMA]))
    return world


def test_gradient_and_vorticity_of_a_blob(points: NDArray) -> None:
    world = one_vorton()
    world.add_system(ef.VelocitySystem())
    u, du, omega = blob(points, np.array([0.3, -0.5, 0.8]))
    np.testing.assert_allclose(world.velocity(points), u, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(world.velocity_gradient(points), du, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(world.vorticity(points), omega, rtol=1e-12, atol=1e-13)
    with pytest.raises(FluidError, match="points row 1"):
        world.vorticity([[0, 0, 0], [0, np.nan, 0]])


WINDS = (
    {"kind": "wind", "velocity": {"keys": [[0.0, [1.0, 0.0, 0.0]], [1.0, [0.0, 3.0, 0.0]]]}},
    {"kind": "wind", "velocity": [0.0, 0.0, 9.0], "on": ["spray"]},
    {"kind": "turbulence", "speed": 0.5},
)


@pytest.mark.parametrize("precision", ["single", "double"])
def test_velocity_is_what_moves_tracers(precision: str) -> None:
    """Vortons, winds keyed in time and turbulence before a mirror, but no wind that blows on others alone."""
    floor = {
        "kind": "body", "name": "floor", "motion": "fixed", "center": [0.0, 0.0, -1.5],
        "shape": {"shape": "box", "size": [9.0, 9.0, 1.0]},
    }  # fmt: skip
    dust = {"kind": "tracers", "cell": 0.4, "per_cell": 1, "box": {"low": [-1] * 3, "high": [1] * 3}}
    world = ef.load(
        {
            "world": {"dt": 0.1, "precision": precision},
            "fluid": {"velocity": {"solver": "direct", "mirrors": [{"body": "floor", "side": "+z"}]}},
            "entity": [
                {"kind": "vortex_ring", "name": "ring", "radius": 0.4, "core": 0.2, "spacing": 0.15}, floor,
                {**dust, "name": "smoke"}, {**dust, "name": "spray"},
            ],
            "system": WINDS,
        }
    )  # fmt: skip
    world.step(3)
    world.evaluate()
    near = 1e-12 if precision == "double" else 1e-6
    for name, more in (("smoke", 0.0), ("spray", 9.0)):
        u = world[name][ef.Velocity].u - [0.0, 0.0, more]
        np.testing.assert_allclose(world.velocity(world[name][ef.Position].x), u, atol=10 * near)
    # The mean in a volume of few eddies: the wind of 0.3 s, (0.7, 0.9, 0), is most of it.
    np.testing.assert_allclose(
        world.velocity(world["smoke"][ef.Position].x).mean(axis=0)[:2], [0.7, 0.9], atol=0.3
    )


def test_gradient_has_that_of_turbulence(points: NDArray) -> None:
    """Centred differences, of second order: 1e-4 m of waves of 0.25 m and more leave some 1e-6."""
    world = one_vorton()
    world.add_systems([ef.VelocitySystem(), ef.TurbulenceSystem(speed=0.5)])
    h = 1e-4
    steps = [world.velocity(points + h * e) - world.velocity(points - h * e) for e in np.eye(3)]
    du = world.velocity_gradient(points)
    np.testing.assert_allclose(du, np.stack(steps, axis=2) / (2 * h), atol=1e-5)
    assert np.abs(np.trace(du, axis1=1, axis2=2)).max() < 1e-12


@pytest.mark.parametrize("solver", ["direct", "tree"])
def test_gradient_is_that_of_the_velocity(solver: Any) -> None:
    """Centred differences: of second order, so 1e-4 m of cores of 0.3 m leave some 1e-7 of the gradient."""
    draw = np.random.default_rng(4)
    world = ef.World(dt=0.01, precision="double")
    world.spawn(
        "v",
        ef.Position(draw.normal(size=(60, 3))),
        ef.Strength(0.1 * draw.normal(size=(60, 3))),
        ef.CoreRadius(np.full(60, SIGMA)),
    )
    world.add_system(ef.VelocitySystem())
    x, h = draw.normal(size=(20, 3)), 1e-4
    steps = [world.velocity(x + h * e, solver) - world.velocity(x - h * e, solver) for e in np.eye(3)]
    differences = np.stack(steps, axis=2) / (2 * h)
    du = world.velocity_gradient(x, solver)
    # The tree may take another node whole on the two sides of a point: some 1e-5 of u, but only rarely.
    assert np.median(np.abs(du - differences)) < 1e-6 * np.abs(du).max()
    curl = np.stack([du[:, 2, 1] - du[:, 1, 2], du[:, 0, 2] - du[:, 2, 0], du[:, 1, 0] - du[:, 0, 1]], axis=1)
    np.testing.assert_array_equal(world.vorticity(x, solver), curl)


def test_vorticity_of_a_line_in_a_plane(points: NDArray) -> None:
    """Gamma exp(-r^2/(2 sigma^2)) / (2 pi sigma^2) across the plane, the same at all heights above it."""
    world = one_vorton(dimension=2)
    world.add_system(ef.VelocitySystem(kernel="gaussian"))
    omega = world.vorticity(points)
    r2 = (points[:, :2] ** 2).sum(axis=1)
    exact = 2.0 * np.exp(-0.5 * r2 / SIGMA**2) / (2 * np.pi * SIGMA**2)
    np.testing.assert_allclose(omega[:, 2], exact, rtol=1e-10, atol=1e-13)
    np.testing.assert_array_equal(omega[:, :2], 0.0)


def test_vorticity_of_a_world_that_repeats() -> None:
    """omega = cos(k x) along z over one period of 1 m, smoothed by the blobs: cos(k x) exp(-(k sigma)^2/2).

    u_y = sin(k x)/k of the same factor. The grid has 32 points in a period, so k h = 0.2: differences of
    fourth order leave (k h)^4/30 = 5e-5, and interpolation of third order some (k h)^4/10 = 2e-4.
    """
    n, k, sigma = 32, 2 * np.pi, 0.05
    h = 1.0 / n
    axis = (np.arange(n) + 0.5) * h - 0.5
    x = np.stack(np.meshgrid(axis, axis, [0.0], indexing="ij"), axis=-1).reshape(-1, 3)
    alpha = np.zeros_like(x)
    alpha[:, 2] = np.cos(k * x[:, 0]) * h * h
    world = ef.World(dt=0.01, precision="double", dimension=2, periodic=(1.0, 1.0, 0.0))
    world.spawn(
        "v", ef.Position(x), ef.Strength(alpha), ef.CoreRadius(np.full(len(x), sigma)),
        ef.Volume(np.full(len(x), h * h)),
    )  # fmt: skip
    world.add_systems(
        [ef.PartitionSystem(cells=n * n), ef.VelocitySystem(solver="poisson", kernel="gaussian")]
    )
    at = np.random.default_rng(5).uniform(-1.5, 1.5, (50, 3)) * [1, 1, 0]  # also beyond the period
    factor = np.exp(-0.5 * (k * sigma) ** 2)
    np.testing.assert_allclose(world.vorticity(at)[:, 2], factor * np.cos(k * at[:, 0]), atol=1e-3)
    np.testing.assert_allclose(world.velocity(at)[:, 1], factor * np.sin(k * at[:, 0]) / k, atol=1e-3 / k)


def warm_cloud() -> ef.World:
    """Hot and dense particles in air that is colder the higher it is, and one vorton."""
    world = one_vorton()
    world.set_fluid(law="ideal_gas", temperature_profile=[(-10.0, 320.0), (10.0, 280.0)])
    draw = np.random.default_rng(6)
    x = 0.3 * draw.normal(size=(100, 3))
    world.spawn(
        "gas", ef.Position(x), ef.Volume(np.full(100, 1e-3)), ef.Temperature(np.full(100, 500.0)),
        ef.Species(np.full(100, 0.2)),
    )  # fmt: skip
    world.add_systems([ef.VelocitySystem(), ef.TransferSystem()])
    return world


def test_sample_gives_a_mesh_the_fields() -> None:
    """At the grid's own points the fields' own numbers; far away the fluid at rest: 300 K - 2 K/m z."""
    world = warm_cloud()
    world.evaluate()
    grid = world.fluid[ef.TransferGrid]
    T, fuel = world.fluid[ef.TemperatureField].T, world.fluid[ef.SpeciesField].fuel
    hottest = np.unravel_index(T.argmax(), T.shape)
    index = np.array([[2, 3, 1], hottest, [0, 0, 0]])
    x = np.vstack([grid.origin + index * grid.spacing, [[5.0, 0.0, 4.0]]])
    mesh = pv.PolyData(x)
    found = world.sample(mesh)
    assert not len(mesh.point_data) and found.n_points == 4
    places = np.asarray(found.points, np.float64)  # which PyVista may hold in single precision
    np.testing.assert_allclose(found["velocity"], world.velocity(places), rtol=1e-12)
    np.testing.assert_allclose(found["vorticity"], world.vorticity(places), rtol=1e-12)
    np.testing.assert_allclose(found["temperature"][:3], T[tuple(index.T)], rtol=1e-5)
    np.testing.assert_allclose(found["fuel"][:3], fuel[tuple(index.T)], rtol=1e-4, atol=1e-6)
    assert found["temperature"].max() > 310.0 and found["temperature"][3] == pytest.approx(292.0)
    assert found["fuel"][3] == 0.0
    with pytest.raises(FluidError, match="a PyVista mesh is needed"):
        world.sample(x)  # type: ignore[arg-type]
    with pytest.raises(FluidError, match="nothing to sample"):
        ef.World().sample(pv.Sphere())  # it has normals of its own


@pytest.mark.parametrize("walls", [False, True])
def test_a_stored_frame_has_the_fields_of_its_world(walls: bool, tmp_path: Path) -> None:
    """Temperature, density and smoke from the stored columns are those that the world had, to the bit.

    So they are at the walls of a container, behind which the fluid goes on as its mirror image.
    """
    from ecs_fluid.worlds import ContainerRecipe

    world = ef.World(dt=0.01, integrator="euler")
    world.set_fluid(law="ideal_gas")
    x = np.random.default_rng(4).random((200, 3))
    volume, T = np.full(200, 5e-3), 300.0 + 200.0 * x[:, 0]
    world.spawn("gas", ef.Position(x), ef.Volume(volume), ef.Temperature(T), ef.Species(smoke=0.1 * x[:, 1]))
    if walls:
        box = {"shape": "box", "size": (1.0, 1.0, 1.0)}
        ContainerRecipe(name="room", shape=box, center=(0.5, 0.5, 0.5)).build(world)
    world.add_systems([ef.TransferSystem(), ef.VelocitySystem()])
    run = ef.run(world, ticks=1, out=tmp_path / "run", progress=False)
    grid = pv.ImageData(dimensions=(4, 3, 5), spacing=(0.4, 0.5, 0.3))
    now, then = world.sample(grid), run[-1].flow.sample(grid)
    for name in ("temperature", "density", "smoke"):
        np.testing.assert_array_equal(then[name], now[name])
        assert np.ptp(now[name]) > 0.0


def test_a_mesh_without_points_is_told() -> None:
    with pytest.raises(FluidError, match="sample: the mesh has no points"):
        ef.load("vortex_ring", "ring.spacing=0.3", "smoke.per_cell=1").sample(pv.PolyData())


def test_pyvista_blocks_hold_the_flow_that_no_particle_reads() -> None:
    world = ef.load("vortex_ring", "ring.spacing=0.3", "smoke.per_cell=1")
    flow = world.to_pyvista()["fields"]["flow"]
    assert world.fluid[ef.VelocityField].u.size == 0
    np.testing.assert_array_equal(flow["velocity"], world.velocity(flow.points))
    assert flow["velocity"][:, 2].max() > 0.1


def test_pyvista_blocks_hold_what_the_world_holds() -> None:
    from ecs_fluid.worlds import BodyRecipe

    world = warm_cloud()
    BodyRecipe(name="ball", shape={"shape": "ball", "radius": 0.5}, center=(0.0, 0.0, 3.0)).build(world)
    world.add_system(ef.BodySystem())
    phi = np.linalg.norm(np.stack(np.meshgrid(*[np.arange(5) - 2.0] * 3, indexing="ij")), axis=0) - 1.5
    world.attach("fluid", ef.SignedDistance(origin=[-2.0] * 3, spacing=[1.0] * 3, phi=phi, surface=[1]))
    blocks = world.to_pyvista()
    assert set(blocks.keys()) == {"particles", "fields", "bodies", "signed_distance"}
    gas = blocks["particles"]["gas"]
    np.testing.assert_allclose(gas.points, world["gas"][ef.Position].x, rtol=1e-6)
    np.testing.assert_allclose(gas["temperature"], 500.0)
    mixture, T = blocks["fields"]["mixture"], world.fluid[ef.TemperatureField].T
    np.testing.assert_array_equal(mixture["temperature"].reshape(T.shape[::-1]).T, T)
    # A ball of radius 0.5 drawn with 258 corners on it.
    bounds = np.reshape(blocks["bodies"]["ball"].bounds, (3, 2))
    np.testing.assert_allclose(bounds, [[-0.5, 0.5], [-0.5, 0.5], [2.5, 3.5]], atol=1e-6)
    level = blocks["signed_distance"]
    # The value at (1, 0, 0) is 1 - 1.5; trilinear between grid points, exact on them.
    at = pv.PolyData([[1.0, 0.0, 0.0], [0.0, -2.0, 0.0]])
    np.testing.assert_allclose(at.sample(level)["phi"], [-0.5, 0.5], atol=1e-6)
    np.testing.assert_allclose(world.sample(at)["signed_distance"], [-0.5, 0.5], atol=1e-6)
    assert blocks.field_data["TimeValue"][0] == world.time


# ------------------------------------------------------------------ less of it


def test_a_removed_entity_leaves_the_others_as_if_it_had_never_been() -> None:
    def flow(*names: str) -> ef.World:
        world = ef.World(dt=0.01, precision="double")
        for name in names:
            at = 0.0 if name == "a" else 1.0
            world.spawn(name, ef.Position([[at, 0, 0]]), ef.Strength([[0, 0, 1.0]]), ef.CoreRadius([0.3]))
        world.add_systems([ef.VelocitySystem(), ef.AdvectionSystem()])
        return world

    both, alone = flow("a", "b"), flow("a")
    gone = both["b"]
    both.step()
    both.remove(gone)
    assert "b" not in both and [entity.name for entity in both.entities] == ["fluid", "a"]
    x = [[0.3, 0.4, 0.0]]
    moved = both["a"][ef.Position].x - [0.0, 0.0, 0.0]
    np.testing.assert_allclose(both.velocity(x + moved), alone.velocity(x), rtol=1e-12)
    with pytest.raises(FluidError, match="entity 'b' was removed from its world"):
        gone[ef.Position]
    with pytest.raises(FluidError, match="the world has no entity 'b'"):
        both.remove("b")
    # The name is free, also for an entity of other tables; its rows get new ids.
    both.spawn("b", ef.Position([[0, 1, 0], [0, 2, 0]]), ef.Age)
    both.step()
    assert list(both["b"][ef.RowId].id) == [2, 3] and ef.Strength not in both["b"]
    with pytest.raises(FluidError, match="entity 'b' was removed from its world"):
        both.remove(gone)
    with pytest.raises(FluidError, match="entity 'a' belongs to another world; remove it there"):
        both.remove(alone["a"])
    assert len(both["a"]) == 1 and len(both["b"]) == 2


def test_what_is_needed_stays() -> None:
    world = ef.World(dt=0.01)
    world.spawn("dust", ef.Position([[0.0, 0.0, 0.0]]))
    world.add_system(ef.WindSystem(velocity=(1.0, 0.0, 0.0), on=("dust",)))
    with pytest.raises(FluidError, match="'dust' cannot be removed, because WindSystem names it"):
        world.remove("dust")
    with pytest.raises(FluidError, match="the entity 'fluid' cannot be removed"):
        world.remove(world.fluid)
    assert len(world["dust"]) == 1


def test_a_run_of_a_world_without_an_entity_is_told_so(tmp_path: Path) -> None:
    """The recipe of what is left is stored, so that what reads the run does not look for the entity."""
    world = ef.load("vortex_ring", "ring.spacing=0.3", "smoke.per_cell=1")
    world.remove("smoke")
    run = ef.run(world, ticks=1, out=tmp_path / "run", progress=False)
    assert list(run[-1]) == ["ring"] and "smoke" not in (run.path / "world.toml").read_text(encoding="utf-8")
    with pytest.raises(StorageError, match="smoke"):
        run.export("npz", only=["smoke"])


# ------------------------------------------------------------------ notebooks


def test_notebooks_get_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    world = one_vorton()
    world.spawn("dots", ef.Position([[0.0, 0.0, 0.0], [1.0, 2.0, 3.0]]))
    world.add_systems([ef.VelocitySystem(), ef.AdvectionSystem()])
    shown = {
        name: one._repr_html_() for name, one in (("w", world), ("s", world.schedule), ("e", world["dots"]))
    }
    assert "<td>dots</td><td>2</td>" in shown["w"]
    assert "<td>VelocitySystem</td>" in shown["s"] and "<td>AdvectionSystem</td>" in shown["s"]
    assert "<td>Position.x</td><td>m</td><td>2 x 3</td><td>0 to 3</td>" in shown["e"]
    from ecs_fluid.html import table

    text = table("<b>", ["a"], [[k] for k in range(100)])
    assert "&lt;b&gt;" in text and text.count("<td>") == 13 and "<td>99</td>" in text
    monkeypatch.setitem(
        sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: types.SimpleNamespace(kernel=1))
    )
    picture = world.show(size=(64, 48), what="glyphs")
    assert picture is not None and picture.png.startswith(b"\x89PNG")
