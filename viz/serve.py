"""A page that shows a world while it is simulated, drawn by this machine and served by trame.

Whoever opens it needs the key in the address that is printed: the first request leaves it in a cookie that no
other site can send, and every later one, that of the WebSocket too, is answered only with that cookie. The
optional packages come with ``pip install "ecs-fluid[watch]"``.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import secrets
import time
from collections.abc import Callable
from typing import Any

from ecs_fluid.connections import raise_open_file_limit
from ecs_fluid.errors import FluidError, optional
from ecs_fluid.viz.live import Live
from ecs_fluid.viz.scene import Scene

REST = 0.02  # s in which the server answers browsers between two ticks, at least

LOOPBACK = ("localhost", "127.0.0.1", "::1")
"""Names of this machine that only it can reach"""


def require_trame() -> None:
    """Raise FluidError, which says how to get it, unless trame is installed."""
    for module in ("trame.app", "trame.ui.vuetify3", "trame.widgets.vtk"):
        optional(module, 'serving needs trame: install it with `pip install "ecs-fluid[watch]"`')


def doorkeeper(key: str, loopback: bool) -> Any:
    """Middleware of aiohttp that answers 403 to requests without the key, and to pages of other sites.

    If only this machine is let in, the host name that the browser used must be one of this machine too: a
    foreign name that resolves to it (DNS rebinding) is refused before any other check.
    """
    from aiohttp import web

    def refused(why: str) -> web.HTTPForbidden:
        return web.HTTPForbidden(text=f"{why}; open the address that `ecs-fluid watch --serve` printed\n")

    @web.middleware
    async def let_in(request: web.Request, handler: Any) -> web.StreamResponse:
        try:
            url = request.url
        except ValueError:  # no port has such a number
            raise refused(f"there is no {request.host!r} here") from None
        name = f"ecs_fluid_key_{url.port}"  # browsers give all ports of a host the same cookies
        if loopback and url.host not in LOOPBACK:
            raise refused(f"there is no {url.host!r} here")
        if request.headers.get("Origin", f"http://{request.host}") != f"http://{request.host}":
            raise refused("a page of another site sent it")
        if request.path == "/" and _same(request.query.get("key", ""), key):
            home = web.HTTPFound("/index.html")
            home.set_cookie(name, key, httponly=True, samesite="Strict")
            raise home
        if not _same(request.cookies.get(name, ""), key):
            raise refused("the key is missing or wrong")
        try:
            answer: web.StreamResponse = await handler(request)
        except ConnectionError:  # the browser has left
            return web.Response()
        if not answer.prepared:
            answer.headers["Cache-Control"] = "no-store"  # the key may be another one the next time
        return answer

    return let_in


def _same(given: str, key: str) -> bool:
    return secrets.compare_digest(given.encode(errors="replace"), key.encode())


def _report_unless_disconnected(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Handle errors that no task awaits as asyncio does, but ignore that a browser has disconnected."""
    if not isinstance(context.get("exception"), ConnectionError):
        loop.default_exception_handler(context)


class Page:
    """The page of a `Live` world: its picture, its buttons and its sliders."""

    def __init__(self, live: Live, name: str = "ecs_fluid") -> None:
        require_trame()
        from trame.app import get_server

        self.live = live
        self.scene = Scene(live.begin(), live.options)
        self.server: Any = get_server(name, client_type="vue3")
        self.key = secrets.token_urlsafe(24)
        live.show(self.scene)
        self.scene.plotter.render_window.Render()
        self._build()

    def guard(self, host: str) -> None:
        """Let in only requests with the key, once the server starts at that address."""
        keeper = doorkeeper(self.key, host in LOOPBACK)
        self.server.controller.on_server_bind.add(lambda served: served.app.middlewares.append(keeper))

    def run(self, host: str, port: int, say: Callable[[str], None]) -> None:
        """Serve until interrupted or told to quit; `say` gets the address with its key once it is served."""
        raise_open_file_limit()
        self.guard(host)
        told = f"serving http://{host}:{port}/?key={self.key} until Ctrl-C"
        self.server.controller.on_server_ready.add(lambda **_: say(told))
        self.server.controller.on_server_ready.add_task(self.simulate)
        try:
            self.server.start(host=host, port=port, open_browser=False, show_connection_info=False, argv=[])
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
            raise FluidError(f"port {port} is in use; take another by --port") from None
        finally:
            self.scene.close()

    def _build(self) -> None:
        from trame.ui.vuetify3 import SinglePageLayout
        from trame.widgets import vtk, vuetify3

        server, live = self.server, self.live
        server.state.status = live.status
        server.state.trame__title = "ecs_fluid"
        with SinglePageLayout(server) as layout:
            layout.title.set_text("ecs_fluid")
            with layout.toolbar:
                vuetify3.VBtn("pause / go on", click=live.toggle)
                vuetify3.VBtn("step", click=live.step)
                for number, slider in enumerate(live.sliders):
                    self._slider(number, slider, vuetify3)
                vuetify3.VSpacer()
                vuetify3.VChip("{{ status }}")
            with layout.content, vuetify3.VContainer(fluid=True, classes="pa-0 fill-height"):
                view = vtk.VtkRemoteView(self.scene.plotter.render_window, interactive_ratio=1)
                server.controller.view_update = view.update

    def _slider(self, number: int, slider: Any, vuetify3: Any) -> None:
        state = self.server.state
        state[f"share_{number}"] = slider.share()
        state[f"text_{number}"] = slider.text
        vuetify3.VSlider(
            v_model=(f"share_{number}",), min=0, max=1, step=0.001, hide_details=True, style="max-width: 16em"
        )
        vuetify3.VLabel(f"{{{{ text_{number} }}}}")

        def turned(**changed: Any) -> None:
            slider.move(float(changed[f"share_{number}"]))
            state[f"text_{number}"] = slider.text

        state.change(f"share_{number}")(turned)

    async def simulate(self, **_: Any) -> None:
        """Advance the world and tell browsers, until told to quit."""
        server, loop = self.server, asyncio.get_running_loop()
        loop.set_exception_handler(_report_unless_disconnected)
        # Messages of wslink on a browser that has left, and a line without content before other errors.
        ignored = ("Cannot write to closing transport", "Exception raised")
        logging.getLogger("wslink.protocol").addFilter(
            lambda record: not any(text in record.getMessage() for text in ignored)
        )
        while not self.live.over:
            started = time.perf_counter()
            if self.live.advance():
                self.live.show(self.scene)
                server.controller.view_update()
            with server.state as state:
                state.status = self.live.status
            # Clicks wait during a tick, so they get half its time afterwards.
            await asyncio.sleep(REST + 0.5 * (time.perf_counter() - started))
        await server.stop()
