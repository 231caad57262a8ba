"""The motion of bodies whose vorticity is in the fluid already, and vortons that represent their rotation."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ecs_fluid.component import Array
from ecs_fluid.components.bodies import ShedMotion
from ecs_fluid.systems.boundary.article import exchange_of
from ecs_fluid.systems.shared.body_tables import row_ids, rows_of

if TYPE_CHECKING:
    from ecs_fluid.entity import Entity
    from ecs_fluid.systems.boundary.system import BoundarySystem
    from ecs_fluid.world import World


class FormerMotion(NamedTuple):
    """Motion of bodies whose vorticity is in the fluid already, from ShedMotion."""

    ids: Array
    """RowId (n,) of the present bodies"""
    known: Array
    """mask (n,) of the bodies that are not new"""
    v: Array
    """velocity (n, 3) m/s, 0 for new bodies"""
    spin: Array
    """spin (n, 3) rad/s that was shed, 0 for new bodies"""
    change: Array
    """changes (n, 6) of both in the last tick, 0 for bodies that were new then; for bodies that the fluid
    moves, the account of `coupled_changes`"""
    gone: Array
    """mask of the rows of ShedMotion whose bodies were removed"""


class SpinVortons(NamedTuple):
    """Vortons (b rows) that represent the vorticity 2 spin of bodies."""

    x: Array
    alpha: Array
    owner: Array
    """numbers of the bodies"""


class MotionMemory:
    """Stores the motion whose vorticity is in the fluid in the component ShedMotion, for a BoundarySystem."""

    def __init__(self, system: BoundarySystem) -> None:
        self._system = system

    def former(self, entities: list[Entity]) -> FormerMotion:
        """The stored motion of the present bodies, and which bodies were removed."""
        memory = self._system.field(ShedMotion)
        ids = row_ids(entities)
        rows, known = rows_of(memory.id, ids)
        columns = memory.v, memory.angular_velocity, memory.v_change, memory.spin_change
        motion = np.zeros((len(ids), 12))
        motion[known] = np.concatenate(columns, axis=1)[rows[known]]
        gone = ~np.isin(memory.id, ids)
        return FormerMotion(ids, known, motion[:, :3], motion[:, 3:6], motion[:, 6:], gone)

    def keep(
        self, former: FormerMotion, v: Array, spin: Array, bound: Array, added: Array | None = None
    ) -> None:
        """Store the motion (n, 3) whose vorticity is now in the fluid; `bound` (n,) vortons hold each
        spin."""
        memory, number = self._system.field(ShedMotion), self._system.world.dtype
        known = former.known[:, None]
        memory.v, memory.angular_velocity = v.astype(number), spin.astype(number)
        memory.v_change = (known * (v - former.v)).astype(number)
        memory.spin_change = (known * (spin - former.spin)).astype(number)
        memory.added = (np.zeros((len(v), 3, 3)) if added is None else added).astype(number)
        memory.id, memory.bound = former.ids, bound

    def forget(self, former: FormerMotion) -> None:
        """Empty the memory, as there are no bodies any more."""
        self.keep(former, np.zeros((0, 3)), np.zeros((0, 3)), np.zeros(0, np.int64))


def return_impulses(world: World, centers: Array, carried: SpinVortons, placed: SpinVortons) -> Array:
    """Impulses (n, 3), over the density, of returning the vorticity that represents rotation to its bodies.

    It is moved from where the flow `carried` it to where it is `placed`. The flow carries it almost along
    with the body; the difference is the force of the flow past the body, density times circulation times the
    difference of velocity: the Magnus force.
    """
    x, owner = np.concatenate([carried.x, placed.x]), np.concatenate([carried.owner, placed.owner])
    before = np.concatenate([carried.alpha, 0.0 * placed.alpha])
    after = np.concatenate([0.0 * carried.alpha, placed.alpha])
    return exchange_of(world, centers, owner, (x, before), (x, after), np.zeros_like(x))[0]
