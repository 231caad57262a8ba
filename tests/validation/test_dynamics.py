"""How vorticity stretches, tilts and induces: article checks D4, D9, V4 of section 5."""

from __future__ import annotations

import math

import numpy as np
import pytest
from flows import Blobs, vortons, world_of
from oracles import ENCLOSED

import ecs_fluid as ef


def tube(along: int, height: float, count: int = 201, length: float = 10.0, sigma: float = 0.3) -> Blobs:
    """A straight line of blobs of circulation 1 along axis 0 or 1, at z = height."""
    x = np.zeros((count, 3))
    x[:, along] = np.linspace(-length / 2, length / 2, count)
    x[:, 2] = height
    alpha = np.zeros_like(x)
    alpha[:, along] = length / (count - 1)
    return x, alpha, np.full(count, sigma)


def line_shear(distance: float, sigma: float, length: float) -> float:
    """du_x/dz at `distance` above the middle of a line vortex along y, less its finite length, 1/s.

    u_x = 1/(4 pi) int q(r/sigma) z / r^3 dy with r^2 = z^2 + y^2; differentiated by a centred difference.
    """
    q = ENCLOSED["winckelmans"]
    y = np.linspace(-length / 2, length / 2, 20_001)

    def u(z: float) -> float:
        r = np.sqrt(y**2 + z**2)
        return float(np.trapezoid(q(r / sigma) * z / r**3, y)) / (4 * math.pi)

    return (u(distance + 1e-4) - u(distance - 1e-4)) / 2e-4


@pytest.mark.parametrize("scheme", ["transposed", "classical"])
def test_crossed_tubes_tilt_towards_each_other(scheme: str) -> None:
    """D4 at the first instant: where the tubes cross, each tilts towards the other at the rate |du_x/dz|.

    Above a line along +y, u_x(z) falls with height and grad u is symmetric there, so a tube along +x gains
    d(alpha_z)/dt = alpha du_x/dz < 0 (downwards, to the other tube), and the lower one the opposite. In
    the limit of a thin line du_x/dz = -Gamma/(2 pi d^2).
    """
    distance = 1.0
    world = world_of([tube(0, 0.5), tube(1, -0.5)], dt=1e-3, stretch=scheme, debug=True)
    world.evaluate()
    rate = line_shear(distance, 0.3, 10.0)
    assert rate == pytest.approx(-1 / (2 * math.pi * distance**2), rel=0.1)
    for name, along, sign in (("vortex0", 0, 1), ("vortex1", 1, -1)):
        tilt = world[name][ef.StrengthRate].dalpha[100] / world[name][ef.Strength].alpha[100, along]
        # 201 blobs against the integral: h/sigma = 1/6, the ends 5 away, where one half blob is too much.
        assert tilt[2] == pytest.approx(sign * rate, rel=2e-3)
        assert abs(tilt[along]) < 1e-12


def test_crossed_tubes_stretch_at_the_crossing() -> None:
    """D4: |alpha| grows most at the crossing, leans to the other tube, and the enstrophy increases.

    After t the tilt is about rate t, and the stretch d ln|alpha|/dt = 2 |rate| tilt, so ln|alpha| grows as
    (rate t)^2: with rate = 0.16 and t = 2 that is 0.10; the tubes approach meanwhile and make it more.
    """
    world = world_of([tube(0, 0.5), tube(1, -0.5)], dt=0.05, integrator="rk3")
    before = world.diagnostics()["enstrophy"]
    world.step(40)
    rate = line_shear(1.0, 0.3, 10.0)
    for name, along, sign in (("vortex0", 0, -1), ("vortex1", 1, 1)):
        alpha = world[name][ef.Strength].alpha
        growth = np.linalg.norm(alpha, axis=1) / (10.0 / 200)
        peak = int(growth.argmax())
        where = world[name][ef.Position].x[peak]
        assert np.hypot(where[0], where[1]) < 0.5
        assert growth[peak] > math.exp((rate * world.time) ** 2)
        assert sign * alpha[100, 2] / alpha[100, along] > abs(rate) * world.time
        # far from the crossing hardly anything happened
        assert growth[:20].max() < 1 + 0.1 * (growth[peak] - 1) or growth[:20].max() < 1.01
    assert world.diagnostics()["enstrophy"] > 1.02 * before


