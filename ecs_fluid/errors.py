"""Errors for the user who caused them: one sentence, without a traceback at the command line."""

from __future__ import annotations

import errno
import importlib
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from lzma import LZMAError
from struct import error as StructError
from tokenize import TokenError
from typing import Any, NoReturn
from zipfile import BadZipFile
from zlib import error as ZlibError

DAMAGE = (
    KeyError,
    ValueError,
    TypeError,
    RuntimeError,
    IndexError,
    AttributeError,
    ArithmeticError,
    MemoryError,
)
"""Errors of h5py, NumPy and zipfile, among others, on a damaged file."""

NPZ_DAMAGE = (*DAMAGE, EOFError, SyntaxError, TokenError, BadZipFile, StructError, ZlibError, LZMAError)
"""The same for an archive of arrays (.npz), whose headers NumPy reads as literals of Python.

RuntimeError comes from a member that is encrypted, nested too deeply, or compressed by an unknown method.
"""


STOPS = (MemoryError, RecursionError, OverflowError, OSError, ModuleNotFoundError)
"""Errors that the size of the input, or the machine, causes."""

VIEW = ("pyvista", "vtk", "vtkmodules", "matplotlib")
"""Packages that only pictures, surfaces and mesh files need."""


def printable(text: str) -> str:
    """Text on one line for a terminal: what could move its cursor or turn its letters around is escaped."""
    return "".join(" " if c.isspace() else c if c.isprintable() else ascii(c)[1:-1] for c in text)


class FluidError(Exception):
    """Bad input or a run that cannot go on; the text says what, where, which value and what is allowed.

    The command line prints the text alone and exits with code 2.
    """

    def __str__(self) -> str:
        return printable(super().__str__())  # it may quote a stranger's file


@contextmanager
def sentences() -> Iterator[None]:
    """Raise FluidError in place of the errors in `STOPS`; also a decorator."""
    try:
        yield
    except STOPS as error:
        raise_sentence(error)


def raise_sentence(error: BaseException) -> NoReturn:
    """Raise FluidError, with a sentence, in place of one of `STOPS`."""
    match error:
        case BrokenPipeError():  # whoever read the output wants no more of it
            raise error
        case ModuleNotFoundError(name=str(name)) if name.partition(".")[0] in VIEW:
            text = (
                "pictures, surfaces and mesh files need PyVista and VTK, which are not installed; install "
                "them with: pip install 'ecs-fluid[view]'"
            )
        case ModuleNotFoundError():
            raise error
        case MemoryError():
            text = f"there is not enough memory for this; make it smaller ({error})"
        case RecursionError():
            text = "the input is nested too deeply; use fewer levels"
        case OSError(errno=errno.ENOENT, filename=None):
            text = "the working folder no longer exists; change to one that does"
        case OSError():
            where = "" if error.filename is None else f"{error.filename}: "
            text = f"{where}the operating system refused it: {error.strerror or error}"
        case _:
            text = f"a number is too large, or too near to 0, to compute with ({error})"
    raise FluidError(text) from error


def optional(module: str, sentence: str) -> Any:
    """A module of a package that need not be installed; where it is not, FluidError with this sentence."""
    try:
        return importlib.import_module(module)
    except ImportError:
        raise FluidError(sentence) from None


class ComponentError(FluidError):
    """A component was given arrays it cannot hold."""


class ScheduleError(FluidError):
    """Systems that cannot be put in one order, or that touch what they did not declare."""


class UnknownEntityError(FluidError):
    """An entity that the world does not have."""

    name: str = ""
    """the name that was asked for; empty once the text says where it stands"""


class RecipeError(FluidError):
    """A world file or a recipe that cannot be understood."""


class StorageError(FluidError):
    """A run folder, trajectory or checkpoint that cannot be read or written."""


class LimitError(RecipeError, StorageError):
    """What a world or a file asks for is more than the `limits` allow."""


class DivergedError(FluidError):
    """The simulation produced a non-finite number; the world is back at its last good state."""


class FluidWarning(UserWarning):
    """Something looks physically wrong or coarse; the text says what and what to change."""


def warn(text: str, level: int = 2) -> None:
    """Issue a FluidWarning, which names the line that is so many calls up from here."""
    warnings.warn(text, FluidWarning, stacklevel=level + 1)


# Each world gives a warning once, by itself; by default, Python would drop one that another world has given
# from the same line. Filters of users come first.
warnings.simplefilter("always", FluidWarning, append=True)
