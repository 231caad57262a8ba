"""A page holds what the run holds, and nothing that a browser would take for code."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

import ecs_fluid as ef
from ecs_fluid.exports.colours import SOLID, WATER, by_name
from ecs_fluid.exports.frames import Frames
from ecs_fluid.exports.surfaces import Surfaces
from ecs_fluid.io.runfolder import RunFolder
from ecs_fluid.runs.surface_frames import stored_mesh
from ecs_fluid.viz import layers
from ecs_fluid.viz.camera import ROOM, VIEW_ANGLE, place
from ecs_fluid.viz.colours import DULL, GLOW, WHITE, paint
from ecs_fluid.viz.columns import scalar
from ecs_fluid.viz.liquid_surface import DROP, FOAM
from ecs_fluid.viz.page import codec, default_colours, files, writer
from ecs_fluid.viz.shared_limits import View
from ecs_fluid.viz.smoke import Puff, illumination
from ecs_fluid.viz.style import LOOKS
from tests.exports.made_run import (
    FRAMES,
    SIZE,
    SPIN,
    box_place,
    frame_of,
    make_liquid_run,
    make_run,
    make_two_liquids,
    time_of,
)
from tests.viz.page.read_page import Page, counts, take_places, take_values

STATIC = Path(default_colours.__file__).parent / "static"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_run(tmp_path_factory.mktemp("pages") / "small_run")


@pytest.fixture(scope="module")
def page(run: Path, tmp_path_factory: pytest.TempPathFactory) -> Page:
    """All frames, in groups of two or so."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writer, "GROUP_BYTES", 1200)
        return Page(ef.page(run, out=tmp_path_factory.mktemp("out") / "page"))


def number(page: Page, name: str) -> int:
    return [part["name"] for part in page.header["populations"]].index(name)


def test_places_are_those_of_the_run(page: Page) -> None:
    """Rounded to a step of 0.02 radii, so at most half of that away in each axis, in every frame."""
    assert len(page.header["groups"]) > 3
    assert page.header["times"] == [time_of(frame) for frame in range(FRAMES)]
    for frame in range(FRAMES):
        stored = frame_of(frame)
        places, _, _ = page.particles(frame)
        assert len(places) == 2
        for name in ("ring", "smoke"):
            which = number(page, name)
            expected = stored[name]["Position.x"].astype(np.float64)
            assert places[which].shape == expected.shape
            error = np.abs(places[which] - expected).max(initial=0.0)
            radius = page.header["populations"][which]["radius"]
            # 1e-12: rounding of low + step * count, for places of size 2 m
            assert error <= 0.5 * writer.FINE * radius + 1e-12
    ring = page.header["populations"][number(page, "ring")]
    # 0.34 of the edge of a vorton's cube of 1e-3 m^3; stored in single precision
    assert ring["radius"] == pytest.approx(0.34 * 0.1, rel=1e-6)


