"""The boundary layer condition: the panels' sheet becomes vortons on a lattice that resolves the layer."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np

from ecs_fluid.component import Array
from ecs_fluid.components import CoreRadius, Position, Strength, Volume
from ecs_fluid.components.bodies import BoundaryLayer, ShedMotion
from ecs_fluid.input_limits import GRID_POINT, check_memory
from ecs_fluid.systems.boundary.article import exchange_of, flow_at, record_exchange
from ecs_fluid.systems.boundary.coupling import (
    HELD,
    Coupling,
    UnitSheets,
    coupled_changes,
    coupling_of,
    fluid_added_masses,
    inner_angular_momentum,
)
from ecs_fluid.systems.boundary.layer_tick import (
    InnerPoints,
    LayerTick,
    Pieces,
    Vortons,
    cut_panels,
    mirror_images,
)
from ecs_fluid.systems.boundary.outside import Outside, circulations, outside_of
from ecs_fluid.systems.boundary.shed_motion import FormerMotion, SpinVortons, return_impulses
from ecs_fluid.systems.boundary.sheets import (
    Covered,
    Sheet,
    SheetBoundary,
    rms,
    strengths_of_rings,
)
from ecs_fluid.systems.diffusion import DiffusionSystem
from ecs_fluid.systems.shared.body_tables import gathered, near_bodies, rows_of, set_motion

if TYPE_CHECKING:
    from ecs_fluid.entity import Entity
    from ecs_fluid.kernels.bodies.polytope import Hulls
    from ecs_fluid.kernels.bodies.table import Bodies
    from ecs_fluid.systems.boundary.system import BoundarySystem
    from ecs_fluid.world import World

FILLED = 4.0
"""Distance from a surface, on both sides, within which every lattice point has a vorton; in spacings.

