"""Trajectories return every bit they were given, whatever appears, vanishes or is written twice."""

from __future__ import annotations

import gc
import multiprocessing
import threading
import tracemalloc
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import h5py
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from hypothesis.extra import numpy as hnp

from ecs_fluid.errors import StorageError
from ecs_fluid.io.trajectory import Trajectory, TrajectoryWriter

Frame = dict[str, dict[str, np.ndarray]]
SHAPES = {
    "Position.x": (3,),
    "Strength.alpha": (3,),
    "VelocityGradient.du": (3, 3),
    "RowId.id": (),
    "Age.t": (),
}


def cloud(rows: int, seed: int, dtype: str = "float32") -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    data = {name: rng.standard_normal((rows, *shape)).astype(dtype) for name, shape in SHAPES.items()}
    return {**data, "RowId.id": np.arange(rows) + seed}


def example(tick: int) -> Frame:
    """A ring that loses and gains rows (none at ticks 1, 7), and smoke that appears at tick 3."""
    frame = {"ring": cloud([5, 0, 9, 3, 2000, 4][tick % 6], tick)}
    if tick >= 3:
        frame["smoke-2"] = cloud(tick - 3, 100 + tick, "float64")
    return frame


def write(folder: Path, ticks: range, resume_at: int | None = None) -> None:
    with TrajectoryWriter(folder, resume_at_tick=resume_at) as writer:
        for tick in ticks:
            writer.append(tick, tick * 0.1, example(tick))


def assert_same(found: Frame, given: Frame) -> None:
    for name, data in given.items():
        assert list(found[name]) == sorted(data, key=list(found[name]).index)
        for column, values in data.items():
            assert found[name][column].dtype == values.dtype and found[name][column].shape == values.shape
            assert found[name][column].tobytes() == values.tobytes(), (name, column)
    for name in found.keys() - given.keys():
        assert all(len(values) == 0 for values in found[name].values())


def contents(path: Path) -> dict[str, Any]:
    """Everything a file says, apart from where its bytes lie."""
    found: dict[str, Any] = {}

    def visit(name: str, item: h5py.Group | h5py.Dataset) -> None:
        found[name] = {key: np.asarray(value).tolist() for key, value in item.attrs.items()}
        if isinstance(item, h5py.Dataset):
            found[name]["data"] = (item.shape, item.dtype.str, item.chunks, item[()].tobytes())

    with h5py.File(path, "r") as file:
        for name in ("VTKHDF", "ecs_fluid"):
            visit(name, file[name])
            file[name].visititems(lambda inner, item, name=name: visit(f"{name}/{inner}", item))
    return found


def test_frames_come_back_bit_for_bit(tmp_path: Path) -> None:
    write(tmp_path, range(14))
    trajectory = Trajectory(tmp_path)
    assert trajectory.ticks.tolist() == list(range(14)) and len(trajectory) == 14
    assert trajectory.times.tolist() == [tick * 0.1 for tick in range(14)]
    assert trajectory.populations == ("ring", "smoke-2")
    for tick in range(14):
        assert_same(trajectory.frame(tick), example(tick))
    assert_same(trajectory.frame(-1), example(13))
    with pytest.raises(StorageError, match="has 14 frames, not frame 14"):
        trajectory.frame(14)
    with pytest.raises(StorageError, match="no population 'fire'; it has ring, smoke-2"):
        trajectory.index("fire")


COLUMN_TYPES = st.dictionaries(
    st.sampled_from(["Velocity.u", "Temperature.T", "Species.s", "count"]),
    st.tuples(
        st.sampled_from(["float32", "float64", "int64", "uint8"]), st.sampled_from([(), (3,), (3, 3), (5,)])
    ),
)


@settings(deadline=None, max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), types=COLUMN_TYPES, counts=st.lists(st.integers(0, 40), min_size=1, max_size=5))
def test_any_columns_and_row_counts(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, types: dict, counts: list[int]
) -> None:
    folder = tmp_path_factory.mktemp("any")
    frames = []
    with TrajectoryWriter(folder) as writer:
        for tick, rows in enumerate(counts):
            columns = {"Position.x": data.draw(hnp.arrays("float64", (rows, 3)))}
            for name, (dtype, shape) in types.items():
                columns[name] = data.draw(hnp.arrays(dtype, (rows, *shape)))
            frames.append({"cloud": columns})
            writer.append(tick, float(tick), frames[-1])
    trajectory = Trajectory(folder)
    for number, frame in enumerate(frames):
        assert_same(trajectory.frame(number), frame)


