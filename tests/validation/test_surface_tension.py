"""Surface tension: identities of its force, Lamb's frequencies, a drop at rest, merging, same bits.

Lamb, Hydrodynamics, art. 275: a wave of degree n on a drop of radius R swings with

    omega^2 = n (n - 1) (n + 1) (n + 2) s / (((n + 1) rho_i + n rho_o) R^3).

Vortex sheets of finite thickness answer more weakly. With the normal velocity of degree n falling off as
(R/r)^(n-1) outwards and (r/R)^(n+2) inwards of a shell, a sheet of the mean thickness e = <|r - R|> moves the
surface by the part 1 - (2 n + 1) e / (2 R), first order in the spacing, with e of about one: `sharpening`
takes that away.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import ecs_fluid as ef
from ecs_fluid.errors import FluidError
from ecs_fluid.kernels.surface.facets import enclosed
from ecs_fluid.kernels.surface.level_set import sample
from ecs_fluid.kernels.surface.surface_tension import (
    curvature_beside,
    rotation,
    sharpened,
    sharpening,
    step,
    tension_force,
)
from ecs_fluid.recipe import entity_recipe
from ecs_fluid.systems.surface_tension import closed_parts
from ecs_fluid.worlds import Drop, Drops
from tests.resuming import resumed
from tests.threads import check_threads

Array = np.ndarray
NODES, WEIGHTS = np.polynomial.legendre.leggauss(12)


def drop_world(
    cells: float,
    drops: tuple[Drop, ...] = (Drop(),),
    dt: float = 1e-4,
    outside: float = 1.0,
    gravity: tuple[float, float, float] = (0.0, 0.0, -9.81),
    **tension: object,
) -> ef.World:
    """Drops of 1 m radius with `cells` grid cells in it, s = 1 N/m and rho = 1 kg/m^3: s / (rho R^3) is 1."""
    world = ef.World(dt=dt, precision="double")
    world.set_fluid(density=outside, gravity=gravity)
    Drops(name="oil", spacing=1.0 / cells, drops=drops).build(world)
    world.add_systems(
        [
            ef.VelocitySystem(tracers="solver"),
            ef.StretchSystem(),
            ef.AdvectionSystem(),
            ef.SurfaceSystem(of="flow", carried=True, mesh=False),
            ef.SurfaceTensionSystem(**{"surface_tension": 1.0, "liquid_density": 1.0, "on": "oil"} | tension),
        ]
    )
    return world


def directions() -> Array:
    """Directions (96, 3): Gauss nodes in cos theta, eight around each."""
    around = np.arange(8) * np.pi / 4 + 0.1
    s = np.sqrt(1 - NODES**2)[:, None]
    z = np.repeat(NODES[:, None], 8, axis=1)
    return np.stack([s * np.cos(around), s * np.sin(around), z], axis=-1).reshape(-1, 3)


def part_of_degree(values: Array, n: int) -> float:
    """Coefficient of P_n in values (96,) at `directions`: (2 n + 1) / 2 int f P_n d(cos theta)."""
    poly = np.polynomial.legendre.legval(NODES, [0.0] * n + [1.0])
    return float((2 * n + 1) / 2 * (WEIGHTS * values.reshape(12, 8).mean(axis=1) * poly).sum())


def wave(world: ef.World, n: int) -> float:
    """Amplitude of degree n of a drop's surface, m."""
    table, along = world.fluid[ef.SignedDistance], directions()
    r = np.ones(len(along))
    for _ in range(8):
        r -= sample(r[:, None] * along, table.origin, table.spacing, table.phi, third_order=True)
    return part_of_degree(r, n)


def first_frequency(cells: float, n: int, **tension: object) -> float:
    """omega of degree n in 1/s, from the velocity that the first tick's vorticity gives the surface.

    The mean over a wave and its opposite: what is of second order in the amplitude drops out.
    """
    squares, along = [], directions()
    for amplitude in (0.02, -0.02):
        drop = Drop(amplitude=amplitude, mode=n)
        world = drop_world(cells, (drop,), gravity=(0.0, 0.0, 0.0), **tension)
        world.step()
        r = drop.scale() * drop.profile(along[:, 2])
        u = world.velocity(r[:, None] * along)
        squares.append(-part_of_degree((u * along).sum(axis=1), n) / world.dt / amplitude)
    return float(np.sqrt(np.mean(squares)))


