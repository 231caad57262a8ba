"""Shipped worlds know no direction and no place: turned, mirrored and moved, they do the same.

With x -> R x + c (R orthogonal) velocities and forces turn by R; strengths, angular velocities and torques,
which are axial, by det(R) R. A state that is changed so goes on as the changed one would have, but for
rounding: in double precision, by direct sums, since trees and grids lie along the axes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

import ecs_fluid as ef

pytestmark = [pytest.mark.nightly, pytest.mark.filterwarnings("ignore::ecs_fluid.errors.FluidWarning")]

AXIAL = ("Strength.alpha", "RigidMotion.angular_velocity")
PLACES = ("Position.x", "Pose.x")
MOST = 1e-9
"""Of a column's largest size."""

WORLDS = (
    "bubbles", "dam_break", "dye_drop", "dye_drops_collide", "falling_drop", "heavy_ball_in_box", "hot_ball",
    "rayleigh_taylor", "splash", "tube", "two_layers",
)  # fmt: skip
"""Worlds in whose parameters no place is but the height 0 and no direction but z, by gravity.

Without `remesh`, whose lattice lies along the axes, and which drops some of points that are equally weak.

Of `splash` the water and the block: where whitewater is born is drawn at random, along axes that do not turn
with the water, and there is none yet in these ticks."""


class Change(NamedTuple):
    """x -> R x + c: R as rows, c in m, and the quaternion (w, x, y, z) of a turn."""

    matrix: np.ndarray
    shift: tuple[float, float, float] = (0.0, 0.0, 0.0)
    turn: tuple[float, float, float, float] = (1.0, 0.0, 0.0, 0.0)

    def of(self, label: str, array: np.ndarray) -> np.ndarray:
        """A column of the changed world."""
        axial = float(np.linalg.det(self.matrix)) if label in AXIAL else 1.0
        if label == "Pose.q":
            return self.of_poses(array)
        if array.ndim == 2 and array.shape[1] == 3 and array.dtype.kind == "f":
            turned: np.ndarray = axial * array @ self.matrix.T
            return turned + self.shift if label in PLACES else turned
        return array

    def of_poses(self, q: np.ndarray) -> np.ndarray:
        """Quaternions: the turn after theirs, or that about the mirrored axis by the opposite angle."""
        if np.linalg.det(self.matrix) < 0:
            return np.column_stack([q[:, :1], -q[:, 1:] @ self.matrix.T])
        (w, x, y, z), (W, X, Y, Z) = self.turn, q.T
        return np.column_stack([
            w * W - x * X - y * Y - z * Z, w * X + x * W + y * Z - z * Y,
            w * Y - x * Z + y * W + z * X, w * Z + x * Y - y * X + z * W,
        ])  # fmt: skip


CHANGES = {
    "turned": Change(np.array([[0.0, -1, 0], [1, 0, 0], [0, 0, 1]]), turn=(0.5**0.5, 0.0, 0.0, 0.5**0.5)),
    "mirrored": Change(np.diag([-1.0, 1, 1])),
    "moved": Change(np.eye(3), shift=(64.0, -32.0, 0.0)),
}


def state(world: ef.World) -> dict[tuple[str, str], np.ndarray]:
    """Columns of rows that are not computed anew each tick."""
    return {
        (entity.name, column.label): array
        for entity in world.entities
        for kind, table in entity.tables.items()
        if kind.per_row and not kind.derived
        for column, array in table.items()
    }


def loaded(name: str) -> ef.World:
    """The world in double precision, by direct sums at all particles."""
    world = ef.load(name, "world.precision=double")
    velocity = world.system(ef.VelocitySystem)
    if velocity is not None:
        velocity.solver, velocity.at, velocity.tracers = "direct", "vortons", "solver"
    boundary = world.system(ef.BoundarySystem)
    if boundary is not None:
        # Panels of balls, and cells in which shed vortons are joined, lie along the axes.
        boundary.boundary = "article"
    return world


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize("name", WORLDS)
def test_worlds_do_the_same_elsewhere(name: str, change: Change) -> None:
    """Four ticks of a changed world are the changed four ticks."""
    world, other = loaded(name), loaded(name)
    for (_, label), array in state(other).items():
        array[...] = change.of(label, array)
    world.step(4)
    other.step(4)
    found = state(other)
    for key, array in state(world).items():
        label, theirs = key[1], found[key]
        want = change.of(label, array)
        if label == "Pose.q":  # q and -q are one pose
            theirs = theirs * np.sign((want * theirs).sum(axis=1, keepdims=True))
        size = np.abs(want - (change.shift if label in PLACES else 0.0)).max(initial=0.0)
        assert np.abs(want - theirs).max(initial=0.0) <= MOST * size, key
