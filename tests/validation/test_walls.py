"""Buoyancy at the walls of containers. Articles K2 and K3."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from solids import box, room

import ecs_fluid as ef

Array = np.ndarray

TILTS = {"x": (0.35, 0.0, 0.0), "y": (0.0, 0.6, 0.0), "skew": (0.4, 0.75, 0.2)}
SMALL_TILTS = {f"{angle} rad": (0.6 * angle, 0.8 * angle, 0.0) for angle in (0.01, 0.03, 0.06, 0.1, 0.15)}
"""Rotation vectors of boxes, rad; a turn about gravity's own axis would be none."""

PROFILES: dict[str, tuple[Callable[[Array], Array], Callable[[float], float]]] = {
    "linear": (lambda z: 1000 - 100 * z, lambda h: 100.0),
    "tanh": (lambda z: 1000 - 100 * np.tanh(z / 0.2), lambda h: 500.0),
    "two layers": (lambda z: np.where(z > 0.013, 900.0, 1100.0), lambda h: 200 / h),
}
"""Density, kg/m^3, of the height, m, and its largest gradient, kg/m^4, for particles h m apart."""


def filled(walls: str, gradient: str = "neighbours", tilt: float = 0.0) -> tuple[ef.World, Array]:
    """A box of 1 m, filled with particles of horizontally even density; (world, d alpha/dt of them).

    Density 1100 - 200 z: a real gradient, so that at rest only walls can make vorticity.
    """
    world = ef.World(dt=0.01, precision="double", integrator="euler")
    room(world, "room", box(1, 1, 1), rotation=(0.0, 0.0, tilt))
    line = np.arange(-0.45, 0.5, 0.1)
    x = np.stack(np.meshgrid(line, line, line, indexing="ij"), axis=-1).reshape(-1, 3)
    c, s = np.cos(tilt), np.sin(tilt)
    x = x @ np.array([[c, s, 0], [-s, c, 0], [0, 0, 1.0]])
    n = len(x)
    world.spawn(
        "water",
        ef.Position(x), ef.Strength(np.zeros((n, 3))), ef.CoreRadius(np.full(n, 0.15)),
        ef.Volume(np.full(n, 1e-3)), ef.Density(1100 - 200 * x[:, 2]),
    )  # fmt: skip
    world.set_fluid(density=1000.0)
    world.add_systems(
        [
            ef.VelocitySystem(solver="direct", at="vortons"),
            ef.AdvectionSystem(),
            ef.BodySystem(),
            ef.BaroclinicSystem(walls=walls, gradient=gradient),
        ]
    )
    world.evaluate()
    return world, world["water"][ef.StrengthRate].dalpha


@pytest.mark.parametrize("tilt", [0.0, 0.4])  # about gravity's axis
def test_fluid_at_rest_generates_nothing_at_walls(tilt: float) -> None:
    """K2: 0 to rounding with mirrors (g V d(rho)/rho_0 / reach is 1e-3 of what a free edge makes: 1e-12)."""
    _, rate = filled("mirror", tilt=tilt)
    assert np.abs(rate).max() < 1e-12


def lattice(n: int) -> Array:
    """n^3 places in the middles of the cells of a box of 1 m about the origin, (n^3, 3) m."""
    line = (np.arange(n) + 0.5) / n - 0.5
    return np.stack(np.meshgrid(line, line, line, indexing="ij"), axis=-1).reshape(-1, 3)


def turn(rotation: tuple[float, float, float]) -> Array:
    """Matrix (3, 3) of a rotation vector."""
    from ecs_fluid.kernels.bodies.rotation import matrix_of, quaternion_of

    return np.asarray(matrix_of(quaternion_of(np.array(rotation))))


