"""The plan of a sweep: checked before anything runs, and stored in sweep.json."""

from __future__ import annotations

import copy
import json
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field

from ecs_fluid.arguments import names_of, whole_number_or_none
from ecs_fluid.errors import RecipeError, StorageError
from ecs_fluid.io.disk import replace_text, storage_error
from ecs_fluid.io.lock import LOCK
from ecs_fluid.io.provenance import Provenance, differences, digest_of, provenance, refuse_other_provenance
from ecs_fluid.io.runfolder import RECIPE
from ecs_fluid.io.untrusted import read_document
from ecs_fluid.own_code import code_named_in
from ecs_fluid.sweeps.axes import Point, labels, name_of, setting
from ecs_fluid.validation_errors import nearest, shortened, validated
from ecs_fluid.world_files import read_tables
from ecs_fluid.worlds.files import data_file, files_from
from ecs_fluid.worlds.overrides import override
from ecs_fluid.worlds.world_recipe import WorldRecipe, recipe_of, shipped

FORMAT = "ecs_fluid sweep"
VERSION = 1
FILE = "sweep.json"
STOP = "stop"
DIAGNOSTICS = {
    "vortons": "", "strength": "m^3/s", "impulse": "m^4/s", "angular_impulse": "m^5/s", "speed": "m/s",
    "overlap": "", "energy": "m^5/s^2", "enstrophy": "m^3/s^2", "helicity": "m^4/s^2", "dt_grad_u": "",
    "jerk": "m/s^3", "velocity_error": "", "force_by_tracers": "N", "force_by_vortons": "N",
    "liquid_mass": "kg", "liquid_center": "m", "liquid_kinetic": "J", "liquid_energy": "J",
    "liquid_dissipated": "J", "liquid_work": "J", "liquid_density": "",
}  # fmt: skip
"""Names and units of what DiagnosticsSystem records."""

VECTORS = ("strength", "impulse", "angular_impulse", "force_by_tracers", "force_by_vortons", "liquid_center")
"""Those of the diagnostics that are vectors."""


class _Member(BaseModel, strict=True):
    name: str = Field(pattern=r"^[^./\\][^/\\]*$")
    values: dict[str, Any]


class _Stored(BaseModel, strict=True):
    """Entries of ``sweep.json`` that are read again, besides the definition of the sweep."""

    members: list[_Member]
    computed_with: list[Provenance] = Field(min_length=1)


