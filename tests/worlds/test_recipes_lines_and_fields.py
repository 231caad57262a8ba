"""Tubes, sheets, noise, Hill's vortex and vortons from a velocity field."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.optimize import brentq
from scipy.special import jv, jvp, kv, kvp

import ecs_fluid as ef
from ecs_fluid.component import Array
from ecs_fluid.components import Position, Strength
from ecs_fluid.world import World
from ecs_fluid.worlds import HillVortex, NoiseBox, VortexCurve, VortexSheet, VortexTube, VortonsFromVelocity
from ecs_fluid.worlds.frame import frame
from tests.validation.spectral import writhe
from tests.worlds.made_vortons import made

# ---------------------------------------------------------------------------------------------- tubes


@pytest.mark.parametrize("profile", ["thin", "gaussian", "uniform", "article"])
def test_every_section_of_a_tube_has_its_circulation(profile: str) -> None:
    recipe = VortexTube(
        name="tube",
        length=3.0,
        core=0.3,
        circulation=2.5,
        spacing=0.1,
        profile=profile,
        axis=(1, 1, 0),
        amplitude=0.2,
        variation=0.3,
        wavelength=1.5,
    )
    x, alpha, _, _ = made(recipe)
    axes = frame((1, 1, 0))
    place, along = (x @ axes.T)[:, 2], (alpha @ axes.T)[:, 2]
    stations = np.unique(np.round(place, 9), return_inverse=True)[1].ravel()
    sections = np.bincount(stations, along) / (3.0 / 30)
    assert len(sections) == 30
    np.testing.assert_allclose(sections, 2.5, rtol=1e-12)


def test_wavy_tube_follows_its_lines() -> None:
    # One thin line x = A cos(k z): alpha must be parallel to (-A k sin(k z), 0, 1).
    recipe = VortexTube(
        name="tube", length=2.0, core=0.1, spacing=0.05, profile="thin", amplitude=0.3, wavelength=1.0
    )
    x, alpha, _, volume = made(recipe)
    k = 2 * np.pi
    np.testing.assert_allclose(x[:, 0], 0.3 * np.cos(k * x[:, 2]), atol=1e-12)
    np.testing.assert_allclose(alpha[:, 0] / alpha[:, 2], -0.3 * k * np.sin(k * x[:, 2]), atol=1e-12)
    np.testing.assert_allclose(volume, np.pi * 0.1**2 * 0.05)


def kelvin(core: float, k: float, circulation: float) -> float:
    """Angular velocity (rad/s) of the slow bending wave on an even core, by Kelvin's dispersion relation.

    J'(b)/(b J(b)) + K'(ka)/(ka K(ka)) = 2 W / (g b^2), functions of order 1, with g = w - W,
    W = circulation / (2 pi a^2), b^2 = (ka)^2 (4 W^2 - g^2) / g^2: Phil. Mag. 10 (1880) 155; Saffman, Vortex
    Dynamics, section 12.1.
    """
    spin = circulation / (2 * np.pi * core**2)

    def residual(w: float) -> float:
        g = w - spin
        b = k * core * np.sqrt(4 * spin**2 - g**2) / abs(g)
        inside, outside = jvp(1, b) / (b * jv(1, b)), kvp(1, k * core) / (k * core * kv(1, k * core))
        return float(inside + outside - 2 * spin / (g * b**2))

    return -float(brentq(residual, -5.0, -0.5))


@pytest.mark.nightly
def test_bends_of_the_shipped_tube_turn_as_kelvin_says() -> None:
    """The bending wave turns against the fluid at 1.547 rad/s; direct sum, the first 0.5 s, within 5 %.

    The core of the shipped tube with its blobs has the energy of an even one of 0.199 m. The thin-core limit
    Gamma k^2 / (4 pi) (ln(2 / (ka)) - 0.577 + 1/4) is 16 % too small at ka = 0.63, and right for thin cores.
    """
    k, circulation = np.pi, 2.0
    for core, off in ((0.2, 0.16), (0.05, 0.01)):
        thin = circulation * k**2 / (4 * np.pi) * (np.log(2 / (k * core)) - np.euler_gamma + 0.25)
        assert 1 - thin / kelvin(core, k, circulation) == pytest.approx(off, abs=0.005)
    world = ef.load(
        "tube", "world.precision=double", "fluid.velocity.solver=direct", "fluid.velocity.at=vortons"
    )

    def phase() -> float:
        x, alpha = world["tube"][Position].x, world["tube"][Strength].alpha[:, 0]
        wave = np.where(np.abs(x[:, 0]) < 1.0, alpha * np.cos(k * x[:, 0]), 0.0)
        return float(np.arctan2(wave @ x[:, 2], wave @ x[:, 1]))

    start = phase()
    world.step(25)
    turned = (start - phase()) % (2 * np.pi)
    assert min(turned, 2 * np.pi - turned) / world.time == pytest.approx(
        kelvin(0.2, k, circulation), rel=0.05
    )


def test_swelling_tube_keeps_circulation_inside_its_lines() -> None:
    # Lines at s m(z): the area, and so the volume of a blob, grows with m^2 while circulation stays;
    # m = 1 + v (1 - cos) is largest, 1 + 2 v = 1.6, half a wavelength from the middle.
    recipe = VortexTube(
        name="tube", length=2.0, core=0.2, spacing=0.05, profile="uniform", variation=0.3, wavelength=1.0
    )
    x, alpha, _, volume = made(recipe)
    m = 1 + 0.3 * (1 - np.cos(2 * np.pi * x[:, 2]))
    rho = np.hypot(x[:, 0], x[:, 1]) / m
    assert np.ptp(np.unique(np.round(volume / m**2, 12))) < 1e-11
    assert rho.max() < 0.2
    # A line keeps s and angle, so that alpha points along it: d(s m)/dz = s v k sin(k z).
    radial = (alpha[:, :2] * x[:, :2]).sum(axis=1) / np.maximum(np.hypot(x[:, 0], x[:, 1]), 1e-12)
    slope = rho * 0.3 * 2 * np.pi * np.sin(2 * np.pi * x[:, 2])
    np.testing.assert_allclose(radial / alpha[:, 2], slope, atol=1e-12)


# --------------------------------------------------------------------------------------------- sheets


@pytest.mark.parametrize("variation", [0.0, 0.7])
def test_every_column_of_a_sheet_has_its_jump(variation: float) -> None:
    recipe = VortexSheet(
        name="sheet", length=2.0, width=1.0, thickness=0.2, speed=1.5, variation=variation, spacing=0.1
    )
    x, alpha, _, _ = made(recipe)
    columns = np.unique(np.round(x[:, :2], 9), axis=0, return_inverse=True)[1].ravel()
    jump = np.bincount(columns, alpha[:, 1]) / (0.1 * 0.1)
    assert len(jump) == 200
    np.testing.assert_allclose(jump, 2 * 1.5, rtol=1e-12)


def test_flat_sheet_is_two_dimensional_with_a_sech2_profile() -> None:
    # omega_y = (U/t) sech^2(z/t); cells of height h average it to O(h^2/t^2/12 x 2) = 0.2 % of its peak at
    # h = t/10, and the cut at 3 t (tanh 3 = 0.99505) raises all of it by 0.5 %.
    recipe = VortexSheet(name="sheet", thickness=0.2, spacing=0.02, length=0.2, width=0.2, speed=1.0)
    x, alpha, _, volume = made(recipe)
    assert (alpha[:, 0] == 0).all() and (alpha[:, 2] == 0).all()
    profile = 1.0 / 0.2 / np.cosh(x[:, 2] / 0.2) ** 2
    np.testing.assert_allclose(alpha[:, 1] / volume / np.tanh(3.0) ** -1, profile, atol=0.002 * 5)


def test_spanwise_variation_is_the_curl_of_the_sheet() -> None:
    # u_x = U tanh(z/d(y)): omega_z = -du_x/dy, by central differences of the formula.
    t, v, w = 0.3, 0.5, 2.0
    recipe = VortexSheet(name="sheet", length=0.4, width=2.0, thickness=t, variation=v, spacing=0.02)
    x, alpha, _, volume = made(recipe)

    def flow(y: Array, z: Array) -> Array:
        return np.asarray(np.tanh(z / (t * (1 + v * (1 - np.cos(2 * np.pi * y / w)) / 2))))

    step = 1e-5
    omega_z = -(flow(x[:, 1] + step, x[:, 2]) - flow(x[:, 1] - step, x[:, 2])) / (2 * step)
    # Peak of omega_z is about 0.3/s; 1 % of it covers the cell averages and the 0.5 % of the cut.
    np.testing.assert_allclose(alpha[:, 2] / volume, omega_z, atol=0.01 * np.abs(omega_z).max())


def test_ripple_moves_the_sheet_only() -> None:
    flat = VortexSheet(name="sheet", spacing=0.2)
    x, alpha, _, _ = made(flat)
    y, beta, _, _ = made(flat.model_copy(update={"ripple": 0.1, "ripple_wavelength": 2.0}))
    np.testing.assert_array_equal(alpha, beta)
    np.testing.assert_allclose(y[:, 2] - x[:, 2], 0.1 * np.sin(np.pi * x[:, 0]), atol=1e-14)


# ---------------------------------------------------------------------------------------------- closed curves


def test_circle_of_formulas_is_a_ring() -> None:
    """Impulse Gamma pi (R^2 + a^2/2) along the axis: a gaussian core has the variance a^2/2 along each axis.

    Its cut-off at 3 a takes 1e-3 of a^2/2; strengths add up to nothing, but for the rounding of the spline.
    """
    recipe = VortexCurve(name="ring", core=0.2, spacing=0.08, circulation=2.0, axis=(1, 0, 0), blobs="points")
    x, alpha, _, volume = made(recipe)
    impulse = 0.5 * np.cross(x, alpha).sum(axis=0)
    np.testing.assert_allclose(impulse, (2 * np.pi * (1 + 0.02), 0, 0), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(alpha.sum(axis=0), 0, atol=1e-5)
    assert volume.sum() == pytest.approx(2 * np.pi * np.pi * (3 * 0.2) ** 2, rel=1e-6)


TREFOIL = {"x": "(1+0.5*cos(3*t))*cos(2*t)", "y": "(1+0.5*cos(3*t))*sin(2*t)", "z": "0.5*sin(3*t)"}


def test_helicity_of_a_knot_is_its_writhe() -> None:
    """H = Gamma^2 Wr of a tube without twist, Wr by quadrature, for a line and a filled core alike.

    Both to 2e-3: blobs are 0.1 and 0.13 m wide, on a curve that bends within 0.5 m.
    """
    for options in ({"profile": "thin", "core": 0.1, "spacing": 0.03}, {"core": 0.15, "spacing": 0.09}):
        world = World(precision="double")
        VortexCurve.model_validate({"name": "knot", **TREFOIL, "circulation": 1.5, **options}).build(world)
        systems = ef.VelocitySystem(solver="direct"), ef.DiagnosticsSystem(every=0), ef.AdvectionSystem()
        world.add_systems(systems)
        assert world.diagnostics()["helicity"] == pytest.approx(1.5**2 * writhe(**TREFOIL), rel=2e-3)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"x": "cos(t/2)"}, "the curve does not close: its ends are 2 m apart"),
        ({"x": "0", "y": "0"}, "must vary between"),
        ({"x": "1/(t-1)"}, "a finite number is needed|does not close"),
        ({"core": 0.4}, "bends with a radius of 1 m, within the core's"),
    ],
)
def test_curves_that_make_no_tube(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ef.errors.RecipeError, match=words):
        VortexCurve.model_validate({"name": "knot", **options}).build(World())


# ---------------------------------------------------------------------------------------------- noise


def test_noise_is_the_same_for_a_seed_and_name_and_differs_otherwise() -> None:
    recipe = NoiseBox(name="noise", magnitude=2.0, spacing=0.1)
    x, alpha, _, volume = made(recipe, seed=7)
    np.testing.assert_array_equal(alpha, made(recipe, seed=7)[1])
    assert not np.isclose(alpha, made(recipe, seed=8)[1]).any(axis=1).all()
    other = made(recipe.model_copy(update={"name": "other"}), seed=7)[1]
    assert np.abs(np.corrcoef(alpha.ravel(), other.ravel())[0, 1]) < 0.1
    # 3000 uniform numbers in [-1, 1]: mean 0 with deviation 1/sqrt(3 x 3000) = 0.011, variance 1/3 with
    # deviation sqrt(4/45/3000) = 0.0054; five deviations are allowed.
    omega = alpha / volume[:, None]
    assert len(x) == 1000 and np.abs(omega).max() <= 1.0
    assert abs(omega.mean()) < 0.055
    assert omega.var() == pytest.approx(1 / 3, abs=0.027)


def test_noise_does_not_depend_on_what_else_is_in_the_world() -> None:
    recipe = NoiseBox(name="noise")
    world = World(precision="double")
    NoiseBox(name="before").build(world)
    recipe.build(world)
    np.testing.assert_array_equal(world["noise"][Strength].alpha, made(recipe)[1])


def test_flat_noise_points_across_its_plane() -> None:
    x, alpha, _, volume = made(NoiseBox(name="noise", size=(1.0, 2.0, 0.0), spacing=0.1))
    assert len(x) == 200 and (x[:, 2] == 0).all()
    assert (alpha[:, :2] == 0).all() and (alpha[:, 2] != 0).all()
    np.testing.assert_allclose(volume, 0.01)


# ----------------------------------------------------------------------------------------------- Hill


def hill_moments(spacing: float) -> tuple[float, float]:
    x, alpha, _, _ = made(HillVortex(name="hill", radius=2.0, speed=3.0, spacing=spacing))
    square = x[:, 0] ** 2 + x[:, 1] ** 2
    turning = x[:, 0] * alpha[:, 1] - x[:, 1] * alpha[:, 0]
    np.testing.assert_allclose(alpha.sum(axis=0), 0.0, atol=1e-10)
    return float((turning / square).sum() / (2 * np.pi)), float(0.5 * turning.sum())


def test_hill_vortex_moments() -> None:
    # Gamma = 5 U a exactly; impulse 2 pi a^3 U from below: a cell of edge h lacks its own second moment,
    # k h^2/12 per axis across, in all (h^2/6)/(2 a^2/5) = 5 h^2/(12 a^2) of the impulse.
    deficits = []
    for spacing in (0.4, 0.2, 0.1):
        gamma, impulse = hill_moments(spacing)
        assert gamma == pytest.approx(5 * 3.0 * 2.0, rel=1e-12)
        deficits.append(1 - impulse / (2 * np.pi * 2.0**3 * 3.0))
        assert deficits[-1] == pytest.approx(5 * (spacing / 2.0) ** 2 / 12, rel=0.25)
    orders = np.log2(np.array(deficits[:-1]) / np.array(deficits[1:]))
    np.testing.assert_allclose(orders, 2.0, atol=0.3)


def test_hill_vortex_is_inside_its_sphere_and_moves_fluid_at_its_centre() -> None:
    # u(centre) = sum alpha x r/(4 pi r^3) -> 2.5 U (validation.md case 15); error O(h^2) at the middle.
    axis = np.array([0.0, 0.6, -0.8])
    center = np.array([1.0, 2.0, 3.0])
    recipe = HillVortex(
        name="hill", radius=1.0, speed=2.0, spacing=0.1, center=tuple(center), axis=tuple(axis)
    )
    x, alpha, _, volume = made(recipe)
    r = center - x
    distance = np.linalg.norm(r, axis=1)
    u = (np.cross(alpha, r) / (4 * np.pi * distance**3)[:, None]).sum(axis=0)
    np.testing.assert_allclose(u, 2.5 * 2.0 * axis, atol=0.02 * 5)
    assert distance.max() < 1.0
    assert volume.sum() == pytest.approx(4 / 3 * np.pi, rel=1e-12)


@pytest.mark.parametrize(("spacing", "slower"), [(0.2, 0.12), (0.1, 0.04)])
def test_hill_vortex_travels_at_its_speed(spacing: float, slower: float) -> None:
    # validation.md case 15: with sigma = 1.5 h the impulse centroid moves at 0.90 to 0.92 U at h = 0.2 a and
    # 0.970 U at h = 0.1 a (gate 4 %), slower because the blobs smear the vorticity. By the symmetries of the
    # lattice an eighth of the blobs tells all.
    x, alpha, sigma, _ = made(HillVortex(name="hill", spacing=spacing))
    some = x[(x > 0).all(axis=1)]
    turning = (x[:, 0] * alpha[:, 1] - x[:, 1] * alpha[:, 0])[(x > 0).all(axis=1)]
    u = np.zeros_like(some)
    for row, point in enumerate(some):
        r = point - x
        d2 = (r**2).sum(axis=1)
        weight = (d2 + 2.5 * sigma**2) / (d2 + sigma**2) ** 2.5 / (4 * np.pi)
        u[row] = weight @ np.cross(alpha, r)
    square = some[:, 0] ** 2 + some[:, 1] ** 2
    outward = some[:, 0] * u[:, 0] + some[:, 1] * u[:, 1]
    rate = turning / square * (square * u[:, 2] + 2 * outward * some[:, 2])
    speed = rate.sum() / turning.sum()
    assert 1 - slower < speed < 1.0


# --------------------------------------------------------------------------------- velocity formulas


def test_rigid_rotation_has_vorticity_two_omega() -> None:
    # u = Omega x r with Omega = (1, -2, 0.5): the curl is 2 Omega in every cell; linear fields are exact.
    recipe = VortonsFromVelocity(
        name="field",
        ux="-2*z - 0.5*y",
        uy="0.5*x - 1*z",
        uz="1*y + 2*x",
        low=(-1, -1, -1),
        high=(1, 2, 1),
        spacing=0.25,
    )
    x, alpha, sigma, volume = made(recipe)
    assert len(x) == 8 * 12 * 8
    np.testing.assert_allclose(alpha / volume[:, None], np.tile([2.0, -4.0, 1.0], (len(x), 1)), atol=1e-12)
    np.testing.assert_allclose(volume, 0.25**3)
    np.testing.assert_allclose(sigma, 1.5 * 0.25)
    assert volume.sum() == pytest.approx(12.0)


def test_curl_of_a_wave_converges_to_second_order() -> None:
    # ABC-like flow u = (sin z, sin x, sin y): omega = (cos y, cos z, cos x).
    errors = []
    for cells in (8, 16, 32):
        recipe = VortonsFromVelocity(
            name="field",
            ux="sin(z)",
            uy="sin(x)",
            uz="sin(y)",
            low=(0, 0, 0),
            high=(2, 2, 2),
            spacing=2 / cells,
            threshold=0.0,
        )
        x, alpha, _, volume = made(recipe)
        exact = np.cos(x[:, [1, 2, 0]])
        errors.append(np.abs(alpha / volume[:, None] - exact).max())
    np.testing.assert_allclose(np.log2(np.array(errors[:-1]) / np.array(errors[1:])), 2.0, atol=0.1)


def test_jump_of_velocity_is_not_lost() -> None:
    # u_x = sign(z): a sheet of strength 2 per metre; by Stokes each column of cells carries the jump.
    recipe = VortonsFromVelocity(
        name="field", ux="where(z > 0, 1, -1)", low=(0, 0, -1), high=(1, 1, 1), spacing=0.2
    )
    x, alpha, _, _ = made(recipe)
    assert alpha[:, 1].sum() == pytest.approx(2.0 * 1.0, rel=1e-12)
    assert np.abs(x[:, 2]).max() < 0.2
    # With no threshold the cells beside it have vortons too, for what is to spread or to rise there.
    x, alpha, _, _ = made(recipe.model_copy(update={"threshold": 0.0}))
    assert len(x) == 5 * 5 * 10 and alpha[:, 1].sum() == pytest.approx(2.0 * 1.0, rel=1e-12)


def test_cells_without_vorticity_get_no_vorton() -> None:
    # A Rankine vortex: rigid rotation in hypot(x, y) < 0.5, no vorticity outside.
    inside = "where(hypot(x,y) < 0.5, {0}, 0.25*{0}/max(x**2 + y**2, 0.01))"
    recipe = VortonsFromVelocity(
        name="field",
        ux=inside.format("-y"),
        uy=inside.format("x"),
        low=(-1, -1, 0),
        high=(1, 1, 0.2),
        spacing=0.05,
        threshold=0.02,
    )
    x, alpha, _, _ = made(recipe)
    assert np.hypot(x[:, 0], x[:, 1]).max() < 0.5 + 2 * 0.05
    # Circulation 2 pi (0.5)^2 = pi/2 over the height 0.2; 1 % for the dropped tail and the midpoint rule.
    assert alpha[:, 2].sum() / 0.2 == pytest.approx(np.pi / 2, rel=0.01)


@settings(max_examples=25, deadline=None)
@given(
    length=st.floats(0.5, 5),
    core=st.floats(0.05, 0.5),
    resolution=st.floats(1, 6),
    gamma=st.floats(-10, 10).filter(lambda value: abs(value) > 1e-3),
    variation=st.floats(0, 2),
    amplitude=st.floats(0, 1),
)
def test_any_tube_is_whole(
    length: float, core: float, resolution: float, gamma: float, variation: float, amplitude: float
) -> None:
    recipe = VortexTube(
        name="tube",
        length=length,
        core=core,
        circulation=gamma,
        spacing=core / resolution,
        variation=variation,
        amplitude=amplitude,
    )
    x, alpha, sigma, volume = made(recipe)
    assert alpha[:, 2].sum() == pytest.approx(gamma * length, rel=1e-11)
    assert np.isfinite(alpha).all() and (sigma > 0).all() and (volume > 0).all()
    assert len(np.unique(x, axis=0)) == len(x)


@settings(max_examples=25, deadline=None)
@given(
    length=st.floats(0.2, 4),
    width=st.floats(0.2, 4),
    thickness=st.floats(0.05, 0.5),
    speed=st.floats(-5, 5).filter(lambda value: abs(value) > 1e-3),
    variation=st.floats(0, 2),
)
def test_any_sheet_is_whole(
    length: float, width: float, thickness: float, speed: float, variation: float
) -> None:
    recipe = VortexSheet(
        name="sheet",
        length=length,
        width=width,
        thickness=thickness,
        speed=speed,
        variation=variation,
        spacing=0.15,
    )
    x, alpha, _, volume = made(recipe)
    assert alpha[:, 1].sum() == pytest.approx(2 * speed * length * width, rel=1e-11)
    assert np.isfinite(alpha).all() and (volume > 0).all()
    assert len(np.unique(x, axis=0)) == len(x)


@pytest.mark.parametrize(
    ("kernel", "most"), [("gaussian", (2e-4, 2e-4, 2e-4)), ("winckelmans", (4e-2, 1.2e-2, 4e-3))]
)
def test_a_gaussian_vortex_has_the_velocity_of_lamb_and_oseen(
    kernel: str, most: tuple[float, float, float]
) -> None:
    """u = Gamma/(2 pi r) (1 - exp(-r^2/a^2)), also in the middle of its core.

    A core that is cut off at 3 a lacks exp(-9) = 1.2e-4; gaussian blobs make the rest of it exactly, those of
    Winckelmans to the third order in the spacing (0.035, 0.011, 0.0033). Cells at the root mean square of
    their ring left the middle with 4 and 10 % too little vorticity: 1 and 2 % of the largest velocity.
    """
    r = np.linspace(0.03, 3.0, 100)
    points = np.stack([r, 0.0 * r, 0.0 * r], axis=1)
    exact = -np.expm1(-(r**2)) / (2.0 * np.pi * r)
    for spacing, error in zip((1 / 3, 1 / 4.5, 1 / 6.75), most, strict=True):
        tube = {"kind": "vortex_tube", "name": "tube", "profile": "gaussian", "core": 1.0, "spacing": spacing}
        world = ef.load(
            {
                "world": {"dt": 0.1, "duration": 0.1, "dimension": 2, "precision": "double"},
                "fluid": {"velocity": {"kernel": kernel}},
                "entity": [tube],
            }
        )
        found = world.velocity(points)[:, 1]
        assert np.abs(found - exact).max() < error * exact.max()
