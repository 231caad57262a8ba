"""Pages played for real by headless Chromium; see docs/page.md.

    apt-get install chromium
    pytest -m nightly tests/viz/page/test_browser.py

ECS_FLUID_SCREENSHOTS names a folder to keep the pictures in. Skipped where there is no Chromium.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import ecs_fluid as ef
from ecs_fluid.io.runfolder import RunFolder
from ecs_fluid.viz.page import writer
from tests.exports.made_run import (
    BALL_CENTER,
    FRAMES,
    frame_of,
    make_liquid_run,
    make_run,
    make_two_liquids,
    radius,
    time_of,
)
from tests.viz.page.chromium import Browser, program

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(program() is None, reason="needs Chromium: apt-get install chromium"),
]
SIZE = (1280, 720)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pages")
    title = "A <b>box</b> & two balls"
    return ef.page(make_run(folder / "run"), out=folder / "page", title=title)


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    folder = Path(os.environ.get("ECS_FLUID_SCREENSHOTS", tmp_path))
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Browser]:
    with Browser(tmp_path / "profile", SIZE) as made:
        yield made
        assert made.said == []  # no error, no warning, no address but files


def opened(browser: Browser, page: Path, playing: bool = False) -> Browser:
    """The page, all data there; stopped, unless it is to play on."""
    browser.open(page / "index.html")
    browser.wait("ecsFluidPage.state().loaded === 1")
    if not playing and browser.state()["playing"]:
        browser.key(" ")
        browser.wait("!ecsFluidPage.state().playing")
    return browser


def pixels(path: Path) -> np.ndarray:
    with Image.open(path) as image:
        return np.asarray(image.convert("RGB")).astype(int)


def drawn(browser: Browser, path: Path) -> np.ndarray:
    """Pixels (h, w, 3) once the frame is drawn and the picture at rest."""
    browser.wait("ecsFluidPage.state().drawn")
    time.sleep(0.8)
    browser.wait("ecsFluidPage.state().fine")
    return pixels(browser.screenshot(path))


def test_it_opens_from_the_disk(browser: Browser, page: Path, pictures: Path) -> None:
    opened(browser, page)
    assert browser.value("document.title") == "A <b>box</b> & two balls"
    assert browser.value("document.querySelector('#title').textContent") == "A <b>box</b> & two balls"
    assert browser.value("document.querySelectorAll('#title *').length") == 0
    browser.key("Home")
    picture = drawn(browser, pictures / "small.png")
    assert picture.shape == (SIZE[1], SIZE[0], 3)
    left, top, width, height = (int(n) for n in browser.box("#picture"))
    canvas = picture[top + 100 : top + height, left : left + width - 280]
    assert np.ptp(canvas, axis=(0, 1)).min() > 100  # the background alone has a range of 30
    names = browser.value("[...document.querySelectorAll('#parts span')].map((one) => one.textContent)")
    assert names == ["ring", "smoke", "balls", "box"]
    assert browser.state()["rows"] == [40, 0, 2, 1]


def test_slider_and_keys_choose_the_frame(browser: Browser, page: Path) -> None:
    opened(browser, page)
    left, top, width, height = browser.box("#time")
    middle = top + height / 2
    browser.mouse((left + 9, middle), (left + width / 4, middle), (left + width / 2, middle))
    browser.wait("ecsFluidPage.state().drawn")
    state = browser.state()
    assert state["frame"] == 5 and state["time"] == time_of(5) and not state["playing"]
    assert state["rows"][1] == 50
    assert browser.value("document.querySelector('#clock').textContent") == "t = 0.200 s"
    assert browser.value("document.querySelector('#frame').textContent") == "frame 6 of 11"
    for key, frame in (
        ("ArrowRight", 6), ("ArrowRight", 7), ("ArrowLeft", 6), ("End", 10), ("ArrowRight", 10), ("Home", 0),
        ("ArrowLeft", 0),
    ):  # fmt: skip
        browser.key(key)
        browser.wait(f"ecsFluidPage.state().frame === {frame}")
    browser.key("ArrowRight", shift=True)
    browser.wait("ecsFluidPage.state().frame === 10")
    browser.wait("document.querySelector('#time').value === '10'")


def test_it_plays_and_stops(browser: Browser, page: Path) -> None:
    """A run of 0.44 s is slowed down to last a second at least; frames are shown in order, and again."""
    opened(browser, page)
    browser.key("Home")
    assert browser.state()["speed"] == 0.25
    browser.value(
        "window.seen = []; window.watch = setInterval(() => { const f = ecsFluidPage.state().frame;"
        " if (f !== seen[seen.length - 1]) seen.push(f); }, 2); 0"
    )
    browser.key(" ")
    browser.wait("seen.length > 2 * 11 + 3")
    browser.key(" ")
    browser.wait("!ecsFluidPage.state().playing")
    seen = browser.value("seen")
    # On a busy machine a frame may be left out; time never runs backwards except at the end.
    steps = np.diff(seen)
    assert ((steps > 0) | (np.array(seen[1:]) <= 1)).all()
    assert set(seen) >= set(range(3)) and max(seen) == FRAMES - 1
    stopped = browser.state()["frame"]
    time.sleep(0.5)
    assert browser.state()["frame"] == stopped
    browser.mouse(tuple(np.add(browser.box("#play")[:2], 10)))
    browser.wait("ecsFluidPage.state().playing")


def turned(state: dict) -> tuple[float, np.ndarray]:
    """Distance of the camera from its target, and the direction there."""
    offset = np.subtract(state["camera"], state["target"])
    return float(np.linalg.norm(offset)), offset / np.linalg.norm(offset)


def settled(browser: Browser) -> dict:
    """State once the camera has come to rest."""
    before = None
    while (state := browser.state())["camera"] != before:
        before = state["camera"]
        time.sleep(0.4)
    return state


def test_fingers_turn_zoom_and_choose_the_time(browser: Browser, page: Path) -> None:
    opened(browser, page)
    browser.key("Home")
    distance, direction = turned(settled(browser))
    path = [[(400 + 20 * k, 350)] for k in range(11)]
    browser.touch(*path)
    dragged, there = turned(settled(browser))
    # The controls turn by 2 pi over the height of the canvas; the eye stays as high and as far as it was.
    angle = math.atan2(there[1], there[0]) - math.atan2(direction[1], direction[0])
    angle = (angle + math.pi) % (2 * math.pi) - math.pi
    height = browser.box("#picture")[3]
    assert angle == pytest.approx(-2 * math.pi * 200 / height, rel=0.15)  # the damped end is added
    assert dragged == pytest.approx(distance, rel=1e-6) and there[2] == pytest.approx(direction[2], abs=1e-6)
    browser.touch(*[[(600 - 10 * k, 350), (640 + 10 * k, 350)] for k in range(11)])
    assert turned(settled(browser))[0] < 0.7 * distance
    left, top, width, height = browser.box("#time")
    middle = top + height / 2
    browser.touch([(left + 9, middle)], [(left + width / 3, middle)], [(left + width - 2, middle)])
    browser.wait("ecsFluidPage.state().frame === 10")
    browser.mouse(tuple(np.add(browser.box("#fit")[:2], 10)))
    back, again = turned(settled(browser))
    assert back == pytest.approx(distance, rel=1e-6)
    np.testing.assert_allclose(again, direction, atol=1e-6)


def test_colours_and_switches(browser: Browser, page: Path, pictures: Path) -> None:
    opened(browser, page)
    browser.key("End")
    plain = drawn(browser, pictures / "plain.png")
    choose = "(() => {{ const c = document.querySelector('#colour'); c.value = [...c.options].find("
    choose += "(o) => o.textContent === '{}').value; c.dispatchEvent(new Event('change')); }})()"
    browser.value(choose.format("Temperature.T"))
    browser.wait("ecsFluidPage.state().loaded === 1")
    coloured = drawn(browser, pictures / "temperature.png")
    assert browser.state()["colour"] == "Temperature.T"
    assert browser.value("document.querySelector('#field').textContent") == "Temperature.T [K]"
    ticks = browser.value(
        "[...document.querySelectorAll('#ticks span')].map((one) => Number(one.textContent))"
    )
    # 300 K + id, ids 105 to 249 over all frames; the outermost half percent of each frame is cut.
    assert ticks[0] == pytest.approx(405, abs=1) and ticks[-1] == pytest.approx(549, abs=1)
    assert np.abs(coloured - plain).max() > 60
    browser.value("document.querySelectorAll('#parts input')[1].click()")
    hidden = drawn(browser, pictures / "hidden.png")
    assert np.abs(hidden - coloured).max() > 60
    browser.value("document.querySelectorAll('#parts input')[1].click()")
    # Noise of one step hides the 8-bit steps of smoke; it does not change from frame to frame.
    assert np.abs(drawn(browser, pictures / "again.png") - coloured).max() <= 2


def test_things_are_where_they_are(browser: Browser, page: Path, pictures: Path) -> None:
    """The balls alone: lit pixels lie around the projections of their centres, within their radius."""
    opened(browser, page)
    browser.key("End")
    empty = drawn(browser, pictures / "all.png")
    for k in (0, 1, 3):
        browser.value(f"document.querySelectorAll('#parts input')[{k}].click()")
    picture = drawn(browser, pictures / "balls.png")
    assert np.abs(picture - empty).max() > 60
    browser.value("document.querySelectorAll('#parts input')[2].click()")
    nothing = drawn(browser, pictures / "nothing.png")
    state = browser.state()
    left, top, width, height = browser.box("#picture")
    eye, target = np.array(state["camera"]), np.array(state["target"])
    forward = (target - eye) / np.linalg.norm(target - eye)
    right = np.cross(forward, [0.0, 0.0, 1.0])
    right /= np.linalg.norm(right)
    up = np.cross(right, forward)
    columns = frame_of(FRAMES - 1)["balls"]
    (center,), (size,) = columns["Position.x"], columns["BallShape.radius"]
    offset = center - eye
    depth = offset @ forward
    scale = height / 2 / math.tan(math.radians(14.0)) / depth
    expected = np.array(
        [left + width / 2 + scale * (offset @ right), top + height / 2 - scale * (offset @ up)]
    )
    lit = np.argwhere(np.abs(picture - nothing).max(axis=2) > 12)[:, ::-1] + 0.5
    lit = lit[lit[:, 0] < width - 280]  # the number of rows in the panel changes too
    # Perspective draws a ball a little farther out than its centre, by less than (radius / distance)^2.
    assert np.linalg.norm(0.5 * (lit.min(axis=0) + lit.max(axis=0)) - expected) < 0.1 * scale * size
    np.testing.assert_allclose(np.ptp(lit, axis=0) / 2, scale * size, rtol=0.06)


def test_surface_of_a_liquid(browser: Browser, tmp_path: Path, pictures: Path) -> None:
    """None in the first frame; then a ball of 0.5 m and of 0.6 m radius, blue as water."""
    opened(browser, ef.page(make_liquid_run(tmp_path / "ball"), out=tmp_path / "page"))
    browser.value("document.querySelector('#parts input').click()")  # particles, some of which lie outside
    widths = []
    for frame in range(3):
        browser.key("Home")
        for _ in range(frame):
            browser.key("ArrowRight")
        browser.wait(f"ecsFluidPage.state().frame === {frame}")
        red, _, blue = np.moveaxis(drawn(browser, pictures / f"liquid{frame}.png"), 2, 0)
        wet = ((blue > red + 25) & (blue > 2 * red))[:650, :1000].any(axis=0)
        widths.append(int(wet.sum()))
        state = browser.state()
    # A ball of radius r at the distance d reaches as far as tan(asin(r / d)) = r / sqrt(d^2 - r^2).
    distance = float(np.linalg.norm(np.subtract(state["camera"], BALL_CENTER)))
    reach = [radius(frame) / math.sqrt(distance**2 - radius(frame) ** 2) for frame in (1, 2)]
    height = browser.box("#picture")[3]
    assert widths[0] == 0
    np.testing.assert_allclose(widths[1:], height / math.tan(math.radians(14.0)) * np.array(reach), rtol=0.03)


def test_surface_of_liquids_that_touch(browser: Browser, tmp_path: Path, pictures: Path) -> None:
    """Cubes of equal size, red and blue: each colour covers a part of the picture, and the red one is to the
    left. Colours of vertices follow their speeds in the file, and would be noise one byte further on."""
    run = make_two_liquids(tmp_path / "run", ["#d02020", "#2020d0"])
    opened(browser, ef.page(run, out=tmp_path / "page"))
    red, green, blue = np.moveaxis(drawn(browser, pictures / "liquids.png").astype(int), 2, 0)
    left, right = red > 2 * np.maximum(green, blue), blue > 2 * np.maximum(green, red)
    # Of a cube of 4 m at least 16 m^2 / sqrt(3) is seen, in a picture of some 25 m x 1200 pixels.
    assert min(left.sum(), right.sum()) > 0.5 * 9.2 * (960 / 30) ** 2
    assert np.nonzero(left)[1].mean() < np.nonzero(right)[1].mean()


def test_fine_screens_and_small_ones(browser: Browser, page: Path, pictures: Path) -> None:
    opened(browser, page)
    browser.resize((640, 400), scale=2.0)
    browser.wait("document.querySelector('#picture').width === 1280")
    assert drawn(browser, pictures / "fine.png").shape == (800, 1280, 3)
    browser.resize((390, 844), scale=3.0, mobile=True)
    browser.wait("document.querySelector('#picture').width === 780")  # twice as fine is enough
    assert browser.value("getComputedStyle(document.querySelector('#panel')).display") == "none"
    left, top, width, height = browser.box("#menu")
    browser.touch([(left + width / 2, top + height / 2)])
    browser.wait("getComputedStyle(document.querySelector('#panel')).display === 'block'")
    drawn(browser, pictures / "phone.png")
    for selector in ("#play", "#time", "#fit", "#panel", "#speed"):
        left, top, width, height = browser.box(selector)
        assert left >= 0 and left + width <= 390 and top + height <= 844 and height >= 20, selector


def test_memory_of_the_browser_is_bounded(
    browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of ten groups of frames four may be kept: all are shown twice, and none is loaded again and again."""
    monkeypatch.setattr(writer, "GROUP_FRAMES", 4)
    x = np.random.default_rng(4).normal(size=(2000, 3))
    with RunFolder.create(tmp_path / "run", "", {}) as run, run.write_trajectory() as trajectory:
        for k in range(40):
            trajectory.append(k, k / 25, {"dust": {"Position.x": x + 0.01 * k}})
    browser.resize((320, 240))  # what is drawn does not matter
    browser.open(ef.page(tmp_path / "run", out=tmp_path / "page") / "index.html")
    browser.key(" ")
    browser.wait("ecsFluidPage.state().loaded === 1 && !ecsFluidPage.state().playing")
    whole = browser.state()["bytes"]
    assert whole == 40 * 2000 * 7  # places of six bytes, light of one
    browser.value(
        f"ecsFluidPage.limit({whole // 10 * 4}); window.loads = 0; new MutationObserver((changes) => "
        "changes.forEach((one) => { loads += one.addedNodes.length; })).observe(document.head, "
        "{ childList: true }); 0"
    )
    for _ in range(2):
        for frame in range(40):
            browser.key("Home" if frame == 0 else "ArrowRight")
            browser.wait(f"ecsFluidPage.state().frame === {frame} && ecsFluidPage.state().drawn")
            assert browser.state()["bytes"] <= whole // 10 * 4
    # Each time six groups at least must come again, and each of the ten at most once; some wait at the end.
    assert 12 <= browser.value("loads") <= 2 * 10 + 4


