"""Errors meant for the user who caused them: one sentence, no traceback at the command line."""

from __future__ import annotations

from lzma import LZMAError
from struct import error as StructError
from tokenize import TokenError
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
"""What h5py, NumPy and zipfile raise, among others, on a file whose bytes are not those that were written."""

NPZ_DAMAGE = (*DAMAGE, EOFError, SyntaxError, TokenError, BadZipFile, StructError, ZlibError, LZMAError)
"""The same of an archive of arrays, whose headers NumPy reads as Python's literals.

RuntimeError: an encrypted member, nested too deep, compressed by a method unknown.
"""


class FluidError(Exception):
    """Bad input or a run that cannot go on; the text says what, where, which value and what is allowed.

    The command line prints the text alone and exits with code 2.
    """


class ComponentError(FluidError):
    """A component was given arrays it cannot hold."""


class ScheduleError(FluidError):
    """Systems that cannot be put in one order, or that touch what they did not declare."""


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