@pytest.mark.parametrize("last_kept", [-1, 0, 2, 3, 7, 11, 99])
def test_a_resumed_trajectory_equals_an_uninterrupted_one(tmp_path: Path, last_kept: int) -> None:
    write(tmp_path / "straight", range(12))
    write(tmp_path / "resumed", range(12))
    write(tmp_path / "resumed", range(last_kept + 1, 12), resume_at=last_kept)
    files = sorted(path.name for path in (tmp_path / "straight").iterdir())
    assert sorted(path.name for path in (tmp_path / "resumed").iterdir()) == files
    for name in ("ring.vtkhdf", "smoke-2.vtkhdf"):
        assert contents(tmp_path / "resumed" / name) == contents(tmp_path / "straight" / name)
    for name in ("ring.xdmf", "smoke-2.xdmf"):
        assert (tmp_path / "resumed" / name).read_bytes() == (tmp_path / "straight" / name).read_bytes()


def test_a_population_cut_away_entirely_is_gone(tmp_path: Path) -> None:
    write(tmp_path, range(6))
    write(tmp_path, range(2, 3), resume_at=1)
    assert Trajectory(tmp_path).populations == ("ring",)
    assert Trajectory(tmp_path).ticks.tolist() == [0, 1, 2]


def test_frames_before_the_first_population_are_kept(tmp_path: Path) -> None:
    with TrajectoryWriter(tmp_path) as writer:
        writer.append(0, 0.0, {})
        assert len(Trajectory(tmp_path)) == 0
        writer.append(1, 0.5, {"jet": cloud(4, 1)})
        writer.append(2, 1.0, {})
    trajectory = Trajectory(tmp_path)
    assert trajectory.times.tolist() == [0.0, 0.5, 1.0]
    assert [len(trajectory.frame(i)["jet"]["Position.x"]) for i in range(3)] == [0, 4, 0]


def test_an_unfinished_trajectory_reads_while_it_is_written(tmp_path: Path) -> None:
    with TrajectoryWriter(tmp_path) as writer:
        writer.append(0, 0.0, example(0))
        trajectory = Trajectory(tmp_path)
        for tick in range(1, 9):
            writer.append(tick, tick * 0.1, example(tick))
        assert len(trajectory) == 1
        assert_same(trajectory.frame(0), example(0))
        trajectory.refresh()
        assert len(trajectory) == 9
        assert_same(trajectory.frame(8), example(8))


def test_a_reader_beside_the_writer_never_sees_half_a_frame(tmp_path: Path) -> None:
    """Frame k holds the number k everywhere, so any mixture of two states would show."""
    done = threading.Event()
    writer = TrajectoryWriter(tmp_path)

    def frame(tick: int) -> Frame:
        return {name: {"Position.x": np.full((300 + 7 * tick, 3), float(tick))} for name in ("a", "b")}

    def fill() -> None:
        for tick in range(1, 120):
            writer.append(tick, float(tick), frame(tick))
        done.set()

    writer.append(0, 0.0, frame(0))
    thread = threading.Thread(target=fill)
    thread.start()
    seen = 0
    while not done.is_set():
        trajectory = Trajectory(tmp_path)
        seen = len(trajectory)
        assert trajectory.ticks.tolist() == list(range(seen))
        assert_same(trajectory.frame(-1), frame(seen - 1))
    thread.join()
    writer.close()
    assert seen > 1 and len(Trajectory(tmp_path)) == 120