@pytest.mark.parametrize("at", ["vortons", "grid"])
@pytest.mark.parametrize("scheme", ["transposed", "classical", "mixed"])
def test_flat_sheet_is_not_stretched(at: str, scheme: str) -> None:
    """D9: in a flat world with vorticity across the plane, stretching is zero to the last bit.

    All of alpha is along y and everything lies in y = 0, so J_iy = 0 and J_yi = 0 term by term; the sheet
    rolls up without ever changing a strength.
    """
    draw = np.random.default_rng(5)
    x = np.stack([np.linspace(-1, 1, 80), np.zeros(80), 0.05 * draw.standard_normal(80)], axis=1)
    alpha = np.zeros_like(x)
    alpha[:, 1] = draw.uniform(0.5, 1.0, 80) / 80
    world = world_of(
        (x, alpha, np.full(80, 0.08)), dt=0.05, integrator="rk3", stretch=scheme, velocity={"at": at}
    )
    world.step(10)
    assert world["vortex0"][ef.Strength].alpha.tolist() == alpha.tolist()
    moved = world["vortex0"][ef.Position].x
    assert moved[:, 1].tolist() == np.zeros(80).tolist()
    assert np.abs(moved - x).max() > 0.02


def test_vorticity_of_the_velocity_grid_is_what_was_fed_in() -> None:
    """V4: the curl of the velocity grid correlates with the blobs' vorticity; sign and axes are right.

    The blobs' own vorticity zeta * alpha is not solenoidal, its curl-free part has no velocity. For closed
    lines of overlap 4 that part is negligible, and the central difference over h = sigma/2.5 takes
    1 - (k h)^2/6 with k about 1/sigma, 3 % from the peak; so 0.995 in correlation and 0.9 in slope.
    """
    phi = 2 * np.pi * np.arange(120) / 120
    x = np.stack([np.cos(phi), np.sin(phi), 0.2 * np.sin(2 * phi)], axis=1)
    tangent = np.stack([-np.sin(phi), np.cos(phi), 0.4 * np.cos(2 * phi)], axis=1)
    blobs = x, 2 * np.pi / 120 * tangent, np.full(120, 0.25)
    world = world_of(
        blobs, ef.PartitionSystem(cells_per_vorton=150, padding=2.0), velocity={"at": "grid"}, dt=0.02
    )
    world.evaluate()
    grid, u = world.fluid[ef.Grid], world.fluid[ef.VelocityField].u
    du = [np.gradient(u[..., i], *grid.spacing, edge_order=2) for i in range(3)]
    curl = np.stack([du[2][1] - du[1][2], du[0][2] - du[2][0], du[1][0] - du[0][1]], axis=-1)
    steps = [grid.origin[a] + grid.spacing[a] * np.arange(grid.cells[a] + 1) for a in range(3)]
    points = np.stack(np.meshgrid(*steps, indexing="ij"), axis=-1)
    fed = np.zeros_like(curl)
    for place, strength in zip(x, blobs[1], strict=True):
        rho2 = ((points - place) ** 2).sum(axis=-1) / 0.25**2
        fed += 15 / (8 * np.pi) * (rho2[..., None] + 1) ** -3.5 * strength / 0.25**3
    a, b = curl.ravel(), fed.ravel()
    assert float(grid.spacing.max()) < 0.25 / 2
    assert (a * b).sum() / math.sqrt((a * a).sum() * (b * b).sum()) > 0.995
    assert 0.9 < (a * b).sum() / (b * b).sum() < 1.0


def test_sideways_drift_of_oblique_rings_is_their_impulse() -> None:
    """D6: the centre of impulse of a pair of unlike rings moves along the total impulse, nowhere else.

    For rings leaning in the x-z plane the y part of the impulse is zero, and stays so.
    """
    from flows import ring

    pair = [
        ring(60, 0.25, axis=(0.5, 0.0, 1.0), center=(-1.0, 0.0, 0.0)),
        ring(60, 0.25, axis=(-0.5, 0.0, 1.0), center=(1.0, 0.0, 0.0)),
    ]
    world = world_of(pair, dt=0.05, integrator="rk3")
    world.step(20)
    x, alpha = vortons(world)
    impulse = 0.5 * np.cross(x, alpha).sum(axis=0)
    assert abs(impulse[1]) < 1e-12 * impulse[2] and abs(impulse[0]) < 1e-12 * impulse[2]
    # mirror images: the mean of all positions stays on the plane between them
    assert np.abs(x.mean(axis=0)[:2]).max() < 1e-12
