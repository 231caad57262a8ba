"""What all frames share: box, colour limits and size of a puff."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ecs_fluid.errors import FluidError
from ecs_fluid.viz.columns import unknown_name
from ecs_fluid.viz.shared_limits import Recording, limits, survey
from ecs_fluid.viz.style import Options


def ring_frame(*args: Any, **kwargs: Any) -> Any:
    spec = importlib.util.spec_from_file_location("viz_frames", Path(__file__).with_name("conftest.py"))
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.ring_frame(*args, **kwargs)


class Stored:
    times = [0.5 * k for k in range(100)]

    def __init__(self) -> None:
        self.read: list[int] = []

    def __len__(self) -> int:
        return 100

    def frame(self, index: int) -> Any:
        self.read.append(index)
        return {"ring": {"Position.x": np.array([[0.0, 0.0, index], [1.0, 1.0, index]])}}


def test_box_covers_all_frames_but_not_a_stray() -> None:
    first, last = ring_frame(0.0), ring_frame(3.0)
    last["smoke"]["Position.x"][0] = (500.0, 0.0, 0.0)
    view = survey([(0.0, first), (1.0, last)], Options())
    # Rings of outer radius 1.2 m between z = -0.2 and 3.2 m; the outermost 0.5 % of
    # the tracers on each side, which reach in by a quarter of the tube, may lie outside.
    np.testing.assert_allclose(view.lo, [-1.2, -1.2, -0.2], atol=0.06)
    np.testing.assert_allclose(view.hi, [1.2, 1.2, 3.2], atol=0.06)


def test_colour_limits_are_those_of_all_frames() -> None:
    first, last = ring_frame(), ring_frame()
    last["ring"]["Strength.alpha"] = 2.0 * last["ring"]["Strength.alpha"]
    view = survey([(0.0, first), (1.0, last)], Options())
    # Vorticity is 50 (1 + k/60), k < 60, doubled: 99.5th percentile at k = 58.705.
    assert view.color_by == "vorticity"
    assert view.limits == pytest.approx((0.0, 100.0 * (1.0 + 58.705 / 60.0)))


def test_nothing_at_all_is_the_lowest_colour() -> None:
    """A speed or a fraction of 0 everywhere is no value in the middle of a scale of both signs."""
    assert limits("speed", 0.0, 0.0) == (0.0, 1.0) == limits("smoke", 0.0, 0.0)


def test_limits_of_signed_and_constant_values() -> None:
    assert limits("u.x", -1.0, 3.0) == (-3.0, 3.0)
    assert limits("Temperature.T", 280.0, 310.0) == (280.0, 310.0)
    assert limits("Temperature.T", 300.0, 300.0) == (150.0, 450.0)
    assert limits("speed", 2.0, 3.0) == (0.0, 3.0)


def test_long_recordings_are_sampled_and_read_one_frame_at_a_time() -> None:
    stored = Stored()
    frames = Recording(stored)
    assert len(frames) == 100 and frames[3][0] == 1.5 and len(frames[10:20]) == 10
    stored.read.clear()
    view = survey(frames, Options())
    assert len(stored.read) == 48 and stored.read[0] == 0 and stored.read[-1] == 99
    assert view.lo[2] == 0.0 and view.hi[2] == 99.0


def test_empty_frames_and_unknown_names() -> None:
    frame = ring_frame()
    empty = {"ring": {"Position.x": np.zeros((0, 3))}}
    with pytest.raises(FluidError, match="nothing to draw"):
        survey([(0.0, {})], Options())
    with pytest.raises(FluidError, match="nothing to draw"):
        survey([(0.0, empty)], Options())
    with pytest.raises(FluidError, match="unknown colour 'Temperature'"):
        survey([(0.0, frame)], Options(color_by="Temperature"))
    assert "there are no particles yet" in str(unknown_name("colour", "speed", []))
    with pytest.raises(FluidError, match=r"unknown population 'smok'.*did you mean 'smoke'"):
        survey([(0.0, frame)], Options(populations=["smok"]))
    frame["ring"]["Position.x"][5, 1] = np.nan
    with pytest.raises(FluidError, match="ring has a position that is not a finite number"):
        survey([(0.0, frame)], Options())


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"what": "particle"}, "unknown kind of picture 'particle'.*did you mean 'particles'"),
        ({"look": "smokey"}, "unknown look"),
        ({"camera": "nowhere"}, "unknown camera"),
        ({"normal": "w"}, "unknown slice normal"),
        ({"size": (0, 10)}, "picture size"),
        ({"size": "big"}, "picture size"),
        ({"colour_by": "speed"}, "unknown option of a picture 'colour_by'.*did you mean 'color_by'"),
        ({"seeds": 0}, "seeds 0"),
        (
            {"colors": {"smoke": "rouge"}},
            "colors: 'smoke' = 'rouge'; a colour: red, .*, or #rrggbb is",
        ),
    ],
)
def test_bad_options_are_one_sentence(options: dict[str, object], words: str) -> None:
    with pytest.raises(FluidError, match=words):
        Options.of(options)


def test_the_camera_fits_what_is_drawn() -> None:
    """Flame and smoke fill a box of 1 m, clear air one of 10 m, and vortons, which no fire shows, one of 4 m.

    A look that shows all of them fits all, as a slice does; where nothing burns yet the air is fitted.
    """
    rng = np.random.default_rng(1)

    def cloud(size: float, flame: float, smoke: float) -> dict[str, Any]:
        x = size * rng.random((5000, 3))
        x[:8] = size * np.array([[i, j, k] for i in (0, 1) for j in (0, 1) for k in (0, 1)])
        full = np.ones(len(x))
        return {"Position.x": x, "Species.flame": flame * full, "Species.smoke": smoke * full}

    vortons = {"Position.x": 4.0 * rng.random((5000, 3)), "Strength.alpha": np.ones((5000, 3))}
    air, lit, smoky = cloud(10.0, 0.0, 0.0), cloud(1.0, 0.1, 0.0), cloud(1.0, 0.0, 0.02)
    burning = {"gas": vortons, "air": air, "fire": lit, "smoke": smoky}
    for options, frames, size in (
        (Options(look="fire"), [burning], 1.0),
        (Options(look="smoke"), [burning], 10.0),
        (Options(look="fire", what="slice"), [burning], 10.0),
        (Options(look="fire", populations=["gas", "fire"]), [burning], 4.0),
        (Options(look="fire"), [{"air": air}, burning], 1.0),
        (Options(look="fire"), [{"air": air}], 10.0),
        (Options(look="fire"), [{"gas": vortons}], 4.0),
    ):
        view = survey([(float(k), frame) for k, frame in enumerate(frames)], options)
        assert view.points is not None
        for found in (view.hi, view.points.max(axis=0)):
            np.testing.assert_allclose(found, size, rtol=0.02)
