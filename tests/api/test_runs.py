"""Runs from Python: the same bits as from the command line, frames as they were, going on, and mistakes."""

from __future__ import annotations

import signal
import sys
import types
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import pyvista as pv
import tomli_w
from PIL import Image

import ecs_fluid as ef
from ecs_fluid.api.pictures import require_display
from ecs_fluid.api.stored import SurfaceRecording, frame_of_run
from ecs_fluid.api.table import Table
from ecs_fluid.cli import main
from ecs_fluid.errors import FluidError, FluidWarning, RecipeError, StorageError
from ecs_fluid.io.trajectory import Trajectory
from ecs_fluid.viz.flow import Flow
from ecs_fluid.worlds import VortexRing

RING: dict[str, Any] = {
    "world": {"dt": 0.02, "duration": 0.12},
    "fluid": {"velocity": {"solver": "direct"}, "diagnostics": {"every": 2}},
    "entity": [
        {
            "kind": "vortex_ring",
            "name": "ring",
            "core": 0.25,
            "circulation": 5.0,
            "spacing": 0.12,
        },
        {"kind": "tracers", "name": "smoke", "fills": "ring", "per_cell": 1},
    ],
    "output": {"every": 2},
}
"""6 ticks, stored at 0, 2, 4, 6 and recorded at 2, 4, 6."""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> ef.Run:
    """A finished run."""
    return ef.run(RING, out=tmp_path_factory.mktemp("python") / "run", progress=False)


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_tables_files_and_the_command_line_make_the_same_run(run: ef.Run) -> None:
    Path("ring.toml").write_text(tomli_w.dumps(RING), encoding="utf-8")
    assert main(["run", "ring.toml", "--out", "line"]) == 0
    ticks: list[tuple[int, int]] = []
    by_file = ef.run(Path("ring.toml"), progress=lambda tick, last: ticks.append((tick, last)))
    assert by_file.path == Path("runs/ring").absolute() and ticks == [(k, 6) for k in range(1, 7)]
    hashes = {one.info["state_hash"] for one in (run, by_file, ef.open_run("line"))}
    assert len(hashes) == 1
    recipe = ef.load(RING).recipe
    assert recipe is not None and ef.load(recipe).state_hash() == ef.load(RING).state_hash()


def test_frames_are_what_the_world_was(run: ef.Run) -> None:
    world = ef.load(RING)
    assert len(run) == len(run.frames) == 4 and run.status == "finished"
    np.testing.assert_array_equal(run.times, 0.02 * np.arange(0, 7, 2))
    for frame in run:
        world.step(frame.tick - world.tick)
        assert (frame.tick, frame.time) == (world.tick, world.time)
        assert set(frame) == {"ring", "smoke"} and "smoke" in frame and "fog" not in frame
        for name, columns in frame.items():
            for label, array in columns.items():
                # Velocities are those of the integrator's last stage; before the first tick there was none.
                if label != "Velocity.u" or frame.tick:
                    np.testing.assert_array_equal(array, world.snapshot()[name][label])
    assert [frame.number for frame in run[1:3]] == [1, 2] and run[-1].number == 3


def test_the_flow_of_a_frame_is_that_of_the_run(run: ef.Run) -> None:
    """On the axis of a ring of Winckelmans blobs u = Gamma/(2 R) q(R/sigma): every blob is R away from it."""
    rho = 1.0 / 0.25
    q = rho**3 * (rho**2 + 2.5) / (rho**2 + 1.0) ** 2.5
    u = run[0].flow.velocity(np.zeros((1, 3)))
    np.testing.assert_allclose(u, [[0.0, 0.0, 2.5 * q]], rtol=5e-6, atol=5e-6)  # single precision, 53 blobs
    # A solver of one's own may depend on the time.
    assert [(one.flow.tick, one.flow.time) for one in run] == [(one.tick, one.time) for one in run]