def lamb(n: int, inside: float = 1.0, outside: float = 1.0) -> float:
    return float(np.sqrt(n * (n - 1) * (n + 1) * (n + 2) / ((n + 1) * inside + n * outside)))


# ------------------------------------------------------------------ identities


def test_constant_curvature_makes_no_vorticity_and_sums_are_exact() -> None:
    """curl grad = 0, sum curl f = 0, 1/2 sum x cross curl f = sum f, 1/3 sum x cross (x cross curl f) = sum x
    cross f, all to rounding, for any f that ends inside the grid; `sharpened` keeps both sums of f."""
    h = np.full(3, 0.1)
    x = 0.1 * np.stack(np.meshgrid(*[np.arange(24.0) - 11.5] * 3, indexing="ij"), axis=-1)
    phi = np.linalg.norm(x, axis=-1) - 0.6
    from ecs_fluid.kernels.grids.differences import gradient

    slope = gradient(step(phi, 0.15), h, 4)
    assert np.abs(slope).max() > 3.0
    assert np.abs(rotation(2.0 * slope, h)).max() < 1e-12
    force = np.zeros((24, 24, 24, 3))
    force[4:-4, 4:-4, 4:-4] = np.random.default_rng(1).normal(size=(16, 16, 16, 3))
    curl, x, f = rotation(force, h).reshape(-1, 3), x.reshape(-1, 3), force.reshape(-1, 3)
    size = np.abs(curl).sum()
    assert np.abs(curl.sum(axis=0)).max() < 1e-14 * size
    assert np.abs(0.5 * np.cross(x, curl).sum(axis=0) - f.sum(axis=0)).max() < 1e-13 * size
    twice = np.cross(x, np.cross(x, curl)).sum(axis=0) / 3
    assert np.abs(twice - np.cross(x, f).sum(axis=0)).max() < 1e-13 * size
    sharp = sharpened(force, 1.3).reshape(-1, 3)
    assert np.abs(sharp - f).max() > 1.0
    assert np.abs((sharp - f).sum(axis=0)).max() < 1e-13 * size
    assert np.abs(np.cross(x, sharp - f).sum(axis=0)).max() < 1e-13 * size


def test_tension_pushes_no_drop_as_a_whole() -> None:
    """Net force and torque of each of two wavy drops are 0 to rounding; curvature is the foot point's."""
    drops = (Drop(amplitude=0.2, axis=(1.0, 2.0, 0.5)), Drop(center=(2.6, 0.3, 0.0), radius=0.9))
    world = drop_world(8.0, drops)
    table = world.fluid[ef.SignedDistance]
    h = table.spacing
    width = 1.5 * float(h[0])
    parts, count = closed_parts(table.phi, h, width)
    assert count == 2
    force = tension_force(table.phi, table.origin, h, width, parts, count)
    x = table.origin + np.indices(table.phi.shape).transpose(1, 2, 3, 0) * h
    for number in (1, 2):
        f, r = force[parts == number], x[parts == number]
        assert np.abs(f.sum(axis=0)).max() < 1e-12 * np.abs(f).sum()
        assert np.abs(np.cross(r, f).sum(axis=0)).max() < 1e-12 * np.abs(f).sum() * 4.0
    # 2 / R on both sides of the round drop; the level sets' own would differ by d / R = 20 % at the rim.
    kappa = curvature_beside(table.phi, table.origin, h, width)
    band = (parts == 2) & (np.abs(table.phi) < width) & (x[..., 0] > 2.6)
    assert np.abs(kappa[band] * 0.45 - 1).max() < 0.03


# ------------------------------------------------------------------ oscillating drops


@pytest.mark.parametrize(("n", "order", "error"), [(2, 1.8, 0.004), (3, 1.8, 0.008), (4, 2.0, 0.012)])
def test_frequency_is_lambs_in_second_order(n: int, order: float, error: float) -> None:
    """Case 115: from the very first acceleration, at 6, 9 and 12 cells a radius.

    Measured 0.9896, 0.9959, 0.9978 of Lamb's for n = 2 (order 2.22); 0.9762, 0.9915, 0.9947 for 3 (2.19);
    0.9524, 0.9838, 0.9917 for 4 (2.52).
    """
    cells = np.array([6.0, 9.0, 12.0])
    errors = np.array([1.0 - first_frequency(float(c), n) / lamb(n) for c in cells])
    assert (errors > 0).all() and errors[-1] < error
    assert -np.polyfit(np.log(cells), np.log(errors), 1)[0] > order


