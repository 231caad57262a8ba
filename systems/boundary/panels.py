"""The panel boundary condition: a vortex sheet on the bodies' surfaces, shed as vortons at every tick."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from ecs_fluid.component import Array
from ecs_fluid.components import CoreRadius, Position, Strength, Volume
from ecs_fluid.components.bodies import FIXED, BoundVorticity, FormerPose, ShedMotion
from ecs_fluid.errors import FluidError
from ecs_fluid.systems.boundary.article import exchange_of, flow_at, record_exchange, summed
from ecs_fluid.systems.boundary.coupling import coupling_of, inner_angular_momentum
from ecs_fluid.systems.boundary.shed_motion import FormerMotion, SpinVortons, return_impulses
from ecs_fluid.systems.boundary.sheets import Covered, Sheet, SheetBoundary, rms, strengths_of_rings
from ecs_fluid.systems.boundary.turning import middles_of, turning_strengths
from ecs_fluid.systems.boundary.wake import WAKE_COLUMNS, WakeVortons, shed_sheets
from ecs_fluid.systems.shared.body_tables import column_of, gathered, of_whole, rows_of
from ecs_fluid.systems.velocity.system import VelocitySystem

if TYPE_CHECKING:
    from collections.abc import Callable

    from ecs_fluid.entity import Entity
    from ecs_fluid.kernels.bodies.table import Bodies
    from ecs_fluid.systems.boundary.sheets import Surface
    from ecs_fluid.systems.boundary.system import BoundarySystem
    from ecs_fluid.world import World

LEFT = 0.85
"""If a sweep leaves this fraction of the missing normal velocity, most of that is too fine for the sheet."""

STALLED = 0.97
"""If a sweep with others leaves this fraction of the mean over neighbours, it is the last."""

NEAR = 2.0
"""Core radii within which panels are neighbours; some three panels."""

FACING = 0.8
"""Cosine of the angle up to which neighbours on a body face the same way."""

NOTICED = 0.1
"""What others bring at a surface over what is left there, rms, above which they are solved for together."""


class PanelBoundary(SheetBoundary):
    """Solves for the sheets of all bodies and sheds them."""

    def __init__(self, system: BoundarySystem) -> None:
        super().__init__(system)
        self._entrained: dict[tuple[bytes, tuple[int, ...]], Array] = {}
        self._late: Array = np.zeros((0, 6))

    def spawns(self, world: World) -> None:
        """Make the entities of shed and bound vortons, and the component that remembers the spin shed."""
        # There is no bound vorticity before a body spins, but such a body may appear at any time.
        for name, kind in ((self.system.wake, Volume), (self.bound_name, BoundVorticity)):
            if name not in world:
                world.spawn(name, Position, Strength, CoreRadius, kind)
        world._attach_missing("fluid", ShedMotion)

    @property
    def bound_name(self) -> str:
        """Name of the entity that holds the vorticity of spinning bodies."""
        return f"{self.system.wake}-bound"

    # ------------------------------------------------------------------ the tick

    def process(self, entities: list[Entity]) -> None:
        """Find the sheets and shed them."""
        from ecs_fluid.kernels.bodies.table import CONTAINER

        former = self.memory.former(entities)
        begun = [column_of(entities, FormerPose, name) for name in ("v", "angular_velocity")]
        known = np.concatenate([former.v, former.spin], axis=1)
        self._late = np.concatenate(begun, axis=1) - known
        released = self._release_bound(former)
        if not len(former.ids):
            self._fill_wake(released)
            self.memory.forget(former)
            return
        covered = self.covered(*gathered(entities))
        bodies, sheet, volume = covered.bodies, covered.sheet, covered.volumes
        solid = bodies.shape != CONTAINER
        bound = (solid & (bodies.motion != FIXED))[sheet.owner]
        carried = self._carried(former)
        placed = SpinVortons(sheet.center[bound], sheet.solid(former.spin)[bound], sheet.owner[bound])
        returned = return_impulses(self.world, bodies.x, carried, placed)
        middles = middles_of(covered) if self.system.friction else None
        places = sheet.center if middles is None else np.concatenate([sheet.center, middles.x])
        flow = self._update_bound(bodies, sheet, np.flatnonzero(bound), places) + flow_at(self.world, places)
        if len(released.x):
            flow += self.velocity_at(places, released.x, released.alpha, released.sigma)
        # Closes the lines of the bound vorticity: the total stays zero even though the flow stretches it.
        spin = np.where(solid[:, None], bodies.angular_velocity, 0.0)
        spun = -sheet.around(spin - summed(carried.alpha, carried.owner, len(spin)) / (2.0 * volume[:, None]))
        number = np.bincount(sheet.owner[bound], minlength=len(bodies.x))
        self.memory.keep(former, bodies.v, spin, number)
        slip = flow[: len(sheet.center)] - sheet.wall
        turning = np.zeros_like(spun)
        if middles is not None:
            flow += self._flow_of_sheet(sheet, places, spun)
            lack = np.where(solid[:, None], spin - middles.rotation(flow[len(slip) :]), 0.0)
            turning = turning_strengths(sheet, middles, partial(self._flow_of_sheet, sheet), lack)
        missing = -slip - self._flow_of_sheet(sheet, sheet.center, spun + turning)
        rings = self._ring_strengths(covered, slip, missing)
        strengths, nothing = spun + turning + rings, np.zeros_like(rings)
        shed = (nothing, nothing), (sheet.shed, rings)
        impulse, moment, found = exchange_of(self.world, bodies.x, sheet.owner, *shed, slip)
        # The fluid in a body follows it, but is not there: what it gains is not the body's to give.
        impulse -= (solid * volume)[:, None] * (bodies.v - former.v)
        moment += inner_angular_momentum(bodies, volume, spin - former.spin)
        # Torque of friction, by the rotation that it took from the fluid; a new body has had none yet.
        friction = summed(np.cross(sheet.arm, np.cross(sheet.arm, turning)), sheet.owner, len(spin))
        moment += np.where(former.known[:, None], friction, 0.0)
        record_exchange(entities, impulse + returned, moment, found)
        # Numbers that are not finite are in BoundaryExchange too, where the guard finds them.
        if np.isfinite(strengths).all():
            shed_sheets(self.system, covered, strengths, released)

    # ------------------------------------------------------------------ bodies that the fluid moves

    def late(self, entities: list[Entity]) -> Array:
        """Changes (n, 6) of motion between the sheets of the last tick and the start of this one, 0 for
        bodies without sheets."""
        return _for_each(entities, self.system._with_sheets(entities), self._late)

    def entrained(self, entities: list[Entity]) -> Array:
        """What `shared.body_tables.entrained` says."""
        bodies, _ = gathered(entities)
        rows, axes, rho = coupling_of(self.system, bodies)
        out = np.zeros((len(bodies.x), 6, 6))
        if len(rows):
            some = np.ix_(rows, axes, axes)
            out[some] = rho * of_whole(bodies.leader, self._carried_along(entities))[some]
        return out

    def _carried_along(self, entities: list[Entity]) -> Array:
        """Inertia (n, 6, 6), over the density, of the fluid that goes with each body, as if it were alone; 0
        for bodies without sheets."""
        from ecs_fluid.kernels.bodies.rotation import in_world
        from ecs_fluid.kernels.bodies.table import CONTAINER

        shedding, code = self.system._with_sheets(entities), self.world.require(VelocitySystem).code
        inertia = []
        bodies, hulls = gathered(shedding)
        for k, surface in enumerate(self._surfaces(bodies, hulls)):
            key = surface.panels.center.tobytes(), code
            if key not in self._entrained:
                self._entrained[key] = self._entrained_by(surface)
            turn = np.kron(np.eye(2), surface.turn)
            given = np.einsum("ij,jk,lk->il", turn, self._entrained[key], turn)
            # What fluid in the body gains as that turns counts as given by it.
            inner = bodies.inertia[k : k + 1] * (surface.panels.volume / bodies.mass[k])
            given[3:, 3:] += in_world(inner, bodies.q[k : k + 1])[0]
            inertia.append((bodies.shape[k] != CONTAINER) * given)
        return _for_each(entities, shedding, np.reshape(inertia, (-1, 6, 6)))

    def _entrained_by(self, surface: Surface) -> Array:
        """Impulses and angular impulses (6, 6), over the density, that sheets of a body give to the fluid as
        its velocity or spin changes by 1, in the axes of the body; without the spin of fluid in it."""
        from ecs_fluid.kernels.panels.panel_flow import ring_circulations, sheet_strengths

        panels, count = surface.panels, len(surface.panels.area)
        size = self._size(panels)
        shed = panels.center + self.system.offset * size * panels.normal
        sigma, owner = np.full(count, self.system.overlap * size), np.zeros(count, np.int64)
        out = np.zeros((6, 6))
        for axis, way in enumerate(np.eye(6)):
            turning, area = np.cross(way[3:], panels.center), panels.area[:, None]
            wall = way[:3] + turning
            # The vorticity of a body that turns, at its surface, and what is shed to make up for it.
            bound = 2.0 * area * (panels.center * way[3:]).sum(axis=1)[:, None] * panels.normal
            spun = -area * np.cross(panels.normal, turning)
            flow = self.velocity_at(panels.center, panels.center, bound, sigma, images=False)
            flow += self.velocity_at(panels.center, shed, spun, sigma, images=False)
            left, strengths = ((wall - flow) * panels.normal).sum(axis=1), np.zeros((count, 3))
            for _ in range(self.system.sweeps):
                before = rms(left[:, None], panels.area)
                if before <= self.system.tolerance * rms(wall, panels.area):
                    break
                rings = sheet_strengths(panels, ring_circulations(panels, surface.factors, left))
                flow = self.velocity_at(panels.center, shed, rings, sigma, images=False)
                less = left - (flow * panels.normal).sum(axis=1)
                if rms(less[:, None], panels.area) >= LEFT * before:
                    break
                left, strengths = less, strengths + rings
            none = shed, np.zeros_like(strengths)
            given = exchange_of(self.world, np.zeros((1, 3)), owner, none, (shed, strengths), none[1])
            out[:, axis] = np.concatenate([given[0][0], given[1][0]])
        out[:3, :3] -= panels.volume * np.eye(3)
        return 0.5 * (out + out.T)

    # ------------------------------------------------------------------ spin

    def _release_bound(self, former: FormerMotion) -> WakeVortons:
        """Bound vortons of bodies that were removed; from now on they belong to the fluid.

        The strength 2 spin V of a removed body stays where it was, so that neither the flow nor the total of
        wake and bound vorticity, zero, changes: the fluid that fills its place turns as the body did.
        """
        entity = self.world[self.bound_name]
        rows = np.repeat(former.gone, self.system.field(ShedMotion).bound)
        if len(rows) != len(entity):
            raise FluidError(
                f"BoundarySystem: {entity.name!r} has {len(entity)} rows, but {len(rows)} are needed; they "
                "represent the spin of bodies, so nothing else may add or remove rows"
            )
        x, alpha = entity[Position].x[rows], entity[Strength].alpha[rows]
        sigma = entity[CoreRadius].sigma[rows].astype(np.float64)
        volume = (sigma / self.system.overlap) ** 3
        return WakeVortons(x.astype(np.float64), alpha.astype(np.float64), sigma, volume)

    def _fill_wake(self, released: WakeVortons) -> None:
        """Move the bound vortons of the last bodies into the wake."""
        bound = self.world[self.bound_name]
        if len(bound):
            bound.kill(np.ones(len(bound), bool))
        if len(released.x):
            columns = (kind(values) for (kind, _), values in zip(WAKE_COLUMNS, released, strict=True))
            self.world[self.system.wake].spawn(*columns)

    def _carried(self, former: FormerMotion) -> SpinVortons:
        """The bound vortons of present bodies, where the flow has taken them."""
        entity, memory = self.world[self.bound_name], self.system.field(ShedMotion)
        owner, there = rows_of(former.ids, np.repeat(memory.id, memory.bound))
        columns = entity[Position].x, entity[Strength].alpha
        x, alpha = (column[there].astype(np.float64) for column in columns)
        return SpinVortons(x, alpha, owner[there])

    def _update_bound(self, bodies: Bodies, sheet: Sheet, solid: Array, places: Array) -> Array:
        """Bring the bound vortons up to date; returns the velocity (p, 3) m/s of those not in the tables yet.

        Outside a turning body, its vorticity 2 spin acts like the sheet n x (spin x r) on its surface, of the
        same total strength 2 spin V. The sheet lies on the panels `solid` (s,) of bodies that may turn.
        """
        strength = sheet.solid(bodies.angular_velocity)[solid]
        place, core = sheet.center[solid], sheet.sigma[solid]
        entity = self.world[self.bound_name]
        if len(entity) == len(solid):
            entity[Position].x, entity[Strength].alpha, entity[CoreRadius].sigma = place, strength, core
            return np.zeros_like(places)
        # The new rows are spawned when the tick ends; until then their velocity is summed here.
        entity[Strength].alpha = np.zeros_like(entity[Strength].alpha)
        entity.kill(np.ones(len(entity), bool))
        entity.spawn(Position(place), Strength(strength), CoreRadius(core))
        return self.velocity_at(places, place, strength, core)

    # ------------------------------------------------------------------ solution

    def _ring_strengths(self, covered: Covered, slip: Array, missing: Array) -> Array:
        """Strengths (p, 3) m^3/s of the rings that produce, as vortons, the normal velocity that is
        `missing`.

        The matrix of the rings is that of a sheet on the surface. But the vortons have cores and lie off the
        surface, and those of other bodies act too, so a residual is left, which is solved for again: a sweep.

        If the vortons produce the fraction m of some pattern of normal velocity, a sweep leaves 1 - m of it.
        For vortons close to the wall, patterns of the size of a panel have a small m. Rings solved for them
        sweep after sweep, and tick after tick, would become 1/m times as strong, hardly change the flow at
        the wall, and stir the fluid. So after a sweep that leaves `LEFT` or more, a last sweep solves for the
        velocity that the last rings produced in place of the missing one: the fraction m of each pattern.
        That is a step of steepest descent of Landweber, Amer. J. Math. 73 (1951), which is regular when it
        ends early.

        Whether surfaces notice each other is asked of the last full sweep, whether it was taken or not: rings
        of that step are too weak for others to notice.
        """
        sheet = covered.sheet
        scale = max(rms(slip, sheet.area), 1e-300)
        left = (missing * sheet.normal).sum(axis=1)
        size, strengths = rms(left[:, None], sheet.area) / scale, np.zeros_like(missing)
        tried = strengths, left
        for _ in range(self.system.sweeps):
            if size <= self.system.tolerance:
                break
            rings, brought = self._ring_response(covered, left)
            tried = strengths + rings, left - brought
            fine = rms((left - brought)[:, None], sheet.area) >= LEFT * size * scale
            if fine:
                rings, brought = self._ring_response(covered, brought)
            less = rms((left - brought)[:, None], sheet.area) / scale
            if less >= size:
                break
            left, size, strengths = left - brought, less, strengths + rings
            if fine:
                break
        close = self._close(sheet) if size > self.system.tolerance else np.zeros(len(left), dtype=bool)
        if close.any():
            close = self._noticed(covered, close, *tried, (missing * sheet.normal).sum(axis=1))
        if close.any():
            strengths, left = self._coupled(covered, close, scale, strengths, left)
            size = rms(left[:, None], sheet.area) / scale
        self.residual = float(size)
        return strengths

    def _close(self, sheet: Sheet) -> Array:
        """Mask (p,) of the panels of surfaces that come within `NEAR` core radii of another, or of their own
        image behind a mirror."""
        from scipy.spatial import cKDTree

        near = np.zeros(len(sheet.owner), dtype=bool)
        for mirror in self.world.require(VelocitySystem).mirror_planes:
            way = np.linalg.norm(mirror.point(sheet.center) - sheet.center, axis=1)
            near |= way < NEAR * sheet.sigma
        owners = np.unique(sheet.owner)
        for owner in owners if len(owners) > 1 else ():
            own = sheet.owner == owner
            way, _ = cKDTree(sheet.center[~own]).query(sheet.center[own])
            near[own] |= way < NEAR * sheet.sigma[own]
        return np.isin(sheet.owner, sheet.owner[near])

    def _noticed(
        self, covered: Covered, close: Array, strengths: Array, left: Array, missing: Array
    ) -> Array:
        """Of the panels of `close` (p,) surfaces the mask (p,) of those of surfaces at which other sheets, or
        any images, bring a noticeable part of what is `left` (p,) of the `missing` normal velocity.

        Blades of a fan come close to each other at the hub. What is left there is too fine for each one's own
        sheet, as on any thin plate, and sheets that stop it together are strong and stir the fluid.
        """
        sheet, noticed = covered.sheet, np.zeros(len(left), dtype=bool)
        for rows in (surface.rows for surface in covered.surfaces if close[surface.rows].any()):
            own = sheet.shed[rows], strengths[rows], sheet.sigma[rows]
            flow = self.velocity_at(sheet.center[rows], *own, images=False)
            others = missing[rows] - left[rows] - (flow * sheet.normal[rows]).sum(axis=1)
            area = sheet.area[rows]
            noticed[rows] = rms(others[:, None], area) > NOTICED * rms(left[rows, None], area)
        return noticed

    def _coupled(
        self, covered: Covered, close: Array, scale: float, strengths: Array, left: Array
    ) -> tuple[Array, Array]:
        """`strengths` (p, 3) and what is `left` (p,) of the normal velocity, after sweeps for the panels
        `close` to other surfaces together.

        Rings are solved for one body, or part, as if the others were not there. Of the wind into a cup of
        five walls each sweep then stops a tenth. So sweeps are combined with those before, such that the
        least is left of the mean over each panel's neighbours (conjugate residuals; Eisenstat et al., SIAM J.
        Numer. Anal. 20 (1983)): the mean, since patterns of the size of a panel must not be solved for. They
        end where one takes less than 1 - `STALLED` of it.
        """
        sheet = covered.sheet
        mean = _neighbours_mean(sheet, close)
        area, coarse = sheet.area, mean(left)
        size = rms(coarse[:, None], area)
        before: list[tuple[Array, Array, Array]] = []
        for _ in range(self.system.sweeps):
            if size <= self.system.tolerance * scale:
                break
            rings, brought = self._ring_response(covered, coarse)
            smooth = mean(brought)
            for old in before:
                c = _multiple(smooth, old[2], area)
                rings, brought, smooth = rings - c * old[0], brought - c * old[1], smooth - c * old[2]
            before.append((rings, brought, smooth))
            c = _multiple(coarse, smooth, area)
            less = rms((coarse - c * smooth)[:, None], area)
            if less > STALLED * size:
                break
            strengths, left = strengths + c * rings, left - c * brought
            coarse, size = coarse - c * smooth, less
        return strengths, left

    def _ring_response(self, covered: Covered, asked: Array) -> tuple[Array, Array]:
        """Strengths (p, 3) of the rings for the normal velocity `asked` (p,), and what they produce of it."""
        from ecs_fluid.kernels.panels.panel_flow import ring_circulations

        surfaces = covered.surfaces
        mu = [ring_circulations(s.panels, s.factors, s.outward * asked[s.rows]) for s in surfaces]
        strengths = strengths_of_rings(surfaces, mu)
        flow = self._flow_of_sheet(covered.sheet, covered.sheet.center, strengths)
        return strengths, np.asarray((flow * covered.sheet.normal).sum(axis=1))

    def _flow_of_sheet(self, sheet: Sheet, places: Array, strengths: Array) -> Array:
        """Velocity (m, 3) m/s at places (m, 3) of the sheets' vortons with strengths (p, 3) m^3/s."""
        return self.velocity_at(places, sheet.shed, strengths, sheet.sigma)