def test_every_stored_column_is_a_field(page: Page) -> None:
    """Values within half a step, which is a 2,000th of the inner range or a 65,534th of the whole range."""
    fields = page.header["fields"]
    names = [field["name"] for field in fields]
    assert names[:3] == ["speed", "strength", "vorticity"]
    of_ring = {"strength", "vorticity", "CoreRadius.sigma", "Volume.volume"}
    of_smoke = {"Species.smoke", "Temperature.T"}
    assert set(names) == {"speed", "RowId.id"} | of_ring | of_smoke
    populations = [part["name"] for part in page.header["populations"]]
    seen: dict[str, list[np.ndarray]] = {name: [] for name in names}
    for frame in range(FRAMES):
        stored = frame_of(frame)
        for k, field in enumerate(fields):
            told, _ = page.frame(f"f{k}", frame)
            owners = field["populations"]
            for description, (owner, values) in zip(told, page.values(k, frame).items(), strict=True):
                expected = scalar(stored[populations[owner]], field["name"]).astype(np.float64)
                step = description[2]
                # 1e-12: rounding of the sum; a constant column has step 0
                np.testing.assert_allclose(values, expected, rtol=1e-12, atol=0.5 * step + 1e-12)
                if len(expected):
                    seen[field["name"]].append(np.percentile(expected, [0.5, 99.5]))
                    inner = np.ptp(np.percentile(expected, [0.5, 99.5]))
                    assert step <= max(inner / 2000, np.ptp(expected) / 65534) * (1 + 1e-12)
            has_it = {"ring": set(names) - of_smoke, "smoke": set(names) - of_ring}
            assert [populations[k] for k in owners] == [p for p in populations if field["name"] in has_it[p]]
    temperature = fields[names.index("Temperature.T")]
    ends = np.array(seen["Temperature.T"])
    np.testing.assert_allclose(temperature["range"], [ends[:, 0].min(), ends[:, 1].max()], rtol=1e-12)
    assert temperature["title"] == "Temperature.T [K]" and not temperature["signed"]
    assert fields[0]["title"] == "speed [m/s]" and fields[0]["range"][0] == 0.0


def test_bodies_are_where_they_were(page: Page) -> None:
    """Single precision is kept to the bit; the box has 12 edges and 12 triangles and turns about z."""
    names = [part["name"] for part in page.header["bodies"]]
    for frame in range(FRAMES):
        stored = frame_of(frame)
        _, _, rows = page.particles(frame)
        for name, found in zip(names, rows, strict=True):
            np.testing.assert_array_equal(found[:, :3], stored[name]["Position.x"].astype(np.float32))
            np.testing.assert_array_equal(found[:, 3:7], stored[name]["Pose.q"].astype(np.float32))
        balls, box = rows[names.index("balls")], rows[names.index("box")]
        np.testing.assert_array_equal(balls[:, 7], stored["balls"]["BallShape.radius"].astype(np.float32))
        assert (balls[:, 8] == 0).all() and box[0, 8] == 1
        np.testing.assert_allclose(box[0, :3], box_place(time_of(frame)), rtol=1e-6)
        np.testing.assert_allclose(2 * np.arctan2(box[0, 6], box[0, 3]), SPIN * time_of(frame), atol=1e-6)
    (shape,) = page.header["shapes"]
    corners = np.array(shape["vertices"]).reshape(8, 3)
    np.testing.assert_allclose(np.ptp(corners, axis=0), SIZE, rtol=1e-15)
    edges = np.array(shape["edges"]).reshape(-1, 2)
    lengths = np.linalg.norm(corners[edges[:, 0]] - corners[edges[:, 1]], axis=1)
    np.testing.assert_allclose(np.sort(lengths), np.repeat(np.sort(SIZE), 4), rtol=1e-12)
    assert len(shape["triangles"]) == 3 * 12


def test_hot_bodies_glow_and_others_have_their_own_colour(tmp_path: Path) -> None:
    """As in pictures: by temperature above 750 K, else what the recipe says, else the look's."""
    ball = {"kind": "body", "density": 1000.0, "shape": {"shape": "ball", "radius": 0.1}}
    box = {"kind": "body", "density": 1000.0, "shape": {"shape": "box", "size": [0.1, 0.1, 0.1]}}
    warm = {"heat_capacity": 900.0}
    made = [
        ball | {"name": "hot", "heat": warm | {"temperature": 1475.0}, "center": [0.0, 0.0, 0.0]},
        box
        | {
            "name": "red",
            "color": "#ff0000",
            "heat": warm | {"temperature": 300.0},
            "center": [1.0, 0.0, 0.0],
        },
        ball | {"name": "plain", "center": [2.0, 0.0, 0.0]},
    ]
    run = ef.run({"world": {"dt": 0.1}, "entity": made}, ticks=1, out=tmp_path / "run", progress=False)
    page = Page(ef.page(run.path, out=tmp_path / "page"))
    names = [part["name"] for part in page.header["bodies"]]
    rows = dict(zip(names, page.particles(1)[2], strict=True))
    half = 0.5 * (GLOW[2] + GLOW[3])  # 1475 K is half of the way from 750 to 2200 K, on five colours
    assert DULL == 750.0 and WHITE == 2200.0
    np.testing.assert_allclose(rows["hot"][0, 9:], half, atol=1e-6)
    np.testing.assert_allclose(rows["red"][0, 9:], [1.0, 0.0, 0.0], atol=1e-6)
    np.testing.assert_allclose(rows["plain"][0, 9:], SOLID, atol=1e-6)


