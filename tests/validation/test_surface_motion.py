"""A carried surface goes with what moves particles; liquids have a surface; surfaces hold particles."""

from __future__ import annotations

import numpy as np
import pytest
from surface_flows import sampled

import ecs_fluid as ef
from ecs_fluid.kernels.bodies.rotation import matrix_of, quaternion_of
from ecs_fluid.kernels.surface import level_set, shapes
from ecs_fluid.systems.surface.contour import contour
from ecs_fluid.systems.surface.motion import Motion
from ecs_fluid.worlds import ContainerRecipe


def windy_world(contained: bool) -> ef.World:
    """A ball of 6 cells radius that a wind of 1 m/s blows along x, in the open or in a box of 1.2 m."""
    world = ef.World(dt=0.025, precision="double")
    if contained:
        ContainerRecipe(name="box", shape={"shape": "box", "size": (1.2, 1.2, 1.2)}).build(world)
        world.add_system(ef.CollisionSystem())
    ball = sampled(lambda x: shapes.sphere(x, (0, 0, 0), 0.3), 0.05, (-0.6,) * 3, (0.6,) * 3)
    world.attach("fluid", ball)
    world.spawn("speck", ef.Position(np.zeros((1, 3))))
    world.add_system(ef.WindSystem(velocity=(1.0, 0.0, 0.5)))
    world.add_system(ef.AdvectionSystem())
    world.add_system(ef.SurfaceSystem(of="flow", carried=True))
    return world


def test_wind_blows_a_surface_as_it_blows_particles() -> None:
    """Half a second: the middle of the mesh and a particle go (0.5, 0, 0.25) m; the shape stays to 1/10 of a
    cell, and vertices know the wind as their velocity."""
    world = windy_world(contained=False)
    world.step(20)
    mesh, speck = world.fluid[ef.SurfaceMesh], world["speck"][ef.Position].x[0]
    np.testing.assert_allclose(speck, [0.5, 0, 0.25], atol=1e-9)
    np.testing.assert_allclose(mesh.x.mean(axis=0), speck, atol=1e-3)
    assert np.abs(np.linalg.norm(mesh.x - speck, axis=1) - 0.3).max() < 0.005
    np.testing.assert_allclose(mesh.u, np.tile([1.0, 0.0, 0.5], (len(mesh.x), 1)), atol=1e-12)


def test_a_wall_holds_a_surface_back() -> None:
    """The ball reaches the wall x = 0.6 m after 12 ticks and is pressed flat against it: nothing gets further
    than a tenth of a cell beyond it, in 18 ticks, and the volume stays."""
    world = windy_world(contained=True)
    world.system(ef.WindSystem).velocity = (1.0, 0.0, 0.0)  # type: ignore[union-attr]
    world.step(18)
    mesh, record = world.fluid[ef.SurfaceMesh], world.history[-1]
    assert 0.59 < mesh.x[:, 0].max() < 0.605
    flat = mesh.x[mesh.x[:, 0] > 0.59]
    # Where a ball 0.45 m off its start would be cut by the wall: a disc of sqrt(0.3^2 - 0.15^2) = 0.26 m.
    assert np.abs(flat[:, 1:]).max() > 0.2
    assert record["surface_volume"] == pytest.approx(world.fluid[ef.SignedDistance].volume[0], rel=1e-3)
    assert record["surface_parts"] == 1


def test_a_liquid_has_a_surface() -> None:
    """falling_drop, coarser: a pool and a drop, two parts, whose volume is that of the particles; `density`
    means the same where nothing but liquid has one.

    The surface lies half a spacing outside the outermost particles, up to the blur of the lattice: 0.2
    spacings times its area are allowed.
    """
    for of in ("liquid", "density"):
        world = ef.load("falling_drop", "pool.spacing=0.1", "drop.spacing=0.1", "drop.sphere.radius=0.25")
        world.add_system(ef.SurfaceSystem(of=of))
        world.step()
        record = world.history[-1]
        volume = sum(float(world[name][ef.Liquid].volume.sum()) for name in ("pool", "drop"))
        assert record["surface_parts"] == 2
        assert abs(record["surface_volume"] - volume) < 0.2 * 0.1 * record["surface_area"]
        table = world.fluid[ef.SignedDistance]
        places = np.array([[0.0, 0.0, 0.1], [0.0, 0.0, -0.65], [0.0, 0.0, -0.3]])
        inside = level_set.distance_at(places, table.origin, table.spacing, table.phi) < 0
        assert inside.tolist() == [True, True, False]


