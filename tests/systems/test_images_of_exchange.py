"""Images behind walls in exchange of heat, species and vorticity, and in the subfilter model."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pytest
from scipy.special import gamma, jv

import ecs_fluid as ef
from ecs_fluid.component import Array
from ecs_fluid.kernels.bodies.rotation import matrix_of, quaternion_of
from ecs_fluid.systems.shared.fluid_walls import fluid_walls
from ecs_fluid.systems.shared.neighbourhoods import neighbourhoods

pytestmark = pytest.mark.filterwarnings("ignore::ecs_fluid.errors.FluidWarning")

TURN = (0.3, -0.4, 0.2)
FLUID = {"density": 1.2, "heat_capacity": 1000.0, "conductivity": 24.0, "viscosity": 0.02}
KAPPA = 0.02
"""conductivity / (density heat_capacity), m^2/s"""


def container(name: str, shape: dict[str, Any], center: Any, **more: Any) -> dict[str, Any]:
    return {"kind": "container", "name": name, "shape": shape, "center": list(center), **more}


def box(size: Any) -> dict[str, Any]:
    return {"shape": "box", "size": list(size)}


def slab(name: str, center: list[float]) -> dict[str, Any]:
    return {"kind": "body", "name": name, "shape": box([8.0, 8.0, 8.0]), "center": center, "motion": "fixed"}


CORNER = [slab("side", [-4.0, 0.0, 0.0]), slab("ground", [0.0, 0.0, -4.0])]
MIRRORS = [{"body": "side", "side": "+x"}, {"body": "ground", "side": "+z"}]


def world_of(
    entities: list[dict[str, Any]], velocity: dict[str, Any], systems: list[ef.System], x: Array,
    alpha: Array, volume: float, warmth: Array, species: Array, core: float, **options: Any,
) -> ef.World:  # fmt: skip
    """Vortons of equal volumes, m^3, and cores, m, at x (n, 3) m, with T (n,) K and species (3, n)."""
    world = ef.load(
        {
            "world": {"dt": 0.01, "precision": "double", "debug": True, **options},
            "fluid": {**FLUID, "velocity": velocity},
            "entity": entities,
        }
    )
    n = len(x)
    carried = ef.Temperature(warmth), ef.Species(*species)
    cores, volumes = ef.CoreRadius(np.full(n, core)), ef.Volume(np.full(n, volume))
    world.spawn("air", ef.Position(x), ef.Strength(alpha), cores, volumes, *carried)
    world.add_systems(systems)
    return world


def reflected(x: Array, alpha: Array, axis: int) -> tuple[Array, Array]:
    """Images in the plane x[axis] = 0: place mirrored, strength mirrored and turned round."""
    x, alpha = x.copy(), -alpha
    x[:, axis], alpha[:, axis] = -x[:, axis], -alpha[:, axis]
    return x, alpha


def exchanges(order: Literal[2, 4]) -> list[ef.System]:
    """Diffusion of vorticity, heat and species, all within 1.5 spacings of a lattice with cores of 1.5."""
    thermal = ef.ThermalSystem(order=order, eddy_diffusivity=0.0, species_diffusivity=0.01)
    return [ef.DiffusionSystem(order=order, radius=1.0), thermal]


EXCHANGES: dict[str, Any] = {
    "order 2": (3, lambda: exchanges(2)),
    "order 4": (3, lambda: exchanges(4)),
    "plane": (2, lambda: exchanges(2)),
    "subfilter": (3, lambda: [ef.SubfilterSystem(average=2.0)]),
    "handing over": (3, lambda: [ef.SubfilterSystem(coefficient="constant", keeps_impulse=True)]),
}  # fmt: skip


@pytest.mark.parametrize("name", EXCHANGES)
def test_fluid_in_a_corner_is_a_quarter_of_the_doubled_world(name: str) -> None:
    """Vortons before two mirrors, against themselves and their images as vortons, to rounding of 1,600 terms.

    Their places are drawn at random, some beyond a plane by rounding.
    """
    dimension, systems = EXCHANGES[name]
    rng, n = np.random.default_rng(0), 400
    x, alpha = rng.random((n, 3)) * [0.6, 0.8, 0.6], 1e-3 * rng.standard_normal((n, 3))
    if dimension == 2:
        x[:, 1] = alpha[:, 0] = alpha[:, 2] = 0.0
    x[:4, 0] = -1e-12
    warmth, species = 300.0 + 50.0 * rng.random(n), rng.random((3, n)) / 3
    more = {"dimension": dimension, "plane": "xz"} if dimension == 2 else {}
    every = x, alpha
    for axis in (0, 2):
        every = tuple(np.concatenate(pair) for pair in zip(every, reflected(*every, axis), strict=True))
    amounts = 1e-3, warmth, species
    one = world_of(CORNER, {"mirrors": MIRRORS}, systems(), x, alpha, *amounts, 0.15, **more)
    four = 1e-3, np.tile(warmth, 4), np.tile(species, 4)
    two = world_of([slab("far", [90.0, 0.0, 0.0])], {}, systems(), *every, *four, 0.15, **more)
    for world in (one, two):
        world.step(2)
    for kind in (ef.Strength, ef.Temperature, ef.Species):
        for (_, found), (_, wanted) in zip(one["air"][kind].items(), two["air"][kind].items(), strict=True):
            assert np.abs(found - wanted[:n]).max() < 1e-12 * np.abs(wanted).max()
    assert np.abs(one["air"][ef.Strength].alpha - alpha).max() > 1e-4 * np.abs(alpha).max()


def decay(order: int, k: float, eps: float) -> float:
    """Decay rate, 1/s, of a wave of wave number k, 1/m, by exchange in filled space, over kappa k^2.

    The rate is kappa/eps^2 (int eta - eta_hat(k)). The transform of (1 - rho^2/R^2)^7 in d = 3 dimensions is
    2^v v! J_v(s)/s^v of its integral, v = 7 + d/2 and s = k R eps; that of (a + b rho^2) exp(-rho^2) is
    pi^(d/2) exp(-q) (a + b (d/2 - q)), q = (k eps)^2/4.
    """
    if order == 2:
        v, s = 8.5, k * eps * np.sqrt(10.5)
        return float(76 / 21 * (1 - 2**v * gamma(v + 1) * jv(v, s) / s**v) / (k * eps) ** 2)
    q, (a, b) = (k * eps) ** 2 / 4, (14.0, -4.0)
    return float((a + 1.5 * b - np.exp(-q) * (a + b * (1.5 - q))) / (k * eps) ** 2)


@pytest.mark.parametrize("order", [2, 4])
def test_waves_between_walls_decay_as_in_free_fluid(order: Literal[2, 4]) -> None:
    """T = cos(pi z/H), and strengths sin(pi x/L) sin(pi z/H) along y, 0 along walls, in a box.

    The box is turned, and along y narrower than the reach: two vortons wide, it needs images of images. The
    exchange radius is 1.5 spacings, with which sums over a lattice are up to 4e-5 (order 2) and 1e-6 (order
    4) off the integrals.
    """
    turn, h, high, wide = matrix_of(quaternion_of(np.array(TURN))), 0.1, 1.0, 0.5
    lines = (np.arange(5) + 0.5) * h, (np.arange(2) + 0.5) * h, (np.arange(10) + 0.5) * h
    y = np.stack(np.meshgrid(*lines, indexing="ij"), axis=-1).reshape(-1, 3)
    x, z = np.pi * y[:, 0] / wide, np.pi * y[:, 2] / high
    wave, size = np.cos(z), 1e-9  # m^3/s, so small that the vortons do not move
    alpha = size * np.stack([0 * x, np.sin(x) * np.sin(z), 0 * x], axis=1)
    middle = np.array([wide, 2 * h, high]) / 2
    room = container("room", box(2 * middle), turn @ middle, rotation=TURN)
    species = np.stack([0.3 + 0.1 * wave, 0 * wave, 0.2 - 0.1 * wave])
    amounts = h**3, 300.0 + 10.0 * wave, species
    world = world_of(
        [room], {"solver": "container"}, exchanges(order), y @ turn.T, alpha @ turn.T, *amounts, 1.5 * h
    )
    world.step()
    air = world["air"]
    for found, before, diffusivity, k in (
        (air[ef.Temperature].T - 300.0, 10.0 * wave, KAPPA, np.pi / high),
        (air[ef.Species].fuel - 0.3, 0.1 * wave, 0.01, np.pi / high),
        (air[ef.Strength].alpha @ turn, alpha, FLUID["viscosity"], np.hypot(np.pi / high, np.pi / wide)),
    ):
        rate = diffusivity * k**2 * decay(order, k, 1.5 * h)
        left = 1 - rate * world.dt + (rate * world.dt) ** 2 / 2  # a step of second order
        most = {2: 4e-5, 4: 1e-6}[order] * (1 - left)
        assert np.abs(found - left * before).max() < most * np.abs(before).max()


SHAPES = {
    "box": box([0.8, 0.6, 0.7]),
    "cylinder": {"shape": "cylinder", "radius": 0.4, "height": 0.6, "sides": 7},
    "octahedron": {"shape": "octahedron", "radius": 0.6},
}


@pytest.mark.parametrize("shape", SHAPES)
def test_nothing_goes_through_a_wall(shape: str) -> None:
    """Heat and species in a container and around it keep their sums, to rounding, whatever its angles.

    Vortons at random lie inside, just outside of walls, by up to half a radius, and beyond.
    """
    rng, n = np.random.default_rng(2), 900
    x = rng.uniform(-0.8, 0.8, (n, 3))
    warmth, species = 300.0 + 50.0 * rng.random(n), rng.random((3, n)) / 3
    room = container("room", SHAPES[shape], [0.0, 0.0, 0.0], rotation=TURN)
    world = world_of([room], {}, exchanges(2), x, np.zeros((n, 3)), 1e-3, warmth, species, 0.15)
    (hood, around) = neighbourhoods(world, x, np.full(n, 0.15), 0.5, fluid_walls(world))
    assert min(len(hood.held), len(around.held)) > 90
    world.step(3)
    now = world["air"][ef.Temperature].T, *(column for _, column in world["air"][ef.Species].items())
    for found, before in zip(now, (warmth, *species), strict=True):
        for rows in (hood.held, around.held):
            assert abs(found[rows].sum() / before[rows].sum() - 1) < 1e-13
        assert np.abs(found - before).max() > 1e-3 * before.max()


def test_viscous_ring_above_the_ground_is_half_of_a_pair() -> None:
    """A ring that meets the ground, with viscosity and the subfilter, against itself and its mirror image."""
    ring = {
        "kind": "vortex_ring", "name": "ring", "radius": 1.0, "core": 0.25, "spacing": 0.2, "amplitude": 0.05,
        "center": [0.0, 0.0, 0.4], "axis": [0.0, 0.0, -1.0], "wavenumber": 3,
    }  # fmt: skip
    worlds = []
    for entity, mirrors in ((CORNER[1], MIRRORS[1:]), (slab("far", [90.0, 0.0, 0.0]), [])):
        world = ef.load(
            {
                "world": {"dt": 0.05, "precision": "double"},
                "fluid": {"viscosity": 2e-3, "velocity": {"mirrors": mirrors}},
                "entity": [entity, ring],
            }
        )
        world.add_system(ef.SubfilterSystem())
        worlds.append(world)
    two = worlds[1]
    upper = two["ring"]
    x, alpha = reflected(upper[ef.Position].x, upper[ef.Strength].alpha, 2)
    same = ef.CoreRadius(upper[ef.CoreRadius].sigma.copy()), ef.Volume(upper[ef.Volume].volume.copy())
    two.spawn(
        "lower", ef.Position(x), ef.Strength(alpha), *same, ef.SubfilterAverage(0 * x[:, 0], 0 * x[:, 0])
    )
    for world in worlds:
        world.step(10)
    for kind, column in ((ef.Position, "x"), (ef.Strength, "alpha")):
        found, wanted = (getattr(world["ring"][kind], column) for world in worlds)
        assert np.abs(found - wanted).max() < 1e-12 * np.abs(wanted).max()


def test_a_layer_between_walls_is_no_sheet() -> None:
    """Vortons one layer thick spread nothing across; between two walls images continue the layer."""
    air = {
        "kind": "fluid_block", "name": "air", "box": {"low": [-0.5, -0.5, 0.0], "high": [0.5, 0.5, 0.1]},
        "spacing": 0.1, "temperature": "300 + x",
    }  # fmt: skip
    told = []
    for room in ([], [container("room", box([1.0, 1.0, 0.1]), [0.0, 0.0, 0.05])]):
        fluid, thermal = {"conductivity": 24.0, "diffusion": {}}, {"kind": "thermal"}
        world = ef.load({"fluid": fluid, "entity": [*room, air], "system": [thermal]})
        told.append([text for text in world.lint() if "ThermalSystem" in text])
    assert len(told[0]) == 1
    assert "lie on lines or sheets" in told[0][0]
    assert told[1] == []