@pytest.mark.parametrize(
    ("frame", "why"),
    [
        ({"../x": {"Position.x": np.zeros((1, 3))}}, "population name '../x' cannot be used"),
        ({"": {"Position.x": np.zeros((1, 3))}}, "population name ''"),
        ({"a": {"Velocity.u": np.zeros((1, 3))}}, "population 'a' has no Position.x"),
        ({"a": {"Position.x": np.zeros((1, 2))}}, r"must be \(n, 3\) floats"),
        ({"a": {"Position.x": np.zeros((1, 3), dtype=int)}}, r"must be \(n, 3\) floats"),
        (
            {"a": {"Position.x": np.zeros((2, 3)), "Age.t": np.zeros(3)}},
            r"Age.t .* shape \(3,\), but needs 2 rows",
        ),
        ({"a": {"Position.x": np.zeros((2, 3)), "b/c": np.zeros(2)}}, "name 'b/c' cannot be used"),
        ({"a": {"Position.x": np.zeros((2, 3)), "w": np.zeros(2, complex)}}, "dtype complex128; allowed are"),
        ({"ring": {"Position.x": np.zeros((2, 3))}}, "'ring' changed its columns at tick 1"),
    ],
)
def test_what_cannot_be_stored_is_refused_and_changes_nothing(tmp_path: Path, frame: Frame, why: str) -> None:
    with TrajectoryWriter(tmp_path) as writer:
        writer.append(0, 0.0, example(0))
        with pytest.raises(StorageError, match=why):
            writer.append(1, 0.1, {**example(1), **frame})
        writer.append(1, 0.1, example(1))
    assert_same(Trajectory(tmp_path).frame(1), example(1))
    assert Trajectory(tmp_path).populations == ("ring",)


def test_ticks_must_grow_and_times_be_numbers(tmp_path: Path) -> None:
    with TrajectoryWriter(tmp_path) as writer:
        writer.append(4, 0.0, example(0))
        with pytest.raises(StorageError, match="tick 4 cannot follow the one of tick 4"):
            writer.append(4, 0.1, example(0))
        with pytest.raises(StorageError, match="time nan"):
            writer.append(5, float("nan"), example(0))
    with pytest.raises(StorageError, match="is closed"):
        writer.append(5, 0.1, example(0))


def test_one_writer_and_no_silent_overwriting(tmp_path: Path) -> None:
    write(tmp_path, range(2))
    with pytest.raises(StorageError, match="already holds a trajectory"):
        TrajectoryWriter(tmp_path)
    with (
        TrajectoryWriter(tmp_path, resume_at_tick=1),
        pytest.raises(StorageError, match="by this process right now"),
    ):
        TrajectoryWriter(tmp_path, resume_at_tick=1)
    assert len(Trajectory(tmp_path)) == 2


def _damaged_reading(folder: str, places: list[tuple[int, int]], answers: Any) -> None:
    path = Path(folder) / "ring.vtkhdf"
    good = path.read_bytes()
    for place, bit in places:
        bad = bytearray(good)
        bad[place] ^= bit
        path.write_bytes(bad)
        try:
            trajectory = Trajectory(folder)
            for number in range(len(trajectory)):
                trajectory.frame(number)
            answers.put("read")
        except StorageError as error:
            answers.put(str(error))
        except BaseException as error:
            answers.put(f"TRACEBACK {error!r}")
    answers.put("end")


def test_damaged_files_give_a_sentence_or_frames_but_never_a_traceback(tmp_path: Path) -> None:
    """HDF5 has no checksum over raw numbers, so a flip there passes; anywhere else it must be a sentence."""
    write(tmp_path, range(3))
    size = (tmp_path / "ring.vtkhdf").stat().st_size
    rng = np.random.default_rng(5)
    places = [
        (int(p), int(1 << b))
        for p, b in zip(rng.integers(0, size, 150), rng.integers(0, 8, 150), strict=True)
    ]
    places += [(p, 0xFF) for p in range(0, 100, 3)]
    context = multiprocessing.get_context("spawn")  # a crash inside HDF5 must fail this test, not end it
    answers = context.Queue()
    child = context.Process(target=_damaged_reading, args=(str(tmp_path), places, answers))
    child.start()
    found = [answers.get(timeout=60) for _ in range(len(places) + 1)]
    child.join()
    assert child.exitcode == 0 and found.pop() == "end"
    refused = [answer for answer in found if answer != "read"]
    assert refused and all("ring.vtkhdf" in answer or "do not have the same" in answer for answer in refused)
    assert not any("TRACEBACK" in answer or "\n" in answer for answer in refused)


