"""The looks that paint tracers by what they carry."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from matplotlib import colormaps

from ecs_fluid.viz.camera import VIEW_ANGLE
from ecs_fluid.viz.colours import heat_colours, missing_columns, paint
from ecs_fluid.viz.layers import BRIGHTEST
from ecs_fluid.viz.scene import STREAK, Scene, pixels, render
from ecs_fluid.viz.shared_limits import survey
from ecs_fluid.viz.smoke import most_in_line
from ecs_fluid.viz.style import LOOKS, Options

TINT = ((1.0, 1.0, 1.0), (0.2, 0.2, 0.2))
RANDOM = np.random.default_rng(3)


def cloud(**columns: np.ndarray) -> dict[str, np.ndarray]:
    x = 0.2 * RANDOM.standard_normal((4000, 3))
    full = {name.replace("_", "."): np.broadcast_to(values, 4000) for name, values in columns.items()}
    return {"Position.x": x, **full}


def colour_of(look: str, columns: dict[str, np.ndarray]) -> np.ndarray:
    """Mean colour of the middle of the picture, 0 to 255."""
    plotter = render({"dye": columns}, look=look, size=(160, 120), camera="front")
    try:
        return pixels(plotter)[50:70, 70:90].reshape(-1, 3).mean(axis=0)
    finally:
        plotter.close()


def test_heavy_is_red_and_light_is_blue() -> None:
    """Left half light, right half heavy: more blue than red on the left, the reverse on the right."""
    columns = cloud()
    columns["Density.rho"] = np.where(columns["Position.x"][:, 0] < 0, 0.9, 1.1)
    plotter = render({"dye": columns}, look="dye", size=(160, 120), camera="front")
    image = pixels(plotter).astype(int)
    plotter.close()
    left, right = image[55:65, 60:75].mean(axis=(0, 1)), image[55:65, 85:100].mean(axis=(0, 1))
    assert left[2] > left[0] + 20
    assert right[0] > right[2] + 20


def test_hot_is_brighter_than_cold() -> None:
    look, columns = LOOKS["temperature"], cloud(Temperature_T=np.linspace(300, 900, 4000))
    lit = paint(look, columns, TINT, (300.0, 900.0)).lit
    assert (np.diff(lit.sum(axis=1)) > -1e-9).all()
    assert lit[-1].sum() > 2.0 > 1.0 > lit[0].sum()


def test_fire_covers_by_smoke_and_glows_by_flame() -> None:
    """Share of the largest fraction, by its square root; flame from dark red to nearly white."""
    columns = cloud(Species_smoke=np.linspace(0, 0.1, 4000), Species_flame=np.linspace(0.08, 0, 4000))
    found = paint(LOOKS["fire"], columns, TINT, (0.08, 0.1))
    np.testing.assert_allclose(found.cover, np.sqrt(np.linspace(0, 1, 4000)), atol=1e-12)
    np.testing.assert_allclose(found.glow[[0, -1]], [(1.0, 0.95, 0.75), (0.0, 0.0, 0.0)], atol=1e-12)
    # A little flame in much smoke is no blaze: 0.01 of at least half of 0.1 is a fifth, of strength 0.45.
    dim = paint(LOOKS["fire"], cloud(Species_smoke=0.1, Species_flame=0.01), TINT, (0.01, 0.1))
    assert dim.glow.max() < 0.95


def test_sparks_are_streaks_that_glow_and_no_fog() -> None:
    """Two hot sparks in a view 1 m wide and high: one that flies along x is a line, STREAK of the diagonal of
    1.41 m long, one at rest a dot; both orange. Nothing is between them."""
    x = np.array([[-0.5, 0.0, -0.5], [0.5, 0.0, 0.5], [0.0, 0.0, -0.3], [0.0, 0.0, 0.3]])
    u = np.array([[0.0, 0, 0], [0.0, 0, 0], [10.0, 0, 0], [0.0, 0, 0]])
    T = np.array([300.0, 300.0, 1400.0, 1400.0])
    columns = {"Position.x": x, "InertialVelocity.v": u, "Velocity.u": u, "Temperature.T": T}
    view = replace(survey([(0.0, {"sparks": columns})], Options()), speed=10.0)
    assert view.puff is None and view.clouds == ()
    plotter = render({"sparks": columns}, view=view, size=(400, 400), camera="front")
    image, away = pixels(plotter).astype(int), abs(plotter.camera.position[1])
    plotter.close()
    glowing = image[..., 0] - image[..., 2] > 60
    assert (image[glowing] @ [1, -1, 0] >= 0).all()
    rows, across = np.nonzero(glowing)
    low, high = across[rows > 200], across[rows < 200]
    metre = 400 / (2 * np.tan(np.radians(VIEW_ANGLE / 2)) * away)
    assert np.ptp(low) == pytest.approx(STREAK * np.sqrt(2.0) * metre, abs=2)
    assert 0 <= np.ptp(high) <= 3


def test_bodies_glow_from_dark_red_to_white() -> None:
    """Brighter with the temperature, red before green before blue; cold ones, and those without heat, not."""
    T = np.array([np.nan, 300.0, 740.0, 900.0, 1200.0, 1600.0, 2300.0])
    plain = np.full((7, 3), 0.5)
    found = heat_colours(LOOKS["smoke"], plain, T, None)
    assert (found[:3] == 0.5).all()
    red, green, blue = found[4:].T
    assert (red >= green).all() and (green > blue).all()
    assert (np.diff(found[3:].sum(axis=1)) > 0.0).all()
    np.testing.assert_allclose(found[-1], [1.0, 0.95, 0.75])
    # In a picture of temperatures they have its colours: the ends of the map, and plain without heat.
    mapped = heat_colours(LOOKS["smoke"], plain, T, (300.0, 1600.0))
    ends = colormaps["inferno"]([0.14, 1.0])[:, :3]
    np.testing.assert_allclose(mapped[[1, 6]], ends, atol=1e-12)
    assert (mapped[0] == 0.5).all()


def test_colours_of_recipes_come_first() -> None:
    """Names that look like colours are names; the tint that a recipe took is not given to another cloud."""
    look, clouds = LOOKS["smoke"], ("red", "fog", "haze")
    assert look.tint("red", ("red",), {}) == (look.lit, look.shade)
    assert look.tint("fog", clouds, {"fog": "red"}) == look.tints[0]
    others = [look.tint(name, clouds, {"fog": "red"}) for name in ("red", "haze")]
    assert others == [look.tints[1], look.tints[2]]
    fire = LOOKS["fire"]  # whose smoke is grey, also that of two candles
    assert fire.tint("haze", clouds, {"fog": "red"}) == (fire.lit, fire.shade)
    lit, shade = look.tint("fog", clouds, {"fog": "#ff8000"})
    np.testing.assert_allclose([lit, shade], [[1.0, 128 / 255, 0.0], [0.25, 32 / 255, 0.0]])
    assert look.named("orange") == look.named("#ff8c1a")


def test_without_the_column_tracers_keep_their_tint() -> None:
    for look in ("dye", "temperature", "fire", "smoke"):
        found = paint(LOOKS[look], cloud(), TINT, (0.0, 1.0))
        assert (found.lit == 1.0).all() and found.cover is None and found.glow is None


@pytest.mark.parametrize("amount", [0.01, 1.0])
def test_a_dense_flame_is_bright_and_never_turns_dark(amount: float) -> None:
    """Sums of light beyond 1 would turn black: thousands of flames behind one another are nearly white."""
    red, green, blue = colour_of("fire", cloud(Species_flame=amount, Species_smoke=0.0))
    assert red > 240 and red >= green >= blue > 100


def test_a_flame_that_goes_out_is_darker_in_a_movie() -> None:
    """Each frame had an exposure of its own: a fireball dimmed in the frame in which the next one was lit."""
    columns = cloud(Species_flame=0.3, Species_smoke=0.0)
    burnt = {**columns, "Species.flame": np.where(np.arange(4000) < 400, columns["Species.flame"], 0.0)}
    options = Options(look="fire", size=(160, 120), camera="front")
    scene = Scene(survey([(0.0, {"dye": columns}), (1.0, {"dye": burnt})], options), options)
    opacities = []
    for frame in (columns, burnt):
        scene.show({"dye": frame})
        opacities.append(scene._layers["flame"].actor.GetProperty().GetOpacity())
    scene.plotter.close()
    assert (
        opacities[0]
        == opacities[1]
        == pytest.approx(BRIGHTEST / (2 * np.pi * scene.view.puff.radius**2 * scene.view.glare))
    )


def test_what_is_left_of_a_flame_does_not_blaze() -> None:
    """A wick whose gas is too cold to burn keeps flame of 5e-4, which was drawn as bright as any flame."""
    left = paint(LOOKS["fire"], cloud(Species_smoke=0.001, Species_flame=0.0005), TINT, (0.0005, 0.001))
    # A square root of 0.05 is 0.22 of the scale: dark red.
    assert left.glow is not None and 0.1 < left.glow[:, 0].max() < 0.6 and left.glow[:, 2].max() < 0.05


def test_smoke_alone_is_grey_and_nothing_is_background() -> None:
    smoke = colour_of("fire", cloud(Species_flame=0.0, Species_smoke=0.5))
    assert np.ptp(smoke) < 12 and smoke.mean() > 20
    nothing = colour_of("fire", cloud(Species_flame=0.0, Species_smoke=0.0))
    assert nothing.max() < 25


def test_most_in_line() -> None:
    """Ten of weight 2 behind one another in a square of 0.1 m: 20 / 0.01 m^2."""
    x = np.zeros((10, 3))
    x[:, 1] = np.arange(10.0)
    camera, focal = np.array([0.0, -50.0, 0.0]), np.zeros(3)
    assert most_in_line(x, np.full(10, 2.0), camera, focal, 0.1) == pytest.approx(2000.0)
    assert 0 < BRIGHTEST < 1


def test_survey_keeps_the_range_over_all_frames() -> None:
    frames = [(0.0, {"a": cloud(Density_rho=np.full(4000, rho))}) for rho in (0.8, 1.0, 1.3)]
    assert survey(frames, Options(look="dye")).painted == pytest.approx((0.8, 1.3))
    fire = [
        (0.0, {"a": cloud(Species_flame=0.2, Species_smoke=0.7)}),
        (1.0, {"a": cloud(Species_flame=0.3, Species_smoke=0.1)}),
    ]
    assert survey(fire, Options(look="fire")).painted == pytest.approx((0.3, 0.7))


def test_without_tracers_looks_colour_vortons() -> None:
    """A block of warm gas by its temperature, as tracers would be; beside tracers by its vorticity."""
    gas = {
        "Position.x": RANDOM.random((50, 3)), "Strength.alpha": np.ones((50, 3)),
        "Volume.volume": np.full(50, 1e-2), "CoreRadius.sigma": np.full(50, 0.2),
        "Temperature.T": np.linspace(300.0, 400.0, 50),
    }  # fmt: skip
    frames = [(float(t), {"gas": {**gas, "Temperature.T": gas["Temperature.T"] + t}}) for t in range(2)]
    view = survey(frames, Options(look="temperature"))
    assert view.color_by == "Temperature.T" and view.bar
    assert view.limits == view.painted == pytest.approx((300.0, 401.0), abs=0.6)
    beside = [(time, {**frame, "smoke": cloud()}) for time, frame in frames]
    for other, look in ((frames, "smoke"), (frames, "dye"), (beside, "temperature")):
        assert survey(other, Options(look=look)).color_by == "vorticity"
    columns = {"gas": gas.keys(), "ball": ["Pose.q", "BodyHeat.T"]}
    assert missing_columns("temperature", columns, ()) == ""
    assert missing_columns("dye", columns, ()) == "Density.rho"
    assert missing_columns("temperature", {**columns, "smoke": ["Position.x"]}, ()) == "Temperature.T"


def test_vortons_give_way_to_painted_tracers() -> None:
    """Dark vortons in front of dye would hide it; asked for by name they are drawn."""
    x = 0.2 * RANDOM.standard_normal((50, 3))
    vortons = {
        "Position.x": x, "Strength.alpha": np.ones((50, 3)), "Volume.volume": np.full(50, 1e-2),
        "CoreRadius.sigma": np.full(50, 0.2),
    }  # fmt: skip
    frame = {"v": vortons, "dye": cloud(Density_rho=np.linspace(1, 2, 4000))}

    view = survey([(0.0, frame)], Options(look="dye"))

    def picture(shown: dict[str, dict[str, np.ndarray]], **options: object) -> np.ndarray:
        plotter = render(shown, view=view, look="dye", size=(160, 120), camera="front", **options)
        try:
            return pixels(plotter)
        finally:
            plotter.close()

    alone = picture({"dye": frame["dye"]})
    assert np.array_equal(picture(frame), alone)
    assert not np.array_equal(picture(frame, populations=["v", "dye"]), alone)
