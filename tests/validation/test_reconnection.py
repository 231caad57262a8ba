"""Two inclined viscous rings reconnect: validation case 40, coarse."""

from __future__ import annotations

import math

import numpy as np
import pytest
from flows import invariants, ring

import ecs_fluid as ef

SPACING, CORE, REYNOLDS = 0.1, 0.15, 400.0


def filled() -> list[ef.Component]:
    """Rings of radius and circulation 1, 2.7 apart, leaning 15 degrees to each other, as lattice vortons.

    Cores are those of Gaussian blobs of 0.15 (in the literature 0.1: this is the coarse case).
    """
    tilt = math.radians(15)
    rings = [
        ring(63, CORE, center=(1.35 * side, 0.0, 0.0), axis=(-side * math.sin(tilt), 0.0, math.cos(tilt)))
        for side in (1.0, -1.0)
    ]
    x, alpha, sigma = (np.concatenate(columns) for columns in zip(*rings, strict=True))
    still = ef.World(precision="double")
    volume = ef.Volume(np.full(len(x), SPACING**3))
    still.spawn("rings", ef.Position(x), ef.Strength(alpha), ef.CoreRadius(sigma), volume)
    still.add_systems([remesh(every=1), ef.AdvectionSystem()])
    still.step()
    return [still["rings"][kind] for kind in (ef.Position, ef.Strength, ef.CoreRadius, ef.Volume)]


def remesh(every: int) -> ef.RemeshSystem:
    """A lattice on which the cores overlap 1.5 times."""
    return ef.RemeshSystem(every=every, spacing=SPACING, overlap=CORE / SPACING, loss=5e-4)


def inclined_rings() -> ef.World:
    """The world of the two rings.

    PSE of order 4, since core and exchange radius are of one size: at order 2 the symbol of the exchange,
    (1 - exp(-q))/q with q = (k eps)^2/4, is 12 % low at k = 1/core.
    """
    world = ef.World(dt=0.1, integrator="rk3", precision="double")
    world.spawn("rings", *filled())
    world.set_fluid(viscosity=1 / REYNOLDS)
    world.add_systems(
        [
            ef.VelocitySystem(kernel="gaussian"),
            ef.StretchSystem(),
            ef.DiffusionSystem(order=4),
            remesh(every=4),
            ef.AdvectionSystem(),
        ]
    )
    return world


def transferred(world: ef.World) -> float:
    """Circulation that goes through the plane x = 0 on one side of y = 0, m^2/s; 0 at the start.

    The half plane's rim is the z axis, closed at infinity where u ~ r^-3. The half plane y = 0, x > 0 has the
    same rim: what passes here has left the inner side of the ring, whose outer side stays.
    """
    z = np.concatenate(
        [np.linspace(-60, -6, 600)[:-1], np.linspace(-6, 8, 1000), np.linspace(8, 60, 600)[1:]]
    )
    u = world.velocity(np.stack([0 * z, 0 * z, z], axis=1))
    return float(np.trapezoid(u[:, 2], z))


@pytest.mark.nightly
@pytest.mark.filterwarnings("ignore::ecs_fluid.errors.FluidWarning")
def test_inclined_rings_reconnect() -> None:
    """Case 40 to t = 6: over half of the circulation passes from the rings into the joined one, monotonously.

    Gates: impulse (and angular impulse, which is zero by symmetry, on the impulse's scale) to 0.5 %, energy
    lost equal to the dissipation 2 nu enstrophy within 5 %. Measured: transfer 0.82, impulse 0.3 %, budget
    3.6 %.
    """
    world = inclined_rings()
    start, first = invariants(world), world.diagnostics()
    passed, enstrophy, times = [transferred(world)], [first["enstrophy"]], [0.0]
    while world.time < 6.0 - 1e-9:
        world.step(2)
        passed.append(transferred(world))
        enstrophy.append(world.diagnostics()["enstrophy"])
        times.append(world.time)
    assert abs(passed[0]) < 0.05 and passed[-1] > 0.5
    assert (np.diff(passed) > 0).all()
    end = invariants(world)
    scale = np.linalg.norm(start["impulse"])
    assert np.abs(end["impulse"] - start["impulse"]).max() < 5e-3 * scale
    assert np.abs(end["angular_impulse"] - start["angular_impulse"]).max() < 5e-3 * scale
    lost = first["energy"] - world.diagnostics()["energy"]
    assert lost == pytest.approx(2 / REYNOLDS * np.trapezoid(enstrophy, times), rel=0.05)
    assert lost > 0.2 * first["energy"]
