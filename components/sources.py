"""Tables by which systems work together, or remember from tick to tick."""

from __future__ import annotations

from typing import NamedTuple

from ecs_fluid.component import Array, Component, Tables, column, refuse_other_lengths
from ecs_fluid.components.particles import Position, Strength


class Flow(NamedTuple):
    """Numbers by which solvers compare flows: `systems.velocity.flow_numbers`."""

    tolerance: float
    core: float
    gradient: float
    vortons: float
    targets: float
    strength: float
    square_x: float
    square_y: float
    square_z: float
    radius: float
    radii: float
    cells: float


MESHED = (*Flow._fields, "thinnest", "widest", "length", "width", "height")
"""Numbers by which the solver `pppm` compares flows: also those of the cores and of the box."""


class Sources(Component, derived=True, per_row=False):
    """All vortons of the world in one structure of arrays, sorted by grid cell.

    Sorted row k is row ``order[k]`` of the vorton populations laid end to end in entity order. The grid
    (origin, spacing, cells) encloses the vortons; its cell c holds sorted rows ``start[c]`` to
    ``start[c + 1]``.
    """

    x: Array = column("m", shape=(3, None))
    alpha: Array = column("m^3/s", shape=(3, None))
    sigma: Array = column("m", shape=(None,))
    order: Array = column("1", shape=(None,), kind="int")
    start: Array = column("1", shape=(None,), kind="int")
    origin: Array = column("m", shape=(3,))
    spacing: Array = column("m", shape=(3,))
    cells: Array = column("1", shape=(3,), kind="int")


class SolverTimes(Component, per_row=False):
    """What the velocity solvers cost on the machine where the world began, by which ``auto`` chooses.

    ``seconds[k, t, s, i]`` is the time with (k = 1) or without (0) velocity gradients, at tolerance t, of
    solver s, for the i-th number of vortons and as many targets; see ``systems.velocity.solver_times``. It is
    state, so that a resumed run chooses as before. ``angle`` holds the tree's opening angles that were last
    found to keep the tolerance, at the vortons and at the grid points; 0 if none was. ``found_for`` says for
    which flow each was measured last, and for which new flow before that; see ``systems.velocity.auto``.
    ``work`` is the work of tree, fmm and pppm in their last sums there, in pairs of the direct sum, divided
    by the square root of the number of pairs of target and vorton; ``work_for`` says for which flow. See
    ``systems.velocity.solver_work``.
    """

    seconds: Array = column("s", shape=(None, None, None, None))
    angle: Array = column("1", shape=(2,), default=0.0)
    found_for: Array = column("1", shape=(2, 2, len(Flow._fields)), default=0.0)
    work: Array = column("1", shape=(2, 3), default=0.0)
    work_for: Array = column("1", shape=(2, 3, len(Flow._fields)), default=0.0)


class SolverMeshes(Component, per_row=False):
    """Meshes with which the solver ``pppm`` was found to keep its tolerance, for later sums that are alike.

    There is a row for the vortons, the points of the field grid, and each population of other particles with
    targets (points that all of them read count as one); as many as were needed. ``found_for`` says for which
    flow each was found. A mesh follows from the numbers in ``mesh``: its spacing, m, the vortons in a cubic
    metre, the sum of |alpha|^2 there, m^3/s^2, and the relative error for which it was chosen. ``goal`` holds
    the RMS errors of velocity, m/s, and gradient, 1/s, to keep to, ``size`` the RMS values of both when the
    error was last measured, and ``measured`` the relative error then; see ``systems.velocity.pppm``. They are
    state, so that a resumed run uses the same meshes.
    """

    found_for: Array = column("1", shape=(None, len(MESHED)), default=0.0)
    mesh: Array = column("1", shape=(None, 4), default=0.0, kind="double")
    goal: Array = column("1", shape=(None, 2), default=0.0, kind="double")
    size: Array = column("1", shape=(None, 2), default=0.0, kind="double")
    measured: Array = column("1", shape=(None,), default=0.0, kind="double")

    def agree(self, beside: Tables) -> None:
        """Refuse columns of other lengths."""
        refuse_other_lengths(self, *type(self).columns)


class Emission(Component, per_row=False):
    """State of an emitter: how many particles it has given off."""

    emitted: Array = column("1", shape=(1,), kind="int", default=0, minimum=0, maximum=2**53)


class BirthCells(Component, per_row=False):
    """Equal cells in which an emitter's particles are born, in its axes: middles, and edges as vectors."""

    x: Array = column("m", shape=(None, 3))
    edges: Array = column("m", shape=(3, 3))


class AmbientDensity(Component):
    """Tag of particles to which the BaroclinicSystem gave the density of the ambient fluid.

    With an equation of state, they lose that density when they get a temperature.
    """


class CarrierMotion(Component):
    """Where a particle that carries emitters was when the tick began, and its mean velocity in the last tick.

    known: whether it was there when the tick began.
    """

    x: Array = column("m", shape=(3,), default=0.0)
    v: Array = column("m/s", shape=(3,), default=0.0)
    known: Array = column("1", kind="int", default=0, minimum=0, maximum=1)


class VelocityHistory(Component, given=(Position, Strength)):
    """Velocities of the last three ticks, kept for the jerk of the paths."""

    newest: Array = column("m/s", shape=(3,), default=0.0)
    last: Array = column("m/s", shape=(3,), default=0.0)
    before: Array = column("m/s", shape=(3,), default=0.0)
    count: Array = column("1", kind="int", default=0)