@dataclass
class Plan:
    """A world, what is set for all members, and the members.

    Attributes:
        world, source, home: name, file and folder of the world; file and folder are "" for one from Python.
        settings: ``path=value`` overrides for all members.
        tables: tables of the world file, with these settings.
        vary: values by path, for a sweep of all combinations; None for a study whose points come one by one.
        ticks: ticks of every member; None for the world's own duration.
        allow_code: whether the world may name classes by import path.
        points: members by name.
        anyway: whether to continue a sweep that other versions or another processor computed.
        former_provenance: what the sweep was computed with so far (`computed_with`), oldest first.
        remarks: sentences of the recipes' lints.
    """

    world: str
    source: str
    home: str
    settings: tuple[str, ...]
    tables: dict[str, Any]
    vary: dict[str, list[Any]] | None
    ticks: int | None
    allow_code: bool
    points: dict[str, Point] = field(default_factory=dict)
    anyway: bool = False
    former_provenance: list[dict[str, str]] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)

    @classmethod
    def of(
        cls,
        world: str | Path | Mapping[str, Any] | WorldRecipe,
        settings: str | Sequence[str] = (),
        ticks: int | None = None,
        allow_code: bool = False,
    ) -> Plan:
        """A plan without members, for a world given as to `ecs_fluid.load`; raises RecipeError."""
        ticks = whole_number_or_none(ticks, "ticks", 1)
        settings = tuple(names_of(settings, "settings", "a text 'ring.core=0.2' or a list of such texts"))
        recipe = recipe_of(world, settings, allow_code)  # raises at once for errors in the world itself
        if isinstance(world, WorldRecipe | Mapping):
            name, source, home, tables = "world", "", str(recipe._folder or ""), recipe.tables()
            # Classes that this process has loaded need no leave here, but workers have to load them.
            allow_code = allow_code or (not home and bool(code_named_in(tables)))
        else:
            path = (shipped().get(str(world)) or Path(world)).resolve()
            name, source, home, tables = path.stem, str(path), str(path.parent), read_tables(path)
        for text in settings:
            override(tables, text)
        return cls(name, source, home, settings, tables, None, ticks, allow_code)

    def add(self, points: Iterable[Point]) -> list[str]:
        """Check these points and add their members; returns their names. Raises RecipeError for a bad one."""
        points = list(points)
        short = labels(dict.fromkeys(path for point in (*self.points.values(), *points) for path in point))
        if self.vary is None:
            short = {}  # later points may hold other paths, and names must not change
        named = [(name_of(point, short), point) for point in points]
        new = {name: dict(point) for name, point in named if name not in self.points}
        for name, point in new.items():
            self._check(name, point)
        self.points |= new
        return [name for name, _ in named]

    def seed(self) -> int:
        """Seed of the world without the values of a member."""
        return self.recipe_of({}).world.seed

    def command(self, point: Point, folder: Path) -> str:
        """The command that makes the member with the values of `point`, in `folder`, on its own.

        A world from Python has no file but that of the member, which has these values.
        """
        parts = ["ecs-fluid", "run", self.source or str(folder / RECIPE)]
        values = (setting(path, value) for path, value in point.items())
        for text in (*self.settings, *values) if self.source else ():
            parts += ["--set", text]
        if self.ticks is not None:
            parts += ["--ticks", str(self.ticks)]
        return shlex.join([*parts, "--allow-code"] if self.allow_code else parts)

    def recipe_of(self, point: Point) -> WorldRecipe:
        """The checked recipe of the world with the values of `point`."""
        place = Path(self.source).name or self.world
        home = Path(self.home) if self.home else None
        tables = copy.deepcopy(self.tables)
        for path, value in point.items():
            override(tables, setting(path, value))
        return WorldRecipe.from_tables(tables, place, self.allow_code, home)

    def check_diagnostics(self, names: Sequence[str]) -> None:
        """Raise RecipeError for a diagnostic that no run can record."""
        if any(":" in str(item.get("kind")) for item in self.tables.get("system", ())):
            return  # the user's own systems may record anything
        for name in names:
            whole, _, part = name.partition(".")
            parts = ("", "x", "y", "z") if whole in VECTORS else ("",)
            if whole not in DIAGNOSTICS or name.count(".") > len(part) or part not in parts:
                hint = (
                    "its parts are x, y and z"
                    if whole in VECTORS
                    else f"{whole} is one number, without parts"
                )
                hint = hint if whole in DIAGNOSTICS else nearest(whole, DIAGNOSTICS)
                raise RecipeError(f"diagnostics: {name!r} is not known; {hint}")

    def _check(self, name: str, point: Point) -> None:
        """Raise RecipeError for a member that cannot be made; add to the remarks what looks wrong in it."""
        try:
            recipe = self.recipe_of(point)
            self._check_distinct(point)
        except RecipeError as error:
            text = str(error).replace("setting ", "vary ", 1)
            raise RecipeError(f"sweep member {name}: {text}") from None
        every = recipe.fluid.diagnostics.get("every", 10)
        ticks = self.ticks or recipe.ticks
        remarks = recipe.lint()
        if not 1 <= every <= ticks:
            remarks.append(
                f"diagnostics are recorded every {every} ticks, but a member has only {ticks}, so the "
                "table stays empty; set fluid.diagnostics.every=1"
            )
        self.remarks += [text for text in remarks if text not in self.remarks]

    def _check_distinct(self, point: Point) -> None:
        """Raise RecipeError when two paths set the same value, as one would silently overwrite the other."""
        tables = copy.deepcopy(self.tables)
        for number, (path, value) in enumerate(point.items()):
            override(tables, setting(path, value))
            for former in list(point)[:number]:
                again = copy.deepcopy(tables)
                override(again, setting(former, point[former]))
                if again != tables:
                    raise RecipeError(f"{former} and {path} set the same value; vary only one of them")

    # ------------------------------------------------------------------ sweep.json

    def definition(self) -> dict[str, Any]:
        """What defines this sweep, as JSON: where it differs, the sweep is another one."""
        plain = {key: getattr(self, key) for key in ("world", "tables", "vary", "ticks")}
        found: dict[str, Any] = json.loads(json.dumps(plain, default=str))
        named = [text for place, text in _leaves(found) if place.endswith(".file")]
        if names := [str(name) for text in named for name in json.loads(f"[{text}]")]:
            with files_from(self.home) if self.home else nullcontext():
                files = {name: data_file(name) for name in names}
            found["files"] = {name: _digest(path, *_stamp(path)) for name, path in files.items()}
        return found

    def computed_with(self) -> dict[str, str]:
        """Provenance of this process, with digests of the user's modules, which must be loaded already."""
        return {**provenance(), **code_named_in(self.tables)}

    def save(self, folder: Path, status: str) -> None:
        """Write sweep.json: definition, provenance and members."""
        now = self.computed_with()
        document = {
            "format": FORMAT,
            "version": VERSION,
            "status": status,
            **self.definition(),
            "source": self.source,
            "settings": list(self.settings),
            "allow_code": self.allow_code,
            "computed_with": [
                *self.former_provenance,
                *([now] if self.former_provenance[-1:] != [now] else []),
            ],
            "members": [{"name": name, "values": point} for name, point in self.points.items()],
        }
        text = json.dumps(document, indent=2, default=str) + "\n"
        replace_text(folder / FILE, text, "write sweep information")

    def adopt_stored(self, folder: Path) -> list[str]:
        """Take over the members of the sweep in `folder`, if there is one; returns remarks.

        Raises StorageError: the folder holds another sweep (the error names the first difference) or other
        files, or the sweep so far was computed with something else and `anyway` is not set.
        """
        path = folder / FILE
        if not path.exists():
            names = sorted(item.name for item in folder.iterdir()) if folder.is_dir() else []
            if foreign := [name for name in names if name not in (STOP, LOCK)]:
                raise StorageError(
                    f"{folder} is not empty and holds no sweep (it holds {foreign[0]!r}); choose another "
                    "folder"
                )
            return []
        stored = read_document(folder, "sweep", VERSION)
        if difference := _difference({key: stored.get(key) for key in self.definition()}, self.definition()):
            raise StorageError(
                f"{folder} holds another sweep: {difference}; give the same sweep again to continue it, or "
                "choose another folder"
            )
        validated(_Stored, stored, f"{path} is damaged", StorageError)
        self.points = {item["name"]: item["values"] for item in stored["members"]} | self.points
        *_, then = self.former_provenance = stored["computed_with"]
        refuse_other_provenance(folder, then, self.anyway, self.computed_with())
        found = differences(then, self.computed_with())
        return [f"earlier members were computed with {text}, so bits may differ" for text in found]