def test_a_missing_file_is_told(tmp_path: Path, page: Path) -> None:
    import shutil

    copy = tmp_path / "copy"
    shutil.copytree(page, copy)
    (copy / "data" / "x_00000.js").unlink()
    with Browser(tmp_path / "profile", SIZE) as browser:
        browser.send("Page.navigate", url=(copy / "index.html").as_uri())
        browser.wait("document.querySelector('#trouble') && !document.querySelector('#trouble').hidden")
        told = browser.value("document.querySelector('#trouble').textContent")
    assert told == "data/x_00000.js is missing or damaged; the folder of this page must be kept whole."


def test_a_hundred_frames_of_20_000_particles(browser: Browser, tmp_path: Path, pictures: Path) -> None:
    """All of it is loaded and plays; benchmarks/page.py tells how fast."""
    draw = np.random.default_rng(3)
    x = draw.normal(size=(20_000, 3))
    with RunFolder.create(tmp_path / "run", "", {}) as run, run.write_trajectory() as trajectory:
        for k in range(100):
            turn = 0.05 * k
            c, s = np.cos(turn), np.sin(turn)
            places = (x @ np.array([[c, s, 0], [-s, c, 0], [0, 0, 1]])).astype(np.float32)
            trajectory.append(k, k / 25, {"dust": {"Position.x": places}})
    opened(browser, ef.page(tmp_path / "run", out=tmp_path / "page"), playing=True)
    assert browser.state()["playing"]
    browser.wait("ecsFluidPage.state().frame > 10")
    browser.key("End")
    browser.wait("ecsFluidPage.state().frame === 99 && ecsFluidPage.state().drawn")
    assert browser.state()["rows"] == [20_000]
    drawn(browser, pictures / "many.png")