@pytest.mark.nightly
@pytest.mark.parametrize("outside", [0.001, 10.0], ids=["air", "heavy"])
def test_frequency_between_unequal_densities(outside: float) -> None:
    """Of first order still: at 12 cells 0.971 and 0.954 of Lamb's are measured. In air the errors are on
    no line (0.999, 0.962, 0.971, 0.994 at 6, 9, 12, 18 cells): repetition ends before it settles."""
    assert first_frequency(12.0, 2, outside=outside) / lamb(2, 1.0, outside) == pytest.approx(1.0, abs=0.05)


@pytest.mark.nightly
def test_frequency_in_a_heavy_fluid_tends_to_lambs() -> None:
    """Of first order: 0.893 and 0.934 at 6 and 9 cells; the line through them ends at Lamb's to 3 % (+1.7 %
    measured)."""
    coarse, fine = (first_frequency(cells, 2, outside=10.0) / lamb(2, 1.0, 10.0) for cells in (6.0, 9.0))
    assert 0.85 < coarse < fine < 1.0
    assert 3.0 * fine - 2.0 * coarse == pytest.approx(1.0, abs=0.03)


def test_sharpened_sheet_moves_as_one_without_thickness() -> None:
    """<|z|> of a plane Gaussian sheet of radius s is s sqrt(2 / pi), and -c d^2/dz^2 takes c sqrt(2 / pi) / s
    from it: c = s^2, where cores are so wide that step (variance w^2 (1/3 - 2 / pi^2), w = 1.5 h) and
    differences hardly count."""
    wide = 8.0
    variance = wide**2 + 1.5**2 * (1 / 3 - 2 / np.pi**2)
    assert sharpening(((1.0, 1.0),), wide) == pytest.approx(variance, rel=2e-3)


@pytest.mark.nightly
def test_drop_swings() -> None:
    """Six cells of radius, 10 % of amplitude, 3/4 of a period: on the other side after half of it with the
    amplitude it had, at the grid's own frequency (the test above), volume and total strength kept.

    The first tick has no vorticity yet, so time counts from its end.
    """
    omega = first_frequency(6.0, 2)
    ticks = 80
    dt = 2 * np.pi / omega / ticks
    world = drop_world(6.0, (Drop(amplitude=0.1),), dt=dt)
    volume = enclosed(world.fluid[ef.SignedDistance].phi, world.fluid[ef.SignedDistance].spacing)[0]
    waves = []
    for _ in range(61):
        world.step()
        waves.append(wave(world, 2))
    found = np.array(waves)
    time = dt * np.arange(61)
    # Zeros at 1/4 and 3/4 of the period; waves this high swing 1 to 2 % more slowly.
    zeros = [
        time[i] - found[i] * dt / (found[i + 1] - found[i])
        for i in np.flatnonzero(found[:-1] * found[1:] < 0)
    ]
    assert len(zeros) in (1, 2)
    assert zeros[0] * omega / (np.pi / 2) == pytest.approx(1.0, abs=0.06)
    assert -found.min() == pytest.approx(0.1, abs=0.008)
    assert time[found.argmin()] * omega / np.pi == pytest.approx(1.0, abs=0.06)
    table = world.fluid[ef.SignedDistance]
    assert enclosed(table.phi, table.spacing)[0] == pytest.approx(volume, rel=1e-6)
    x, alpha = world["oil"][ef.Position].x, world["oil"][ef.Strength].alpha
    size = np.abs(alpha).sum()
    assert np.abs(alpha.sum(axis=0)).max() < 1e-12 * size
    # The source has none; what moving adds to the vortons has no direction to go.
    assert np.abs(0.5 * np.cross(x, alpha).sum(axis=0)).max() < 1e-4 * size


def test_drop_at_rest_stays() -> None:
    """A ball has nothing to do: its curvature is 2 / R but for the grid's error. Half a period of degree 2
    on (40 ticks), the surface is off by less than 1e-3 R, and the motion has 1e-6 of the surface's energy
    (bound 4e-6)."""
    world = drop_world(6.0, dt=2 * np.pi / lamb(2) / 80)
    world.step(40)
    table, along = world.fluid[ef.SignedDistance], directions()
    off = sample(along, table.origin, table.spacing, table.phi, third_order=True)
    assert np.abs(off - off.mean()).max() < 1e-3
    assert world.diagnostics()["energy"] < 4e-6 * 4 * np.pi


