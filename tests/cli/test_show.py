"""Pictures and movies from the command line: what is in them is measured, not only that they are there."""

from __future__ import annotations

import shutil
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

import ecs_fluid as ef
from ecs_fluid.api.pictures import PictureKeywords, Subject, draw
from ecs_fluid.api.stored import frame_of_run, look_of_run, look_of_tables
from ecs_fluid.cli import look, main
from ecs_fluid.io.runfolder import RunFolder
from ecs_fluid.viz.fields import velocity_slice
from ecs_fluid.viz.live import Live, live_options
from ecs_fluid.viz.style import LOOKS
from ecs_fluid.world_options import WorldOptions
from ecs_fluid.worlds.world_tables import OutputTable
from tests.small_worlds import RING

WORLD = f"""
[world]
dt = 0.02
duration = 0.4

[fluid]
velocity.solver = "direct"
{RING}
core = 0.25
spacing = 0.12

[[entity]]
kind = "tracers"
name = "smoke"
fills = "ring"
per_cell = 8

[output]
every = 4
"""

TWO_CLOUDS = """
[[entity]]
kind = "tracers"
name = "right"
color = "blue"
box = { low = [0.5, 0.0, 0.0], high = [1.5, 1.0, 1.0] }
cell = 0.1
per_cell = 1

[[entity]]
kind = "tracers"
name = "left"
color = "red"
box = { low = [-1.5, 0.0, 0.0], high = [-0.5, 1.0, 1.0] }
cell = 0.1
per_cell = 1
"""

Run = Callable[..., int]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run: 20 ticks of 0.02 s, stored at 0, 4, ..., 20."""
    place = tmp_path_factory.mktemp("show")
    (place / "ring.toml").write_text(WORLD, encoding="utf-8")
    assert main(["run", str(place / "ring.toml"), "--out", str(place / "run")]) == 0
    return place / "run"


def picture(path: Path) -> NDArray:
    with Image.open(path) as image:
        return np.asarray(image).astype(float)


def test_picture_has_the_size_asked_for_and_the_ring_a_hole(folder: Path, tmp_path: Path) -> None:
    target = tmp_path / "ring.png"
    options = ["--only", "smoke", "--camera", "top", "--size", "161", "121"]
    assert main(["show", str(folder), *options, "--save", str(target)]) == 0
    image = picture(target)
    assert image.shape == (121, 161, 3)
    grey = image.mean(axis=2)
    y, x = np.mgrid[:121, :161]
    from_centre = np.hypot(x - 80, y - 60)
    # Smoke fills the core, so the ring reaches from 0.65 m (and a puff less) to 1.35 m. 1.35 m are at most 50
    # of the 60 pixels of half a height (the room above and below is a fifth), so the hole has 20 or so.
    on_core = grey[(from_centre > 34) & (from_centre < 38)]
    assert grey[from_centre < 8].max() < 60.0 < 120.0 < np.median(on_core)
    # The camera is close: smoke within a tenth of the edges above and below, none beyond the picture.
    rows = np.flatnonzero((grey[:, 65:95] > 90.0).any(axis=1))  # beside the clock
    assert 4 < rows[0] < 20 and 100 < rows[-1] < 117


def test_a_world_names_its_look(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its pictures and those of its runs are light, unless a dark look is asked for; others are dark."""
    # `run` has no --size, and its corner is as light in a small picture.
    monkeypatch.setattr(look, "draw", lambda moment, how, save: draw(moment, {"size": (64, 36), **how}, save))
    allowed = get_args(get_args(OutputTable.model_fields["look"].annotation)[0])
    assert set(allowed) == set(LOOKS)
    world, run = tmp_path / "light.toml", tmp_path / "run"
    world.write_text(WORLD.replace("[output]", '[output]\nlook = "paper"'), encoding="utf-8")
    assert (
        main(["run", str(world), "--ticks", "1", "--out", str(run), "--save", str(tmp_path / "0.png")]) == 0
    )
    corner = {}
    for number, source in enumerate(
        ([str(world)], [str(run)], [str(run), "--look", "smoke"], [str(folder)]), 1
    ):
        target = tmp_path / f"{number}.png"
        assert main(["show", *source, "--size", "64", "36", "--save", str(target)]) == 0
        corner[number] = picture(target)[-1, -1].mean()
    corner[0] = picture(tmp_path / "0.png")[-1, -1].mean()
    assert [corner[number] > 200.0 for number in range(5)] == [True, True, True, False, False]


