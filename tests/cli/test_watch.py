"""`watch`: sliders change what they say, keys pause and step, the window and the page show it."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest
from PIL import Image

import ecs_fluid as ef
from ecs_fluid.cli import main
from ecs_fluid.cli.sliders import sliders_of
from ecs_fluid.connections import FULL
from ecs_fluid.errors import FluidError
from ecs_fluid.viz.live import ROOM, Live, Slider
from ecs_fluid.viz.style import Options
from ecs_fluid.worlds.world_recipe import WorldRecipe
from tests.viz.page.chromium import Browser, program

TABLES: dict[str, Any] = {
    "world": {"dt": 0.1},
    "fluid": {"viscosity": 1e-3},
    "entity": [
        {
            "kind": "vortex_ring",
            "name": "ring",
            "radius": 1.0,
            "core": 0.2,
            "circulation": 5.0,
            "spacing": 0.2,
        },
        {
            "kind": "emitter",
            "name": "wick",
            "into": "gas",
            "rate": {"keys": [[0.0, 10.0], [1.0, 30.0]]},
            "shape": "sphere",
        },
    ],
    "system": [{"kind": "wind", "velocity": {"keys": [[0.0, [0.0, 0.0, 1.0]], [2.0, [0.0, 0.0, 3.0]]]}}],
}


@pytest.fixture
def world() -> ef.World:
    return WorldRecipe.from_tables(TABLES).build()


class Moving:
    """Stands in for a world: one point that goes 1 m along x per tick; it breaks at tick 6."""

    dt, tick = 0.1, 0

    @property
    def time(self) -> float:
        return self.tick * self.dt

    def step(self) -> None:
        if self.tick == 6:
            raise FluidError("a table became non-finite")
        self.tick += 1

    def evaluate(self) -> None:
        pass

    def snapshot(self) -> dict[str, dict[str, np.ndarray]]:
        x = np.array([[self.tick, 0.0, 0.0], [self.tick + 1.0, 1.0, 1.0]])
        return {"dots": {"Position.x": x}} if self.tick else {"dots": {"Position.x": x[:0]}}


# ------------------------------------------------------------------ sliders


def test_sliders_are_even_or_logarithmic() -> None:
    seen: list[float] = []
    wide, narrow = Slider("nu", 1e-5, 1e-1, 1e-3, seen.append), Slider("rate", -1.0, 3.0, 0.0, seen.append)
    assert wide.share() == pytest.approx(0.5) and narrow.share() == pytest.approx(0.25)
    assert wide.move(0.25) == pytest.approx(1e-4) and narrow.move(2.0) == 3.0
    assert seen == pytest.approx([1e-4, 3.0]) and wide.text == "nu = 0.0001"


def test_slider_changes_the_system_and_what_a_checkpoint_says(world: ef.World, tmp_path: Path) -> None:
    (slider,) = sliders_of(world, ("fluid.viscosity=1e-4:1e-1",))
    assert slider.value == 1e-3
    diffusion = world.system(ef.DiffusionSystem)
    assert diffusion is not None and diffusion.viscosity == 1e-3  # trying the ends has changed nothing
    slider.move(1.0)
    assert diffusion.viscosity == pytest.approx(0.1)
    world.save(tmp_path / "a.npz")
    resumed = ef.resume(tmp_path / "a.npz")
    assert resumed.fluid[ef.Fluid].viscosity == pytest.approx(0.1)


def test_keyed_numbers_get_sliders_by_themselves(world: ef.World) -> None:
    sliders = {slider.label: slider for slider in sliders_of(world, ())}
    assert set(sliders) == {"wick.rate", "system.wind.velocity.z"}
    rate, wind = sliders["wick.rate"], sliders["system.wind.velocity.z"]
    assert (rate.low, rate.high, rate.value) == (10.0, 30.0, 10.0)
    rate.move(0.5)
    wind.move(1.0)
    emission, system = world.system(ef.EmissionSystem), world.system(ef.WindSystem)
    assert emission is not None and emission.emitters[0].rate == 20.0
    assert system is not None and tuple(system.velocity) == (0.0, 0.0, 3.0)


def test_sliders_of_whole_numbers_take_whole_numbers(world: ef.World) -> None:
    (slider,) = sliders_of(world, ("fluid.diagnostics.every=1:10",))
    diagnostics = world.system(ef.DiagnosticsSystem)
    assert slider.move(0.33) == 4.0 and diagnostics is not None and diagnostics.every == 4


def test_a_slider_stays_where_another_makes_its_value_impossible(world: ef.World) -> None:
    """Fuel and smoke of 0.7 each are possible, but not both."""
    fuel, smoke = sliders_of(world, ("wick.fuel=0:0.7", "wick.smoke=0:0.7"))
    fuel.move(1.0)
    assert smoke.move(1.0) == 0.0 and "'wick': fuel + flame + smoke is 1.4; at most 1" in smoke.text
    assert smoke.move(0.1) == pytest.approx(0.07) and smoke.text == "wick.smoke = 0.07"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("fluid.viscosity", "low < high is needed"),
        ("fluid.viscosity=2:1", "low < high is needed"),
        ("fluid.viscosity=nan:1", "low < high is needed"),
        ("fluid.viscosty=0:1", "fluid has no parameter 'viscosty'; did you mean 'viscosity'"),
        ("fluid.viscosity=-1:1", "viscosity = -1.0"),
        ("fluid.stretsh.rate=0:1", "did you mean 'fluid.stretch'"),
        ("fluid.stretch.rat=0:1", "did you mean 'rate'"),
        ("fluid.stretch.scheme=0:1", "is not a number"),
        ("system.wind.velocity=0:1", "add .x, .y or .z"),
        ("system.wnd.velocity.z=0:1", "did you mean 'system.wind'"),
        ("wick.rate=-5:1", "0 to 1e"),
        ("wick.name=0:1", "is not a number"),
        ("ring.radius=1:2", "is not a parameter that can be changed"),
    ],
)
def test_slides_that_cannot_be(world: ef.World, text: str, words: str) -> None:
    with pytest.raises(FluidError) as caught:
        sliders_of(world, (text,))
    assert words in str(caught.value) and "\n" not in str(caught.value)


def test_inviscid_world_says_what_to_set() -> None:
    world = WorldRecipe.from_tables(TABLES | {"fluid": {}}).build()
    with pytest.raises(FluidError, match=r"no DiffusionSystem; set fluid\.viscosity above 0"):
        sliders_of(world, ("fluid.viscosity=1e-4:1e-1",))


# ------------------------------------------------------------------ the simulation that is looked at


def live(**more: Any) -> Live:
    return Live(Moving(), Options(size=(64, 48), smooth=False), **more)  # type: ignore[arg-type]


def test_empty_worlds_are_run_until_there_is_something() -> None:
    one = live()
    view = one.begin()
    assert one.world.tick == 1
    # One tick: points at x = 1 and 2; the box has ROOM times their extent.
    assert (view.hi - view.lo).tolist() == pytest.approx([ROOM] * 3)
    assert (0.5 * (view.hi + view.lo)).tolist() == pytest.approx([1.5, 0.5, 0.5])


def test_pause_step_and_the_last_tick() -> None:
    one = live(last_tick=3)
    assert one.advance() and one.world.tick == 1
    one.toggle()
    assert not one.advance() and one.status == "paused, tick 1, t = 0.100 s"
    one.step()
    assert one.advance() and not one.advance() and one.world.tick == 2
    one.toggle()
    assert one.advance() and not one.advance() and one.world.tick == 3


def test_view_follows_until_the_camera_is_moved_by_hand() -> None:
    """Points go 1 m along x per tick, and the box reaches 0.25 m beyond them: after each tick it is left."""
    from ecs_fluid.viz.scene import Scene

    one = live()
    scene = Scene(one.begin(), one.options)
    try:
        one.show(scene)
        first = np.array(scene.plotter.camera.position)
        assert one.advance()
        one.show(scene)
        second = np.array(scene.plotter.camera.position)
        np.testing.assert_allclose(second - first, [1.0, 0.0, 0.0], atol=1e-6)
        scene.plotter.camera.position = (9.0, 9.0, 9.0)
        assert one.advance()
        one.show(scene)
        assert scene.plotter.camera.position == (9.0, 9.0, 9.0)
        assert scene.view.lo[0] == pytest.approx(2.75)  # colours and sizes go on following
    finally:
        scene.close()


def test_a_world_that_diverges_rests_and_says_why() -> None:
    one = live()
    assert [one.advance() for _ in range(8)] == [True] * 6 + [False] * 2
    assert one.paused and one.status == "stopped: a table became non-finite"


# ------------------------------------------------------------------ window and page

WINDOW = """
import sys
sys.path.insert(0, {root!r})
from tests.cli.test_watch import Moving
from ecs_fluid.viz.live import Live, Slider
from ecs_fluid.viz.style import Options
from ecs_fluid.viz.scene import pixels
from ecs_fluid.viz.window import Window