def tilted(
    rotation: tuple[float, float, float], x: Array, density: Array, model: str = "boussinesq", **given: Any
) -> tuple[ef.World, Callable[[], Array]]:
    """A box of 1 m full of particles at x (n, 3), and what gives rate / (V g / rho_0) (n, 3) kg/m^4."""
    world = ef.World(dt=0.01, precision=given.get("precision", "double"), integrator="euler")
    room(world, "room", given.get("shape", box(1, 1, 1)), rotation=rotation)
    n, spacing = len(x), given.get("spacing", len(x) ** (-1 / 3))
    world.spawn(
        "water",
        ef.Position(x), ef.Strength(np.zeros((n, 3))), ef.CoreRadius(np.full(n, 1.5 * spacing)),
        ef.Volume(np.full(n, spacing**3)), ef.Density(density),
    )  # fmt: skip
    world.set_fluid(density=1000.0)
    world.add_systems(
        [
            ef.VelocitySystem(solver="direct", at="vortons"),
            ef.AdvectionSystem(),
            ef.BodySystem(),
            ef.BaroclinicSystem(model=model),
        ]
    )

    def rate() -> Array:
        world.evaluate()
        return world["water"][ef.StrengthRate].dalpha / spacing**3 * 1000 / 9.81

    return world, rate


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("tilt", [*TILTS, *SMALL_TILTS])
def test_layered_fluid_rests_in_tilted_boxes(tilt: str, profile: str) -> None:
    """K2': at most 1e-3 of V g |grad rho| / rho_0 at any particle, 10 of them along an edge.

    Particles in no order get no more than those on a lattice: what is layered is taken off before the sums.
    """
    density, steepest = PROFILES[profile]
    rotation = (TILTS | SMALL_TILTS)[tilt]
    x = lattice(10)
    moved = np.clip(x + 0.04 * np.random.default_rng(3).uniform(-1, 1, x.shape), -0.499, 0.499)
    for places, model in ((x, "boussinesq"), (x, "full"), (moved, "boussinesq")):
        there = places @ turn(rotation).T
        _, rate = tilted(rotation, there, density(there[:, 2]), model)
        assert np.linalg.norm(rate(), axis=1).max() < 1e-3 * steepest(0.1)


@pytest.mark.nightly
@pytest.mark.parametrize("tilt", TILTS)
def test_rest_converges(tilt: str) -> None:
    """K2', tanh of a thickness of 1.6, 2.4 and 3.2 spacings: order 3 and more (a cubic spline's is 4)."""
    density, steepest = PROFILES["tanh"]
    errors = []
    for n in (8, 12, 16):
        x = lattice(n) @ turn(TILTS[tilt]).T
        _, rate = tilted(TILTS[tilt], x, density(x[:, 2]))
        errors.append(np.linalg.norm(rate(), axis=1).max() / steepest(1 / n))
    assert np.log(errors[0] / errors[1]) / np.log(12 / 8) > 3
    assert np.log(errors[1] / errors[2]) / np.log(16 / 12) > 3


@pytest.mark.parametrize(
    ("tilt", "profile", "n"),
    [
        ("skew", "tanh", 6),
        *(
            pytest.param(tilt, profile, 10, marks=pytest.mark.nightly)
            for tilt in TILTS
            for profile in PROFILES
        ),
    ],
)
def test_layered_fluid_stays_at_rest(tilt: str, profile: str, n: int) -> None:
    """K2': 200 ticks in a tilted box; nobody gets faster than 1e-4 of what fell freely from the box's height.

    That is sqrt(2 g L) = 4.4 m/s; the 2 s are four times as long as such a fall. With 6 particles along an
    edge the tanh is 1.2 spacings thick.
    """
    density, _ = PROFILES[profile]
    x = lattice(n) @ turn(TILTS[tilt]).T
    world, _ = tilted(TILTS[tilt], x, density(x[:, 2]))
    world.step(200)
    world.evaluate()
    assert np.linalg.norm(world["water"][ef.Velocity].u, axis=1).max() < 1e-4 * np.sqrt(2 * 9.81)


@pytest.mark.parametrize("tilt", [0.0, 0.6])
@pytest.mark.parametrize(("moved", "order"), [(1e-3, 1.8), (0.5, 1.6)])
def test_what_is_not_layered_is_kept(tilt: float, moved: float, order: float) -> None:
    """Linear layers displaced by a mode of the box generate what they should: second order in the spacing.

    Displaced by xi = a (-cos px sin pz, 0, sin px cos pz) in the box's axes, p = pi/m, the excess rho' is
    -(d rho/dz) xi . up and int (grad rho' x g)_y cos px cos pz dV = -(d rho/dz) g a pi/4, for any tilt about
    y. Layers of particles must not be taken for steps, so they move by far less than a spacing, or half of
    one, of which the spline takes up to 1 %.
    """
    errors = []
    for n in (6, 9, 12):
        b, a = lattice(n), moved / n
        s, c = np.sin(np.pi * b), np.cos(np.pi * b)
        shift = a * np.stack([-c[:, 0] * s[:, 2], 0 * b[:, 0], s[:, 0] * c[:, 2]], axis=1)
        x = b @ turn((0, tilt, 0)).T
        _, rate = tilted((0, tilt, 0), (b + shift) @ turn((0, tilt, 0)).T, 1000 - 100 * x[:, 2])
        share = (rate()[:, 1] * c[:, 0] * c[:, 2]).mean()
        errors.append(1 - share / (100 * a * np.pi / 4))
    assert abs(errors[-1]) < 0.04
    assert np.log(errors[0] / errors[-1]) / np.log(2) > order


