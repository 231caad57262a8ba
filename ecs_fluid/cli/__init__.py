"""The command line: ``ecs-fluid run WORLD`` and the other commands.

Bad input ends with one sentence on standard error and exit code 2, never with a traceback.
"""

from __future__ import annotations

import os
import signal
import sys
import warnings
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from io import TextIOWrapper
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

import cyclopts
from cyclopts.validators import Number
from rich.console import Console
from rich.text import Text

from ecs_fluid import __version__
from ecs_fluid.arguments import MOST_THREADS
from ecs_fluid.environment import check_environment
from ecs_fluid.errors import FluidError, FluidWarning, printable, sentences
from ecs_fluid.shipped_worlds import shipped
from ecs_fluid.signals import interrupt, send_nowhere, stop_signals


def _converted(kind: Any, tokens: Sequence[cyclopts.Token]) -> Any:
    """Values of an option. Refuses '', which cyclopts would take for the working folder, and fractions where
    whole numbers are needed, which it would round.
    """
    for token in tokens:
        if not token.value:
            raise FluidError(f"{token.keyword or 'argument'} '': a value is needed")
    if int in (kind, *get_args(kind)):
        for token in tokens:
            try:
                whole = float(token.value).is_integer()
            except ValueError:
                continue  # no number, or one in another base: left to cyclopts
            if not whole:
                raise FluidError(f"{token.keyword or 'argument'} {token.value}: a whole number is needed")
    return cyclopts.convert(kind, tokens)


def _default(default: Any) -> Any:
    """A default as the help shows it; None, which shows nothing, for flags that are off and empty lists."""
    if isinstance(default, tuple) and default:
        return " ".join(map(str, default))
    return None if default is False or default == () else default


class _Pipe(Console):
    """A console that leaves a closed pipe (``| head``) to `main`; rich would end with exit code 1."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


class _Console(_Pipe):
    """A console that makes all text printable: it may come from a stranger's file."""

    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(printable(text), **options)


app = cyclopts.App(
    name="ecs-fluid",
    help="Vortex-particle fluids: compose a world, run it, look at it.",
    version=__version__,
    default_parameter=cyclopts.Parameter(converter=_converted, negative="", show_default=_default),
    help_format="plaintext",
    console=_Pipe(),
    suppress_keyboard_interrupt=False,
    print_error=False,
    exit_on_error=False,
)


Frames = Annotated[
    str | None,
    cyclopts.Parameter(
        help="stored frames, first:stop:step (stop not included) or one number; default all",
        allow_leading_hyphen=True,
    ),
]
"""Option of the commands that work on some frames of a run."""

Ticks = Annotated[int | None, cyclopts.Parameter(validator=Number(gte=1, lt=2**63))]
Threads = Annotated[
    int | None,
    cyclopts.Parameter(
        help="threads for the kernels; default all cores", validator=Number(gte=1, lte=MOST_THREADS)
    ),
]

if TYPE_CHECKING:
    WorldName = str
else:  # names for shell completion; a file is allowed too
    WorldName = Annotated[Literal[tuple(shipped())] | str, cyclopts.Parameter(show_choices=False)]
"""A shipped name or a world file."""


class _Messages(_Console):
    """Messages that cannot be written (to a full disk, to a closed pipe) do not end a run."""

    def print(self, *said: Any, **options: Any) -> None:
        try:
            super().print(*said, **options)
        except OSError:
            send_nowhere(sys.stderr.fileno())


out = _Console(markup=False, highlight=False, soft_wrap=True, emoji=False)
err = _Messages(stderr=True, markup=False, highlight=False, soft_wrap=True, emoji=False)


def warn(message: object) -> None:
    """Print a warning."""
    err.print(f"warning: {message}", style="yellow")


def _show_warning(
    message: Warning | str, category: type[Warning], filename: str, lineno: int, *rest: Any, **more: Any
) -> None:
    from ecs_fluid.plugins import is_users

    if issubclass(category, FluidWarning) or category.__module__.startswith("ecs_fluid."):
        warn(message)
    elif is_users(filename):  # of a system of the user's; what libraries warn each other of is left out
        warn(f"{message} (line {lineno} of {filename})")


def _flush() -> None:
    """Write out what was printed; what cannot be written is discarded, or Python would fail at its end."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError:
        send_nowhere(sys.stdout.fileno())  # what is in its buffer, too
        raise


COMMANDS = {
    "bench": "bench",
    "completion": "completion",
    "export": "export",
    "info": "info",
    "look": "show",
    "page": "page",
    "reference": "help",
    "run": "run resume warmup",
    "sweep": "sweep",
    "watch": "watch",
    "worlds": "worlds validate schema",
}
"""Modules of this package, and the commands that each registers when it is imported."""


def register(command: str = "") -> None:
    """Import the module of a command, or all modules for an unknown one; each import takes time."""
    found = [module for module, names in COMMANDS.items() if command in names.split()]
    for module in found or COMMANDS:
        import_module(f"{__name__}.{module}")


def main(arguments: list[str] | None = None) -> int:
    """Entry point of the ``ecs-fluid`` command; returns the exit code."""
    warnings.showwarning = _show_warning
    warnings.simplefilter("always", FluidWarning)
    if isinstance(sys.stdout, TextIOWrapper):  # what its encoding lacks is told by numbers, as on stderr
        sys.stdout.reconfigure(errors="backslashreplace")
    if arguments is None:
        for number in stop_signals():
            if number != signal.SIGINT:  # which raises KeyboardInterrupt already
                signal.signal(number, interrupt)
    try:
        with sentences():
            check_environment()
            given = sys.argv[1:] if arguments is None else arguments
            if sys.flags.optimize > 1 and not {"help", "--help", "-h", "--schedule"}.isdisjoint(given):
                warn("Python was started with -OO (PYTHONOPTIMIZE=2), which drops most of these descriptions")
            register(*given[:1])
            result = app(given, result_action="return_value")
            _flush()
    except FluidError as error:
        err.print(f"error: {error}", style="bold red")
        return 2
    except cyclopts.CycloptsError as error:
        from ecs_fluid.cli.mistakes import sentence

        register()
        err.print(f"error: {sentence(error, app)}", style="bold red")
        return 2
    except BrokenPipeError:
        return 0
    except KeyboardInterrupt:
        err.print("stopped", style="yellow")
        if arguments is None:
            with suppress(OSError):
                _flush()
            os._exit(130)  # a second Ctrl-C must not hit Python's own exit, during which threads may compile
        return 130
    finally:
        with suppress(OSError):
            _flush()
    return result if isinstance(result, int) else 0