@pytest.mark.nightly
@pytest.mark.parametrize("inside", [2.0, 0.5])
def test_heavy_drops_fall_and_light_ones_rise(inside: float) -> None:
    """The first acceleration of a ball is g (rho_i - rho_o) / (rho_i + rho_o / 2): half the mass of what it
    displaces moves along. First order in the spacing, the line through 12 and 16 cells ends there to 3 %
    (+0.04 % and +1.7 % measured), and the liquid moves as a whole."""
    found = []
    for cells in (12.0, 16.0):
        world = drop_world(cells, liquid_density=inside, gravity=(0.0, 0.0, -1.0))
        world.step()
        u = world.velocity(0.5 * directions())
        assert np.abs(u[:, :2]).max() < 0.01 * np.abs(u[:, 2]).max()
        found.append(-u[:, 2].mean() / world.dt / ((inside - 1.0) / (inside + 0.5)))
    assert found[0] == pytest.approx(1.0, abs=0.06)
    assert 4 * found[1] - 3 * found[0] == pytest.approx(1.0, abs=0.03)


# ------------------------------------------------------------------ worlds


@pytest.mark.nightly
def test_drops_merge_and_become_round() -> None:
    """The shipped world, coarser: two parts, then one for good, with the volume kept; what is one drop has
    less surface than the two had (2^(1/3) times that of the final ball)."""
    world = ef.load("drops_merge", "oil.spacing=0.002", "fluid.velocity.tolerance=5e-3")
    world.step(72)
    records = [record for record in world.history if "surface_parts" in record]
    parts = [record["surface_parts"] for record in records]
    assert parts[0] == 2 and parts[-1] == 1 and parts == sorted(parts, reverse=True)
    volumes = [record["surface_volume"] for record in records]
    assert max(volumes) / min(volumes) < 1 + 1e-4
    apart = 2 * 4 * np.pi * 0.01**2
    assert records[0]["surface_area"] == pytest.approx(apart, rel=0.02)
    assert records[-1]["surface_area"] < 0.9 * apart


def test_moving_drop_starts_with_its_velocity() -> None:
    """The sheet 3/2 V cross n gives V inside and the dipole -V R^3 / 2 grad(x / r^3) outside."""
    world = drop_world(10.0, (Drop(velocity=(0.3, 0.0, 0.0)),))
    inside = world.velocity(0.5 * directions())
    assert np.abs(inside - [0.3, 0.0, 0.0]).max() < 0.3 * 0.01
    outside = world.velocity(np.array([[2.0, 0.0, 0.0], [0.0, 2.0, 0.0]]))
    np.testing.assert_allclose(outside[:, 0], [0.3 / 8, -0.3 / 16], rtol=0.03)
    world.step()  # the transposed form of stretching keeps the sum
    alpha = world["oil"][ef.Strength].alpha
    assert np.abs(alpha.sum(axis=0)).max() < 1e-12 * np.abs(alpha).sum()


# ------------------------------------------------------------------ bits and mistakes


def test_same_bits_for_threads_and_after_a_restart(tmp_path: Path) -> None:
    """With unequal densities, which test_liquid_threads and shipped worlds do not have."""

    def state() -> str:
        world = drop_world(4.0, (Drop(amplitude=0.2),), dt=0.02, outside=3.0)
        world.step(2)
        return resumed(world, tmp_path, 2).state_hash()

    check_threads(state)


def test_mistakes() -> None:
    """Each in one sentence that says what to do."""
    with (
        pytest.warns(ef.FluidWarning, match="dt = 0.1 s is unstable"),
        pytest.raises(FluidError, match=r"unstable with surface_tension = 1 N/m.*use dt <= 0.0384 s"),
    ):
        drop_world(6.0, dt=0.1).step()
    world = drop_world(6.0)
    world.add_system(ef.RemeshSystem())
    with pytest.raises(FluidError, match="RemeshSystem would replace the vortons of 'oil'"):
        world.step()
    world = drop_world(6.0, outside=0.5)
    world.add_system(ef.BaroclinicSystem())
    with pytest.raises(FluidError, match="both generate vorticity from the jump in density"):
        world.step()
    with pytest.raises(FluidError, match="a surface already"):
        Drops(name="more").build(drop_world(6.0))
    with pytest.raises(FluidError, match=r"too large for a drop of radius 1 m; at most 0.5 m"):
        entity_recipe({"kind": "drops", "name": "coarse", "spacing": 0.6}, "test")
