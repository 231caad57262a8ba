"""Buoyancy in stratified fluid against exact linear theory: internal waves, Rayleigh-Taylor, rest.

Validation cases 67, 68, 69. The first two are periodic: a vertical plane of vortons on a lattice, whose
velocity a system of this test takes from their vorticity by a Fourier transform (amplitudes are so small
that nobody leaves its lattice point), so that only the shipped buoyancy, ambient and integrator are under
test.
"""

from __future__ import annotations

import numpy as np
import pytest

import ecs_fluid as ef

GHOSTS = 4
"""Columns (and rows) beyond a period, so that the neighbours of the last particle are complete."""


class PeriodicPlane(ef.System):
    """Velocity in the plane x-z of vorticity along y on a lattice, periodic in both directions.

    u = curl(A e_y) with -laplacian(A) = omega_y. `lattice` is (columns, rows) with the ghosts, `period`
    the number of columns of a period, `rows` that of the whole Fourier grid (rows beyond the lattice are
    at rest).
    """

    reads = (ef.Strength, ef.Volume)
    writes = (ef.Velocity,)
    phase = "rates"
    dimensions = (2, 3)
    columns: int = 1
    rows: int = 1
    period: int = 1
    height: int = 1
    ghost_rows: int = 0
    spacing: float = 1.0

    def process(self, dt: float) -> None:
        for strength, volume, velocity in self.query(ef.Strength, ef.Volume, ef.Velocity):
            omega = (strength.alpha[:, 1] / volume.volume).reshape(self.columns, self.rows)
            g = self.ghost_rows
            field = np.zeros((self.period, self.height))
            inner = omega[GHOSTS : GHOSTS + self.period, g : self.rows - g]
            field[:, : inner.shape[1]] = inner
            kx = 2 * np.pi * np.fft.fftfreq(self.period, self.spacing)[:, None]
            kz = 2 * np.pi * np.fft.fftfreq(self.height, self.spacing)[None, :]
            k2 = kx**2 + kz**2
            k2[0, 0] = 1.0
            potential = np.fft.fft2(field) / k2
            potential[0, 0] = 0.0
            u = np.stack([-1j * kz * potential, 0 * potential, 1j * kx * potential], axis=-1)
            u = np.fft.ifft2(u, axes=(0, 1)).real
            i = (np.arange(self.columns) - GHOSTS) % self.period
            k = (np.arange(self.rows) - g) % self.height
            velocity.u[...] = u[i[:, None], k[None, :]].reshape(-1, 3)


def plane(columns: int, rows: int, spacing: float, z0: float) -> np.ndarray:
    """Lattice (columns rows, 3) in the plane y = 0; column GHOSTS stands at x = 0, row 0 at z0."""
    x = spacing * (np.arange(columns) - GHOSTS)
    z = z0 + spacing * np.arange(rows)
    out = np.zeros((columns, rows, 3))
    out[..., 0], out[..., 2] = x[:, None], z
    return out.reshape(-1, 3)


def march(
    x: np.ndarray, rho: np.ndarray, spacing: float, dt: float, ambient: dict, **lattice: int
) -> ef.World:
    """A world of the plane, with the shipped BaroclinicSystem and AdvectionSystem."""
    world = ef.World(dt=dt, integrator="rk4", precision="double", dimension=2, plane="xz")
    n = len(x)
    world.spawn(
        "plane", ef.Position(x), ef.Strength(np.zeros((n, 3))), ef.CoreRadius(np.full(n, 1.5 * spacing)),
        ef.Volume(np.full(n, spacing**2)), ef.Density(rho),
    )  # fmt: skip
    world.set_fluid(**ambient)
    world.add_systems(
        [
            PeriodicPlane(spacing=spacing, **lattice),
            ef.BaroclinicSystem(),
            ef.AdvectionSystem(),
        ]
    )
    return world


@pytest.mark.parametrize("waves", [(1, 1), (2, 1), (1, 3)])
def test_internal_wave(waves: tuple[int, int]) -> None:
    """Case 68: a plane wave in a linear stratification swings at N cos(angle of k to the horizontal), 3 %.

    rho_a = rho_0 (1 - N^2 z / g). A density wave without vorticity is a standing one, cos(omega t) at every
    place; its amplitude's first zero is a quarter of the period. 48 particles a period, 15 a wavelength and
    more: the gradient is low by about (k h)^2 / 3.
    """
    n, brunt, g = 48, 1.0, 10.0
    h = 1.0 / n
    k = 2 * np.pi * np.array([waves[0], 0.0, waves[1]])
    exact = brunt * waves[0] / np.hypot(*waves)
    columns = n + 2 * GHOSTS
    x = plane(columns, columns, h, -GHOSTS * h)
    reference = 1 - brunt**2 * x[:, 2] / g
    rho = reference + 1e-6 * np.cos(x @ k)
    ambient = {
        "gravity": (0, 0, -g),
        "density": 1.0,
        "density_profile": [(-5.0, 1 + brunt**2 / 2), (5.0, 1 - brunt**2 / 2)],
    }
    world = march(
        x, rho, h, 0.02 / exact, ambient,
        columns=columns, rows=columns, period=n, height=n, ghost_rows=GHOSTS,
    )  # fmt: skip
    table = world["plane"]
    inner = ((x[:, [0, 2]] > -h / 2) & (x[:, [0, 2]] < 1 - h / 2)).all(axis=1)

    def amplitude() -> float:
        z = table[ef.Position].x[:, 2]
        excess = table[ef.Density].rho - (1 - brunt**2 * z / g)
        return float(2 * (excess * np.cos(x @ k))[inner].mean() / 1e-6)

    values = [amplitude()]
    assert values[0] == pytest.approx(1.0, rel=1e-9)
    while values[-1] > 0:
        world.step()
        values.append(amplitude())
    steps = len(values) - 2 + values[-2] / (values[-2] - values[-1])
    frequency = np.pi / 2 / (steps * world.dt)
    assert frequency == pytest.approx(exact, rel=0.03)