@pytest.mark.parametrize("frames", [4, 5, 8])
def test_every_group_is_written_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, frames: int) -> None:
    """Also where the last one is just full, and where frames have no particles at all."""
    monkeypatch.setattr(writer, "GROUP_FRAMES", 4)
    x = np.random.default_rng(0).uniform(size=(9, 3))
    with RunFolder.create(tmp_path / "run", "", {}) as run, run.write_trajectory() as trajectory:
        for k in range(frames):
            trajectory.append(k, 0.1 * k, {"dust": {"Position.x": x[: 3 * max(k - 2, 0)]}})
    page = Page(ef.page(tmp_path / "run", out=tmp_path / "page"))
    assert page.header["groups"] == list(range(0, frames, 4))
    for k in range(frames):
        ((places,), _, _) = page.particles(k)
        np.testing.assert_allclose(places, x[: 3 * max(k - 2, 0)], atol=0.01)


def test_containers_are_told_apart_by_their_sign(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", 1)
    copy = tmp_path / "copy"
    with RunFolder.create(copy, "", {}) as made, made.write_trajectory() as trajectory:
        frame = frame_of(0)
        frame["box"]["HullShape.container"] = np.array([1])
        trajectory.append(0, 0.0, {"box": frame["box"]})
        arrays = RunFolder.open(run).newest_checkpoint().arrays
        made.save_checkpoint(
            0, {}, {name: array for name, array in arrays.items() if name.startswith("box/")}
        )
    _, _, (rows,) = Page(ef.page(copy, out=tmp_path / "page")).particles(0)
    assert rows[0, 8] == -1


def test_the_light_on_the_smoke_is_that_of_show(page: Page, run: Path) -> None:
    frame, which = 6, number(page, "smoke")
    _, painted, _ = page.particles(frame)
    puff = _view(run).puff
    assert puff is not None
    x = frame_of(frame)["smoke"]["Position.x"].astype(np.float64)
    light = illumination(x, np.array(LOOKS["smoke"].light), puff.spacing, 0.5 * puff.cross_section)
    # Half of the steps of a byte; light is 1 at most.
    np.testing.assert_allclose(painted[which][0] / 255, light, atol=0.5 / 255 + 1e-9)
    assert page.header["puff"] == {"radius": puff.radius, "opacity": puff.opacity}


def _view(run: Path) -> View:
    from ecs_fluid.exports.frames import Frames
    from ecs_fluid.exports.surfaces import Surfaces

    frames = Frames(RunFolder.open(run))
    return writer._view(frames, Surfaces(frames), "smoke")


def test_fire_is_coloured_as_by_show(tmp_path: Path) -> None:
    """Bytes of colour and cover are those that viz.layers gives to VTK."""
    draw = np.random.default_rng(5)
    x = draw.uniform(-1, 1, (300, 3))
    flame, smoke = draw.uniform(0, 0.2, (2, 300))
    columns = {"Position.x": x, "Species.flame": flame, "Species.smoke": smoke}
    look, puff = LOOKS["fire"], Puff(0.1, 0.08, 0.3)
    view = View(x.min(0), x.max(0), None, (0.0, 1.0), puff, ("flame",), painted=(0.2, 0.2))
    found = default_colours.Smoke(look, view, puff).of({"flame": columns}, ["flame"])["flame"]
    found = np.frombuffer(found, np.uint8).reshape(4, 300).T
    layer = layers.Smoke(look, puff)
    part = paint(look, columns, look.tint("flame", ("flame",), {}), (0.2, 0.2))
    layer.update([(x, part)], np.array([0.0, -9.0, 0.0]), np.zeros(3))
    drawn = dict(
        zip(map(tuple, np.float32(layer._data.points)), layer._data.point_data["values"], strict=True)
    )
    assert len(drawn) > 200  # the rest covers less than a thousandth
    mine = dict(zip(map(tuple, x.astype(np.float32)), found, strict=True))
    for where, colour in drawn.items():
        np.testing.assert_array_equal(mine[where], colour)


def test_vortons_have_the_colour_of_their_recipe(tmp_path: Path) -> None:
    """As `show` draws them: in the tint of the look, not by vorticity, unless a field is chosen."""
    recipe = '[[entity]]\nkind = "vortex_ring"\nname = "ring"\ncolor = "red"\n'
    for folder, entity, natural in (("plain", "", 0), ("red", recipe, -1)):
        run = make_run(tmp_path / folder, frames=2, recipe=entity)
        page = Page(ef.page(run, out=tmp_path / f"{folder}_page", look="paper", fields=["vorticity"]))
        ring = page.header["populations"][number(page, "ring")]
        assert ring["natural"] == natural
        assert ring["plain"] == list(LOOKS["paper"].tints[0][0] if entity else LOOKS["paper"].plain)


def test_whitewater_is_white(tmp_path: Path) -> None:
    columns = {
        "Position.x": np.random.default_rng(1).uniform(0.0, 1.0, (9, 3)),
        "InertialVelocity.v": np.ones((9, 3)),
        "Whitewater.kind": np.arange(9) % 3,
        "Whitewater.life": np.ones(9),
    }
    with RunFolder.create(tmp_path / "run", "", {}) as run, run.write_trajectory() as trajectory:
        trajectory.append(0, 0.0, {"spray": columns})
    page = Page(ef.page(tmp_path / "run", out=tmp_path / "page"))
    assert page.header["populations"][0]["plain"] == list(FOAM)


def test_surface_is_the_stored_mesh(tmp_path: Path) -> None:
    """Vertices within 2e-5 of the view's diagonal, triangles exactly, |(1, 2, 3)| m/s; none at first."""
    run = make_liquid_run(tmp_path / "ball")
    page = Page(ef.page(run, out=tmp_path / "page"))
    assert page.header["surface"] == {"name": "surface", "shown": True, "field": 0, "plain": list(WATER)}
    assert page.frame("s", 0) == (None, b"")
    for frame in (1, 2):
        told, blob = page.frame("s", frame)
        vertices, triangles = stored_mesh(RunFolder.open(run).fields, frame)
        x, blob = take_places(told["vertices"], blob)
        view = page.header["view"]
        fine = 2e-5 * np.linalg.norm(np.subtract(view["hi"], view["lo"]))
        np.testing.assert_allclose(x, vertices, atol=0.5 * fine)
        whole, blob = counts(blob, 3 * told["triangles"], 4)
        np.testing.assert_array_equal(whole.reshape(-1, 3), triangles)
        speed, blob = take_values(told["speed"], blob)
        np.testing.assert_allclose(speed, np.sqrt(14.0), rtol=1e-12)
        assert not blob
    alone = Page(ef.page(run, out=tmp_path / "alone", only=["surface"]))
    assert alone.header["populations"] == [] and alone.header["surface"]["field"] == -1
    # The ball of the last frame has radius 0.6 m around (0.3, -0.2, 1.0).
    np.testing.assert_allclose(alone.header["view"]["lo"], [-0.3, -0.8, 0.4], atol=0.02)
    np.testing.assert_allclose(alone.header["view"]["hi"], [0.9, 0.4, 1.6], atol=0.02)


def test_surface_of_the_particles_of_liquids_and_their_drops(tmp_path: Path) -> None:
    """A page shows the mesh that exports have, in the colours that pictures have (of vertices without foam
    those of exports; the cubes move apart too slowly for any), and a drop as an icosahedron around its
    particle, outward, of the radius that pictures have; particles are switched off."""
    run = make_two_liquids(tmp_path / "run", ["green", "#ffffff"])
    page = Page(ef.page(run, out=tmp_path / "page"))
    assert [part["shown"] for part in page.header["populations"]] == [False, False]
    assert [part["plain"] for part in page.header["populations"]] == [list(by_name("green")), [1.0] * 3]
    assert page.header["surface"]["shown"]
    frames = Frames(RunFolder.open(run))
    liquid = Surfaces(frames).liquid(frames.frame(0))
    assert liquid is not None
    told, blob = page.frame("s", 0)
    x, blob = take_places(told["vertices"], blob)
    whole, blob = counts(blob, 3 * told["triangles"], 4)
    speed, blob = take_values(told["speed"], blob)
    colours = np.frombuffer(blob, np.uint8).reshape(3, -1).T
    n = len(liquid.vertices)
    view = page.header["view"]
    fine = 2e-5 * np.linalg.norm(np.subtract(view["hi"], view["lo"]))
    np.testing.assert_allclose(x[:n], liquid.vertices, atol=0.51 * fine)
    np.testing.assert_array_equal(whole.reshape(-1, 3)[:-20], liquid.mesh.triangles)
    np.testing.assert_array_equal(colours[:n], np.rint(255.0 * liquid.vertex_colour))
    assert len(x) == n + 12 and speed[-12:] == pytest.approx(1.0) and (colours[-12:] == 255).all()
    away = x[n:] - [20.0, 0.0, 0.0]
    np.testing.assert_allclose(np.linalg.norm(away, axis=1), DROP, atol=fine)
    a, b, c = away[whole.reshape(-1, 3)[-20:] - n].transpose(1, 0, 2)
    part = 2.536 * DROP**3 / 20  # of its volume, behind each face
    np.testing.assert_allclose(np.einsum("ij,ij->i", a, np.cross(b, c)) / 6.0, part, rtol=0.05)


def test_particles_of_a_liquid_show_what_colours_them_alone(tmp_path: Path) -> None:
    """A surface knows the speed and no other column; populations that are chosen have none. Liquids of one
    colour have a surface in it."""
    run = make_two_liquids(tmp_path / "run", ["green", "green"])
    found = {}
    for name, options in (
        ("plain", {}),
        ("speed", {"color_by": "speed"}),
        ("volume", {"color_by": "Liquid.volume"}),
        ("only", {"only": ["water0"]}),
        ("surface", {"only": ["surface"]}),
    ):
        header = Page(ef.page(run, out=tmp_path / name, **options)).header
        surface = header["surface"]
        found[name] = [part["shown"] for part in header["populations"]], surface and surface["shown"]
    assert found["plain"] == found["speed"] == ([False, False], True)
    assert found["volume"] == ([True, True], False)
    assert found["only"] == ([True], None) and found["surface"] == ([], True)
    told, blob = Page(tmp_path / "plain").frame("s", 0)
    colours = np.frombuffer(blob[-3 * told["vertices"][0] :], np.uint8).reshape(3, -1).T
    assert (colours == np.rint(255.0 * np.array(by_name("green")))).all()


@given(
    st.lists(st.floats(-1e300, 1e300) | st.sampled_from([np.nan, np.inf, -np.inf]), max_size=30),
    st.floats(1e-3, 1e3),
)
def test_any_numbers_come_back(numbers: list[float], unit: float) -> None:
    array = np.array(numbers) * unit
    found, rest = take_values(*codec.values(array))
    assert not rest
    there = np.isfinite(array)
    np.testing.assert_array_equal(np.isfinite(found), there)
    cut = np.clip(array[there], -codec.HUGE, codec.HUGE)
    if len(cut):
        # Half of a 2,000th of the range, the coarsest step there is; 1e-15 of the size for rounding.
        tolerance = np.ptp(cut) / 4000 + 1e-15 * np.abs(cut).max()
        assert np.abs(found[there] - cut).max() <= tolerance


@pytest.mark.parametrize(("stray", "width"), [(1.0, 2), (1e3, 4), (1e12, 4)])
def test_a_stray_particle_does_not_coarsen_the_others(stray: float, width: int) -> None:
    """1/65,534 of 1 km would be 15 mm; four bytes give the step asked for, or 1/(2^32 - 2) of the box."""
    x = np.array([[0.0, 0.1, 0.2], [0.3, 0.4, 0.5], [stray, 0.0, 0.0]])
    told, blob = codec.places(x, 1e-4)
    assert told[1] == width
    found, rest = take_places(told, blob)
    assert not rest
    step = max(1e-4, stray / (2**32 - 2))
    assert np.abs(found - x).max() <= 0.5 * step * (1 + 1e-6)


@given(st.recursive(st.text() | st.integers() | st.booleans(), lambda inner: st.lists(inner), max_leaves=8))
def test_data_cannot_become_code(value: object) -> None:
    """No tag, no comment, no line separator; and JSON, which is a JavaScript literal, of the same value."""
    written = files.literal(value)
    assert json.loads(written) == value
    assert not re.search(r"[<>&\x00-\x1f\x7f-\U0010ffff]", written)


def test_a_title_is_text(run: Path, tmp_path: Path) -> None:
    title = "</title><script>alert('1')</script>\u2028\"&\\"
    folder = ef.page(run, out=tmp_path / "page", title=title, frames="0:2")
    index = (folder / "index.html").read_text(encoding="utf-8")
    assert index.count("<script") == 2 and "alert(" in index  # as text
    assert "<title>&lt;/title&gt;&lt;script&gt;alert(&#x27;1&#x27;)" in index
    assert Page(folder).header["title"] == title
    assert "<" not in (folder / "data" / "page.js").read_text(encoding="ascii")
    # Everything a page loads lies beside it.
    for address in re.findall(r'(?:src|href)="([^"]*)"', index):
        assert (folder / address).is_file(), address


def test_the_picture_holds_everything() -> None:
    """The few points that are written place the camera as all of them do, within 1 %."""
    x = np.random.default_rng(2).normal(size=(5000, 3)) * [1.0, 2.0, 0.5]
    few = writer.outermost(x)
    assert len(few) < 200
    corners = np.array([[a, b, c] for a in (-9.0, 9.0) for b in (-9.0, 9.0) for c in (-9.0, 9.0)])
    assert len(writer.outermost(np.concatenate([x, corners]))) == 8
    lo, hi = x.min(axis=0), x.max(axis=0)
    for camera in ("auto", "front", "top"):
        whole, near = (np.array(place(camera, lo, hi, 16 / 9, points)[0]) for points in (x, few))
        assert np.linalg.norm(whole - near) < 0.01 * np.linalg.norm(whole)
    assert (VIEW_ANGLE, ROOM) == (28.0, (1.12, 1.2))  # the viewer is given both


def test_the_bundle_is_made_of_the_sources_beside_it() -> None:
    """viewer/build.sh writes their digest into the first line."""
    folder = STATIC.parent / "viewer"
    sources = [folder / "package.json", *sorted((folder / "src").glob("*.js"))]
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()
    with (STATIC / "viewer.js").open(encoding="utf-8") as bundle:
        assert bundle.readline() == f"/* ecs_fluid, sources {digest} */\n"
    assert "three.js authors" in (STATIC / "three-LICENSE.txt").read_text(encoding="utf-8")