def test_liquid_ends_at_the_walls_of_its_tank() -> None:
    """In a tank that leans the surface ends at the walls, and reaches the corners as far as its grid lets it.

    Distances are read linearly, which cuts corners off by up to 1.2 spacings: those of the tank itself are
    the reference, to 1/10 of a spacing. Without images behind the walls corners were off by 0.3 spacings
    more, and the surface was up to 0.28 spacings beyond the walls.
    """
    turn = (0.1, 0.2, 0.3)
    box = {"shape": "box", "size": [1.0, 0.5, 0.8]}
    tank = {"kind": "container", "name": "tank", "shape": box, "rotation": turn}
    water = {"kind": "liquid", "name": "water", "fills": "tank", "level": 0.0, "spacing": 0.05}
    world = ef.load({"world": {"dt": 0.01, "integrator": "euler"}, "entity": [tank, water]})
    world.add_system(ef.SurfaceSystem(of="liquid"))
    world.step(10)
    table, axes = world.fluid[ef.SignedDistance], matrix_of(quaternion_of(np.array(turn)))
    x = world.fluid[ef.SurfaceMesh].x @ axes
    points = np.stack(np.indices(table.phi.shape), axis=-1) * table.spacing + table.origin
    walls = (np.abs(points @ axes) - (0.5, 0.25, 0.4)).max(axis=-1)
    exact = contour(walls, table.origin, table.spacing)[0] @ axes
    corners = [(a, b, -0.4) for a in (-0.5, 0.5) for b in (-0.25, 0.25)]
    assert np.abs(x).max(axis=0) == pytest.approx([0.5, 0.25, 0.4], abs=1e-5)
    for corner in corners:
        found, best = (np.linalg.norm(mesh - corner, axis=1).min() for mesh in (x, exact))
        assert found < best + 0.1 * 0.05


@pytest.mark.parametrize("side", ["outside", "inside"])
def test_a_surface_holds_particles_back(side: str) -> None:
    """Random flights beside and in a torus: at the end nobody is nearer than the gap, to 1/20 of a cell,
    those that never met it keep their paths, and velocities lose the part into the surface."""
    h, gap = 0.05, 0.02
    torus = sampled(lambda x: shapes.torus(x, (0, 0, 0), 0.6, 0.3), h, (-1.2, -1.2, -0.6), (1.2, 1.2, 0.6))
    random = np.random.default_rng(3)
    x = random.uniform((-1.1, -1.1, -0.5), (1.1, 1.1, 0.5), (2000, 3))
    phi = shapes.torus(x, (0, 0, 0), 0.6, 0.3)
    x = x[phi > 0.05] if side == "outside" else x[phi < -0.05]
    v = random.normal(size=x.shape)
    world = ef.World(dt=0.02, precision="double")
    world.attach("fluid", torus)
    world.spawn("sparks", ef.Position(x), ef.InertialVelocity(v))
    world.add_system(ef.InertiaSystem())
    world.add_system(ef.AdvectionSystem())
    world.add_system(ef.SurfaceBarrierSystem(side=side, clearance=gap))
    world.step(10)
    found, own = world["sparks"][ef.Position].x, world["sparks"][ef.InertialVelocity].v
    sign = 1.0 if side == "outside" else -1.0
    assert (sign * shapes.torus(found, (0, 0, 0), 0.6, 0.3)).min() > gap - 0.05 * h
    free = np.abs(own - v).max(axis=1) == 0
    assert free.sum() > 0.05 * len(x) and (~free).sum() > 0.05 * len(x)
    off = np.abs(found - x - 0.2 * v).max(axis=1)[free]
    # One or two grazed the gap on their way out, and were moved by a bit of a cell.
    assert off.max() < 0.02 * h and (off < 1e-9).mean() > 0.98
    # Sliding takes speed and gives none.
    assert (np.linalg.norm(own, axis=1) <= np.linalg.norm(v, axis=1) + 1e-9).all()


def test_distances_beside_bodies() -> None:
    """Places beside a ball among others have minus their distance, in whichever cell of the bodies' list."""
    places = [[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.3], [2.0, 1.0, 0.0], [0.5, 0.5, 1.0]]
    ball = {"kind": "spheres", "name": "balls", "radius": 0.12, "centers": places, "motion": "fixed"}
    dust = {"kind": "tracers", "name": "dust", "points": [[0.5, 0.1, 0.1]]}
    world = ef.load({"entity": [ball, dust], "world": {"precision": "double"}})
    ways = np.random.default_rng(0).standard_normal((500, 3))
    ways /= np.linalg.norm(ways, axis=1, keepdims=True)
    found = Motion(world, world.dt).depth(0.18 * ways, 0.2)
    assert found == pytest.approx(np.full(500, -0.06), abs=1e-12)
