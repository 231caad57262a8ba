"""One plain sentence for a command line that cannot be read: what is wrong, and what was probably meant."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

import cyclopts
from cyclopts.exceptions import (
    CoercionError,
    MissingArgumentError,
    UnknownCommandError,
    UnknownOptionError,
    UnusedCliTokensError,
)

from ecs_fluid.validation_errors import closest, shown

LENGTH = "--ticks N sets how many ticks to run, --set world.duration=SECONDS how long in simulated time"
FOREIGN_OPTIONS = {
    "run": dict.fromkeys(("--duration", "--seconds", "--time", "--frames", "--steps", "-n", "-t"), LENGTH),
    "resume": dict.fromkeys(
        ("--duration", "--seconds", "--time", "--frames", "--steps", "--until", "-n", "-t"),
        "--ticks N sets the last tick of the whole run",
    ),
}
"""Hints for options that other programs have, by command."""
FOREIGN_OPTIONS["sweep"] = FOREIGN_OPTIONS["run"]
_COMMAND_HINTS = {
    "run WORLD simulates": "bake simulate sim start play",
    "show RUN --movie a.mp4 makes a movie": "movie film video animate",
    "show RUN --save a.png makes a picture": "render picture plot view image",
    "export RUN --to FORMAT writes other formats": "convert save",
    "worlds lists what ships": "list ls examples",
    "worlds NAME --copy copies a world, to change it": "init new create copy",
    "resume RUN goes on with a run": "continue restart",
    "validate WORLD checks a world": "check lint test",
}
FOREIGN_COMMANDS = {
    word: f"ecs-fluid {meant}" for meant, words in _COMMAND_HINTS.items() for word in words.split()
}
"""Hints for commands that other programs have."""
for _hints in FOREIGN_OPTIONS.values():
    _hints["-o"] = "did you mean --out?"


def sentence(error: cyclopts.CycloptsError, app: cyclopts.App) -> str:
    """What is wrong with a command line, and where help is.

    Args:
        error: what cyclopts raised
        app: all commands, registered
    """
    command = " ".join(error.command_chain or ())
    named = f"ecs-fluid {command}".rstrip()
    match error:
        case UnknownOptionError():
            option = error.token.keyword or error.token.value  # of commands without options it is a value
            text = f"{command} has no option {option}{_option_hint(option, error, command, app)}"
        case UnusedCliTokensError():
            words = " ".join(error.unused_tokens or ())
            text = f"unexpected argument {shown(words)}"
            line = [str(word) for word in error.root_input_tokens or ()]
            takes = "--set" in dict(_options(app)).get(command, ())
            # Members of sweeps are called core=0.1, too.
            loose = [
                word
                for before, word in pairwise(line)
                if before != "--set" and word[:1] != "-" and "/" not in word.partition("=")[0]
            ]
            settings = [f"--set {word}" for word in loose if re.fullmatch("[^=]+=.+", word)]
            if settings and takes:
                text += f"; a setting is given as {' '.join(settings)}"
            elif takes and ("--set" in line or any("=" in word for word in loose)):
                text += "; a setting is one word: --set path=value"
        case MissingArgumentError() if error.argument is not None:
            name = error.keyword or error.argument.name
            given, count = error.argument.tokens or error.keyword, error.argument.token_count()[0]
            needs = "needs a value" if count == 1 else f"needs {count} values, with a space between them"
            text = f"{command}: {name} {needs if given else 'is missing'}{_argument_help(error, name)}"
            line = [str(word) for word in error.root_input_tokens or ()]
            after = next((word for before, word in pairwise(line) if before == name), "")
            if re.match("-[^-]", after):
                text += f"; one that begins with a hyphen is written {name}={after}"
        case UnknownCommandError() if (word := str((error.unused_tokens or [""])[0])) in FOREIGN_COMMANDS:
            text = f"there is no command {shown(word)}; {FOREIGN_COMMANDS[word]}"
        case CoercionError() if error.token is not None and error.target_type in (int, float):
            needed = "a whole number" if error.target_type is int else "a number"
            text = f"{error.token.keyword or 'argument'} {shown(error.token.value)}: {needed} is needed"
        case _:
            text = " ".join(str(error).split())
    return f"{text} (see {named} --help)"


def _option_hint(option: str, error: UnknownOptionError, command: str, app: cyclopts.App) -> str:
    """A hint which option to take in place of one that the command does not have."""
    if guessed := FOREIGN_OPTIONS.get(command, {}).get(option):
        return f"; {guessed}"
    own = [name for argument in error.argument_collection for name in argument.names]
    if close := closest(option, own, 0.7):
        return f"; did you mean {close}?"
    homes = sorted(name for name, names in _options(app) if option in names and name != command)
    if not homes:
        return ""
    listed = re.sub(", ([^,]*)$", r" and \1", ", ".join(homes))
    return f"; it is an option of {listed}"


def _argument_help(error: MissingArgumentError, name: str) -> str:
    """The help text of an argument."""
    arguments = error.app.assemble_argument_collection(parse_docstring=True) if error.app else ()
    found = [argument.parameter.help for argument in arguments if name in argument.names]
    return f": {found[0]}" if found and found[0] else ""


def _options(app: cyclopts.App) -> Iterator[tuple[str, list[str]]]:
    """Each command and the names of its options."""
    for name in app:
        if not name.startswith("-") and app[name].default_command is not None:
            arguments = app[name].assemble_argument_collection(parse_docstring=False)
            yield name, [option for argument in arguments for option in argument.names]