def test_entities_have_the_colours_of_their_recipes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    world = tmp_path / "two.toml"
    world.write_text(TWO_CLOUDS, encoding="utf-8")
    target = tmp_path / "two.png"
    show = ["show", str(world), "--camera", "front", "--size", "160", "90", "--save", str(target)]
    assert main(show) == 0
    red, _, blue = np.moveaxis(picture(target), 2, 0)
    # Seen from the front, x points right: the red cloud is on the left, whatever the order in the file.
    assert red[30:60, 25:55].mean() > 1.3 * blue[30:60, 25:55].mean()
    assert blue[30:60, 105:135].mean() > 1.3 * red[30:60, 105:135].mean()
    # A cloud keeps its colour when it is drawn alone, and in a look whose column it lacks.
    capsys.readouterr()
    assert main([*show, "--only", "left", "--look", "dye"]) == 0
    assert not capsys.readouterr().err
    red, _, blue = np.moveaxis(picture(target), 2, 0)
    assert red[40:50, 75:85].mean() > 1.3 * blue[40:50, 75:85].mean()


def test_a_run_that_is_not_there_is_named(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for more in ((), ("--frame", "3")):
        assert main(["show", str(folder.parent / "runn"), "--save", "a.png", *more]) == 2
        said = capsys.readouterr().err
        assert "there is no run and no world" in said and f"did you mean {str(folder)!r}?" in said


def test_a_folder_that_is_no_run_is_told_what_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As by `info`: it was told only that it has no run.json, also of a sweep."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "study").mkdir()
    for said in (
        "study is not a run folder: it has no run.json",
        "study is a sweep: the runs are in study/members",
    ):
        assert main(["show", "study", "--save", "a.png"]) == 2
        assert said in " ".join(capsys.readouterr().err.split())
        (tmp_path / "study" / "sweep.json").write_text("{}")


def test_a_look_without_its_data_says_so(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing in this run carries a temperature; slices of what there is are drawn without a word."""
    save = ["--size", "64", "36", "--save", str(tmp_path / "a.png")]
    assert main(["show", str(folder), "--look", "temperature", *save]) == 0
    assert "look = 'temperature' colours tracers by Temperature.T, but none has it" in capsys.readouterr().err
    assert main(["show", str(folder), "--look", "fire", *save]) == 0
    assert "by Species.flame and Species.smoke, but none has it" in capsys.readouterr().err
    for fine in (["--look", "paper"], ["--look", "temperature", "--what", "slice"]):
        assert main(["show", str(folder), *fine, *save]) == 0
        assert not capsys.readouterr().err
    assert main(["show", str(folder), "--what", "slice", "--color-by", "temperature", *save]) == 2
    assert "there is no field of temperature to draw; add a TransferSystem" in capsys.readouterr().err
    assert main(["show", str(folder), "--what", "slice", "--color-by", "temprature", *save]) == 2
    assert "did you mean 'temperature'" in capsys.readouterr().err


def test_movie_has_every_stored_frame_in_real_time(folder: Path, tmp_path: Path) -> None:
    import imageio_ffmpeg

    target = tmp_path / "ring.mp4"
    assert main(["show", str(folder), "--size", "95", "63", "--movie", str(target)]) == 0
    reader = imageio_ffmpeg.read_frames(str(target))
    about = next(reader)
    frames = sum(1 for _ in reader)
    assert frames == len(RunFolder.open(folder).read_trajectory()) == 6
    assert about["fps"] == pytest.approx(1.0 / (4 * 0.02))
    assert tuple(about["size"]) == (96, 64)  # H.264 needs even ones
    assert main(["show", str(folder), "--size", "64", "64", "--movie", str(target), "--fps", "5"]) == 0
    assert next(imageio_ffmpeg.read_frames(str(target)))["fps"] == pytest.approx(5.0)


def test_velocity_of_a_stored_frame_is_the_rings(folder: Path) -> None:
    """On the axis of a ring of Winckelmans blobs u = Gamma/(2 R) q(R/sigma): every blob is R away from it."""
    time, _, velocity = frame_of_run(folder, 0)
    rho = 1.0 / 0.25
    q = rho**3 * (rho**2 + 2.5) / (rho**2 + 1.0) ** 2.5
    assert time == 0.0
    # Single precision: 1e-7 relative for each of 53 blobs.
    np.testing.assert_allclose(velocity(np.zeros((1, 3))), [[0.0, 0.0, 2.5 * q]], rtol=5e-6, atol=5e-6)


def test_slice_shows_the_worlds_own_velocity(folder: Path) -> None:
    time, _, velocity = frame_of_run(folder, -1)
    plane = velocity_slice(velocity, ([-1.5, -1.5, -0.5], [1.5, 1.5, 1.5]), "y", resolution=60)
    world = ef.resume(RunFolder.open(folder).newest_checkpoint().path)
    assert world.time == pytest.approx(time) == pytest.approx(0.4)
    speed = np.linalg.norm(world.velocity(np.asarray(plane.points)), axis=1)
    assert plane.point_data["speed"].max() == pytest.approx(speed.max(), rel=1e-5)
    # Faster than on the axis, since the slice goes through the ring's inner side.
    assert speed.max() > 2.5


@pytest.mark.parametrize("what", ["slice", "streamlines", "glyphs"])
def test_a_single_vorton_can_be_looked_at(what: str, tmp_path: Path) -> None:
    world, target = tmp_path / "one.toml", tmp_path / "one.png"
    (tmp_path / "one.csv").write_text("x,y,z,alpha_x,alpha_y,alpha_z,sigma\n1,2,3,0,1,0,0.1\n")
    world.write_text('[[entity]]\nkind = "vortons_from_arrays"\nname = "one"\nfile = "one.csv"\n')
    assert main(["show", str(world), "--what", what, "--size", "80", "60", "--save", str(target)]) == 0
    assert picture(target)[15:40, 20:60].max() > 100.0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--fps", "0", "--movie", "a.mp4"], "0.1 to 240"),
        (["--frame", "6", "--save", "a.png"], "frames 0 to 5"),
        (["--ticks", "3", "--save", "a.png"], "--ticks has no effect because "),
        (["--only", "smok", "--save", "a.png"], "did you mean 'smoke'"),
        (["--save", "no/a.png"], "folder no does not exist"),
        (["--movie", "a.avi"], ".mp4 or .gif"),
        (["--what", "slice", "--color-by", "sped", "--save", "a.png"], "did you mean 'speed'"),
        (["--size", "1", "1", "--save", "a.png"], "16 to 16384"),
    ],
)
def test_mistakes_are_told_in_one_sentence(
    arguments: list[str],
    words: str,
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["show", str(folder), *arguments]) == 2
    said = capsys.readouterr().err.strip()
    assert words in said and said.startswith("error: ") and "\n" not in said
    assert list(tmp_path.iterdir()) == []


def test_frame_of_a_world_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "vortex_ring", "--frame", "3", "--save", str(tmp_path / "a.png")]) == 2
    assert "--ticks" in capsys.readouterr().err


def test_damaged_recipe_does_not_hide_the_particles(folder: Path, tmp_path: Path) -> None:
    import shutil

    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    (copy / "world.toml").write_text("[world\n", encoding="utf-8")
    small = ["--size", "64", "48", "--save", str(tmp_path / "a.png")]
    assert main(["show", str(copy), *small]) == 0
    assert main(["show", str(copy), "--what", "slice", *small]) == 2


def test_missing_encoder_is_told_before_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    assert main(["run", "vortex_ring", "--movie", "ring.mp4"]) == 2
    assert "ecs-fluid[movie]" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_truncated_movie_is_no_success(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """ffmpeg on a full disk ends quietly with a file that holds less; here the count of frames is faked."""
    import imageio_ffmpeg

    monkeypatch.setattr(imageio_ffmpeg, "count_frames_and_secs", lambda path: (5, 0.4))
    target = tmp_path / "ring.mp4"
    assert main(["show", str(folder), "--size", "64", "48", "--movie", str(target)]) == 2
    assert "stored 5 of 6 frames" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_liquid_is_drawn_as_one_beside_steam() -> None:
    """As smoke it was a fog, orange beside steam; dye in it, and a look that is named, have their way."""
    water = {"kind": "liquid", "name": "water"}
    for output, more, look_of in (
        ({}, [], "liquid"),
        ({}, [{"kind": "container"}], "liquid"),
        ({}, [{"kind": "tracers"}], "liquid"),
        ({}, [{"kind": "emitter"}], "liquid"),
        ({}, [{"kind": "tracers", "fills": "water"}], "smoke"),
        ({"look": "paper"}, [], "paper"),
    ):
        assert look_of_tables({"output": output, "entity": [water, *more]}) == look_of
    assert look_of_tables({"entity": [{"kind": "tracers"}]}) == "smoke"
    assert look_of_tables({"entity": [{"kind": "container"}, {"kind": "inflow"}]}) == "liquid"


def test_tracers_that_a_liquid_hides_are_told() -> None:
    """Of a lattice of spacing 0.1 m: tracers in it, above it, and half of them in it; and other pictures."""
    lattice = 0.1 * np.stack(np.meshgrid(*[np.arange(5.0)] * 3), axis=-1).reshape(-1, 3)
    water = {"Position.x": lattice, "Liquid.volume": np.full(125, 1e-3)}
    for rise, part in ((0.0, "100 %"), (0.6, ""), (0.3, "")):
        dye = {"Position.x": np.array([[0.1, 0.2, 0.31], [0.1, 0.2, 0.11]]) + np.array([0.0, 0.0, rise])}
        frame = {"water": water, "dye": dye, "spray": {**dye, "Whitewater.kind": np.zeros(2)}}
        cases: tuple[tuple[str, PictureKeywords, str], ...] = (
            ("liquid", {}, part),
            ("smoke", {"look": "liquid"}, part),
            ("smoke", {}, ""),
            ("liquid", {"look": "paper"}, ""),
            ("liquid", {"only": ["dye"]}, ""),
            ("liquid", {"color_by": "speed"}, ""),
            ("liquid", {"what": "slice"}, ""),
        )
        for look_of, drawing, shows in cases:
            subject = Subject({}, WorldOptions(), "z", look_of, {}, {})
            with warnings.catch_warnings(record=True) as found:
                warnings.simplefilter("always")
                subject.check_frame(drawing, frame)
            told = [str(one.message).partition(" of the tracers of 'dye' lie in liquid")[0] for one in found]
            assert told == ([shows] if shows else [])


def test_pages_and_watch_tell_of_tracers_that_a_liquid_hides(tmp_path: Path) -> None:
    """Dye in a box of water: a page hides it in every look while it draws the surface, `watch` in one."""
    box = {"shape": "box", "size": [0.5, 0.5, 0.5]}
    room = {"kind": "container", "name": "room", "shape": box}
    water = {"kind": "liquid", "name": "water", "fills": "room", "spacing": 0.1}
    dye = {"kind": "tracers", "name": "dye", "fills": "room", "cell": 0.25}
    world = ef.load({"world": {"dt": 1e-3}, "entity": [room, water, dye]})
    for drawn, times in (("liquid", 1), ("smoke", 0)):
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            Live(world, live_options(world, look=drawn)).begin()
        told = [
            str(one.message) for one in found if "of the tracers of 'dye' lie in liquid" in str(one.message)
        ]
        assert len(told) == times
    with RunFolder.create(tmp_path / "run", "", {}) as run, run.write_trajectory() as trajectory:
        trajectory.append(0, 0.0, {name: one for name, one in world.snapshot().items() if name != "room"})
    for number, (more, times) in enumerate(
        (({}, 1), ({"only": ["dye"]}, 0), ({"color_by": "Liquid.volume"}, 0))
    ):
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            ef.page(tmp_path / "run", out=tmp_path / f"page{number}", **more)
        told = [str(one.message) for one in found]
        assert sum("hides them; switch the surface off in the page" in text for text in told) == times


def test_a_recipe_that_a_stranger_wrote_hides_no_particles(folder: Path, tmp_path: Path) -> None:
    """Whatever its world.toml says, a run is shown as smoke."""
    run = shutil.copytree(folder, tmp_path / "run")
    recipe = run / "world.toml"
    text = recipe.read_text(encoding="utf-8").replace("[output]", "[former]")
    for first in ("output = 3", "a" + ".a" * 20_000 + " = 1", "[" * 5000, "output.look = []"):
        recipe.write_text(f"{first}\n{text}", encoding="utf-8")
        assert look_of_run(run) == "smoke"
    assert main(["show", str(run), "--size", "320", "180", "--save", str(tmp_path / "a.png")]) == 0
    assert (tmp_path / "a.png").stat().st_size > 1000


def test_bodies_whose_shapes_are_missing_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Shapes of polytopes are in checkpoints alone."""
    shape = '{ shape = "box", size = [1.0, 1.0, 1.0] }'
    box = f'[[entity]]\nkind = "body"\nname = "box"\nshape = {shape}\nmotion = "fixed"\n'
    (tmp_path / "box.toml").write_text(TWO_CLOUDS + box, encoding="utf-8")
    run = tmp_path / "run"
    assert main(["run", str(tmp_path / "box.toml"), "--set", "world.dt=0.1", "--out", str(run)]) == 0
    shutil.rmtree(run / "checkpoints")
    capsys.readouterr()
    save = ["--size", "64", "36", "--save", str(tmp_path / "a.png")]
    assert main(["show", str(run), "--only", "left", *save]) == 0
    assert not capsys.readouterr().err
    assert main(["show", str(run), *save]) == 0
    said = "warning: the shapes of the bodies 'box' are not in a checkpoint of this run; they are not drawn\n"
    assert capsys.readouterr().err == said
