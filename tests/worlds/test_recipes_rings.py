"""Rings: circulation, impulse, solenoidality and speed of what the recipes lay out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import ecs_fluid as ef
from ecs_fluid.component import Array
from ecs_fluid.worlds import JetRing, VortexRing
from ecs_fluid.worlds.frame import frame
from tests.worlds.made_vortons import made, velocity


def ring_circulation(x: Array, alpha: Array, center: Any = (0, 0, 0), axis: Any = (0, 0, 1)) -> float:
    """Circulation through the half plane on one side of the axis: alpha_phi/(2 pi rho), summed.

    A blob of a closed line stands for a piece alpha_phi/Gamma of it along phi, that is for the part
    alpha_phi/(Gamma 2 pi rho) of a turn; the parts of a whole turn sum to one.
    """
    local, strength = (x - np.asarray(center)) @ frame(axis).T, alpha @ frame(axis).T
    square = local[:, 0] ** 2 + local[:, 1] ** 2
    return float(((local[:, 0] * strength[:, 1] - local[:, 1] * strength[:, 0]) / square).sum() / (2 * np.pi))


def impulse(x: Array, alpha: Array) -> Array:
    return np.asarray(0.5 * np.cross(x, alpha).sum(axis=0))


PROFILES = ("thin", "gaussian", "uniform", "article")


@pytest.mark.parametrize("profile", PROFILES)
def test_ring_has_the_circulation_it_says(profile: str) -> None:
    recipe = VortexRing(
        name="ring",
        radius=1.3,
        core=0.3,
        circulation=-4.2,
        spacing=0.11,
        profile=profile,
        center=(1, -2, 3),
        axis=(1, 2, -0.5),
    )
    x, alpha, _, _ = made(recipe)
    assert ring_circulation(x, alpha, (1, -2, 3), (1, 2, -0.5)) == pytest.approx(-4.2, rel=1e-12)
    # Closed lines: the strengths of each circle sum to zero up to round-off of the largest.
    assert np.abs(alpha.sum(axis=0)).max() < 1e-12 * np.abs(alpha).sum()


def test_thin_ring_has_impulse_pi_gamma_r2_along_its_axis() -> None:
    x, alpha, _, _ = made(VortexRing(name="ring", radius=0.7, circulation=3.0, core=0.1, axis=(0, 3, 4)))
    expected = np.pi * 3.0 * 0.7**2 * np.array([0, 0.6, 0.8])
    np.testing.assert_allclose(impulse(x, alpha), expected, rtol=1e-12, atol=1e-13)


def test_uniform_ring_has_volume_and_impulse_of_its_torus() -> None:
    # Volume 2 pi^2 R a^2 (Pappus). Impulse pi Gamma <rho^2> = pi Gamma (R^2 + a^2/4) for a uniform disc
    # section. Only the central cell, a part 1/(2 L - 1)^2 with <s^2> = a^2/(2 (2 L - 1)^2), misses its own
    # second moment: a relative error of (a^2/4)/(2 L - 1)^4 = 8e-7 at L = 8.
    recipe = VortexRing(name="ring", radius=1.0, core=0.4, circulation=2.0, spacing=0.05, profile="uniform")
    x, alpha, _, volume = made(recipe)
    assert volume.sum() == pytest.approx(2 * np.pi**2 * 0.4**2, rel=1e-12)
    assert impulse(x, alpha)[2] == pytest.approx(np.pi * 2.0 * (1 + 0.4**2 / 4), rel=1e-6)


@pytest.mark.parametrize("count", [8, 9, 31])
def test_velocity_on_the_axis_of_a_thin_ring_is_exact(count: int) -> None:
    # validation.md case 7: u_z = q(d/sigma) Gamma R^2/(2 d^3) with d^2 = R^2 + z^2, for any number of blobs.
    radius, gamma, core = 1.2, 5.0, 0.25
    spacing = 2 * np.pi * radius / count
    x, alpha, sigma, _ = made(
        VortexRing(name="ring", radius=radius, core=core, circulation=gamma, spacing=spacing)
    )
    assert len(x) == count
    z = np.linspace(-3, 3, 13)
    points = np.stack([0 * z, 0 * z, z], axis=1)
    d = np.sqrt(radius**2 + z**2)
    rho = d / core
    q = rho**3 * (rho**2 + 2.5) / (rho**2 + 1) ** 2.5
    u = velocity(points, x, alpha, float(sigma[0]))
    np.testing.assert_allclose(u[:, 2], q * gamma * radius**2 / (2 * d**3), rtol=1e-12)
    np.testing.assert_allclose(u[:, :2], 0.0, atol=1e-13)


def ring_speed(recipe: VortexRing) -> float:
    """Speed of the impulse centroid Z = sum G rho^2 z/sum G rho^2 of coaxial circles of circulation G."""
    x, alpha, sigma, _ = made(recipe)
    rho = np.hypot(x[:, 0], x[:, 1])
    key = np.round(np.stack([rho, x[:, 2]], axis=1), 9)
    # By symmetry one blob of each circle tells the velocity of all.
    first, circle = np.unique(key, axis=0, return_index=True, return_inverse=True)[1:]
    share = np.bincount(circle.ravel(), (x[:, 0] * alpha[:, 1] - x[:, 1] * alpha[:, 0]) / rho**2)
    u = np.concatenate([velocity(part, x, alpha, float(sigma[0])) for part in np.array_split(x[first], 8)])
    x, rho = x[first], rho[first]
    outward = (u[:, 0] * x[:, 0] + u[:, 1] * x[:, 1]) / rho
    rate = (share * (rho**2 * u[:, 2] + 2 * rho * outward * x[:, 2])).sum()
    return float(rate / (share * rho**2).sum())


def test_gaussian_ring_made_of_blobs_has_the_speed_of_its_core() -> None:
    # Saffman 1970: U = Gamma/(4 pi R) [ln(8 R/a) - 0.558], with corrections of O((a/R)^2 ln(8 R/a)) = 1 to
    # 2 % of the bracket at a/R = 0.1: the 2 % of validation.md case 13. Measured here: +0.7 %.
    recipe = VortexRing(name="ring", core=0.1, circulation=1.0, spacing=0.05, profile="gaussian")
    expected = (np.log(8 / 0.1) - 0.558) / (4 * np.pi)
    speed = ring_speed(recipe)
    assert speed == pytest.approx(expected, rel=0.02)
    # Blobs whose own width is not taken off make the core sqrt(a^2 + sigma^2), sigma = 0.075: slower by
    # ln(1.25)/(4 pi) in U. The Winckelmans blob's tail is not a Gaussian's, which shows where sigma is as
    # large as a: 20 % of the difference here, 13 % at spacing 0.036.
    wide = ring_speed(recipe.model_copy(update={"blobs": "points"}))
    assert speed - wide == pytest.approx(np.log(1.25) / (4 * np.pi), rel=0.25)


def test_layers_have_equal_cells_and_reach_six() -> None:
    # (2 L - 1)^2 cells on L layers: 121 for six; blobs of one circle are all equal.
    recipe = VortexRing(name="ring", core=0.2, spacing=0.064, profile="uniform", radius=1.0)
    x, _, sigma, _ = made(recipe)
    circles = np.unique(np.round(np.stack([np.hypot(x[:, 0], x[:, 1]), x[:, 2]], 1), 9), axis=0)
    assert len(circles) == 49  # L = 4: sqrt(pi) 0.2/0.064 = 5.54 <= 2 L - 1 = 7
    fine = made(recipe.model_copy(update={"spacing": 0.033}))[0]
    circles = np.unique(np.round(np.stack([np.hypot(fine[:, 0], fine[:, 1]), fine[:, 2]], 1), 9), axis=0)
    assert len(circles) == 121
    np.testing.assert_allclose(sigma, 1.5 * 0.064)


def test_article_profile_converts_the_articles_magnitude() -> None:
    # omega = M (1 + cos(pi s/t))/2 has the circulation M t^2 (pi/2 - 2/pi); at the middle of the section a
    # blob therefore has alpha/volume = M. The central cell averages the profile over its disc of radius r0 =
    # t/(2 L - 1), which lowers it by (pi r0/t)^2/8 = 0.2 % at L = 13.
    magnitude, t = 20.0, 0.8
    gamma = magnitude * t**2 * (np.pi / 2 - 2 / np.pi)
    recipe = VortexRing(
        name="ring", radius=1.0, core=t, circulation=gamma, spacing=t * np.sqrt(np.pi) / 25, profile="article"
    )
    x, alpha, _, volume = made(recipe)
    omega = np.linalg.norm(alpha, axis=1) / volume
    s = np.hypot(np.hypot(x[:, 0], x[:, 1]) - 1.0, x[:, 2])
    assert omega[s < 1e-9] == pytest.approx(magnitude, rel=0.003)
    expected = magnitude * (1 + np.cos(np.pi * s / t)) / 2
    assert np.abs(omega - expected).max() < 0.01 * magnitude


def test_wavy_ring_keeps_circulation_and_follows_its_wave() -> None:
    recipe = VortexRing(name="ring", circulation=2.0, spacing=0.05, amplitude=0.1, wavenumber=5)
    x, alpha, _, _ = made(recipe)
    phi, rho = np.arctan2(x[:, 1], x[:, 0]), np.hypot(x[:, 0], x[:, 1])
    np.testing.assert_allclose(rho, 1 + 0.1 * np.cos(5 * phi), atol=1e-12)
    assert ring_circulation(x, alpha) == pytest.approx(2.0, rel=1e-12)
    # pi Gamma <rho^2> = pi Gamma (R^2 + A^2/2), the area inside the wavy curve.
    assert impulse(x, alpha)[2] == pytest.approx(np.pi * 2.0 * (1 + 0.1**2 / 2), rel=1e-12)
    np.testing.assert_allclose(alpha.sum(axis=0), 0.0, atol=1e-13)


def test_jet_ring_has_circulation_u_l_and_no_total_strength() -> None:
    recipe = JetRing(
        name="jet", radius=0.6, thickness=0.4, half_length=0.5, speed=3.0, spacing=0.1, axis=(1, 0, 0)
    )
    x, alpha, _, _ = made(recipe)
    assert ring_circulation(x, alpha, axis=(1, 0, 0)) == pytest.approx(3.0 * 0.5, rel=1e-12)
    assert np.abs(alpha.sum(axis=0)).max() < 1e-12 * np.abs(alpha).sum()
    rho = np.hypot(x[:, 1], x[:, 2])
    assert rho.min() > 0.6 and rho.max() < 1.0 and np.abs(x[:, 0]).max() < 0.5


def test_jet_ring_keeps_its_form_where_only_its_radius_is_given() -> None:
    """A tenth of the size: places a tenth, strengths, of U L^2, a hundredth."""
    large, small = (made(JetRing(name="jet", radius=r, spacing=0.2 * r)) for r in (1.0, 0.1))
    np.testing.assert_allclose(small[0], 0.1 * large[0], atol=1e-15)
    np.testing.assert_allclose(small[1], 0.01 * large[1], atol=1e-15)


def test_jet_ring_has_the_vorticity_of_its_jet() -> None:
    # omega_phi = U g(z) (pi/(2 t)) sin(pi (rho - R)/t), g = (1 + cos(pi z/L))/2; averages over cells of edge
    # h = t/16 = L/16 lower its peak by (pi h/t)^2/24 + (pi h/L)^2/24 = 0.3 %.
    recipe = JetRing(name="jet", radius=0.5, thickness=0.4, half_length=0.4, speed=2.0, spacing=0.025)
    x, alpha, _, volume = made(recipe)
    rho = np.hypot(x[:, 0], x[:, 1])
    omega = (x[:, 0] * alpha[:, 1] - x[:, 1] * alpha[:, 0]) / rho / volume
    peak = 2.0 * np.pi / 0.8
    expected = peak * (1 + np.cos(np.pi * x[:, 2] / 0.4)) / 2 * np.sin(np.pi * (rho - 0.5) / 0.4)
    np.testing.assert_allclose(omega, expected, atol=0.004 * peak)


def test_jet_ring_impulse_converges_to_second_order() -> None:
    # pi U L <rho^2>, <rho^2> = R^2 + R t + t^2 (1/2 - 2/pi^2) for the weight sin(pi tau/t) on 0 < tau < t.
    exact = np.pi * 2.0 * 0.5 * (0.25 + 0.2 + 0.16 * (0.5 - 2 / np.pi**2))
    errors = []
    for spacing in (0.1, 0.05, 0.025):
        recipe = JetRing(name="jet", radius=0.5, thickness=0.4, half_length=0.5, speed=2.0, spacing=spacing)
        errors.append(abs(impulse(*made(recipe)[:2])[2] / exact - 1))
    assert errors[0] < 0.01
    assert errors[0] / errors[1] == pytest.approx(4, rel=0.1)
    assert errors[1] / errors[2] == pytest.approx(4, rel=0.1)


@settings(max_examples=40, deadline=None)
@given(
    radius=st.floats(0.05, 50),
    thickness=st.floats(0.02, 1.0),
    resolution=st.floats(0.5, 12),
    gamma=st.floats(-100, 100).filter(lambda value: abs(value) > 1e-3),
    profile=st.sampled_from(PROFILES),
    axis=st.tuples(*[st.floats(-1, 1)] * 3).filter(lambda v: max(map(abs, v)) > 0.1),
    wavenumber=st.integers(0, 7),
)
def test_any_ring_is_whole(
    radius: float,
    thickness: float,
    resolution: float,
    gamma: float,
    profile: str,
    axis: tuple[float, float, float],
    wavenumber: int,
) -> None:
    # 0.3 keeps a gaussian section (3 cores) inside the ring; waves use a fifth of the room to the axis.
    core = radius * thickness * (0.3 if profile == "gaussian" else 1.0)
    room = radius - (0.0 if profile == "thin" else core * (3.0 if profile == "gaussian" else 1.0))
    wavy = wavenumber > 0 and room > 1e-3 * radius
    recipe = VortexRing(
        name="ring",
        radius=radius,
        core=core,
        circulation=gamma,
        spacing=max(core / resolution, radius / 30),
        profile=profile,
        blobs="points",
        axis=axis,
        wavenumber=wavenumber if wavy else 0,
        amplitude=room / 5 if wavy else 0.0,
    )
    x, alpha, sigma, volume = made(recipe)
    assert ring_circulation(x, alpha, axis=axis) == pytest.approx(gamma, rel=1e-11)
    assert np.isfinite(x).all() and np.isfinite(alpha).all()
    assert (sigma > 0).all() and (volume > 0).all()
    assert len(np.unique(x, axis=0)) == len(x)
    assert np.abs(alpha.sum(axis=0)).max() < 1e-11 * np.abs(alpha).sum()


def test_a_core_is_made_of_the_worlds_blobs() -> None:
    """Variances add up: a^2 = laid^2 + 2 v sigma^2, v = 1/2 and 1/5 of Winckelmans and Rankine blobs.

    The regularisation is told once, in [fluid] velocity or by the system that is there; told again by the
    recipe and otherwise, it is a sentence.
    """
    table = {"kind": "vortex_ring", "name": "ring", "profile": "gaussian", "core": 0.2, "spacing": 0.08}

    def laid(kernel: str, **more: str) -> tuple[float, list[str]]:
        recipe = ef.WorldRecipe.from_tables(
            {"fluid": {"velocity": {"kernel": kernel}}, "entity": [{**table, **more}]}
        )
        assert "blobs" not in recipe.tables()["entity"][0] or more
        radii = np.hypot(*recipe.build()["ring"][ef.Position].x.T[:2])
        return float(radii.max() - 1.0), recipe.lint()

    by_default, said = laid("winckelmans")
    assert said == [] and laid("winckelmans", blobs="winckelmans") == (by_default, [])
    assert laid("rankine")[0] == laid("rankine", blobs="rankine")[0] > by_default
    (sentence,) = laid("rankine", blobs="winckelmans")[1]
    assert "laid out for blobs = 'winckelmans', but the world's kernel is 'rankine'" in sentence
    with pytest.raises(ef.RecipeError, match=r"cannot be made of gaussian blobs of radius 0.15 m"):
        laid("gaussian", spacing=0.1)
    with pytest.raises(ef.RecipeError, match=r"'gausian' is not known; did you mean 'gaussian'"):
        laid("gaussian", blobs="gausian")
    by_hand = ef.World()
    by_hand.add_system(ef.VelocitySystem(kernel="rankine"))
    VortexRing(**{key: value for key, value in table.items() if key != "kind"}).build(by_hand)
    radii = np.hypot(*by_hand["ring"][ef.Position].x.T[:2])
    assert float(radii.max() - 1.0) == laid("rankine")[0]
