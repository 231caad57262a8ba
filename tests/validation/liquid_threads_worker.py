"""Prints hashes of surfaces and liquids by thread count, as JSON; run by test_liquid_threads.

Usage: python liquid_threads_worker.py all|some 1,2,4,8
The environment's NUMBA_NUM_THREADS must be at least the largest of the thread counts.
"""

from __future__ import annotations

import hashlib
import sys
import warnings
from collections.abc import Callable

import numpy as np
from thread_hashes import print_hashes

import ecs_fluid as ef
from ecs_fluid.kernels.surface import facets, grid_crossings, level_set, shapes
from ecs_fluid.kernels.surface.eikonal import distances
from ecs_fluid.systems.surface.contour import contour
from ecs_fluid.worlds import ContainerRecipe

PRECISIONS = ("single", "double")
H = np.full(3, 0.1)

WORLDS: dict[str, tuple[int, tuple[str, ...]]] = {
    "dam_break": (3, ("water.spacing=0.1",)),
    "sloshing_dam": (3, ("water.spacing=0.1",)),
    "falling_drop": (3, ("pool.spacing=0.1", "drop.spacing=0.1", "drop.sphere.radius=0.25")),
    "heavy_ball_in_box": (3, ("ball.spacing=0.25",)),
    "dam_break/held": (3, ("water.spacing=0.1", "system.sph.walls=no_slip")),
    "falling_drop/tense": (3, ("pool.spacing=0.1", "drop.spacing=0.1", "system.sph.surface_tension=1.0")),
    "falling_drop/wet": (
        3,
        (
            "pool.spacing=0.1",
            "drop.spacing=0.1",
            "system.sph.surface_tension=1.0",
            "system.sph.contact_angle=50.0",
        ),
    ),
    "splash": (60, ("water.spacing=0.1",)),
    "loaded_boat": (30, ("water.spacing=0.08",)),
    "filled_container": (3, ("water.spacing=0.125",)),
    "drops_merge": (8, ("oil.spacing=0.0025",)),
    "drop_oscillates": (8, ("oil.spacing=0.0025",)),
}
"""Shipped worlds of liquids and drops, coarse, and variants: ticks, settings. Surfaces every fourth tick."""

SOME = ("kernels/double", "falling_drop/single", "drop_oscillates/double", "carried/single")
"""One of each kind in the quick test; the nightly test takes all."""


def digest(*arrays: np.ndarray) -> str:
    """Hash of the bytes of arrays."""
    return hashlib.blake2b(b"".join(np.ascontiguousarray(a).tobytes() for a in arrays)).hexdigest()


def kernels(precision: str) -> str:
    """A ragged field of many parts: its immediate distances by both rules, all others in both orders, in
    full and in a band, with cubic and other cells; volume, curvature, and the mesh."""
    draw = np.random.default_rng(7)
    field = draw.standard_normal((37, 70, 45))
    for axis in range(3):
        field = field + np.roll(field, 1, axis) + np.roll(field, 2, axis)
    field = field.astype(np.float32 if precision == "single" else np.float64)
    found = []
    for spacing in (H, np.array([0.1, 0.07, 0.12])):
        near, pinned = facets.facet_distances(field, spacing)
        crossing, beside = grid_crossings.crossing_distances(field, 0.0, 1.0, spacing)
        found += [near, pinned, crossing, beside, np.array(facets.enclosed(field, spacing))]
        # The rest has a way to go where few points are pinned.
        few = pinned & (draw.random(pinned.shape) < 0.05)
        start = np.where(few, np.abs(near), np.abs(near) + 1)
        for order in (1, 2):
            for limit in (None, 0.4):
                found.append(distances(start, few, spacing, 2 if order == 2 else 1, limit).phi)
        phi = distances(near, pinned, spacing, 2).phi
        found += [level_set.geometry(phi, spacing, 0.2), *contour(phi, np.zeros(3), spacing)]
    return digest(*found)


def carried(precision: str) -> str:
    """A ball that the wind presses against the wall of a box, and sparks that it keeps out."""
    world = ef.World(dt=0.025, precision=precision)
    ContainerRecipe(name="box", shape={"shape": "box", "size": (1.2, 1.2, 1.2)}).build(world)
    axis = -0.6 + 0.05 * np.arange(25)
    points = np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), axis=-1)
    ball = shapes.sphere(points, np.zeros(3), 0.3)
    world.attach("fluid", ef.SignedDistance(origin=[-0.6] * 3, spacing=[0.05] * 3, phi=ball))
    draw = np.random.default_rng(5)
    x = draw.uniform(-0.55, 0.55, (500, 3))
    world.spawn("sparks", ef.Position(x), ef.InertialVelocity(draw.standard_normal((500, 3))))
    world.add_systems(
        [
            ef.WindSystem(velocity=(1.0, 0.0, 0.5)),
            ef.InertiaSystem(),
            ef.AdvectionSystem(),
            ef.CollisionSystem(),
            ef.SurfaceBarrierSystem(),
            ef.SurfaceSystem(of="flow", carried=True),
        ]
    )
    world.step(14)
    return hashed(world)


def shipped(name: str, precision: str) -> str:
    """A shipped world, with a surface of its liquid where it has none."""
    ticks, settings = WORLDS[name]
    world = ef.load(name.partition("/")[0], f"world.precision={precision}", *settings)
    if world.system(ef.SurfaceSystem) is None:
        world.add_system(ef.SurfaceSystem(of="liquid", every=ticks))
    world.step(ticks)
    return hashed(world)


def hashed(world: ef.World) -> str:
    """Hash of the state and of the mesh, which must be there."""
    mesh = world.fluid[ef.SurfaceMesh]
    assert len(mesh.faces) > 20
    return digest(*(table for _, table in mesh.items())) + world.state_hash()


def cases() -> dict[str, Callable[[], str]]:
    """What is hashed, by name."""
    found: dict[str, Callable[[], str]] = {}
    for precision in PRECISIONS:
        found[f"kernels/{precision}"] = lambda p=precision: kernels(p)
        found[f"carried/{precision}"] = lambda p=precision: carried(p)
        for name in WORLDS:
            found[f"{name}/{precision}"] = lambda n=name, p=precision: shipped(n, p)
    return found


def main() -> None:
    """Print the hashes of the chosen cases, by name."""
    warnings.simplefilter("ignore")
    every = cases()
    chosen = every if sys.argv[1] == "all" else {name: every[name] for name in SOME}
    print_hashes(sys.argv[2], lambda: {name: run() for name, run in chosen.items()})


if __name__ == "__main__":
    main()