def test_other_files_and_versions_are_refused(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="no such folder"):
        Trajectory(tmp_path / "missing")
    write(tmp_path, range(2))
    with h5py.File(tmp_path / "ring.vtkhdf", "r+") as file:
        file["ecs_fluid"].attrs["version"] = 9
    with pytest.raises(
        StorageError, match=r"ring\.vtkhdf .* version 9, but this ecs_fluid reads .* version 1"
    ):
        Trajectory(tmp_path)
    (tmp_path / "ring.vtkhdf").write_text("not HDF5")
    with pytest.raises(StorageError, match=r"ring\.vtkhdf is damaged, or another kind of file"):
        Trajectory(tmp_path)
    with pytest.raises(StorageError, match=r"ring\.vtkhdf is damaged, or another kind of file"):
        TrajectoryWriter(tmp_path, resume_at_tick=1)


def test_links_out_of_the_file_and_claims_beyond_it_are_refused(tmp_path: Path) -> None:
    write(tmp_path, range(2))
    secret = tmp_path / "secret.h5"
    with h5py.File(secret, "w") as file:
        file["x"] = np.zeros((5, 3), dtype="float32")
    with h5py.File(tmp_path / "ring.vtkhdf", "r+") as file:
        del file["VTKHDF/Points"]
        file["VTKHDF/Points"] = h5py.ExternalLink(str(secret), "x")
    with pytest.raises(StorageError, match="VTKHDF/Points is missing"):
        Trajectory(tmp_path).frame(0)
    with h5py.File(tmp_path / "ring.vtkhdf", "r+") as file:
        del file["VTKHDF/Points"]
        file["VTKHDF"].create_dataset("Points", (10**12, 3), "float32", chunks=(1024, 3))
    with pytest.raises(StorageError, match="claims more rows than the file holds"):
        Trajectory(tmp_path).frame(0)


@pytest.mark.nightly
def test_memory_does_not_grow_with_stored_frames(tmp_path: Path) -> None:
    """A stored frame leaves its tick and its time, 16 bytes; the sidecar is written frame by frame.

    XML of a frame with one column takes 11 kB as elements, the index of the trajectory 32 bytes; doubling
    what arrays keep in reserve, and HDF5's first objects, stay below the bounds too. Garbage of a few frames
    does, if it is searched for as often as Python does by itself.
    """
    frame = {"a": {"Position.x": np.zeros((1, 3), np.float32)}}
    writer = TrajectoryWriter(tmp_path)
    for tick in range(200):
        writer.append(tick, 0.1 * tick, frame)
    seldom = gc.get_threshold()
    gc.set_threshold(700, 10, 10)
    tracemalloc.start()
    try:
        for tick in range(200, 1200):
            writer.append(tick, 0.1 * tick, frame)
        assert tracemalloc.get_traced_memory()[0] < 40 * 1000
        tracemalloc.reset_peak()
        before = tracemalloc.get_traced_memory()[0]
        writer.close()
        assert tracemalloc.get_traced_memory()[1] - before < 400 * 1200
    finally:
        tracemalloc.stop()
        gc.set_threshold(*seldom)
    sidecar = ElementTree.parse(tmp_path / "a.xdmf")
    times = [float(element.get("Value", "")) for element in sidecar.iter("Time")]
    assert times == [0.1 * tick for tick in range(1200)]


def test_files_are_closed_while_no_datasets_of_others_are_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """HDF5 looks at all that is open when it closes a file: of 900 populations that took most of the time."""
    close, others = h5py.File.close, []

    def counting(file: h5py.File) -> None:
        opened = h5py.h5f.get_obj_count(h5py.h5f.OBJ_ALL, h5py.h5f.OBJ_DATASET)
        others.append(opened - h5py.h5f.get_obj_count(file.id, h5py.h5f.OBJ_DATASET))
        close(file)

    monkeypatch.setattr(h5py.File, "close", counting)
    places = {"Position.x": np.zeros((2, 3))}
    with TrajectoryWriter(tmp_path) as writer:
        for tick, count in enumerate([4, 4, 6]):
            writer.append(tick, 0.1 * tick, {f"p{k}": places for k in range(count)})
    first, late = others[:4], others[4:6]
    with TrajectoryWriter(tmp_path, resume_at_tick=1) as writer:
        writer.append(2, 0.2, {"p0": places})
    assert first == [0] * 4 and others[6:] == [0] * len(others[6:])
    assert all(late) and len(others) > 20  # of four populations that are being written, and two new ones
    assert Trajectory(tmp_path).populations == ("p0", "p1", "p2", "p3")