def test_without_them_walls_stir() -> None:
    """The article's point: at a free edge the excess of 100 kg/m^3 falls to 0 over some 0.2 m.

    The rate is of the order g V 100/(1000 x 0.2) = 5e-3 m^3/s^2; a tenth of it is asked for.
    """
    _, rate = filled("none")
    assert np.abs(rate).max() > 5e-4


@pytest.mark.parametrize("gradient", ["neighbours", "grid"])
def test_poisoned_gradients(gradient: str) -> None:
    """The article's way: what is along a wall's normal near it is dropped, so that vertical walls are still.

    1e-12; further in nothing feels a wall, and the edges at top and bottom lie across gravity.
    """
    _, rate = filled("poison", gradient)
    assert np.abs(rate).max() < 1e-12


@pytest.mark.parametrize("given", [{"gradient": "grid"}, {"walls": "poison"}, {}])
@pytest.mark.parametrize("tilt", [0.0, 0.4])
def test_walls_that_lean_and_stir_layers_are_told(tilt: float, given: dict[str, Any]) -> None:
    """At 0.7 and 0.57 of the full rate with the normal part of gradients dropped, else not at all."""
    rotation = (tilt, 2 * tilt, 0.0)
    x = lattice(10) @ turn(rotation).T
    world, rate = tilted(rotation, x, 1000 - 100 * x[:, 2])
    world.system(ef.BaroclinicSystem).put(**given)  # type: ignore[union-attr]
    stirred = np.linalg.norm(rate(), axis=1).max() > 0.1 * 100
    told = any("a container has inclined walls" in text for text in world.lint())
    assert stirred == told == bool(tilt and given)


def test_mirrors_leave_real_gradients_alone() -> None:
    """Two fluids side by side: the torque of the interface is what it is in the middle of the box.

    d(alpha)/dt = V grad(rho) cross g/rho_0; summed over a column of 1 m^2 x the jump of 200 kg/m^3 it is
    9.81 x 0.2 = 1.96 m^3/s^2 in y per m^2 of interface, here 1 m^2; the mirrors at its rim change nothing.
    """
    world, _ = filled("mirror")
    x = world["water"][ef.Position].x
    world["water"][ef.Density].rho[...] = np.where(x[:, 0] < 0, 1100.0, 900.0)
    world.evaluate()
    rate = world["water"][ef.StrengthRate].dalpha
    # grad(rho) = -x, g = -z: -x cross -z = x cross z = -y.
    assert np.allclose(rate.sum(axis=0), [0, -1.962, 0], atol=1e-3)
    outer = np.abs(x[:, 1]) > 0.4
    inner = np.abs(x[:, 1]) < 0.1
    assert np.allclose(rate[outer].sum(axis=0), rate[inner].sum(axis=0), atol=1e-12)


@pytest.mark.parametrize("along", [(0.0, 0.0, -9.81), (-9.81, 0.0, 0.0)])
def test_gradient_of_neighbours_at_walls_and_free_edges(along: tuple[float, float, float]) -> None:
    """K3, first half: an even excess has no gradient at walls, in any direction (two gravities see three).

    At a free edge it has one: there the excess of 100 kg/m^3 ends within the reach, some 0.2 m.
    """
    for walls in ("mirror", "none"):
        world, _ = filled(walls)
        world["water"][ef.Density].rho[...] = 1100.0
        world.set_fluid(gravity=along)
        world.evaluate()
        # V grad(rho) cross g / rho_0, in kg/m^4.
        found = np.linalg.norm(world["water"][ef.StrengthRate].dalpha, axis=1) * 1000 / (1e-3 * 9.81)
        if walls == "mirror":
            assert found.max() < 1e-9
        else:
            assert found.max() > 0.5 * 100 / 0.2
            x = world["water"][ef.Position].x
            # Two reaches from the edge, whose lack of neighbours changes the weights of those within one.
            assert found[np.abs(x).max(axis=1) < 0.1].max() < 1e-9


