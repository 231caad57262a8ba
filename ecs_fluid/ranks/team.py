"""Rank 0 leads: the other ranks repeat the calls of its world.

Rank 0 makes the world, runs it and writes the files, as one process would. The calls of its world in which
all ranks take part (`collective`) are announced first; the others wait in `follow` and carry them out.
"""

from __future__ import annotations

import contextlib
import signal
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ecs_fluid.component import Component
from ecs_fluid.components import Dilatation, Position
from ecs_fluid.errors import FluidError, FluidWarning
from ecs_fluid.io.provenance import differences
from ecs_fluid.own_code import code_named_in
from ecs_fluid.ranks.comm import Comm
from ecs_fluid.ranks.ranks import Ranks, even_blocks
from ecs_fluid.runs.resume import world_of
from ecs_fluid.signals import stop_signals
from ecs_fluid.state import packed_world
from ecs_fluid.world import World

SHARE = "share"
"""Announces that a world is to be divided."""


@contextlib.contextmanager
def leading(comm: Comm) -> Iterator[Callable[[World], None]]:
    """For rank 0: yields the function that divides a world; at the end the other ranks return from `follow`.

    One world at a time: dividing another one ends the former.
    """
    present: list[Ranks] = []

    def share(world: World) -> None:
        _close(present)
        present.append(_share(world, comm))

    try:
        yield share
    finally:
        _close(present)
        comm.broadcast(None)


def _close(present: list[Ranks]) -> None:
    for ranks in present:
        ranks.ended = True
    present.clear()


def _share(world: World, comm: Comm) -> Ranks:
    """Keep rank 0's rows of the world, and send the others theirs."""
    if not world._ticker.warned:
        world._ticker.warn(world, 4)
    world.schedule  # noqa: B018  (derived tables must exist)
    if world.periods.any():
        raise FluidError("a periodic world runs on one process only; leave out --mpi")
    if any(Dilatation in entity for entity in world.entities):
        raise FluidError(
            "expanding gas (ExpansionSystem, flow = true) runs on one process only; leave out --mpi"
        )
    if any(getattr(system, "mirrors", ()) for system in world.systems):
        raise FluidError("mirrors of the VelocitySystem are for one process only; leave out --mpi")
    meta, arrays = packed_world(world)
    # From here on the others take part: errors in the world must have been raised before.
    comm.broadcast(SHARE)
    sizes = {entity.name: len(entity) for entity in world.entities if Position in entity}
    bounds = {name: even_blocks(size, comm.size) for name, size in sizes.items()}
    described = {name: (array.dtype.str, array.shape, _per_row(name)) for name, array in arrays.items()}
    comm.broadcast((meta, bounds, described), "start")
    for name, array in arrays.items():
        owner = name.partition("/")[0]
        if owner in bounds and _per_row(name):
            comm.rows_from_first(np.ascontiguousarray(array), array[:0], np.diff(bounds[owner]).tolist())
        else:
            comm.broadcast(array, "start")
    comm.share_error(None)
    own = {name: slice(0, int(edges[1])) for name, edges in bounds.items()}
    for entity in world.entities:
        for kind, table in entity.tables.items():
            if entity.name in own and kind.per_row:
                for field, array in table.items():
                    table.__dict__[field.name] = array[own[entity.name]].copy()
    ranks = Ranks(comm, bounds)
    world._set_fixed(processes=ranks)
    return ranks


def _per_row(label: str) -> bool:
    """Whether a column, ``entity/Component.column``, has a row for each particle."""
    return Component.registry[label.partition("/")[2].partition(".")[0]].per_row


def follow(comm: Comm, allow_code: bool = False) -> None:
    """For every rank but 0: repeat the calls of rank 0's world until it is done."""
    # Rank 0 decides what Ctrl-C ends; the others go on until it does.
    for number in stop_signals():
        signal.signal(number, signal.SIG_IGN)
    warnings.simplefilter("ignore", FluidWarning)  # rank 0 shows it
    world: World | None = None
    ranks: Ranks | None = None
    while True:
        order = comm.broadcast(None)
        if order is None:
            return
        with contextlib.suppress(FluidError):  # rank 0 has the same error, and reports it
            if order == SHARE:
                world, ranks = _received_world(comm, allow_code)
                continue
            assert world is not None and ranks is not None
            name, arguments, named = order
            ranks.work(world, getattr(type(world), name).__wrapped__, arguments, named)


def _received_world(comm: Comm, allow_code: bool) -> tuple[World, Ranks]:
    """This rank's part of the world that rank 0 divides."""
    meta, bounds, described = comm.broadcast(None, "start")
    arrays: dict[str, Any] = {}
    for name, (dtype, shape, rows) in described.items():
        entity = name.partition("/")[0]
        if entity in bounds and rows:
            like = np.empty((0, *shape[1:]), dtype)
            arrays[name] = comm.rows_from_first(None, like, np.diff(bounds[entity]).tolist())
        else:
            arrays[name] = comm.broadcast(None, "start")
    try:
        found = differences(meta["computed_with"])
        world = world_of(meta, arrays, "the world of rank 0", allow_code)
        found += differences(meta["code"], code_named_in([meta["systems"], meta["classes"]]))
        if found:
            raise FluidError(f"rank {comm.rank}: rank 0 has {', '.join(found)}; all ranks need the same")
    except FluidError as error:
        comm.share_error(error)
        raise
    comm.share_error(None)
    ranks = Ranks(comm, bounds)
    world._set_fixed(processes=ranks)
    world._ticker.warned = True  # by rank 0
    return world, ranks