turned = []
live = Live(Moving(), Options(size=(160, 120), smooth=False, off_screen=False),
            [Slider("nu", 1.0, 3.0, 1.0, turned.append)])
window = Window(live)
keys, told, advance = {{3: "space", 6: "Right", 9: "q"}}, [], live.advance

def press():
    press.calls += 1
    moved = advance()
    if press.calls == 7:
        slider = window.plotter.widgets.slider_widgets[0]
        slider.GetRepresentation().SetValue(0.5)
        slider.InvokeEvent("InteractionEvent")
        told.append(slider.GetRepresentation().GetTitleText())
        told.append(bool(pixels(window.plotter).max() > 200))
    if press.calls in keys:
        interactor = window.plotter.iren.interactor
        interactor.SetKeySym(keys[press.calls])
        interactor.InvokeEvent("KeyPressEvent")
        told.append(live.world.tick)
    return moved

press.calls, live.advance = 0, press
window.run()
print(told, turned[-1], live.world.tick, live.over)
"""


@pytest.mark.skipif(shutil.which("xvfb-run") is None, reason="needs apt-get install xvfb")
def test_window_keys_and_slider() -> None:
    """Tick 1 is made by `begin`, three more until space, the fifth by the arrow. The slider's middle is 2."""
    code = WINDOW.format(root=str(Path(__file__).parents[2]))
    # Without -noreset the server starts anew when a first, short connection ends, and may miss the next.
    command = ["xvfb-run", "-a", "-s", "-noreset -screen 0 640x480x24", sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[4, 4, 'nu = 2', True, 5] 2.0 5 True", done.stderr


def test_page_shows_and_steps() -> None:
    """Its task steps the world, and what is turned in the browser arrives. Only those with the key get
    anything, WebSockets too; no page of another site does, nor a stranger's name that leads here."""
    pytest.importorskip("trame.app")
    pytest.importorskip("trame.widgets.vuetify3")
    import asyncio

    import aiohttp

    from ecs_fluid.viz.serve import Page

    turned: list[float] = []
    one = Live(
        Moving(),
        Options(size=(64, 48), smooth=False),
        [Slider("nu", 1.0, 3.0, 1.0, turned.append)],
        4,  # type: ignore[arg-type]
    )
    page = Page(one, "test_watch")
    page.guard("localhost")
    found: dict[str, int] = {}

    async def ask(name: str, path: str, cookie: str | None, **headers: str) -> None:
        port = page.server.port
        held = {} if cookie is None else {f"ecs_fluid_key_{port}": cookie}
        address = f"http://127.0.0.1:{port}"
        async with aiohttp.ClientSession(cookies=held, cookie_jar=aiohttp.CookieJar(unsafe=True)) as client:
            if path == "/ws":
                try:
                    async with client.ws_connect(address + path, headers=headers):
                        found[name] = 101
                except aiohttp.WSServerHandshakeError as refusal:
                    found[name] = refusal.status
                return
            async with client.get(address + path, headers=headers) as answer:
                found[name] = answer.status
                if answer.status == 403:
                    assert "that `ecs-fluid watch --serve` printed" in await answer.text()

    async def use() -> None:
        task = page.server.start(
            host="127.0.0.1", port=0, exec_mode="task", open_browser=False, show_connection_info=False
        )
        await page.server.ready
        simulating = asyncio.ensure_future(page.simulate())
        here = f"http://127.0.0.1:{page.server.port}"
        for path in ("/index.html", "/ws"):
            await ask(f"{path} no key", path, None)
            await ask(f"{path} wrong", path, "wslink-secret")
            await ask(f"{path} other site", path, page.key, Origin="http://evil.example")
            await ask(f"{path} no site", path, page.key, Origin="null")
            await ask(f"{path} other name", path, page.key, Host="evil.example")
            await ask(f"{path} no port", path, page.key, Host="localhost:99999999")
            await ask(f"{path} key", path, page.key, Origin=here)
        await ask("/ wrong key", "/?key=wslink-secret", None)
        await ask("/ key", f"/?key={page.key}", None)
        with page.server.state as state:
            state.share_0 = 0.5
        while one.world.tick < 4:
            await asyncio.sleep(0.01)
        one.quit()
        await simulating
        await asyncio.wait_for(task, 20)

    asyncio.run(asyncio.wait_for(use(), 60))
    let_in = {name: status for name, status in found.items() if status != 403}
    assert let_in == {"/index.html key": 200, "/ws key": 101, "/ key": 200} and len(found) == 16
    assert one.world.tick == 4 and turned[-1] == 2.0 and page.server.state.text_0 == "nu = 2"


def test_a_port_that_is_in_use_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    """And no address before: it was printed, and led to whatever listens there."""
    pytest.importorskip("trame.app")
    pytest.importorskip("trame.widgets.vuetify3")
    with socket.create_server(("localhost", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert main(["watch", "vortex_ring", "--serve", "--port", port, "--size", "64", "48"]) == 2
    said = capsys.readouterr()
    assert said.err == f"error: port {port} is in use; take another by --port\n" and not said.out


@pytest.mark.nightly
def test_idle_connections_do_not_end_a_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """More of them than files that it may open: one sentence, and it answers when they have gone."""
    pytest.importorskip("trame.app")
    psutil = pytest.importorskip("psutil")
    from tests.cli.test_listening import ask, flood, served

    monkeypatch.chdir(tmp_path)
    with served("vortex_ring") as (address, process, told):
        psutil.Process(process).rlimit(psutil.RLIMIT_NOFILE, (100, 100))
        port, entry = urlsplit(address).port or 0, f"/?{urlsplit(address).query}"
        flood(port, 150, lambda: FULL in told.read_text())
        deadline = time.monotonic() + 60
        while ask(port, entry)[0] != 302:
            assert time.monotonic() < deadline
    assert told.read_text().count(FULL) == 1 and "Traceback" not in told.read_text()


@pytest.mark.nightly
@pytest.mark.skipif(program() is None, reason="needs Chromium: apt-get install chromium")
def test_a_browser_shows_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Opened, reloaded, in a second tab, and beside a page at another port; with a wrong key a sentence."""
    pytest.importorskip("trame.app")
    from tests.cli.test_listening import served

    monkeypatch.chdir(tmp_path)
    shown = "[...document.images].some(one => one.naturalWidth > 0)"
    refused = "the key is missing or wrong; open the address that `ecs-fluid watch --serve` printed"

    def picture() -> None:
        browser.wait(shown)
        with Image.open(browser.screenshot(tmp_path / "page.png")) as page:
            assert page.convert("L").crop((300, 100, 600, 600)).getextrema()[1] > 150  # the ring's smoke

    with served("vortex_ring") as (first, _, told), served("vortex_ring") as (second, *_):
        with Browser(tmp_path / "profile", (900, 700)) as browser:
            for address in (first, second, f"{first.partition('?')[0]}index.html"):
                browser.send("Page.navigate", url=address)
                picture()
            browser.send("Page.reload")
            browser.wait(f"!({shown})")
            picture()
            tab = browser.send("Target.createTarget", url=first)["targetId"]
            browser.session = browser.send("Target.attachToTarget", targetId=tab, flatten=True)["sessionId"]
            picture()
            browser.send("Network.clearBrowserCookies")
            for address in (f"{first[:-4]}xxxx", f"{first.partition('?')[0]}index.html"):
                browser.send("Page.navigate", url=address)
                browser.wait(f"document.body.innerText.trim() == {json.dumps(refused)}")
        assert "Traceback" not in told.read_text()


# ------------------------------------------------------------------ the command


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "there is no display for a window; use --serve"),
        (["--serve"], 'pip install "ecs-fluid[watch]"'),
        (["--ticks", "0"], '"0" for --ticks. Must be >= 1.'),
        (["--port", "0"], '"0" for --port. Must be >= 1.'),
    ],
)
def test_what_is_missing_is_told_in_one_sentence(
    arguments: list[str],
    words: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    for name in ("trame", "trame.app"):
        monkeypatch.setitem(sys.modules, name, None)
    assert main(["watch", "vortex_ring", *arguments]) == 2
    said = capsys.readouterr().err.strip()
    assert words in said and said.startswith("error: ") and "\n" not in said


def test_command_passes_everything_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the window replaced: the world of the file and its overrides, options, sliders."""
    from ecs_fluid.viz import probe, window

    got: list[Live] = []
    monkeypatch.setattr(window, "Window", lambda live: SimpleNamespace(run=lambda: got.append(live)))
    monkeypatch.setattr(probe, "require_gl", SimpleNamespace)
    monkeypatch.setenv("DISPLAY", ":99")
    arguments = ["--slide", "fluid.viscosity=1e-6:1e-4", "--set", "ring.radius=2", "--ticks", "7", "--paused"]
    assert main(["watch", "vortex_ring", *arguments, "--look", "vorticity", "--size", "64", "48"]) == 0
    (one,) = got
    assert np.linalg.norm(one.world["ring"][ef.Position].x, axis=1) == pytest.approx(2.0, rel=1e-5)
    assert (one.last_tick, one.paused, one.options.look, one.options.size) == (7, True, "vorticity", (64, 48))
    assert not one.options.off_screen and [slider.label for slider in one.sliders] == ["fluid.viscosity"]
    assert "watched to tick 0" in capsys.readouterr().out


def test_other_commands_load_none_of_it() -> None:
    code = (
        "import sys; from ecs_fluid.cli import main; main(['worlds']); "
        "sys.exit(any(name in sys.modules for name in ('pyvista', 'trame', 'ecs_fluid.viz.window')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=120)
    assert done.returncode == 0, done.stderr