def test_gradient_of_a_linear_ball() -> None:
    """K3, second half (scene 21): rho = 1000 + x in a ball of 1 m has |grad rho| = 1 kg/m^4 wherever all
    neighbours are in the ball, to rounding, for the gradient is exact for linear fields on a lattice."""
    line = np.arange(-0.95, 1.0, 0.1)
    x = np.stack(np.meshgrid(line, line, line, indexing="ij"), axis=-1).reshape(-1, 3)
    x = x[np.linalg.norm(x, axis=1) < 1.0]
    n = len(x)
    world = ef.World(dt=0.01, precision="double", integrator="euler")
    world.spawn(
        "ball",
        ef.Position(x), ef.Strength(np.zeros((n, 3))), ef.CoreRadius(np.full(n, 0.15)),
        ef.Volume(np.full(n, 1e-3)), ef.Density(1000 + x[:, 0]),
    )  # fmt: skip
    world.set_fluid(density=1000.0)
    world.add_systems(
        [
            ef.VelocitySystem(solver="direct", at="vortons"),
            ef.AdvectionSystem(),
            ef.BaroclinicSystem(gradient="neighbours"),
        ]
    )
    world.evaluate()
    rate = world["ball"][ef.StrengthRate].dalpha * 1000 / (1e-3 * 9.81)
    inner = np.linalg.norm(x, axis=1) < 0.5
    assert inner.sum() > 500
    # x cross -z = y.
    np.testing.assert_allclose(rate[inner], np.tile([0.0, 1.0, 0.0], (inner.sum(), 1)), atol=1e-9)
    assert np.linalg.norm(rate[np.linalg.norm(x, axis=1) > 0.9], axis=1).max() > 2.0


def test_images_of_a_corner() -> None:
    """A particle near three walls has 7 images; one in the middle none."""
    from ecs_fluid.systems.shared.walls import containers, mirrored

    world = ef.World(precision="double")
    room(world, "room", box(1, 1, 1), center=(2.0, 0, 0))
    x = np.array([[2.4, 0.45, -0.42], [2.0, 0.0, 0.0], [5.0, 0, 0]])
    rows, places, turns, _ = mirrored(containers(world), x, 0.2)
    assert rows.tolist() == [0] * 7
    step = np.array([0.01, -0.02, 0.005])
    moved = mirrored(containers(world), x + step, 0.2).places
    np.testing.assert_allclose(moved - places, turns @ step, atol=1e-14)
    wanted = {(a, b, c) for a in (2.4, 2.6) for b in (0.45, 0.55) for c in (-0.42, -0.58)}
    assert {tuple(place.round(12)) for place in places} == wanted - {(2.4, 0.45, -0.42)}


