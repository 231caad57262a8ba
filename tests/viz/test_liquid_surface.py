"""Liquid as a surface: its volume, its drops, its foam; and the looks that draw it, and vorticity."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from ecs_fluid.exports import particle_surface as module
from ecs_fluid.exports.bodies import Mesh, Placed, unit_ball
from ecs_fluid.viz.liquid_surface import FOAM, foam, foaming, liquid_surface, whitened
from ecs_fluid.viz.scene import pixels, render
from ecs_fluid.viz.shared_limits import survey
from ecs_fluid.viz.style import LOOKS, Options
from ecs_fluid.world_files import colors_in

SPACING = 0.05


def block(n: int = 12) -> np.ndarray:
    """Particles in the middles of n^3 cubes of 0.05 m, from 0 on."""
    place = SPACING * (np.arange(n) + 0.5)
    return np.stack(np.meshgrid(place, place, place, indexing="ij"), axis=-1).reshape(-1, 3)


def test_a_block_keeps_its_faces_and_points_outward() -> None:
    """Half full at a flat face, so faces stay where they are; only edges are rounded by the blur, of 3/4 of a
    spacing, so that a little of the volume is missing."""
    mesh, drops = liquid_surface(block(), SPACING)
    assert not drops.any()
    side = 12 * SPACING
    assert mesh.is_manifold and mesh.n_open_edges == 0
    np.testing.assert_allclose(mesh.bounds, np.tile((0.0, side), 3), atol=0.1 * SPACING)
    # 12 edges of length a lose an area (1 - pi/4) r^2 each, r being two blurs: 12 a 0.21 (1.5 h)^2 are 4 %.
    assert 0.93 * side**3 < mesh.volume < side**3
    outward = np.einsum("ij,ij->i", mesh.point_data["Normals"], mesh.points - 0.5 * side)
    assert (outward > 0.0).all()


def placed(mesh: Mesh, x: tuple[float, ...], scale: float = 1.0, **kind: bool) -> Placed:
    """A body at rest."""
    flags = {"ball": False, "container": False} | kind
    zero = np.zeros(3)
    return Placed(
        "b", 0, mesh, np.array(x), np.array([1.0, 0, 0, 0]), scale, zero, zero, **flags, temperature=np.nan
    )


def box(size: tuple[float, ...]) -> Mesh:
    """A box about the origin."""
    corners = np.array(list(np.ndindex(2, 2, 2))) - 0.5
    faces = [[0, 1, 3, 2], [4, 6, 7, 5], [0, 4, 5, 1], [2, 3, 7, 6], [0, 2, 6, 4], [1, 5, 7, 3]]
    return Mesh(corners * size, np.ravel(faces), np.arange(0, 25, 4))


def test_liquid_in_a_tank_ends_at_its_walls() -> None:
    """Flat at the walls, with sharp edges there: an edge is cut off over half a cell, of a quarter of a
    spacing, and the whole 12 x 0.5 x 0.25^2 / 12^2 = 0.3 %. A tank that is turned has the same liquid."""
    side = 12 * SPACING
    tank = placed(box((side, side, 2.0 * side)), (0.5 * side, 0.5 * side, side), container=True)
    mesh, drops = liquid_surface(block(), SPACING, [tank])
    assert not drops.any() and mesh.is_manifold and mesh.n_open_edges == 0
    np.testing.assert_allclose(mesh.bounds[:5], [0.0, side, 0.0, side, 0.0], atol=1e-6)
    assert 0.997 * side**3 < mesh.volume < 1.0001 * side**3
    turn = Rotation.from_rotvec([0.3, 0.2, 0.1])
    leaning = replace(tank, x=turn.apply(tank.x), q=np.roll(turn.as_quat(), 1))
    turned, _ = liquid_surface(turn.apply(block()), SPACING, [leaning])
    assert turned.volume == pytest.approx(side**3, rel=0.01)
    back = turn.inv().apply(turned.points)
    # No vertex is nearer to a point than a fullness of 1e-3 makes it: 1e-3 sqrt(2 pi) 3/4 spacings.
    off = 1.9e-3 * SPACING
    assert back.min() > -off and back[:, :2].max() < side + off


def test_liquid_stays_out_of_bodies() -> None:
    """A ball and a box that stand in the way: the surface goes around them, up to what facets cut."""
    bodies = [
        placed(unit_ball(), (0.3, 0.3, 0.55), 0.15, ball=True), placed(box((0.2, 0.2, 0.3)), (0.6, 0.3, 0.3))
    ]  # fmt: skip
    mesh, _ = liquid_surface(block(), SPACING, bodies)
    points = np.asarray(mesh.points, np.float64)
    # A facet as long as the diagonal of a cell of 0.025 m lies within its square / (8 R) of the ball.
    assert np.linalg.norm(points - (0.3, 0.3, 0.55), axis=1).min() > 0.15 - 3 * 0.025**2 / (8 * 0.15)
    inside = (np.abs(points - (0.6, 0.3, 0.3)) < (0.0999, 0.0999, 0.1499)).all(axis=1)
    assert not inside.any() and mesh.is_manifold and mesh.n_open_edges == 0


def test_a_drop_at_a_wall_is_a_drop() -> None:
    """With its image it fills 0.3 at most."""
    tank = placed(box((1.0, 1.0, 1.0)), (0.0, 0.0, 0.0), container=True)
    x = np.array([[0.49, 0.1 * k, 0.0] for k in range(-3, 4)])
    mesh, drops = liquid_surface(x, SPACING, [tank])
    assert mesh.n_points == 0 and drops.all()


def test_two_blocks_are_two_surfaces_and_a_lonely_particle_is_a_drop() -> None:
    x = np.concatenate((block(6), block(6) + np.array([1.0, 0.0, 0.0]), [[0.6, 0.6, 0.6]]))
    mesh, drops = liquid_surface(x, SPACING)
    assert len(mesh.split_bodies()) == 2
    assert drops[-1]
    # A corner of a block has (1/2)^3 = 0.125 at the very corner, and more where its particle is.
    assert not drops[:-1].any()


def test_a_torn_sheet_is_drops() -> None:
    """Of a layer as thick as a particle 4/3 / sqrt(2 pi) = 0.53 is left by the blur; torn to 1.3 spacings,
    0.31, which no surface encloses."""
    place = 1.3 * SPACING * np.arange(12.0)
    x = np.stack(np.meshgrid(place, place, [0.0], indexing="ij"), axis=-1).reshape(-1, 3)
    mesh, drops = liquid_surface(x, SPACING)
    assert mesh.n_points == 0 and drops.all()


def test_nothing_makes_no_surface() -> None:
    mesh, drops = liquid_surface(np.zeros((0, 3)), SPACING)
    assert mesh.n_points == 0 and not len(drops)


def test_what_flies_far_leaves_the_rest_as_fine() -> None:
    """Particles from 100 m to 1e8 m away: the same surface elsewhere, to the bit, and one of their own."""
    near, _ = liquid_surface(block(), SPACING)
    drop = block(4) + np.array([1e6, -3e5, 2e6])
    lone = np.random.default_rng(0).normal(size=(300, 3)) * np.array([1e2, 1e4, 1e8])
    both, drops = liquid_surface(np.concatenate((block(), drop, lone)), SPACING)
    assert drops[-300:].all() and not drops[:-300].any()
    here = (np.abs(both.points) < 10.0).all(axis=1)
    np.testing.assert_array_equal(both.points[here], near.points)
    assert len(both.split_bodies()) == 2


def test_blocks_of_the_lattice_leave_no_seams(monkeypatch: pytest.MonkeyPatch) -> None:
    """One, or hundreds of blocks: the same vertices, each once, and a closed surface."""
    x = block(16) - 0.37 + np.random.default_rng(1).normal(size=(16**3, 3)) * 0.4 * SPACING
    found = []
    for side in (200, 16, 9):
        monkeypatch.setattr(module, "BLOCK", side)
        mesh, drops = liquid_surface(x, SPACING)
        assert mesh.is_manifold and mesh.n_open_edges == 0
        found.append(
            (mesh.n_points, mesh.n_cells, drops.sum(), round(mesh.volume, 8), mesh.points.sum(axis=0))
        )
    for other in found[1:]:
        assert other[:4] == found[0][:4]
        np.testing.assert_allclose(other[4], found[0][4], rtol=1e-7)


def foam_of(x: np.ndarray, u: np.ndarray) -> np.ndarray:
    """Share of foam of each particle."""
    return foam(x, u, liquid_surface(x, SPACING)[1], SPACING, np.arange(len(x)))


def test_what_moves_or_turns_as_a_whole_is_clear() -> None:
    """At 100 m/s, and at 50 rad/s, by which its edge moves at 15 m/s: distances stay as they are."""
    x = block()
    assert foam_of(x, np.tile([100.0, -30.0, 2.0], (len(x), 1))).max() == 0.0
    assert foam_of(x, np.cross([0.0, 30.0, 40.0], x - 0.3)).max() < 1e-12


def test_foam_is_where_liquid_meets_liquid() -> None:
    """Two blocks at 2 m/s each against each other: white where they touch, clear from two spacings on. Foam
    begins at 0.35 sqrt(9.81 x 0.05 + 0.0015) = 0.25 m/s: at 0.1 m/s each there is none."""
    x, water = np.concatenate((block(8), block(8) + np.array([0.4, 0.0, 0.0]))), (0.1, 0.2, 0.3)
    u = np.where(x[:, :1] < 0.4, 2.0, -2.0) * [1.0, 0.0, 0.0]
    mesh, drops = liquid_surface(x, SPACING)
    colours = foaming(mesh.points, x, u, drops, SPACING, np.tile(water, (len(x), 1)))
    away = np.abs(mesh.points[:, 0] - 0.4)
    np.testing.assert_allclose(colours[away < 0.02], np.tile(FOAM, ((away < 0.02).sum(), 1)), atol=0.15)
    assert (away < 0.02).any()
    np.testing.assert_allclose(colours[away > 0.18], np.tile(water, ((away > 0.18).sum(), 1)), atol=1e-9)
    assert foam_of(x, 0.05 * u).max() == 0.0


def test_foam_is_where_liquid_is_torn() -> None:
    """A block pulled apart at 60 1/s, so by 3 m/s per spacing, of which a third is left in the mean over
    directions, and one at 1 1/s."""
    x = block()
    assert foam_of(x, 60.0 * x * [1.0, 0.0, 0.0]).min() > 0.9
    assert foam_of(x, x * [1.0, -1.0, 0.0]).max() == 0.0


def test_a_crest_that_is_torn_is_white() -> None:
    """A clump of eight particles in drops 1.8 spacings apart that fly with it; not the clump alone."""
    clump = block(2) - SPACING
    place = 1.8 * SPACING * np.arange(-3.0, 4.0)
    cloud = np.stack(np.meshgrid(place, place, place, indexing="ij"), axis=-1).reshape(-1, 3)
    x = np.concatenate((clump, cloud[np.abs(cloud).max(axis=1) > 1.5 * SPACING]))
    u = np.tile([3.0, 0.0, 1.0], (len(x), 1))
    drops = liquid_surface(x, SPACING)[1]
    assert not drops[:8].any() and drops[8:].all()
    assert foam_of(x, u)[:8].min() == 1.0 and foam_of(x, 0.0 * u)[:8].max() == 0.0
    assert foam_of(clump, u[:8]).max() == 0.0


def test_spray_is_white_and_a_torn_puddle_is_not() -> None:
    """Lone drops at any speed; a sheet in which particles are 1.4 spacings apart by its speed."""
    lone = 4.0 * SPACING * np.arange(5.0)[:, None] * [1.0, 0.0, 0.0]
    assert foam_of(lone, np.zeros((5, 3))).min() == 1.0
    place = 1.4 * SPACING * np.arange(9.0)
    sheet = np.stack(np.meshgrid(place, place, [0.0], indexing="ij"), axis=-1).reshape(-1, 3)
    inner = np.abs(sheet[:, :2] - place[4]).max(axis=1) < 3.5 * 1.4 * SPACING
    assert foam_of(sheet, np.zeros_like(sheet))[inner].max() < 0.01
    assert foam_of(sheet, np.tile([3.0, 0.0, 0.0], (81, 1))).min() == 1.0


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


@pytest.mark.parametrize("tap", [{}, {"color": "red"}])
def test_a_tap_leaves_a_liquid_its_colour(tap: dict[str, str]) -> None:
    """What flows in gives colour only to what has none, wherever it stands in the file."""
    milk = {"kind": "liquid", "name": "milk", "color": "white"}
    tap = {"kind": "inflow", "name": "tap", "into": "milk", **tap}
    assert colors_in({"entity": [milk, tap]}) == colors_in({"entity": [tap, milk]}) == {"milk": "white"}
    new = {**tap, "into": "water"}
    assert colors_in({"entity": [new]}) == ({"water": tap["color"]} if "color" in tap else {})


def test_liquids_that_mix_are_whole() -> None:
    """Two liquids, every other particle one of each, are drawn as the one that they fill together."""
    x = block()
    odd = np.rint(x.sum(axis=1) / SPACING - 1.5).astype(int) % 2 == 1
    whole = drawn({"water": liquid(x)}, look="liquid")
    mixed = drawn({"a": liquid(x[odd]), "b": liquid(x[~odd])}, look="liquid")
    assert np.abs(mixed - whole).mean() < 2.0


def test_foam_is_the_same_in_one_picture_and_in_a_movie() -> None:
    """Whatever other frames of the run are like; a block in flight is clear."""
    camera = ((0.3, -2.0, 0.3), (0.3, 0.3, 0.3), (0.0, 0.0, 1.0))
    still = {"water": liquid(block())}
    moving = {"water": {**still["water"], "Velocity.u": np.full((12**3, 3), 5.0)}}
    clear = drawn(still, look="liquid", camera=camera)
    views = (survey([(0.0, one), (1.0, moving)], Options(look="liquid")) for one in (still, moving))
    for view in (None, *views):
        picture = drawn(moving, look="liquid", camera=camera, view=view)
        np.testing.assert_array_equal(picture, clear)


def whitewater(x: np.ndarray, kind: int) -> dict[str, np.ndarray]:
    """Particles of whitewater at `x` (n, 3) m, at rest."""
    kinds = np.full(len(x), kind)
    return {"Position.x": x, "InertialVelocity.v": np.zeros_like(x), "Whitewater.kind": kinds}


def test_foam_whitens_the_surface_beside_it() -> None:
    """20 particles of foam whiten it where they lie, as many bubbles less, spray not at all; nothing does a
    spacing away."""
    points, water = np.array([[0.0, 0.0, 0.0], [1.1 * SPACING, 0.0, 0.0]]), np.full((2, 3), 0.2)
    found = [whitened(points, whitewater(np.zeros((20, 3)), kind), SPACING, water) for kind in range(3)]
    shares = [(colours[:, 0] - 0.2) / (FOAM[0] - 0.2) for colours in found]
    spray, foam_of_it, bubbles = (share[0] for share in shares)
    assert spray == 0.0 < bubbles < foam_of_it < 1.0 and foam_of_it > 0.9
    assert max(share[1] for share in shares) == 0.0


def test_where_there_is_whitewater_it_alone_is_white() -> None:
    """A torn block is white; with whitewater, even before any is born, it is as clear as one at rest. Foam on
    it is white, and in another look whitewater is drawn as what flies."""
    camera = ((0.3, -0.7, 1.7), (0.3, 0.3, 0.3), (0.0, 0.0, 1.0))
    torn = {"water": {**liquid(block()), "Velocity.u": 60.0 * block() * [1.0, 0.0, 0.0]}}
    none = {"whitewater": whitewater(np.zeros((0, 3)), 1)}
    top = block()[block()[:, 2] > 0.55] + np.array([0.0, 0.0, 0.03])
    foamy = {"whitewater": whitewater(np.repeat(top, 8, axis=0), 1)}
    frames = ({"water": liquid(block())}, torn | none, torn | foamy, torn)
    pictures = [drawn(frame, look="liquid", camera=camera) for frame in frames]
    np.testing.assert_array_equal(pictures[1], pictures[0])
    clear, white, whiter = (picture[..., 0].mean() for picture in pictures[1:])
    assert whiter > white + 5 and white > clear + 5
    spray = {"whitewater": whitewater(top + np.array([0.0, 0.0, 0.1]), 0)}
    streaks = drawn(torn | spray, look="smoke", camera=camera)
    assert np.abs(streaks - drawn(torn, look="smoke", camera=camera)).max() > 25


def test_whitewater_is_seen_where_there_is_no_liquid() -> None:
    """Asked for alone it is drawn as what flies; in a frame whose liquid is gone as in those before."""
    x = 2.0 * block(6)
    white, water = {"whitewater": whitewater(x, 0)}, {"water": liquid(block())}
    camera = ((0.3, -2.0, 0.6), (0.3, 0.3, 0.3), (0.0, 0.0, 1.0))
    view = survey([(0.0, white | water)], Options(look="liquid"))
    gone = drawn(white | {"water": liquid(np.zeros((0, 3)))}, look="liquid", camera=camera, view=view)
    alone = drawn(white | water, look="liquid", camera=camera, populations=["whitewater"])
    for picture in (gone, alone):
        assert np.ptp(picture[10:110], axis=(0, 1)).max() > 40


def test_tracers_beside_a_liquid_are_smoke() -> None:
    """Steam above water: its picture and the water's alone differ where the steam is, and there it is no more
    blue than the sky; tracers alone are still drawn as a liquid."""
    camera = ((0.3, -3.0, 0.6), (0.3, 0.3, 0.6), (0.0, 0.0, 1.0))
    steam = {"Position.x": block() + np.array([0.0, 0.0, 0.7])}
    steam["Velocity.u"] = np.zeros_like(steam["Position.x"])
    water = drawn({"water": liquid(block())}, look="liquid", camera=camera)
    both = drawn({"water": liquid(block()), "steam": steam}, look="liquid", camera=camera)
    alone = drawn({"steam": steam}, look="liquid", camera=camera)
    blue = [(image[..., 2] - image[..., 0] > 60).sum() for image in (water, both, alone)]
    assert (np.abs(both - water).max(axis=2) > 20).sum() > 500  # a block is some 30 pixels wide and high
    assert blue[0] > 500 and abs(blue[1] - blue[0]) < 0.05 * blue[0] and blue[2] > 500