def test_frames_are_found_and_compared(run: ef.Run) -> None:
    """Those of one run with arrays of several numbers, whose equality is no single truth value."""
    frame = run[-1]
    assert frame in [frame] and frame != run[0] and ["ring"] not in frame
    assert frame._ipython_key_completions_() == list(frame)


def test_surfaces_of_a_liquid_have_its_velocity(tmp_path: Path) -> None:
    """A drop falls at g t; slices and streamlines are drawn in it alone."""
    drop = {"kind": "liquid", "name": "water", "sphere": {"radius": 0.2}, "spacing": 0.1}
    table = {
        "world": {"dt": 0.02, "integrator": "euler"},
        "entity": [drop],
        "system": [{"kind": "surface", "of": "liquid"}],
    }
    fallen = ef.run(table, ticks=5, out=tmp_path / "drop", progress=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fallen.show(what="slice", save=tmp_path / "slice.png", size=(80, 60))
    _, _, flow = frame_of_run(fallen.path, -1)
    places = np.array([[0.0, 0.0, -0.05], [0.1, 0.05, -0.1], [0.6, 0.0, 0.0]])
    assert flow.within is not None and flow.within(places).tolist() == [True, True, False]
    np.testing.assert_allclose(
        flow(places)[:2], np.tile([0.0, 0.0, -9.81 * 0.1], (2, 1)), rtol=1e-3, atol=1e-5
    )
    stored = Trajectory(fallen.path / "trajectory")
    distances = SurfaceRecording(fallen.path, stored, range(len(fallen)), speed=True)[-1]
    speed = distances.velocity(np.array([[0.2, 0.0, 0.0], [0.0, 0.1, -0.1]]))
    np.testing.assert_allclose(speed, np.tile([0.0, 0.0, -9.81 * 0.1], (2, 1)), rtol=1e-3, atol=1e-5)


def test_pressure_in_a_liquid_is_that_of_its_particles() -> None:
    """A linear one to 2e-4, as slopes are a little damped; just above it is not below 0."""
    x = np.stack(np.meshgrid(*[0.1 * (np.arange(8.0) + 0.5)] * 3, indexing="ij"), axis=-1).reshape(-1, 3)
    pool = {
        "Position.x": x, "Velocity.u": 0 * x, "Liquid.volume": np.full(len(x), 1e-3),
        "LiquidState.pressure": 9810.0 * (0.75 - x[:, 2]),
    }  # fmt: skip
    flow = Flow(lambda: 1 / 0, {"pool": pool})  # type: ignore[arg-type, return-value]
    places = np.random.default_rng(1).uniform(0.2, 0.6, (20, 3))
    np.testing.assert_allclose(flow.field("pressure", places), 9810.0 * (0.75 - places[:, 2]), rtol=2e-4)
    assert flow.field("pressure", np.array([[0.4, 0.4, 0.8]]))[0] == 0.0


def test_a_flow_of_liquid_beside_vortons(tmp_path: Path) -> None:
    """In the liquid its own velocity, and that of vortons around it. Without either there is none to show."""
    drop = {"kind": "liquid", "name": "water", "sphere": {"radius": 0.2}, "spacing": 0.1}
    ring = {"kind": "vortex_ring", "name": "ring", "center": [3.0, 0.0, 0.0], "core": 0.3, "spacing": 0.2}
    run = ef.run(
        {"world": {"dt": 0.02}, "entity": [drop, ring]}, ticks=2, out=tmp_path / "both", progress=False
    )
    _, columns, flow = frame_of_run(run.path, -1)
    places = np.array([[0.0, 0.0, 0.0], [3.0, 0.0, 0.5]])
    assert flow.within is None
    near = columns["water"]["Velocity.u"][np.linalg.norm(columns["water"]["Position.x"], axis=1) < 0.1]
    np.testing.assert_allclose(flow(places)[0], near.mean(axis=0), atol=0.02)
    np.testing.assert_allclose(flow(places)[1], run[-1].flow.velocity(places)[1])
    dust = {"kind": "tracers", "name": "dust", "box": {"low": [0, 0, 0], "high": [1, 1, 1]}, "cell": 0.5}
    still = ef.run({"world": {"dt": 0.02}, "entity": [dust]}, ticks=1, out=tmp_path / "still", progress=False)
    with pytest.warns(FluidWarning, match="what = 'slice' shows the flow of vortons, but there are none"):
        still.show(what="slice", save=tmp_path / "still.png", size=(80, 60))


def test_samples_of_a_frame_have_its_signed_distances(tmp_path: Path) -> None:
    """At points of the stored grid, interpolation gives the stored numbers."""
    drop = {"kind": "liquid", "name": "water", "sphere": {"radius": 0.2}, "spacing": 0.1}
    table = {"world": {"dt": 0.02}, "entity": [drop], "system": [{"kind": "surface", "of": "liquid"}]}
    frame = ef.run(table, ticks=1, out=tmp_path / "drop", progress=False)[-1]
    grid = frame.to_pyvista()["signed_distance"]
    assert isinstance(grid, pv.ImageData)
    sampled = frame.flow.sample(grid).point_data["signed_distance"]
    np.testing.assert_allclose(sampled, grid.point_data["phi"], rtol=0, atol=1e-6)  # single precision, 0.2 m
    assert frame.flow.fluid[ef.SignedDistance].surface == 1


def test_a_run_folder_is_no_checkpoint(run: ef.Run) -> None:
    with pytest.raises(StorageError, match=r"is a run folder, not a checkpoint; ecs_fluid\.open_run"):
        ef.resume(run.path)


def test_options_are_told_before_displays(run: ef.Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    with pytest.raises(FluidError, match="'sav'"):
        run.show(sav="a.png")  # type: ignore[call-arg]


def test_diagnostics_are_columns(run: ef.Run, monkeypatch: pytest.MonkeyPatch) -> None:
    table = run.diagnostics
    assert table.rows == 3 and list(table["tick"]) == [2, 4, 6]
    # pi R^2 Gamma, less what 53 straight pieces of the circle leave out: (2 pi/53)^2 / 6 of it, and a
    # blob's arm stays whole, so the sum over equal arcs is exact but for single precision.
    np.testing.assert_allclose(table["impulse"][:, 2], 5.0 * np.pi, rtol=1e-5)
    assert np.isnan(table["jerk"].astype(float)).all() and "no such thing" not in table
    with pytest.raises(KeyError, match="nothing called 'enrgy' was recorded; known: tick, time, "):
        table["enrgy"]
    with pytest.raises(KeyError, match="no 'energy', as nothing was recorded; set fluid"):
        Table([])["energy"]
    with pytest.raises(KeyError, match=r"nothing called \['energy'\] was recorded"):
        table[["energy"]]  # type: ignore[index]
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(FluidError, match="pip install pandas"):
        table.to_pandas()
    monkeypatch.setitem(sys.modules, "pandas", types.SimpleNamespace(DataFrame=dict))
    frame: Any = table.to_pandas()
    assert frame["impulse.z"] is not None and len(frame["energy"]) == 3 and "impulse" not in frame


def test_records_that_a_stranger_wrote_make_a_table() -> None:
    """Numbers and equal vectors are arrays; whatever else it may be stays as it is."""
    wild = [
        {"a": 1, "b": [1, 2, 3], "c": [[1], [2, 3]], "d": 10**400, "<e>": "x"},
        {"b": None, "d": {"x": 1}},
    ]
    table = Table(wild)
    assert table["a"].tolist()[0] == 1.0 and np.isnan(table["a"][1])
    np.testing.assert_array_equal(table["b"], [[1, 2, 3], [np.nan] * 3])
    assert table["c"][0] == [[1], [2, 3]] and table["d"][1] == {"x": 1} and table["<e>"][1] is None
    assert "&lt;e&gt;" in table._repr_html_() and "<e>" not in table._repr_html_()


def test_resume_goes_on_to_the_same_bits(run: ef.Run) -> None:
    part = ef.run(RING, ticks=3, out="part", progress=False)
    assert list(part.frames[-1]["smoke"]) and part.info["ticks"] == 3
    whole = part.resume(6, progress=False)
    assert whole.info["state_hash"] == run.info["state_hash"]
    assert whole.resume(progress=False) is whole  # nothing is left to do
    # Tick 3 was stored as the last one of the shorter run, and is that no more.
    assert [frame.tick for frame in whole] == [0, 2, 4, 6]


def test_a_resumed_world_is_run_into_a_folder_of_its_own(run: ef.Run) -> None:
    """Times and frames go on, and `frame.flow` reads them: the parameters of its systems are all set, some to
    None, which a world file cannot have."""
    first = ef.run(RING, ticks=2, out="first", progress=False)
    world = ef.resume(first.path / "checkpoints" / "checkpoint-00000002.npz")
    rest = ef.run(world, ticks=4, out="rest", progress=False)
    assert rest.info["state_hash"] == run.info["state_hash"]
    assert [frame.tick for frame in rest] == [2, 4, 6]
    assert np.isfinite(rest[-1].flow.velocity([[0.0, 0.0, 0.5]])).all()


def test_a_world_file_that_is_edited_before_a_resume_is_told(run: ef.Run) -> None:
    """It was taken for what the run goes on with, though that is in the checkpoint."""
    part = ef.run(RING, ticks=3, out="edited", progress=False)
    file = part.path / "world.toml"
    file.write_text(file.read_text().replace("[output]", '[output]\nlook = "paper"'))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        part.resume(4, progress=False)
    file.write_text(file.read_text().replace("radius = 1.0", "radius = 2.0"))
    with pytest.warns(
        FluidWarning, match="world.toml was edited: the run continues with the world that it began"
    ):
        assert part.resume(6, progress=False).info["state_hash"] == run.info["state_hash"]


def test_ctrl_c_stores_the_tick_and_raises(run: ef.Run) -> None:
    def stop(tick: int, last: int) -> None:
        if tick == 2:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt, match=r"tick 2 of 6; ecs_fluid.open_run\('half'\).resume\(\)"):
        ef.run(RING, out="half", progress=stop)
    half = ef.open_run("half")
    assert half.status == "stopped" and half.info["ticks"] == 2
    assert half.resume(progress=False).info["state_hash"] == run.info["state_hash"]


def python_world() -> ef.World:
    """A ring of Gaussian blobs, made without a recipe of a world."""
    world = ef.World(dt=0.02, precision="double")
    VortexRing(name="ring", radius=1.0, core=0.25, circulation=5.0, spacing=0.12).build(world)
    world.add_systems([ef.VelocitySystem(kernel="gaussian"), ef.AdvectionSystem()])
    return world


def test_a_world_in_memory_runs_on(run: ef.Run) -> None:
    world = python_world()
    with pytest.raises(FluidError, match="made in Python has no duration; give the number of ticks to run"):
        ef.run(world)
    first = ef.run(world, ticks=2, progress=False)
    again = ef.run(world, ticks=2, progress=False)
    assert [frame.tick for frame in first] == [0, 1, 2] and [frame.tick for frame in again] == [2, 3, 4]
    assert world.tick == 4 and again.info["state_hash"] == world.state_hash()
    # Two ticks of two stages and one at the start; a world's very first call may compile and is left out.
    calls = [one.info["systems"]["VelocitySystem"]["calls"] for one in (first, again)]
    assert calls == [4, 5]
    # The run knows the kernel: with another one the velocity next to the cores would be another.
    near = [[1.0, 0.1, 0.05]]
    np.testing.assert_array_equal(again[-1].flow.velocity(near), world.velocity(near))
    assert again.resume(6, progress=False)[-1].tick == 6
    loaded = ef.load(RING)
    loaded.step(6)
    with pytest.raises(FluidError, match="the world is at tick 6 of 6; give the number of further"):
        ef.run(loaded)


@pytest.mark.parametrize("told", ["file", "python"])
def test_frames_have_the_winds_of_their_time(told: str, tmp_path: Path) -> None:
    """What blew when they were stored, in runs of files and of Python, also after it was changed."""
    blob = {"kind": "vortex_ring", "name": "ring", "core": 0.3, "spacing": 0.3}
    winds = ({"kind": "wind", "velocity": [1.0, 0.0, 0.0]}, {"kind": "turbulence", "speed": 0.3})
    world = ef.load({"world": {"dt": 0.1, "duration": 0.2, "seed": 7}, "entity": [blob], "system": winds})
    if told == "python":
        made = ef.World(dt=0.1, seed=7)
        kinds = ef.Position, ef.Strength, ef.CoreRadius, ef.Volume
        made.spawn("ring", *(world["ring"][kind] for kind in kinds))
        made.add_systems([ef.VelocitySystem(), ef.AdvectionSystem()])
        made.add_systems([ef.WindSystem(velocity=(1.0, 0.0, 0.0)), ef.TurbulenceSystem(speed=0.3)])
        world = made
    near = [[1.0, 0.1, 0.05], [4.0, 2.0, 1.0]]
    run = ef.run(world, ticks=2, out=tmp_path / "run", progress=False)
    first, before = world.velocity(near), run[1].flow.velocity(near)
    np.testing.assert_array_equal(run[-1].flow.velocity(near), first)
    if told == "file":
        run = run.resume(4, "system.wind.velocity.x=-5", progress=False)
        np.testing.assert_array_equal(run[1].flow.velocity(near), before)
        np.testing.assert_array_equal(run[2].flow.velocity(near), first)
        assert (run[3].flow.velocity(near)[:, 0] < -3.0).all()
        assert [stretch["winds"][0]["velocity"][0] for stretch in run.info["stretches"]] == [1.0, -5.0]


def test_the_flow_of_ticks_that_would_be_too_many_for_a_default_duration() -> None:
    world = ef.World(dt=1e-7)
    world.spawn("blob", ef.Position([[0.0, 0.0, 0.0]]), ef.Strength([[0.0, 0.0, 1.0]]), ef.CoreRadius([1e-3]))
    world.add_systems([ef.VelocitySystem(solver="direct"), ef.AdvectionSystem()])
    run = ef.run(world, ticks=1, progress=False)
    near = [[1e-3, 0.0, 0.0]]
    np.testing.assert_array_equal(run[-1].flow.velocity(near), world.velocity(near))


@pytest.mark.filterwarnings("ignore:VelocitySystem.* are too few")
@pytest.mark.parametrize("lines", [True, False])
@pytest.mark.parametrize("told", ["file", "python"])
def test_a_frame_has_the_grid_of_its_run(told: str, lines: bool, tmp_path: Path) -> None:
    """On a grid velocities depend on its cells, on tracers that it encloses, and on how strengths are shared.

    In a world that repeats these are shared out by splines where vortons make lines. The world of a frame
    has no system that makes vorticity or remeshes, and yet the same velocity, to the bit.
    """
    tables: dict[str, Any] = {
        "world": {"fps": 20, "precision": "double"},
        "fluid": {"velocity": {"solver": "poisson"}, "partition": {"cells": 4000}},
        "entity": [
            {"kind": "vortex_ring", "name": "ring", "core": 0.3, "spacing": 0.2},
            {"kind": "tracers", "name": "dye", "box": {"low": [1, 0, 0], "high": [2, 1, 1]}, "cell": 0.5},
        ],
    }
    if lines:
        tables["world"]["periodic"] = [4.0, 4.0, 4.0]
    world = ef.load(tables)
    if told == "python":
        made = ef.World(dt=0.05, precision="double", periodic=world.options.periodic)
        for entity in (world["ring"], world["dye"]):
            kinds = ef.Position, ef.Strength, ef.CoreRadius
            made.spawn(entity.name, *(entity[kind] for kind in kinds if kind in entity))
        grid = ef.PartitionSystem(cells=4000), ef.VelocitySystem(solver="poisson")
        made.add_systems([*grid, ef.StretchSystem(), ef.AdvectionSystem()])
        world = made
    stored = ef.run(world, ticks=1, out=tmp_path / "run", progress=False)
    x = world["ring"][ef.Position].x[::5]
    np.testing.assert_array_equal(stored[-1].flow.velocity(x), world.velocity(x))


@pytest.mark.filterwarnings("ignore:VelocitySystem reads Strength")
def test_a_frame_has_the_rounding_that_a_tick_leaves() -> None:
    """Exchange may leave a species a little below 0, which a table that is given may not have."""
    world = ef.World(dt=0.01)
    x = [[0.0, 0.0, 0.0], [0.1, 0.0, 0.0]]
    world.spawn("gas", ef.Position(x), ef.Volume([1e-3, 1e-3]), ef.Species(smoke=[0.2, 0.2]))
    world.add_systems([ef.VelocitySystem(), ef.TransferSystem(), ef.AdvectionSystem()])
    vars(world["gas"][ef.Species])["flame"][:] = [-1e-9, 0.1]
    stored = ef.run(world, ticks=1, progress=False)
    for name in ("flame", "smoke"):
        found, expected = stored[-1].flow.sample(pv.PolyData(x))[name], world.sample(pv.PolyData(x))[name]
        np.testing.assert_array_equal(found, expected)
    assert stored[-1]["gas"]["Species.flame"][0] == np.float32(-1e-9)


def test_a_frame_of_a_plane_knows_that_it_is_one() -> None:
    """A vorton of a plane stands for a line: Gamma/(2 pi r) q(r/sigma), with q = 1 - exp(-r^2/2 sigma^2)."""
    world = ef.World(dt=0.01, precision="double", dimension=2)
    world.spawn("line", ef.Position([[0.0, 0.0, 0.0]]), ef.Strength([[0.0, 0.0, 2.0]]), ef.CoreRadius([0.1]))
    world.add_systems([ef.VelocitySystem(kernel="gaussian"), ef.AdvectionSystem()])
    stored = ef.run(world, ticks=1, progress=False)
    u = stored[-1].flow.velocity([[0.5, 0.0, 0.0]])
    np.testing.assert_allclose(u, [[0.0, 2.0 / (2.0 * np.pi * 0.5), 0.0]], rtol=1e-5, atol=1e-6)


def test_pictures_movies_and_exports(run: ef.Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The picture of Python is that of the command line, pixel for pixel; a notebook gets it as PNG."""
    small: Any = {"size": (64, 48), "only": "smoke", "camera": "top"}
    assert run.show(0, save="a.png", **small) is not None
    options = ["--frame", "0", "--size", "64", "48", "--only", "smoke", "--camera", "top"]
    assert main(["show", str(run.path), *options, "--save", "b.png"]) == 0
    one, other = (np.asarray(Image.open(name)) for name in ("a.png", "b.png"))
    np.testing.assert_array_equal(one, other)
    assert np.ptp(one) > 100
    monkeypatch.setitem(
        sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: types.SimpleNamespace(kernel=1))
    )
    shown = run.show(0, **small)
    assert shown is not None and shown._repr_png_() == Path("a.png").read_bytes()
    assert run.movie("film/%d.png", "::3", size=(64, 48)) == Path("film/%d.png")
    assert sorted(path.name for path in Path("film").iterdir()) == ["0.png", "3.png"]
    folder = run.export("npz", -1, "arrays")
    with np.load(next(folder.glob("*.npz"))) as arrays:
        np.testing.assert_array_equal(arrays["ring/Position.x"], run[-1]["ring"]["Position.x"])


def test_a_window_needs_a_display(run: ef.Run, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(FluidError, match="no display for a window; write a picture with save="):
        run.show()
    with pytest.raises(FluidError, match=r"unknown look 'liqiud'.* did you mean 'liquid'"):
        run.show(look="liqiud")
    for system in ("darwin", "win32"):
        with monkeypatch.context() as there:
            there.setattr(sys, "platform", system)
            require_display("it asked for one on macOS")


@pytest.mark.parametrize(
    ("arguments", "named", "words"),
    [
        (("vortex_rng",), {}, "did you mean 'vortex_ring'"),
        ((RING,), {"ticks": 0}, "ticks = 0; a whole number of at least 1 is needed"),
        ((RING,), {"out": ""}, "run folder = ''; a path is needed, as text or a Path"),
        ((RING,), {"out": "\ud800"}, "; a path is needed, as text or a Path"),
        ((RING,), {"progress": "x"}, "True, False or a function of a tick and the last one is needed"),
        ((RING,), {"threads": 1.5}, "threads = 1.5; a whole number from 1 to 1,024 is needed"),
        (({"world": {}},), {}, "the world holds no entity"),
        ((RING, "ring.radus=2"), {}, "did you mean 'radius'"),
        ((RING, "rong.radius=2"), {}, "'rong' is neither a table nor an entity"),
        ((ef.WorldRecipe(), "world.dt=1"), {}, "overrides a file or its tables"),
        ((ef.World(), "world.dt=1"), {}, "cannot be given with a World"),
    ],
)
def test_mistakes_are_told_before_anything_is_stored(arguments: Any, named: Any, words: str) -> None:
    with pytest.raises(FluidError) as told:
        ef.run(*arguments, **named)
    assert words in str(told.value)
    assert not list(Path().iterdir())


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda run: run["a":"b"],
            "slice('a', 'b', None) is not a slice of frames; whole numbers and a step",
        ),
        (lambda run: run[::0], "slice(None, None, 0) is not a slice of frames"),
        (lambda run: run[True], "True is not the number of a frame"),
        (
            lambda run: run.movie("a.gif", progress=True),
            "progress = True; None or a function that takes the number of",
        ),
        (
            lambda run: run.export("npz", progress=True),
            "progress = True; None or a function that takes the number of",
        ),
        (lambda run: run.export("npz", only=3), "only = 3; a name or a list of names is needed"),
        (lambda run: run.export("vdb", voxel="x"), "voxel = 'x'; the edge of a voxel in m, above 0"),
        (lambda run: run.export(3), "unknown format 3; known: gltf, npz"),
        (lambda run: run.export("npz", frames=1.5), "frames = 1.5: a number, a slice of numbers or text"),
        (lambda run: run.show(save="a.png", only=3), "only = 3; a name or a list of names is needed"),
        (lambda run: run.show(save="a.png", look=[]), "look = []; a name is needed"),
        (lambda run: run.show(save="a.png", color_by=3), "color_by = 3; a name is needed"),
        (lambda run: run.show(save="a.png", level="x"), "level = 'x'; a distance in m is needed"),
        (lambda run: run.show(save="a.png", colors="red"), "colors = 'red'; colours by names are needed: "),
        (lambda run: run.show(save="a.png", colors={"smok": "red"}), "unknown population 'smok'"),
        (lambda run: run.show("0"), "frame = '0'; the number of a frame is needed"),
        (lambda run: ef.sweep("vortex_ring", {}, seeds="2"), "seeds = '2'; a whole number from 1"),
        (
            lambda run: ef.sweep("vortex_ring", {}, workers="2"),
            "workers = '2'; a whole number from 0",
        ),
        (lambda run: ef.sweep("vortex_ring", "ring.core=1"), "vary = 'ring.core=1'; a dict is needed"),
        (lambda run: ef.sweep("vortex_ring", ["ring.core"]), "vary = ['ring.core']; a dict is needed"),
        (
            lambda run: ef.sweep("vortex_ring", {}, settings={"a.b": 1}),
            "settings = {'a.b': 1}; a text 'ring.core",
        ),
        (
            lambda run: ef.sweep(3, {}),
            "world = 3; a path is needed, as text or a Path, the name of a shipped",
        ),
        (lambda run: ef.load(RING, "ring"), "setting 'ring': path=value is needed"),
        (lambda run: ef.load(RING, {"ring.core": 1}), "setting {'ring.core': 1}: path=value is needed, one"),
        (lambda run: ef.load(RING, ["ring.core=1"]), "setting ['ring.core=1']: path=value is needed, one"),
    ],
)
def test_wrong_types_are_one_sentence(run: ef.Run, call: Any, words: str) -> None:
    with pytest.raises(FluidError) as told:
        call(run)
    assert words in str(told.value) and "--" not in str(told.value)


def test_whole_numbers_may_be_numpys(run: ef.Run) -> None:
    """As they come out of arange, len of an array, a table."""
    short = ef.run(RING, ticks=np.int64(2), threads=np.int32(1), out="short", progress=False)
    assert short.info["plan"]["last_tick"] == 2
    whole = short.resume(np.int16(6), progress=False)
    assert whole.info["state_hash"] == run.info["state_hash"]
    assert run[np.int64(-1)].tick == 6 and len(run[np.int64(1) : np.uint8(3)]) == 2
    assert len(list(run.export("npz", frames=np.int64(1), out="one").glob("*.npz"))) == 1


def test_a_run_is_found_from_another_working_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    made = ef.run(RING, ticks=2, out="here", progress=False)
    first = made[0]
    Path("elsewhere").mkdir()
    monkeypatch.chdir("elsewhere")
    assert made.path.is_dir() and len(made) == 2 and made.diagnostics.rows == 1
    assert len(first["ring"]["Position.x"])
    assert made.resume(4, progress=False).path == made.path and len(made) == 3


def test_a_run_that_is_gone_says_so(tmp_path: Path) -> None:
    made = ef.run(RING, ticks=2, out="gone", progress=False)
    Path("gone").rename("moved")
    with pytest.raises(StorageError, match="gone is not a run folder: there is no such folder"):
        made.diagnostics  # noqa: B018
    assert repr(made) == f"Run({str(tmp_path / 'gone')!r}, cannot be read)"
    assert "cannot be read" in made._repr_html_() and "no such folder" in made._repr_html_()
    assert ef.open_run("moved").diagnostics.rows == 1


def test_a_world_without_rows_says_that_no_frame_is_stored() -> None:
    with pytest.warns(FluidWarning, match="holds no particles and no bodies; frames are stored from"):
        made = ef.run(ef.World(), ticks=1, out="empty", progress=False)
    assert len(made) == 0 and made.status == "finished"


def test_what_is_not_there_is_named(run: ef.Run) -> None:
    with pytest.raises(StorageError, match="no such folder"):
        ef.open_run("nowhere")
    with pytest.raises(IndexError, match="has 4 stored frames, no frame 4"):
        run[4]
    with pytest.raises(
        FluidError,
        match=r"'ring' is not the number of a frame; populations are in frames, for example run\[-1\]",
    ):
        run["ring"]  # type: ignore[call-overload]
    with pytest.raises(
        FluidError, match=r"unknown kind of picture 'slices': known are .*, sdf, .*mean 'slice'"
    ):
        run.show(save="a.png", what="slices")  # type: ignore[arg-type]
    with pytest.raises(KeyError, match="has no population 'fog'; it has ring, smoke"):
        run[0]["fog"]
    with pytest.raises(KeyError, match=r"'smoke' has no column 'Strength[.]alpha'; it has"):
        run[0]["smoke"]["Strength.alpha"]
    with pytest.raises(FluidError, match=r"unknown option of a picture 'colour_by'.*did you mean 'color_by'"):
        run.show(save="a.png", colour_by="speed")  # type: ignore[call-arg]
    with pytest.raises(StorageError, match="holds no signed distance"):
        run.show(save="a.png", what="sdf")
    assert run[0].get("fog") is None and run[0].distances is None
    with pytest.raises(RecipeError):
        ef.load({"wrld": {}})
