"""The shipped worlds of density, heat and fire do what their headers say."""

from __future__ import annotations

import numpy as np
import pytest

import ecs_fluid as ef

pytestmark = pytest.mark.filterwarnings("ignore::ecs_fluid.errors.FluidWarning")


def test_dye_drop_starts_with_two_thirds_of_its_weight() -> None:
    """Centroid of the excess mass after 1 s: g' t^2 / 3, g' = 0.02 x 9.81, for a drop with a sharp rim.

    Its rim is 0.1 m wide and cores are 0.12 m, a quarter of the radius each: between a half and all of it.
    """
    world = ef.load("dye_drop", "world.precision=double")
    drop = world["drop"]
    weight = (drop[ef.Density].rho - 1) * drop[ef.Volume].volume
    start = weight @ drop[ef.Position].x[:, 2] / weight.sum()
    world.step(30)
    fall = start - weight @ drop[ef.Position].x[:, 2] / weight.sum()
    assert 0.5 < fall / (0.02 * 9.81 / 3) < 1.0


def test_layers_stay_and_the_drop_falls_to_them() -> None:
    """The interface alone, at its own level, moves by far less than the drop that falls on it."""
    world = ef.load("two_layers")
    z = world["interface"][ef.Position].x[:, 2].copy()
    world.step(15)
    assert world["drop"][ef.Position].x[:, 2].mean() < 0.69
    assert np.abs(world["interface"][ef.Position].x[:, 2] - z).max() < 0.01


def test_ripple_has_the_wave_number_of_the_header() -> None:
    """sqrt(A g k) = 1.24 per second with A = 0.01 and k = 2 pi / 0.4 m; heavy (red) lies on top."""
    assert np.sqrt(0.01 * 9.81 * 2 * np.pi / 0.4) == pytest.approx(1.24, abs=0.005)
    layers = ef.load("rayleigh_taylor")["layers"]
    z, rho = layers[ef.Position].x[:, 2], layers[ef.Density].rho
    assert rho[(z > 0.05) & (z < 0.15)].mean() == pytest.approx(1.01, abs=5e-4)
    assert rho[(z < -0.05) & (z > -0.15)].mean() == pytest.approx(0.99, abs=5e-4)


def test_plate_heats_the_air_on_it() -> None:
    world = ef.load("hot_plate")
    world.step(25)
    x, T = world["air"][ef.Position].x, world["air"][ef.Temperature].T
    on = (np.abs(x[:, :2]) < 0.4).all(axis=1) & (x[:, 2] < 0.1)
    # 0.5 s at 0.3 s: 60 (1 - e^(-1.67)) = 49 K above the air, less what conduction takes.
    assert 335 < T[on].mean() < 350
    assert T[x[:, 2] > 0.3].max() < 302
    rho = T * 0 + 1.2 * 300 / T
    assert rho[on].mean() < 1.1


@pytest.mark.nightly
def test_plate_warms_what_comes_after() -> None:
    """What rises off a plate is made up for from the sides: there is air on it all the time.

    Without a floor the layer lifted off as one, and air came up through the plate: a tenth of it was left
    on it after 1.5 s, a fiftieth after 4 s.
    """
    world = ef.load("hot_plate")
    air = world["air"]
    for _ in range(4):
        world.step(50)
        on = (np.abs(air[ef.Position].x - [0, 0, 0.05]) <= [0.45, 0.45, 0.05]).all(axis=1)
        assert air[ef.Volume].volume[on].sum() > 0.5 * 0.9 * 0.9 * 0.1


def test_candle_burns_as_large_as_it_says() -> None:
    """1,000 vortons and 50,000 tracers after two seconds; fuel below flame below smoke; hot."""
    world = ef.load("candle")
    world.step(round(2.0 / world.dt))
    assert abs(len(world["gas"]) - 1000) <= 5 and abs(len(world["fire"]) - 50_000) <= 250
    gas = world["gas"]
    z, species = gas[ef.Position].x[:, 2], gas[ef.Species]
    height = {
        name: (getattr(species, name) @ z) / getattr(species, name).sum()
        for name in ("fuel", "flame", "smoke")
    }
    assert height["fuel"] < height["flame"] < height["smoke"]
    assert gas[ef.Temperature].T.max() > 1200
    fire = world["fire"][ef.Species]
    assert fire.flame.max() > 0.02 and fire.smoke.max() > 0.02


@pytest.mark.parametrize(
    ("name", "least"), [("large_flame", 0.45), ("smoulder", 0.5), ("thermal_plume", 0.4)]
)
def test_hot_gas_rises_from_its_source(name: str, least: float) -> None:
    """After a second the hot gas goes up: half as fast again as the wind; without, a quarter of sqrt(g D)."""
    world = ef.load(name)
    world.step(round(1.0 / world.dt))
    hot = world["gas"][ef.Temperature].T > 350
    assert hot.sum() > 20
    assert world["gas"][ef.Velocity].u[hot, 2].mean() > least


def test_smoulder_draws_no_air_through_the_ground() -> None:
    """The flow across the ground is 0 at any place, as that of each vorton cancels that of its image."""
    world = ef.load("smoulder")
    world.step(round(1.0 / world.dt))
    draw = np.random.default_rng(0)
    places = np.append(draw.uniform(-0.6, 0.6, (100, 2)), np.zeros((100, 1)), axis=1)
    u = world.velocity(places)
    assert np.abs(u[:, :2]).max() > 0.1
    assert np.abs(u[:, 2]).max() < 1e-6