The exchange of vorticity in one tick reaches that far: with three points inside, a flat wall is effectively
0.002 spacings from the mirror plane, with two points 0.05.
"""

MARGIN = 1
"""Layers of lattice points around the vorticity that get vortons too, at first of strength 0."""

FINE = 20
"""Default number of lattice spacings along the smallest body."""


class LayerBoundary(SheetBoundary):
    """Solves for the sheets of all bodies and keeps them, with the wake, on a lattice of vortons.

    In each tick:

    1. Vortons inside bodies move to their mirror images outside. The normal component of their strength
       changes sign, so that this component is zero at the wall, while the tangential one has no flux through
       it.
    2. The sheet that stops the flow at the surfaces is solved for as with `panels`.
    3. M4' weights share vortons and sheet among the points of a lattice.

    Diffusion over the whole lattice between two reflections is then diffusion from the wall outwards, exactly
    so at flat walls. Points inside turning bodies also carry the vorticity 2 spin, whose normal component
    diffuses out, as it must. What this and the mirrors change in the total strength is shed as n x (a x r),
    with one vector a per body.
    """

    def __init__(self, system: BoundarySystem) -> None:
        super().__init__(system)
        self._outside: Outside | None = None
        self._seen = b""

    def spawns(self, world: World) -> None:
        """Make the entity of the vortons, and the component that remembers the spin shed."""
        if self.system.wake not in world:
            world.spawn(self.system.wake, Position, Strength, CoreRadius, Volume, BoundaryLayer)
        world._attach_missing("fluid", ShedMotion)

    def lint(self, entities: list[Entity], method: str, viscosity: float) -> list[str]:
        """Warn of diffusion that the lattice undoes or does not resolve, and of more than a spacing per
        tick."""
        speed, extent = self.speeds_and_extents(entities)
        if not speed.any():
            return []
        spacing, dt = self._lattice(extent), self.world.dt
        texts, fastest = [], float(speed.max())
        past = speed > 0.0
        layer = float(np.sqrt(2.0 * viscosity * extent[past] / speed[past]).min())
        if method == "core_spreading":
            texts.append(
                "BoundarySystem: boundary = 'layer' resets the core radius of its lattice vortons in every "
                "tick, so method = 'core_spreading' has no effect on them; use method = 'pse'"
            )
        elif viscosity == 0.0:
            texts.append(
                "BoundarySystem: boundary = 'layer' has no boundary layer to resolve in a fluid without "
                "viscosity, so drag depends on its lattice; give the fluid a viscosity"
            )
        elif method == "pse" and spacing > layer:
            texts.append(
                f"BoundarySystem: a lattice of {spacing:.3g} m does not resolve the layer at bodies, which "
                f"is about sqrt(4 nu R/U) = {layer:.3g} m thick, so drag depends on the lattice; use lattice "
                f"<= {layer / 3:.2g} m, or a larger viscosity"
            )
        if fastest * dt > spacing * (1.0 + 1e-6):
            texts.append(
                f"BoundarySystem: in one tick the fluid moves {fastest * dt / spacing:.3g} spacings of the "
                f"lattice past bodies, and more than 1 is inaccurate; use dt <= {spacing / fastest:.2g} s"
            )
        return texts

    # ------------------------------------------------------------------ the tick

    def process(self, entities: list[Entity]) -> None:
        """Reflect vortons that came into bodies, find the sheets, and put everything on the lattice."""
        former = self.memory.former(entities)
        if not len(former.ids):
            self.memory.forget(former)
            return
        tick = self._reflected(entities, former)
        bodies, _, surfaces, sheet = tick.covered
        # Sheets for changes of spin, sheets that cancel the mirrors' change of totals, and rings for the
        # rest.
        missing, mirrored = self._missing_velocity(tick), tick.mirrored()
        left = self._remaining_normal(sheet, missing, tick.spin_strengths() + mirrored)
        strengths = mirrored + self._rings(tick.covered, left[None])[0]
        slip = np.array([[rms(missing[s.rows], sheet.area[s.rows]), 0.0, 0.0] for s in surfaces])
        returned = return_impulses(self.world, bodies.x, tick.old.carried, tick.inner.vortons(former.spin))

        def exchange_columns(strengths: Array) -> tuple[Array, Array, Array]:
            """The columns of BoundaryExchange, for sheets of these strengths (p, 3)."""
            impulse, moment, found = tick.exchanged(self.world, strengths, slip)
            return impulse + returned, moment, found

        added = np.zeros((len(bodies.x), 3, 3))
        if len(tick.coupling.rows):
            strengths, added = self._with_free_bodies(entities, tick, exchange_columns(strengths), strengths)
        impulse, moment, found = exchange_columns(strengths)
        moment += inner_angular_momentum(bodies, tick.covered.volumes, bodies.angular_velocity - former.spin)
        record_exchange(entities, impulse, moment, found)
        none = np.zeros(len(bodies.x), np.int64)
        self.memory.keep(former, bodies.v, bodies.angular_velocity, none, added)
        self._store_account(former, tick.coupling)
        strengths = tick.spin_strengths() + strengths
        if np.isfinite(strengths).all():
            self._to_lattice(tick, strengths)

    def _reflected(self, entities: list[Entity], former: FormerMotion) -> LayerTick:
        """Reflect vortons in bodies to their mirror images; the lattice replaces them when the tick ends."""
        covered = self.covered(*gathered(entities))
        bodies = covered.bodies
        spacing, coupling = self._spacing(covered), coupling_of(self.system, bodies)
        old = self._fluid_vortons(covered, former)
        new = mirror_images(covered, old)
        wake = self.world[self.system.wake]
        wake[Position].x, wake[Strength].alpha = new.x, new.alpha
        turning = np.asarray(bodies.angular_velocity.any(axis=1) | former.spin.any(axis=1))
        turning[coupling.rows] = True
        inner = self._points_inside(covered, spacing, turning)
        return LayerTick(covered, former, coupling, spacing, cut_panels(covered, spacing), inner, old, new)

    def _with_free_bodies(
        self, entities: list[Entity], tick: LayerTick, given: tuple[Array, Array, Array], strengths: Array
    ) -> tuple[Array, Array]:
        """Advance free bodies with the fluid; returns the new strengths (p, 3), and `fluid_added_masses`.

        The strengths include the rings that each change of motion brings.
        """
        bodies, hulls, _, _ = tick.covered
        units = self._unit_sheets(tick.covered, tick.pieces, tick.inner, tick.coupling, tick.spacing)
        volumes = tick.covered.volumes
        change, added = coupled_changes(
            entities, bodies, hulls, tick.former, tick.coupling, volumes, given, units
        )
        bodies.v[...] += change[:, :3]
        bodies.angular_velocity[...] += change[:, 3:]
        set_motion(entities, bodies, tick.coupling.rows)
        for rings, made in zip(units.rings, change[tick.coupling.rows], strict=True):
            strengths = strengths + np.einsum("apk,a->pk", rings, made)
        return strengths, added

    def covered(self, bodies: Bodies, hulls: Hulls) -> Covered:
        """All bodies with their panels; for several, their matrices, which are kept until one moves."""
        covered = super().covered(bodies, hulls)
        key = covered.sheet.center.tobytes()
        if len(covered.surfaces) == 1:
            self._outside = None
        elif self._outside is None or key != self._seen:
            self._outside = outside_of(covered)
        self._seen = key
        return covered

    def _missing_velocity(self, tick: LayerTick) -> Array:
        """The velocity (p, 3) m/s that the flow lacks to move with the surfaces; sets `residual` from it."""
        sheet, spins = tick.covered.sheet, tick.inner.vortons(tick.covered.bodies.angular_velocity)
        flow = flow_at(self.world, sheet.center)
        flow = flow + self._flow_of_spin(spins, sheet.center, tick.spacing)
        missing = sheet.wall - flow
        normal = (missing * sheet.normal).sum(axis=1)
        self.residual = rms(normal[:, None], sheet.area) / max(rms(missing, sheet.area), 1e-300)
        return missing

    def added_masses(self, entities: list[Entity]) -> Array:
        """Added masses, kg, of free bodies from sheets at their present places, in the shape of
        `fluid_added_masses`."""
        bodies, hulls = gathered(entities)
        coupling = coupling_of(self.system, bodies)
        if not len(coupling.rows):
            return np.zeros((len(bodies.x), 3, 3))
        covered = self.covered(bodies, hulls)
        spacing, some = self._spacing(covered), np.zeros(len(bodies.x), bool)
        some[coupling.rows] = True
        inner = self._points_inside(covered, spacing, some)
        units = self._unit_sheets(covered, cut_panels(covered, spacing), inner, coupling, spacing)
        return fluid_added_masses(coupling, units.response, covered.volumes)

    @property
    def _flat(self) -> Array:
        """Mask (3,) of the axis across a plane."""
        return np.asarray(np.arange(3) == self.world.across)

    def _lattice(self, extents: Array) -> float:
        """Spacing of the lattice, m, around bodies of these extents (n,) m."""
        return self.system.lattice or float(extents.min()) / FINE

    def _spacing(self, covered: Covered) -> float:
        """Spacing of the lattice around these bodies, m; LimitError if it has too many points."""
        spacing = self._lattice(self.extents(covered.bodies, covered.hulls))
        sides = np.array([np.ptp(s.panels.vertices, axis=0) for s in covered.surfaces])
        points = np.prod(np.where(self._flat, 1.0, sides / spacing + 2 * FILLED), axis=1).sum()
        what = f"lattice points of {spacing:g} m for BoundarySystem around bodies"
        check_memory(GRID_POINT, float(points), what, "use a larger lattice")
        return spacing

    def edge(self, extent: float) -> float:
        """Edge of the panels, m; in a plane, where they are cheap, at most the lattice around such a body."""
        edge = super().edge(extent)
        if self.world.dimension == 3 or self.system.spacing:
            return edge
        return min(edge, self._lattice(np.array([extent])))

    def _fluid_vortons(self, covered: Covered, former: FormerMotion) -> Vortons:
        """The vortons of the wake, without the vorticity 2 spin inside present bodies.

        The vorticity of a body that was removed stays, and now belongs to the fluid. Rows that end with this
        tick, by a kill box say, get strength 0, so that they are not put on the lattice again.
        """
        wake = self.world[self.system.wake]
        x, alpha = wake[Position].x.astype(np.float64), wake[Strength].alpha.astype(np.float64)
        within = wake[BoundaryLayer].within.astype(np.float64) * wake[Volume].volume
        if not len(x):
            none = np.zeros(0, np.int64)
            return Vortons(x, alpha, none, none, SpinVortons(x, alpha, none))
        owner, there = rows_of(former.ids, wake[BoundaryLayer].body)
        inner = np.flatnonzero(there & (within != 0.0))
        carried = InnerPoints(x[inner], owner[inner], within[inner]).vortons(former.spin)
        alpha[inner] -= carried.alpha
        killed, _ = self.world._pending_rows(self.system.wake)
        if killed is not None:
            alpha[killed] = 0.0
        reach = 2.0 * wake[CoreRadius].sigma.astype(np.float64)
        rows, owner, gap, _ = near_bodies(covered.bodies, covered.hulls, x, reach)
        deep = gap < 0.0
        return Vortons(x, alpha, rows[deep], owner[deep], carried)

    # ------------------------------------------------------------------ spin

    def _points_inside(self, covered: Covered, spacing: float, some: Array) -> InnerPoints:
        """Lattice points in or at the bodies of the mask `some` (n,)."""
        bodies, hulls, surfaces, _ = covered
        places, owner, parts = [np.zeros((0, 3))], [np.zeros(0, np.int64)], [np.zeros(0)]
        for i in np.flatnonzero(some):
            low = np.floor((bodies.x[i] - bodies.radius[i]) / spacing).astype(np.int64) - 1
            high = np.ceil((bodies.x[i] + bodies.radius[i]) / spacing).astype(np.int64) + 1
            low[self._flat], high[self._flat] = 0, 0
            lines = [np.arange(a, b + 1) for a, b in zip(low, high, strict=True)]
            at = spacing * np.stack(np.meshgrid(*lines, indexing="ij"), axis=-1).reshape(-1, 3)
            rows, body, gap, _ = near_bodies(bodies, hulls, at, np.full(len(at), 0.5 * spacing))
            rows, gap = rows[body == i], gap[body == i]
            share = np.clip(0.5 - gap / spacing, 0.0, 1.0) * spacing**self.world.dimension
            places.append(at[rows])
            owner.append(np.full(len(rows), i))
            # None, of a body that is inside another one.
            parts.append(share * (surfaces[i].panels.volume / (share.sum() or 1.0)))
        return InnerPoints(np.concatenate(places), np.concatenate(owner), np.concatenate(parts))

    def _flow_of_spin(self, spins: SpinVortons, points: Array, spacing: float) -> Array:
        """Velocity (p, 3) m/s at points (p, 3) m, induced by the vorticity inside bodies."""
        sigma = np.full(len(spins.x), self.system.overlap * spacing)
        return self.velocity_at(points, spins.x, spins.alpha, sigma)

    # ------------------------------------------------------------------ sheets

    def _remaining_normal(self, sheet: Sheet, missing: Array, given: Array) -> Array:
        """Normal part (p,) of the velocity `missing` (p, 3), less what the sheets `given` (p, 3) bring."""
        rest = (missing * sheet.normal).sum(axis=1)
        if given.any():
            flow = self.velocity_at(sheet.center, sheet.center, given, sheet.sigma)
            rest -= (flow * sheet.normal).sum(axis=1)
        return np.asarray(rest)

    def _rings(self, covered: Covered, left: Array) -> Array:
        """Strengths (k, p, 3) of the rings that produce each of the normal velocities `left` (k, p)."""
        from ecs_fluid.kernels.panels.panel_flow import ring_circulations

        surfaces = covered.surfaces
        if self._outside is not None:
            found = circulations(self._outside, surfaces, left)
        else:
            found = [[ring_circulations(s.panels, s.factors, g[s.rows]) for s in surfaces] for g in left]
        return np.stack([strengths_of_rings(surfaces, mu) for mu in found])

    # ------------------------------------------------------------------ free bodies

    def _unit_sheets(
        self, covered: Covered, pieces: Pieces, inner: InnerPoints, coupling: Coupling, spacing: float
    ) -> UnitSheets:
        """The response to a unit change of the motion of each free body, along each axis that the fluid
        changes.

        The sheet n x (spin x r) has no normal flow together with the vorticity in the body, so it is not
        among the rings. The fluid that clings is the integral of slip . slip over the surface, times the
        thickness of the sheet by the next tick. The thickness follows from how much of the sheet cores and
        diffusion bring into the body; it was measured at balls and disks with lattices of R/6 to R/16. The
        slip is that of the whole sheet, so that C is Basset's impulse, which includes the drag by pressure.
        """
        bodies, _, surfaces, sheet = covered
        diffusion = self.world.system(DiffusionSystem)
        viscosity = 0.0 if diffusion is None else diffusion.viscosity
        thickness = spacing / 5 + viscosity * self.world.dt / spacing
        n, p = len(surfaces), len(sheet.owner)
        free, axes = np.arange(len(coupling.rows)), coupling.axes
        each = list(itertools.product(free, axes))
        left, around = np.empty((len(each), p)), np.zeros((len(each), p, 3))
        for k, (b, axis) in enumerate(each):
            body, unit = coupling.rows[b], np.zeros((n, 3))
            unit[body, axis % 3] = 1.0
            wall = unit[sheet.owner]
            if axis >= 3:
                own = InnerPoints(*(column[inner.owner == body] for column in inner)).vortons(unit)
                wall = np.cross(wall, sheet.arm) - self._flow_of_spin(own, sheet.center, spacing)
                around[k] = sheet.around(-unit)
            left[k] = self._remaining_normal(sheet, wall, around[k])
        units, response = np.zeros((len(free), 6, p, 3)), np.zeros((n, 6, len(free), 6))
        rings = self._rings(covered, left)
        for (b, axis), strengths in zip(each, rings, strict=True):
            units[b, axis] = strengths
            shares = pieces.shares(strengths)
            sheets = (pieces.x, 0.0 * shares), (pieces.x, shares)
            gained = exchange_of(self.world, bodies.x, pieces.owner, *sheets, np.zeros_like(shares))
            response[:, :, b, axis] = np.concatenate(gained[:2], axis=1)
        slips = ((rings + around) / sheet.area[:, None]).reshape(len(free), len(axes), p, 3)
        clinging = np.zeros((len(free), 6, len(free), 6))
        clinging[np.ix_(free, axes, free, axes)] = thickness * np.einsum(
            "fapk,gbpk,p->fagb", slips, slips, sheet.area
        )
        return UnitSheets(units, response, clinging)

    def _store_account(self, former: FormerMotion, coupling: Coupling) -> None:
        """Store the changes of motion whose friction free bodies took in advance: see `coupled_changes`."""
        memory, rows = self.system.field(ShedMotion), coupling.rows
        gained = np.concatenate([memory.v - former.v, memory.angular_velocity - former.spin], axis=1)
        change = HELD * former.change + gained
        memory.v_change[rows], memory.spin_change[rows] = change[rows, :3], change[rows, 3:]

    # ------------------------------------------------------------------ lattice

    def _to_lattice(self, tick: LayerTick, strengths: Array) -> None:
        """Put the vortons, and sheets of these strengths (p, 3), on the lattice for the next tick."""
        from scipy import ndimage

        from ecs_fluid.kernels.vorticity.strength_moments import with_moments

        covered, spacing = tick.covered, tick.spacing
        low, field = self._shared_out(tick, strengths)
        strength = field.reshape(-1, 3)
        size = np.sqrt((strength**2).sum(axis=1))
        strong = _all_but_weakest(size, self.system.loss).reshape(field.shape[:3])
        # Room for vorticity that diffuses outwards in the next tick.
        stay = ndimage.binary_dilation(strong, iterations=MARGIN).ravel()
        x = spacing * (np.stack(np.unravel_index(np.arange(len(size)), field.shape[:3]), axis=1) + low)
        bodies = covered.bodies
        near, _, gap, _ = near_bodies(bodies, covered.hulls, x, np.full(len(x), FILLED * spacing))
        stay[near[gap > -FILLED * spacing]] = True
        inner = self._points_inside(covered, spacing, np.asarray(bodies.angular_velocity.any(axis=1)))
        numbers = np.rint(inner.x / spacing).astype(np.int64) - low
        at = np.ravel_multi_index(tuple(numbers.T), field.shape[:3])
        stay[at] = True
        weak = ~stay & (size > 0.0)
        new = strength.copy()
        if weak.any():
            new[stay], _ = with_moments(x[stay], strength[stay], x[weak], strength[weak])
        cell = spacing**self.world.dimension
        within, body = np.zeros(len(x)), np.full(len(x), -1)
        within[at], body[at] = inner.volume / cell, tick.former.ids[inner.owner]
        new[at] += inner.vortons(bodies.angular_velocity).alpha
        wake, n = self.world[self.system.wake], int(stay.sum())
        wake.kill(np.ones(len(wake), bool))
        wake.spawn(
            Position(x[stay]),
            Strength(new[stay]),
            CoreRadius(np.full(n, self.system.overlap * spacing)),
            Volume(np.full(n, cell)),
            BoundaryLayer(within[stay], body[stay]),
        )

    def _shared_out(self, tick: LayerTick, strengths: Array) -> tuple[Array, Array]:
        """The lowest lattice index (3,), and the strengths (px, py, pz, 3) of the lattice's points."""
        from ecs_fluid.kernels.grids.lattice import to_lattice

        spacing, pieces = tick.spacing, tick.pieces
        places = np.concatenate([tick.new.x, pieces.x])
        alpha = np.concatenate([tick.new.alpha, pieces.shares(strengths)])
        points = np.prod(np.where(self._flat, 1.0, np.ptp(places, axis=0) / spacing + 2 * MARGIN + 4))
        what = (
            f"lattice points of {spacing:g} m for BoundarySystem, in one box for all bodies and their wake,"
        )
        check_memory(GRID_POINT, float(points), what, "use a larger lattice, or bodies closer together")
        low, field = to_lattice("m4_prime", places, alpha, spacing, self._flat)
        if self.world.across is not None:
            field = field.take([0], axis=self.world.across)
        margin = np.where(self._flat, 0, MARGIN)
        return low - margin, np.pad(field, [*np.stack([margin, margin], axis=1), (0, 0)])


def _all_but_weakest(size: Array, loss: float) -> Array:
    """Mask (n,) of all but the weakest, whose sizes together are up to the fraction `loss` of the sum."""
    order = np.argsort(size, kind="stable")
    sums = np.cumsum(size[order])
    strong = np.ones(len(size), bool)
    strong[order[: np.searchsorted(sums, loss * sums[-1])]] = False
    return strong
