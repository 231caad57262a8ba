"""Orders systems by phase and by the tables they read and write, and refuses ambiguous orders."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from ecs_fluid.component import Component
from ecs_fluid.errors import ScheduleError
from ecs_fluid.html import table as html_table
from ecs_fluid.system import PHASES, System

HEAD = ("phase", "system", "reads", "writes", "last ms")

REPEATED = ("prepare", "rates")
"""Phases that run once for every stage of the integrator."""


@dataclass
class Schedule:
    """Systems of a world in the order in which they run; prints as a table."""

    phases: dict[str, list[System]] = field(default_factory=lambda: {name: [] for name in PHASES})

    @property
    def systems(self) -> list[System]:
        """All systems in running order."""
        return [system for phase in PHASES for system in self.phases[phase]]

    def __str__(self) -> str:
        return _table([HEAD, *self._rows()])

    def _repr_html_(self) -> str:
        return html_table("Schedule", HEAD, self._rows())

    def _rows(self) -> list[tuple[str, ...]]:
        """For each system: phase, name, what it reads and writes, and its time in the last tick, ms."""
        rows: list[tuple[str, ...]] = []
        for system in self.systems:
            touched = [kind.__name__ for kind in system.writes]
            touched += [f"+{kind.__name__}" for kind in system.adds]
            reads = [kind.__name__ for kind in system.reads]
            if system.integrates:
                reads, touched = ["every rate"], ["every state with a rate"]
            listed = ", ".join(reads) or "-", ", ".join(touched) or "-"
            rows.append((system.phase, type(system).__name__, *listed, f"{1e3 * system._timing.last:.3f}"))
        return rows

    def summary(self) -> str:
        """A table of the systems in running order, each with what it computes in a line."""
        named = [(system.phase, type(system).__name__, system.summary()) for system in self.systems]
        return _table([("phase", "system", "computes"), *named])


def _table(rows: Sequence[Sequence[str]]) -> str:
    """Rows of text in aligned columns; the first row, the head, is underlined."""
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
    lines.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join(line.rstrip() for line in lines)


def build_schedule(systems: Iterable[System]) -> Schedule:
    """Sort `systems`; raise ScheduleError, naming both systems and the fix, when they cannot be."""
    systems = list(systems)
    schedule = Schedule()
    reads = {id(system): _all_reads(system, systems) for system in systems}
    for phase in PHASES:
        members = [system for system in systems if system.phase == phase]
        schedule.phases[phase] = _order(phase, members, systems, reads)
    _check_reads(schedule)
    _check_adds(schedule)
    return schedule


Reads = dict[int, set[type[Component]]]
"""Components that each system reads, by id(system): its own, and those of systems whose methods it calls."""


def _all_reads(system: System, everyone: list[System]) -> set[type[Component]]:
    """What the system reads, itself or by the methods that it calls, directly or through others."""
    own = {*system.reads, *system.may_read}
    if Component in own:
        own.update(kind for other in everyone for kind in (*other.writes, *other.adds))
    called = [system]
    for caller in called:
        for other in everyone:
            if other not in called and may_ask(caller, other):
                called.append(other)
    # What the system itself changes counts as read only if it declares to read it.
    changed = {*system.writes, *system.adds}
    touched = {kind for other in called for kind in (*other.reads, *other.may_read, *other.writes)}
    return own | (touched - changed)


def matches(system: System, name: type[System] | str) -> bool:
    """Whether an item of `before`, `after` or `asks` means this system: a class, its name, or "*".

    In debug mode it may be a system as another one sees it, whose type is not its class.
    """
    if isinstance(name, str):
        return name == "*" or any(base.__name__ == name for base in system.__class__.__mro__)
    return isinstance(system, name)


def may_ask(caller: System, other: System) -> bool:
    """Whether the caller declares to call methods of the other; winds are parts of the flow it asks for."""
    if any(matches(other, name) for name in caller.asks):
        return True
    asks = [getattr(name, "__name__", name) for name in caller.asks]
    return hasattr(other, "add_wind") and "VelocitySystem" in asks


def makers_of_vorticity(systems: Iterable[System], by_weight: bool) -> list[str]:
    """Names of the systems that make vorticity, by the weight of excess density or otherwise."""
    return [type(one).__name__ for one in systems if one.makes_vorticity and one.by_weight == by_weight]


def named(systems: Iterable[System], name: str) -> list[Any]:
    """The systems of the class of that name or derived from it, for modules that cannot import the class."""
    return [system for system in systems if matches(system, name)]


def _order(phase: str, members: list[System], everyone: list[System], reads: Reads) -> list[System]:
    """Stable topological order of one phase."""
    declared = _declared(members, everyone)
    later = [set(after) for after in declared]
    own = {id(system): {*system.reads, *system.may_read} for system in members}
    for i, a in enumerate(members):
        for j, b in enumerate(members):
            # If b is declared to run before a, it may still call a: then only what b itself reads counts.
            if i != j and _feeds(a, b, own if i in declared[j] else reads):
                later[i].add(j)
    return [members[i] for i in _sort(phase, members, later, reads)]


def _declared(members: list[System], everyone: list[System]) -> list[set[int]]:
    """For each member, the numbers of those that `before` and `after` put behind it."""
    later: list[set[int]] = [set() for _ in members]
    for i, system in enumerate(members):
        for listed in ("before", "after"):
            for other in getattr(system, listed):
                _check_phase(system, listed, other, everyone)
                for j in _matching_members(members, i, listed, other):
                    first, second = (i, j) if listed == "before" else (j, i)
                    later[first].add(second)
    return later


def _matching_members(members: list[System], i: int, listed: str, other: type[System] | str) -> Iterator[int]:
    """Numbers of the members that `other` means, an item of `before` or `after` (`listed`) of member i."""
    for j, member in enumerate(members):
        # A "*" gives way to a member that names this system in its own list.
        if (
            j != i
            and matches(member, other)
            and not (other == "*" and _lists_by_name(member, members[i], listed))
        ):
            yield j


def _lists_by_name(member: System, system: System, listed: str) -> bool:
    """Whether the member lists this system in its `before` or `after`, other than by "*"."""
    names = member.before if listed == "before" else member.after
    return any(other != "*" and matches(system, other) for other in names)


def _check_phase(system: System, listed: str, other: type[System] | str, everyone: list[System]) -> None:
    for target in everyone:
        if other != "*" and matches(target, other) and target.phase != system.phase:
            raise ScheduleError(
                f"{type(system).__name__}.{listed} names {type(target).__name__}, which runs in the phase "
                f"{target.phase!r}, not {system.phase!r}; before and after order systems of one phase"
            )


def _feeds(a: System, b: System, reads: Reads) -> bool:
    """Whether data flows from a to b within a phase: derived tables are written, added to, then read."""
    for kind in a.writes:
        if kind.derived and kind not in b.writes and (kind in b.adds or kind in reads[id(b)]):
            return True
    # A reader of a rate needs all of it, so it comes after all systems that only add to it.
    return any(
        kind in reads[id(b)] and kind not in b.writes and not (kind in b.adds and kind in reads[id(a)])
        for kind in a.adds
    )


def _sort(phase: str, members: list[System], later: list[set[int]], reads: Reads) -> list[int]:
    """Numbers of the members in running order; `later` lists for each the members that come after it."""
    count = len(members)
    order: list[int] = []
    while left := set(range(count)).difference(order):
        free = left.difference(*(later[i] for i in left))
        if not free:
            raise ScheduleError(_cycle(phase, members, later, left))
        order.append(min(free))
    reach: dict[int, set[int]] = {}
    for i in reversed(order):
        reach[i] = later[i].union(*(reach[j] for j in later[i]))
    for i in range(count):
        for j in range(i + 1, count):
            shared = _conflict(members[i], members[j], reads)
            if type(members[i]) is type(members[j]):
                if members[i].several:
                    continue
                if members[i].several is False:
                    raise ScheduleError(
                        f"there are two systems {type(members[i]).__name__}, which would do the same twice; "
                        "keep one of them"
                    )
            if shared is not None and j not in reach[i] and i not in reach[j]:
                a, b = type(members[i]).__name__, type(members[j]).__name__
                if type(members[i]) is type(members[j]):
                    raise ScheduleError(
                        f"there are two systems {a}, and both access {shared.__name__}; keep one of them"
                    )
                raise ScheduleError(
                    f"{a} and {b} both access {shared.__name__} in the phase {phase!r}, but nothing says "
                    f"which of them runs first; give one of them before or after, for example {b}.after = "
                    f"({a},)"
                )
    return order


def _conflict(a: System, b: System, reads: Reads) -> type[Component] | None:
    """A component that both touch and at least one changes, so that their order matters; None without."""
    for first, second in ((a, b), (b, a)):
        for kind in first.writes:
            if kind in reads[id(second)] or kind in second.writes or kind in second.adds:
                return kind
    both = reads[id(a)] & reads[id(b)]
    return next((kind for kind in a.adds if kind in b.adds and kind in both), None)


def _cycle(phase: str, members: list[System], later: list[set[int]], left: set[int]) -> str:
    """The sentence on a circle among the members `left`, none of which can come first."""
    node = min(left)
    path: list[int] = []
    while node not in path:
        path.append(node)
        node = min(i for i in left if node in later[i])
    loop = [*path[path.index(node) :], node][::-1]
    names = [type(members[i]).__name__ for i in loop]
    if len(set(names)) == 1:
        return (
            f"there are {len(loop) - 1} systems {names[0]} in the phase {phase!r}, each of which must run "
            "before or after all others; keep one of them"
        )
    return (
        f"the systems of the phase {phase!r} are ordered in a circle: {' before '.join(names)}; remove one "
        "before or after, or move one system to another phase"
    )


def _check_reads(schedule: Schedule) -> None:
    """Every derived table that is read must have been filled earlier in the tick."""
    filled: set[type[Component]] = set()
    for system in schedule.systems:
        _check_rates(system)
        _check_symmetric(system)
        for kind in (*system.reads, *system.may_read):
            # In and after the phase rates, a rate to which nobody adds is 0. Before, it is not complete: in
            # the phase spawn it is that of the last tick.
            early = kind.rate_of is None or system.phase in ("spawn", "prepare")
            wanted = kind in system.reads or _late_writer(schedule, kind)
            if kind.derived and early and wanted and kind not in filled | {*system.writes}:
                late, remedy = _late_writer(schedule, kind), f"add a system that writes {kind.__name__}"
                able = [type(one).__name__ for one in schedule.systems if kind in type(one).writes]
                if able and not late:
                    remedy = f"{able[0]} would, but its parameters leave it out"
                raise ScheduleError(
                    f"{type(system).__name__} reads {kind.__name__}, which no system writes before it; "
                    f"{remedy}{late}"
                )
        filled.update(system.writes, system.adds)


def _check_symmetric(system: System) -> None:
    """A symmetric system also runs before the stages, when no derived table is filled yet."""
    for kind in (*system.reads, *system.may_read, *system.writes, *system.adds):
        if system.symmetric and kind.derived:
            raise ScheduleError(
                f"{type(system).__name__} is symmetric and accesses {kind.__name__}, which is not filled "
                "yet when its first half runs; a symmetric system may access state only"
            )


def _check_rates(system: System) -> None:
    """A rate counts only between the moment it is cleared and the moment it is integrated."""
    lost = {"spawn": (*system.adds, *system.writes), "prepare": (), "rates": ()}
    for kind in lost.get(system.phase, system.adds):
        if kind.rate_of is not None:
            raise ScheduleError(
                f"{type(system).__name__} changes the rate {kind.__name__} in the phase {system.phase!r}, "
                f"where it has no effect; set {type(system).__name__}.phase = 'rates'"
            )


def _check_adds(schedule: Schedule) -> None:
    """A system that adds to a derived table must run after its writer, and before one of its readers."""
    systems = schedule.systems
    for place, system in enumerate(systems):
        for kind in system.adds:
            if kind.rate_of is None and kind.derived:
                _check_added(systems, place, kind)


def _check_added(systems: list[System], place: int, kind: type[Component]) -> None:
    """Check that what the system at `place` of the running order adds to a derived table has an effect."""
    name, phase = type(systems[place]).__name__, systems[place].phase
    writers = [other for other in systems if kind in other.writes]
    readers = [
        other
        for other in systems
        if kind in (*other.reads, *other.may_read) and kind not in (*other.writes, *other.adds)
    ]
    if not writers:
        known = [cls.__name__ for cls in System.registry.values() if kind in cls.writes]
        raise ScheduleError(
            f"{name} adds to {kind.__name__}, but no system resets it when a tick begins; add a system that "
            f"writes {kind.__name__}{f', such as {known[0]}' if known else ''}"
        )
    first, last = systems.index(writers[-1]), max(map(systems.index, readers), default=len(systems))
    writer, right = systems[first], repr(readers[-1].phase if readers else "move")
    fault = ""
    if place < first:
        fault = f"before {type(writer).__name__} writes it, so that it has no effect"
        right = f"a later one than {writer.phase!r}"
    elif place > last:
        fault = f"after {type(systems[last]).__name__} has read it, so that it has no effect"
    elif phase in REPEATED and writer.phase not in REPEATED:
        fault = f"in every stage of the integrator, but {type(writer).__name__} resets it only once per tick"
    if fault:
        raise ScheduleError(
            f"{name} adds to {kind.__name__} in the phase {phase!r}, {fault}; set {name}.phase to {right}"
        )


def _late_writer(schedule: Schedule, kind: type[Component]) -> str:
    """A clause on the system that fills the component, in whatever phase; "" if none does."""
    for system in schedule.systems:
        if kind in system.writes or kind in system.adds:
            return f" earlier ({type(system).__name__} does so only in the phase {system.phase!r})"
    return ""
