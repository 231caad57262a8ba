"""How vorticity stretches, tilts and induces: article checks D4, D9, V4 of section 5."""

from __future__ import annotations

import math

import numpy as np
import pytest
from flows import Blobs, ring, vortons, world_of
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


def line_shear(distance: float, sigma: float, length: float) -> tuple[float, float]:
    """(du_x/dz, du_z/dx) at `distance` above the middle of a line vortex along y of finite length, 1/s.

    u_x = z I and u_z = -x I with I = 1/(4 pi) int q(r/sigma)/r^3 dy, r^2 = x^2 + y^2 + z^2, so the second is
    -I and the first d(z I)/dz, by a centred difference. They differ by the vorticity of the blobs' tail.
    """
    q = ENCLOSED["winckelmans"]
    y = np.linspace(-length / 2, length / 2, 20_001)

    def speed(z: float) -> float:
        r = np.sqrt(y**2 + z**2)
        return z * float(np.trapezoid(q(r / sigma) / r**3, y)) / (4 * math.pi)

    return (speed(distance + 1e-4) - speed(distance - 1e-4)) / 2e-4, -speed(distance) / distance


@pytest.mark.parametrize("scheme", ["transposed", "classical"])
def test_crossed_tubes_tilt_towards_each_other(scheme: str) -> None:
    """D4 at the first instant: where the tubes cross, each tilts towards the other.

    Above a line along +y, u_x(z) falls with height, and a tube along +x gains d(alpha_z)/dt = alpha du_z/dx
    (classical) or alpha du_x/dz (transposed), both < 0: down, towards the other tube; the lower one goes
    up. In the limit of a thin line both are -Gamma/(2 pi d^2).
    """
    world = world_of([tube(0, 0.5), tube(1, -0.5)], dt=1e-3, stretch=scheme, debug=True)
    world.evaluate()
    transposed, classical = line_shear(1.0, 0.3, 10.0)
    rate = classical if scheme == "classical" else transposed
    assert rate == pytest.approx(-1 / (2 * math.pi), rel=0.1)
    for name, along, sign in (("vortex0", 0, 1), ("vortex1", 1, -1)):
        tilt = world[name][ef.StrengthRate].dalpha[100] / world[name][ef.Strength].alpha[100, along]
        # Sum against integral: the two end blobs reach half a spacing too far, h L/2 over 4 pi (L/2)^3.
        assert tilt[2] == pytest.approx(sign * rate, rel=1e-3)
        assert abs(tilt[along]) < 1e-12


def test_crossed_tubes_stretch_near_the_crossing() -> None:
    """D4: |alpha| grows most near the crossing, leans to the other tube, and the enstrophy increases.

    Along the upper tube du_x/dx = -Gamma z x/(pi (x^2 + z^2)^2) with z = d, largest where x = -d/sqrt(3),
    there 9 Gamma/(16 sqrt(3) pi d^2) = 0.1034/s; the growth of the first half second follows it to the
    O(sigma^2/d^2) and the finite length left out, 5 % of it. The blob is swept towards x = 0 meanwhile.
    """
    world = world_of([tube(0, 0.5), tube(1, -0.5)], dt=0.05, integrator="rk3")
    enstrophy = [world.diagnostics()["enstrophy"]]
    for part in range(6):
        world.step(10)
        enstrophy.append(world.diagnostics()["enstrophy"])
        for name, along, sign in (("vortex0", 0, -1), ("vortex1", 1, 1)):
            x, alpha = world[name][ef.Position].x, world[name][ef.Strength].alpha
            growth = np.linalg.norm(alpha, axis=1) / 0.05
            peak, crossing = int(growth.argmax()), int(np.hypot(x[:, 0], x[:, 1]).argmin())
            lean = sign * alpha[crossing, 2] / alpha[crossing, along]
            if part == 0:
                first = -5 + 0.05 * peak
                assert first == pytest.approx(-1 / math.sqrt(3), abs=0.05)
                assert math.log(growth[peak]) == pytest.approx(0.1034 * 0.5, rel=0.05)
                assert lean == pytest.approx(0.5 / (2 * math.pi), rel=0.1)
            assert sign * alpha[peak, 2] > 0.02 * abs(alpha[peak, along])
            # four tube distances away hardly anything happens: 0.1034 (2 x sqrt(3)/d)^-3
            assert growth[:20].max() < 1 + 0.1 * (growth[peak] - 1)
        assert abs(x[peak, 1]) < 0.6
    assert (np.diff(enstrophy) > 0).all() and enstrophy[-1] > 1.005 * enstrophy[0]
    assert growth[peak] > 1.3 and np.hypot(x[peak, 0], x[peak, 1]) < 0.3 and lean > 0.3


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