def _stamp(path: Path) -> tuple[int, int]:
    try:
        found = path.stat()
    except OSError as error:
        raise storage_error(error, "read", path) from error
    return found.st_mtime_ns, found.st_size


@cache
def _digest(path: Path, *stamp: int) -> str:
    """Digest of a data file, read again only when its `stamp` has changed."""
    return digest_of(path)


def _difference(old: dict[str, Any], new: dict[str, Any]) -> str:
    """The first difference of two JSON documents in words, empty if there is none."""
    then, now = dict(_leaves(old)), dict(_leaves(new))
    for place in {**then, **now}:
        was, is_ = then.get(place, "absent"), now.get(place, "absent")
        if was != is_:
            shown = place.removeprefix(".tables.").removeprefix(".vary.").removeprefix(".")
            return f"{shown} was {shortened(was, 80)} and is now {shortened(is_, 80)}"
    return ""


def _leaves(value: Any, place: str = "") -> Iterator[tuple[str, str]]:
    """Paths in a JSON value and the values there, as text, since 1 and 1.0 give members different names."""
    if isinstance(value, list) and all(isinstance(item, dict) for item in value):
        value = dict(enumerate(value))  # tables of [[entity]] and [[system]]
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _leaves(item, f"{place}.{key}")
    else:
        yield place, "the world's own" if value is None else json.dumps(value).strip("[]")
