"""Liquid as a surface: its volume, its drops, its foam; and the looks that draw it, and vorticity."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ecs_fluid.viz.liquid_surface import FOAM, foaming, liquid_mesh, spray
from ecs_fluid.viz.scene import pixels, render
from ecs_fluid.viz.style import LOOKS

SPACING = 0.05


def block(n: int = 12) -> np.ndarray:
    """Particles in the middles of n^3 cubes of 0.05 m, from 0 on."""
    place = SPACING * (np.arange(n) + 0.5)
    return np.stack(np.meshgrid(place, place, place, indexing="ij"), axis=-1).reshape(-1, 3)


def test_a_block_keeps_its_faces_and_points_outward() -> None:
    """Half full at a flat face, so faces stay where they are; only edges are rounded by the blur, of 3/4 of a
    spacing, so that a little of the volume is missing."""
    mesh = liquid_mesh(block(), SPACING)
    side = 12 * SPACING
    assert mesh.is_manifold and mesh.n_open_edges == 0
    np.testing.assert_allclose(mesh.bounds, np.tile((0.0, side), 3), atol=0.1 * SPACING)
    # 12 edges of length a lose an area (1 - pi/4) r^2 each, r being two blurs: 12 a 0.21 (1.5 h)^2 are 4 %.
    assert 0.93 * side**3 < mesh.volume < side**3
    outward = np.einsum("ij,ij->i", mesh.point_data["Normals"], mesh.points - 0.5 * side)
    assert (outward > 0.0).all()


def test_two_blocks_are_two_surfaces_and_a_lonely_particle_is_a_drop() -> None:
    x = np.concatenate((block(6), block(6) + np.array([1.0, 0.0, 0.0]), [[0.6, 0.6, 0.6]]))
    mesh = liquid_mesh(x, SPACING)
    assert len(mesh.split_bodies()) == 2
    drops = spray(x, SPACING)
    assert drops[-1]
    # A corner of a block has (1/2)^3 = 0.125 at the very corner, and more where its particle is.
    assert not drops[:-1].any()


def test_a_torn_sheet_is_drops() -> None:
    """Of a layer as thick as a particle 4/3 / sqrt(2 pi) = 0.53 is left by the blur; torn to 1.3 spacings,
    0.31, which no surface encloses."""
    place = 1.3 * SPACING * np.arange(12.0)
    x = np.stack(np.meshgrid(place, place, [0.0], indexing="ij"), axis=-1).reshape(-1, 3)
    assert liquid_mesh(x, SPACING).n_points == 0
    assert spray(x, SPACING).all()


def test_nothing_makes_no_surface() -> None:
    assert liquid_mesh(np.zeros((0, 3)), SPACING).n_points == 0
    assert not len(spray(np.zeros((0, 3)), SPACING))


def test_foam_is_where_it_is_fast() -> None:
    """Speed grows along x from 0 to 1 m/s: water up to 0.5, foam from 0.9 on."""
    x, water = block(), (0.1, 0.2, 0.3)
    mesh = liquid_mesh(x, SPACING)
    colours = foaming(mesh, x, x[:, 0] / 0.6, (0.5, 0.9), np.tile(water, (len(x), 1)))
    slow, fast = mesh.points[:, 0] < 0.25, mesh.points[:, 0] > 0.58
    np.testing.assert_allclose(colours[slow], np.tile(water, (slow.sum(), 1)), atol=1e-9)
    np.testing.assert_allclose(colours[fast], np.tile(FOAM, (fast.sum(), 1)), atol=0.02)


def drawn(frame: dict[str, dict[str, np.ndarray]], **options: Any) -> np.ndarray:
    plotter = render(frame, size=(160, 120), **options)
    image = pixels(plotter).astype(int)
    plotter.close()
    return image


def test_liquid_look_is_water_by_daylight() -> None:
    u = np.tile([1e-3, 0.0, 0.0], (12**3, 1))
    image = drawn({"water": {"Position.x": block(), "Velocity.u": u}}, look="liquid")
    assert image[:4].mean() > 220  # the sky
    foam = (np.ptp(image, axis=2) < 20) & (image.min(axis=2) > 100)
    blue = image[..., 2] > image[..., 0] + 40
    assert blue.sum() + foam[30:90, 50:110].sum() > 3000  # a block fills a quarter of the picture or more


@pytest.mark.parametrize("look", ["vorticity", "smoke"])
def test_vorticity_look_shows_more_of_the_vortons(frame: dict, look: str) -> None:
    """Beads in their colours, purple to yellow, are much of the picture; within smoke they are little."""
    image = drawn(frame, look=look, camera="top")[:100]
    colourful = (np.ptp(image, axis=2) > 60).sum()
    # A torus of radius 1 m and tube 0.14 m (0.68 of a spacing) where 1 m is 40 pixels or so has an area of
    # 2 pi 40 x 11 = 2,800 pixels; a third of it is bright yellow, the upper half of the vorticity.
    assert colourful > 600 if look == "vorticity" else colourful < 400


def test_looks_are_known_by_their_names() -> None:
    """Every command that draws explains them in the same words."""
    from ecs_fluid.cli import look, page, watch

    for command in (look.show, page.page, watch.watch):
        told = command.__doc__.partition(" look: ")[2].partition(";")[0]
        assert [name.partition(" ")[0] for name in told.split(", ")] == list(LOOKS)


def liquid(x: np.ndarray) -> dict[str, np.ndarray]:
    """Particles at `x` (n, 3) m, each of the volume of a cube of 0.05 m."""
    return {"Position.x": x, "Velocity.u": np.zeros_like(x), "Liquid.volume": np.full(len(x), SPACING**3)}


def test_spray_does_not_swell_the_liquid() -> None:
    """Drops far apart, beside the picture, widen the mean distance of neighbours, not that in the liquid."""
    camera = ((0.3, -2.0, 0.3), (0.3, 0.3, 0.3), (0.0, 0.0, 1.0))
    alone = drawn({"water": liquid(block())}, look="liquid", camera=camera)
    far = np.concatenate((block(), block(10) * 4.0 + [2.5, 0.0, 0.0]))
    splash = drawn({"water": liquid(far)}, look="liquid", camera=camera)
    assert np.abs(splash - alone).max() < 10


def test_drops_have_the_colour_of_their_liquid() -> None:
    x = SPACING * 4.0 * np.arange(9.0)[:, None] * [1.0, 0.0, 0.0]
    red = drawn({"water": liquid(x)}, look="liquid", colors={"water": "red"})
    white = drawn({"water": liquid(x)}, look="liquid")
    assert ((red[..., 0] - red[..., 2]) > 60).sum() > 30 and ((white[..., 0] - white[..., 2]) > 60).sum() == 0


def test_liquids_that_mix_are_whole() -> None:
    """Two liquids, every other particle one of each, are drawn as the one that they fill together."""
    x = block()
    odd = np.rint(x.sum(axis=1) / SPACING - 1.5).astype(int) % 2 == 1
    whole = drawn({"water": liquid(x)}, look="liquid")
    mixed = drawn({"a": liquid(x[odd]), "b": liquid(x[~odd])}, look="liquid")
    assert np.abs(mixed - whole).mean() < 2.0