@pytest.mark.nightly
def test_rayleigh_taylor_growth() -> None:
    """Case 67: a ripple on a layer of heavy over light fluid grows at sqrt(A g k), 5 % over 3 e-folds.

    For the density rho_0 (1 + A tanh(z/d)) the equation w'' = k^2 (1 - g rho_a' / (rho_0 s^2)) w has the
    exact solution w = sech(z/d)^(k d) with s^2 = A g k / (1 + k d) (the ground state of a Poeschl-Teller
    well). With k d = 0.08 that is 3.8 % below the sharp interface, whose rate is met to 5 %; the exact
    one to 2 %.
    """
    k, g, atwood = 2 * np.pi, 10.0, 0.01
    d = 0.08 / k
    n = 236
    h = 1.0 / n
    reach = int(np.ceil(6 * d / h))
    columns, rows = n + 2 * GHOSTS, 2 * reach + 1
    x = plane(columns, rows, h, -reach * h)
    heights = np.linspace(-8 * d, 8 * d, 4001)
    ambient = {
        "gravity": (0, 0, -g),
        "density": 1.0,
        "density_profile": [(z, 1 + atwood * np.tanh(z / d)) for z in heights.tolist()],
    }
    # The growing wave: all is displaced by a cos(k x) sech(z/d)^(k d) upwards; vorticity comes by itself.
    lift = 1e-4 * d * np.cos(k * x[:, 0]) / np.cosh(x[:, 2] / d) ** (k * d)
    rho = 1 + atwood * np.tanh((x[:, 2] - lift) / d)
    exact = np.sqrt(atwood * g * k / (1 + k * d))
    world = march(
        x, rho, h, 0.1 / exact, ambient,
        columns=columns, rows=rows, period=n, height=2 * n, ghost_rows=0,
    )  # fmt: skip
    inner = (x[:, 0] > -h / 2) & (x[:, 0] < 1 - h / 2)

    def amplitude() -> float:
        alpha = world["plane"][ef.Strength].alpha[:, 1]
        return abs(float((alpha * np.sin(k * x[:, 0]))[inner].sum()))

    # It starts without velocity, so as cosh(s t): by s t = 3 the decaying part is e^-6 of it.
    world.step(30)
    first = amplitude()
    world.step(30)
    rate = np.log(amplitude() / first) / (30 * world.dt)
    assert rate == pytest.approx(exact, rel=0.02)
    assert rate == pytest.approx(np.sqrt(atwood * g * k), rel=0.05)


PROFILES = {
    "density": {"density": 1.0, "density_profile": [(-2.0, 1.3), (0.1, 1.0), (2.0, 0.9)]},
    "gas": {"law": "ideal_gas", "temperature_profile": [(-1.0, 280.0), (0.0, 320.0), (3.0, 500.0)]},
    "liquid": {"law": "liquid", "density": 1000.0, "temperature_profile": [(-1.0, 280.0), (2.0, 350.0)]},
}


@pytest.mark.parametrize("gradient", ["neighbours", "grid"])
@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("model", ["boussinesq", "full"])
def test_stratified_fluid_at_rest_stays_at_rest(profile: str, gradient: str, model: str) -> None:
    """Case 69: a disordered cloud with the ambient's own density generates no vorticity, 1e-12.

    The scale of what an unbalanced cloud would generate: volume x d(rho)/dz g / rho_0 x time = 1e-3 x 1 x
    0.5.
    """
    draw = np.random.default_rng(2)
    x = draw.uniform(-1, 1, (500, 3))
    world = ef.World(dt=0.1, precision="double")
    world.spawn(
        "cloud", ef.Position(x), ef.Strength(np.zeros((500, 3))), ef.CoreRadius(np.full(500, 0.4)),
        ef.Volume(np.full(500, 8 / 500)),
    )  # fmt: skip
    world.set_fluid(**PROFILES[profile])
    world.add_systems(
        [
            ef.VelocitySystem(),
            ef.BaroclinicSystem(gradient=gradient, model=model),
            ef.AdvectionSystem(),
        ]
    )
    world.step(5)
    assert np.ptp(world["cloud"][ef.Density].rho) > 0.1
    assert np.abs(world["cloud"][ef.Strength].alpha).max() < 1e-12
    np.testing.assert_allclose(world["cloud"][ef.Position].x, x, atol=1e-12)