@pytest.mark.parametrize("tilt", [0.0, 0.4])
def test_images_have_the_moments_of_their_particles(tilt: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a box what an image gives is the mirror of what its particle does: to rounding what neighbours of
    images, two reaches behind the walls, say of them. The largest rates are of order 1e-3 m^3/s^2."""
    from ecs_fluid.systems.shared.walls import Walls

    world, _ = filled("mirror", tilt=tilt)
    water, draw = world["water"], np.random.default_rng(5)
    water[ef.Position].x[...] += 0.03 * (draw.random((1000, 3)) - 0.5)
    water[ef.Density].rho[...] = 1000 + 100 * draw.standard_normal(1000)
    water[ef.CoreRadius].sigma[...] = draw.uniform(0.12, 0.2, 1000)
    asked, answers = Walls.continues_evenly, []

    def spied(walls: Walls, x: Array, reach: float) -> bool:
        answers.append(asked(walls, x, reach))
        return answers[-1]

    monkeypatch.setattr(Walls, "continues_evenly", spied)
    world.evaluate()
    mirrored = water[ef.StrengthRate].dalpha.copy()
    assert answers and all(answers)
    monkeypatch.setattr(Walls, "continues_evenly", lambda *_: False)
    world.evaluate()
    found = water[ef.StrengthRate].dalpha
    assert np.abs(found).max() > 1e-4
    np.testing.assert_allclose(mirrored, found, rtol=0, atol=1e-11 * np.abs(found).max())


class Mode(ef.System):
    """The flow A (pi cos px sin pz, 0, -pi sin px cos pz) of the vorticity, p = pi/m, in axes of the box.

    omega_y = 2 pi^2 A cos px cos pz, so that 2 pi^2 A is four times the mean of omega_y cos px cos pz.
    """

    reads = (ef.Strength, ef.Position)
    writes = (ef.Velocity,)
    phase = "rates"
    tilt: float = 0.0

    def process(self, dt: float) -> None:
        lean = turn((0, self.tilt, 0))
        for strength, position, velocity in self.query(ef.Strength, ef.Position, ef.Velocity):
            s, c = np.sin(np.pi * position.x @ lean), np.cos(np.pi * position.x @ lean)
            a = 4 * (strength.alpha[:, 1] * c[:, 0] * c[:, 2]).sum() / (2 * np.pi**2)
            flow = np.stack([c[:, 0] * s[:, 2], 0 * s[:, 0], -s[:, 0] * c[:, 2]], axis=1)
            velocity.u[...] = np.pi * a * flow @ lean.T


@pytest.mark.nightly
@pytest.mark.parametrize("tilt", [0.0, 0.6])
@pytest.mark.parametrize("moved", [1e-3, 0.5])
def test_internal_wave_in_a_box(tilt: float, moved: float) -> None:
    """The mode above swings at N/sqrt(2) at any tilt, `moved` spacings high: 3 %, order 1.4 and more.

    Its rate is N^2/2 times its displacement (test above), so 6, 9 and 12 particles along an edge have half
    the error of the gradient, 5, 2.6 and 1.7 %. Buoyancy, walls and motion are shipped, the flow is not: it
    is this mode alone.
    """
    errors, exact = [], np.sqrt(0.1 * 9.81 / 2)
    for n in (6, 9, 12):
        x = lattice(n) @ turn((0, tilt, 0)).T
        world = ef.World(dt=0.12 / exact, precision="double", integrator="rk4")
        room(world, "room", box(1, 1, 1), rotation=(0, tilt, 0))
        c = np.cos(np.pi * lattice(n))
        alpha = np.zeros((n**3, 3))
        alpha[:, 1] = 2 * np.pi * exact * moved / n * c[:, 0] * c[:, 2] / n**3
        world.spawn(
            "water",
            ef.Position(x), ef.Strength(alpha), ef.CoreRadius(np.full(n**3, 1.5 / n)),
            ef.Volume(np.full(n**3, 1 / n**3)), ef.Density(1000 - 100 * x[:, 2]),
        )  # fmt: skip
        world.set_fluid(density=1000.0)
        world.add_systems([Mode(tilt=tilt), ef.AdvectionSystem(), ef.BodySystem(), ef.BaroclinicSystem()])
        values = [1.0]
        while values[-1] > 0:
            world.step()
            at = np.cos(np.pi * world["water"][ef.Position].x @ turn((0, tilt, 0)))
            values.append(float(world["water"][ef.Strength].alpha[:, 1] @ (at[:, 0] * at[:, 2])))
        quarter = len(values) - 2 + values[-2] / (values[-2] - values[-1])
        errors.append(1 - np.pi / 2 / (quarter * world.dt) / exact)
    assert abs(errors[-1]) < 0.03
    assert np.log(errors[0] / errors[-1]) / np.log(2) > 1.4


def layered(
    x: Array, values: Array, rotation: tuple[float, float, float] = (0, 0, 0), filled: float = 1.0
) -> Array:
    """What is layered of the values of particles in a box of 1 m."""
    from ecs_fluid.systems.shared.layering import layered_part
    from ecs_fluid.systems.shared.walls import containers

    world = ef.World(precision="double")
    room(world, "room", box(1, 1, 1), rotation=rotation)
    volume = np.full(len(x), filled / len(x))
    return layered_part(containers(world), x, values, volume, np.array([0.0, 0.0, 1.0]))


def test_layered_part() -> None:
    """Cubics and steps are layers to rounding, particles outside and in half-filled boxes have none.

    A spline with a penalty on its fourth derivative and a small one on its second leaves cubics alone to the
    ratio of both, 1e-6; that lines are met to rounding needs no such words.
    """
    x = np.random.default_rng(1).uniform(-0.5, 0.5, (1000, 3))
    z = x[:, 2]
    line, cubic, step = 2 - z, 1 - z**3, np.where(z < 0.113, 3.0, 2.0)
    np.testing.assert_allclose(layered(x, line), line, atol=1e-12)
    np.testing.assert_allclose(layered(x, cubic), cubic, atol=1e-5)
    np.testing.assert_allclose(layered(x, step), step, atol=1e-12)
    # Not a step: particles of both kinds at all heights. Their mean over heights is 2.5 to 1/sqrt(100).
    mixed = np.random.default_rng(2).choice([2.0, 3.0], 1000)
    assert np.abs(layered(x, mixed) - 2.5).max() < 0.3
    assert (layered(x, line, filled=0.8) == 0).all()
    outside = np.concatenate([x, x + np.array([2.0, 0.0, 0.0])])
    found = layered(outside, np.tile(line, 2), filled=2.0)
    assert (found[1000:] == 0).all()
    np.testing.assert_allclose(found[:1000], line, atol=1e-12)


@pytest.mark.parametrize("degrees", [0, 0.1, 1, 2, 3, 4, 5, 6, 8, 10, 25, 45, 80, 90])
@pytest.mark.parametrize("n", [8, 10, 13])
def test_two_layers_are_layers_at_any_tilt(degrees: float, n: int) -> None:
    """Below 10 degrees the lattice leans by up to two spacings from end to end, and the step cuts its layers.

    At 0, 45 and 90 degrees the particles are in level layers, up to a spacing apart.
    """
    rotation = (np.radians(degrees), 0.0, 0.0)
    x = lattice(n) @ turn(rotation).T
    for at in (-0.021, 0.0, 0.013, 0.213):
        values = np.where(x[:, 2] > at, 2.0, 3.0)
        np.testing.assert_allclose(layered(x, values, rotation), values, atol=1e-12)


@pytest.mark.parametrize("moved", [1e-3, 0.1, 0.3, 0.45, 0.5, 0.55, 0.8])
def test_waves_on_an_interface_are_no_layers(moved: float) -> None:
    """Heavy fluid on a lattice below light, moved up by a sin(pi x): the wave's excess is no layer.

    It is (jump) a sin(pi x) per area; found by its share in sin(pi x), to the 15 % that the spline spreads
    over more layers. At a = 0.5 spacings heavy and light particles meet at one height, and a level interface
    there would explain them all.
    """
    b = lattice(10)
    wave = np.sin(np.pi * b[:, 0])
    x = b + np.outer(moved / 10 * wave, [0.0, 0.0, 1.0]) * (np.abs(b[:, 2:]) < 0.4)
    values = np.where(b[:, 2] > 0, 2.0, 3.0)
    left = values - layered(x, values)
    # Excess per area over the wave's: sum of V rho' sin / (jump a sum sin^2 / number of columns).
    assert (left * wave).sum() / (moved * (wave[np.isclose(b[:, 2], 0.05)] ** 2).sum()) == pytest.approx(
        1, abs=0.15
    )


def test_few_particles_have_layers_too() -> None:
    """Two layers of particles know a line, one only a mean; nothing is singular."""
    x = lattice(2)
    np.testing.assert_allclose(layered(x, 2 - x[:, 2]), np.where(x[:, 2] > 0, 1.75, 2.25), atol=0.26)
    x = lattice(3)
    np.testing.assert_allclose(layered(x, 2 - x[:, 2]), 2 - x[:, 2], atol=1e-6)
    assert layered(np.zeros((1, 3)), np.ones(1)) == 1


def test_rest_in_single_precision() -> None:
    """As in double precision, to the digits of 1000 kg/m^3 over a spacing: 6e-8 x 1000/0.1 = 6e-4 kg/m^4."""
    x = lattice(10) @ turn(TILTS["skew"]).T
    _, rate = tilted(TILTS["skew"], x, 1000 - 100 * x[:, 2], precision="single")
    assert np.linalg.norm(rate(), axis=1).max() < 6e-3


@pytest.mark.parametrize(
    "shape",
    [
        {"shape": "icosahedron", "radius": 0.6},
        {"shape": "cylinder", "radius": 0.5, "height": 1.0, "sides": 80},
    ],
)
def test_layers_rest_in_any_container(shape: dict[str, object]) -> None:
    """Walls at any angle, and too many for mirrors: linear layers generate nothing, 1e-9 of 100 kg/m^4."""
    world = ef.World(precision="double")
    room(world, "room", shape, rotation=TILTS["skew"])
    from ecs_fluid.systems.shared.walls import containers

    x = lattice(12) * 1.2
    x = x[containers(world)[0].inside(x)]
    _, rate = tilted(TILTS["skew"], x, 1000 - 100 * x[:, 2], shape=shape, spacing=0.1)
    assert np.linalg.norm(rate(), axis=1).max() < 1e-9
