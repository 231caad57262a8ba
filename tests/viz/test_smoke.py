"""The optics of smoke: spacing, optical depth and shadow against closed forms."""

from __future__ import annotations

import numpy as np
import pytest

from ecs_fluid.exports.volumes import mean_spacing
from ecs_fluid.viz.colours import Paint, shaded
from ecs_fluid.viz.shared_limits import survey
from ecs_fluid.viz.smoke import back_to_front, illumination, puff
from ecs_fluid.viz.style import LOOKS, Options


def lattice(counts: tuple[int, int, int], h: float) -> np.ndarray:
    axes = [h * (np.arange(n) + 0.5) for n in counts]
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)


@pytest.mark.parametrize("counts", [(20, 20, 20), (60, 60, 1), (400, 1, 1)])
def test_spacing_of_a_lattice(counts: tuple[int, int, int]) -> None:
    # Cells of 2 h at the border are only partly filled: the count is high by up to 1/20 per axis and side.
    assert mean_spacing(lattice(counts, 0.05)) == pytest.approx(0.05, rel=0.15)


def test_spacing_does_not_count_empty_space() -> None:
    block = lattice((16, 16, 16), 0.05)
    two = np.concatenate((block, block + 40.0))  # two blocks in a box 10^5 times their volume
    assert mean_spacing(two) == pytest.approx(0.05, rel=0.15)


def test_puff_reaches_the_depth_asked_for() -> None:
    cloud = lattice((20, 20, 20), 0.05)  # a cube of 1 m: its shadow is 1 m^2
    one = puff(cloud, depth=2.0, softness=0.8)
    # n kappa / A = depth, with A within the same border error as the spacing.
    assert len(cloud) * one.cross_section / 1.0 == pytest.approx(2.0, rel=0.25)
    assert one.radius == pytest.approx(0.8 * one.spacing)


def test_light_fades_exponentially_into_a_slab() -> None:
    h, kappa = 0.05, 0.002
    cloud = lattice((40, 40, 40), h)
    light = illumination(cloud, np.array([0.0, 0.0, 1.0]), h, kappa)
    inner = (np.abs(cloud[:, :2] - 1.0) < 0.6).all(axis=1) & (np.abs(cloud[:, 2] - 1.0) < 0.6)
    # 1/h^3 = 8000 tracers/m^3, so the optical depth d below the top (z = 2 m) is 8000 kappa d = 16 d.
    expected = -kappa / h**3 * (2.0 - cloud[inner, 2])
    # The grid of 2 h resolves depth to half a cell: 0.05 m, that is 0.8 of the exponent.
    np.testing.assert_allclose(np.log(light[inner]), expected, atol=0.8)
    slope = np.polyfit(cloud[inner, 2], np.log(light[inner]), 1)[0]
    assert slope == pytest.approx(kappa / h**3, rel=0.02)


def test_a_stray_does_not_take_the_shadow_of_a_cloud() -> None:
    """The grid of the light had to reach it: with one tracer 300 m away a cloud of 1 m was lit throughout."""
    x = np.random.default_rng(6).normal(size=(20_000, 3))
    alone = illumination(x, np.array([0.0, 0.0, 1.0]), 0.1, 0.02)
    stray = illumination(np.vstack([x, [[300.0, 300.0, 300.0]]]), np.array([0.0, 0.0, 1.0]), 0.1, 0.02)
    assert alone.mean() < 0.4 and stray[-1] == 1.0
    np.testing.assert_allclose(stray[:-1], alone, atol=0.02)


def test_dye_in_a_plane_keeps_its_colour_in_dense_dust() -> None:
    """Tracers in a plane throughout do not shade each other: red dye among white dust was dark grey. A sheet
    that leaves its plane later is shaded from the start, so that movies do not flicker."""
    draw = np.random.default_rng(2)
    dust, dye = draw.random((2000, 3)) * [1, 1, 0], draw.random((2000, 3)) * [0.2, 0.2, 0]
    frame = {"dust": {"Position.x": dust}, "dye": {"Position.x": dye}}
    bent = {
        name: {"Position.x": columns["Position.x"] + [0, 0, 0.1] * draw.random((2000, 1))}
        for name, columns in frame.items()
    }
    paint = Paint(np.ones((2000, 3)), np.zeros((2000, 3)))
    for frames, flat in (([frame, frame], True), ([frame, bent], False)):
        found = survey(list(enumerate(frames)), Options(look="smoke")).puff
        assert found is not None and found.flat == flat
        light, _, _ = shaded(LOOKS["smoke"], found, [(dust, paint), (dye, paint)])
        assert (light[2000:].min() == 1.0) == flat and (light[2000:].min() < 0.8) != flat


def test_order_is_far_to_near() -> None:
    x = np.array([[0.0, 0.0, 1.0], [0.0, 5.0, -3.0], [1.0, 0.0, 2.0]])
    order = back_to_front(x, np.array([0.0, 0.0, 10.0]), np.zeros(3))
    assert order.tolist() == [1, 0, 2]
