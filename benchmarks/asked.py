"""Command lines of the benchmarks; not a benchmark itself. ``--help`` prints the docstring of a file."""

from __future__ import annotations

import argparse
from pathlib import Path

from ecs_fluid.shipped_worlds import shipped


def parser(name: str, text: str | None) -> argparse.ArgumentParser:
    """Reader of the arguments of the benchmark with that file name and docstring."""
    raw = argparse.RawDescriptionHelpFormatter
    program = f"python benchmarks/{Path(name).name}"
    return argparse.ArgumentParser(prog=program, description=text, formatter_class=raw)


def nothing(name: str, text: str | None) -> None:
    """For a benchmark that takes no arguments."""
    parser(name, text).parse_args()


def numbers(name: str, text: str | None, what: str, most: int | None = None) -> list[list[int]]:
    """Whole numbers above 0, as the one argument of `main`; none where none is given, for its default."""
    reader = parser(name, text)
    reader.add_argument("numbers", metavar=what, nargs="*", type=positive)
    found = reader.parse_args().numbers
    if most is not None and len(found) > most:
        reader.error(f"at most {most} of {what}")
    return [found] if found else []


def worlds(name: str, text: str | None) -> list[list[str]]:
    """Names of shipped worlds, as the one argument of `main`; none where none is given, for its default."""
    reader = parser(name, text)
    reader.add_argument("worlds", metavar="world", nargs="*", type=shipped_world)
    found = reader.parse_args().worlds
    return [found] if found else []


def shipped_world(text: str) -> str:
    """The name of a shipped world."""
    if text not in shipped():
        raise argparse.ArgumentTypeError(f"{text} is none of the shipped worlds {', '.join(shipped())}")
    return text


def positive(text: str) -> int:
    """A whole number above 0."""
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"{text} is not a whole number above 0")
    return int(text)


def picture(name: str, text: str | None) -> str | None:
    """The file that the benchmark draws into, if one is named."""
    reader = parser(name, text)
    reader.add_argument("picture", metavar="picture.png", nargs="?")
    found = reader.parse_args().picture
    return None if found is None else str(found)