def _multiple(values: Array, other: Array, area: Array) -> float:
    """The multiple of `other` (p,) that is nearest to `values` (p,), weighted by area."""
    square = float((other * other * area).sum())
    return float((values * other * area).sum()) / square if square > 0.0 else 0.0


def _neighbours_mean(sheet: Sheet, close: Array) -> Callable[[Array], Array]:
    """Of values (p,), the mean over the panels of the same surface within `NEAR` core radii that face the
    same way; 0 for panels that are not `close` to other surfaces."""
    from scipy.spatial import cKDTree

    rows = np.flatnonzero(close)
    center = sheet.center[rows]
    found = cKDTree(center).query_ball_point(center, NEAR * sheet.sigma[rows], return_sorted=True)
    row = np.repeat(rows, [len(near) for near in found])
    other = rows[np.concatenate([np.asarray(near, np.int64) for near in found])]
    alike = (sheet.normal[row] * sheet.normal[other]).sum(axis=1) > FACING
    kept = alike & (sheet.owner[row] == sheet.owner[other])
    row, other, count = row[kept], other[kept], len(close)
    total = np.where(close, np.bincount(row, sheet.area[other], count), 1.0)
    return lambda values: np.bincount(row, (sheet.area * values)[other], count) / total


def _for_each(entities: list[Entity], some: list[Entity], values: Array) -> Array:
    """`values` (m, ...) of the bodies of `some` entities, as rows (n, ...) of all; 0 for the others."""
    rows = np.concatenate([np.zeros(0, bool), *(np.full(len(one), one in some) for one in entities)])
    out = np.zeros((len(rows), *values.shape[1:]))
    out[rows] = values
    return out
