"""Errors meant for the user who caused them: one sentence, no traceback at the command line."""

from __future__ import annotations


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


class DivergedError(FluidError):
    """The simulation produced a non-finite number; the world is back at its last good state."""


class FluidWarning(UserWarning):
    """Something looks physically wrong or coarse; the text says what and what to change."""
