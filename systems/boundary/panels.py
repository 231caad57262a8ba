"""The panel boundary condition: a vortex sheet on the bodies' surfaces, shed as vortons at every tick."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ecs_fluid.component import Array
from ecs_fluid.components import CoreRadius, Position, Strength, Volume
from ecs_fluid.components.bodies import FIXED, BoundVorticity, ShedMotion
from ecs_fluid.errors import FluidError
from ecs_fluid.systems.boundary.article import astray, exchange_of, flow_at, record_exchange, summed
from ecs_fluid.systems.boundary.coupling import filled
from ecs_fluid.systems.shared.body_tables import corners_of, gathered, near_bodies, row_ids, rows_of
from ecs_fluid.systems.velocity.system import VelocitySystem

if TYPE_CHECKING:
    from ecs_fluid.entity import Entity
    from ecs_fluid.kernels.bodies.polytope import Hulls
    from ecs_fluid.kernels.bodies.table import Bodies
    from ecs_fluid.kernels.panels.panel_flow import Factors
    from ecs_fluid.kernels.panels.panels import Panels
    from ecs_fluid.systems.boundary.system import BoundarySystem
    from ecs_fluid.world import World

WAKE_COLUMNS: Any = ((Position, "x"), (Strength, "alpha"), (CoreRadius, "sigma"), (Volume, "volume"))
"""Columns of the wake, in the order of `WakeVortons`."""

LEFT = 0.85
"""Part of the missing normal velocity that a sweep leaves where most of it is too fine for the sheet."""


class Surface(NamedTuple):
    """Panels of one body where it is now, and the factors of its matrix."""

    panels: Panels
    """in axes of the body"""
    factors: Factors
    turn: Array
    """(3, 3) from there to the world; 1 for balls, whose spin carries no panels along"""
    outward: float
    """1 for solids, -1 for containers, whose fluid is inside"""
    first: int
    """number of its first panel among those of all bodies"""

    @property
    def rows(self) -> slice:
        """Its rows among the panels of all bodies."""
        return slice(self.first, self.first + len(self.panels.area))


class Sheet(NamedTuple):
    """The panels of all bodies in the world (p rows)."""

    who: Array
    """number of the body"""
    center: Array
    arm: Array
    """from the centre of the body to there"""
    wall: Array
    """velocity of the body there, m/s"""
    normal: Array
    """into the fluid"""
    area: Array
    shed: Array
    """where vortons are shed"""
    sigma: Array
    """their core radii"""
    volume: Array
    """volumes they stand for"""

    def around(self, spin: Array) -> Array:
        """n x (spin x r) A (p, 3) of spins (n, 3) of the bodies: 2 spin V over each closed surface."""
        return np.asarray(self.area[:, None] * np.cross(self.normal, np.cross(spin[self.who], self.arm)))


class Covered(NamedTuple):
    """All bodies where they are now, and the panels that cover them."""

    bodies: Bodies
    hulls: Hulls
    surfaces: list[Surface]
    sheet: Sheet

    @property
    def volumes(self) -> Array:
        """Volumes (n,) m^3 that the panels enclose."""
        return np.array([s.panels.volume for s in self.surfaces])


class FormerMotion(NamedTuple):
    """Motion of bodies whose vorticity is in the fluid already, from ShedMotion."""

    ids: Array
    """RowId (n,) of the present bodies"""
    known: Array
    """mask (n,) of those that are not new"""
    v: Array
    """(n, 3) m/s, 0 for new bodies"""
    spin: Array
    """(n, 3) rad/s that was shed, 0 for new bodies"""
    change: Array
    """(n, 6) of both in the last tick, 0 for bodies that were new in it"""
    gone: Array
    """mask of the rows of ShedMotion whose bodies were removed"""


class WakeVortons(NamedTuple):
    """Vortons (m rows) that go into the wake: shed by panels, or released by a body that was removed."""

    x: Array
    alpha: Array
    sigma: Array
    volume: Array


class SpinVortons(NamedTuple):
    """Vortons (b rows) that stand for the vorticity 2 spin of bodies."""

    x: Array
    alpha: Array
    who: Array
    """numbers of the bodies"""


class PanelBoundary:
    """Solves for the sheets of all bodies and sheds them; keeps the factors of shapes met before.

    Nothing kept here is state: the factors follow from the shapes.
    """

    def __init__(self, system: BoundarySystem) -> None:
        self.system = system
        self._known: dict[bytes, tuple[Panels, Factors]] = {}
        self.residual = 0.0

    @property
    def world(self) -> World:
        """The world of the system."""
        return self.system.world

    def spawns(self, world: World) -> None:
        """Make the entities of vortons shed and bound, and the memory of the spin shed."""
        nothing = np.zeros((0, 3))
        # Bound vorticity is not there before a body moves, but such a body may come at any time.
        for name in (self.system.wake, self.bound_name):
            if name not in world:
                kind = Volume(np.zeros(0)) if name == self.system.wake else BoundVorticity()
                world.spawn(name, Position(nothing), Strength(nothing), CoreRadius(np.zeros(0)), kind)
        self._attach_memory(world)

    @staticmethod
    def _attach_memory(world: World) -> None:
        """Attach the component that keeps the motion that the fluid knows of."""
        if ShedMotion not in world.fluid:
            none, nothing = np.zeros(0, np.int64), np.zeros((0, 3))
            world.attach("fluid", ShedMotion(none, *4 * [nothing], np.zeros((0, 3, 3)), none))

    @property
    def bound_name(self) -> str:
        """Entity of the vorticity of spinning bodies."""
        return f"{self.system.wake}-bound"

    def speeds_and_extents(self, entities: list[Entity]) -> tuple[Array, Array]:
        """Speeds (n,) m/s of the wind past bodies, and their extents (n,) m."""
        from ecs_fluid.systems.operations import wind_at

        if not any(len(entity) for entity in entities):
            return np.zeros(0), np.zeros(0)
        bodies, hulls = gathered(entities)
        speed = np.linalg.norm(wind_at(self.world, self.world.time) - bodies.v, axis=1)
        return speed, np.array([self._extent(bodies, hulls, i) for i in range(len(speed))])

    # ------------------------------------------------------------------ the tick

    def process(self, entities: list[Entity]) -> None:
        """Find the sheets and shed them."""
        from ecs_fluid.kernels.bodies.table import CONTAINER

        former = self._former_motion(entities)
        released = self._released(former)
        if not len(former.ids):
            self._fill_wake(released)
            self._store_no_motion(former)
            return
        covered = self._covered(entities)
        bodies, sheet, volume = covered.bodies, covered.sheet, covered.volumes
        bound = ((bodies.shape != CONTAINER) & (bodies.motion != FIXED))[sheet.who]
        carried = self._carried(former)
        placed = SpinVortons(sheet.center[bound], sheet.around(former.spin)[bound], sheet.who[bound])
        returned = put_back(self.world, bodies.x, carried, placed)
        flow = self._update_bound(bodies, sheet, np.flatnonzero(bound)) + flow_at(self.world, sheet.center)
        if len(released.x):
            flow += self._velocity(sheet.center, released.x, released.alpha, released.sigma)
        # Closes the lines of the bound vorticity: the sum of both stays zero though the flow stretches it.
        spin = _solid_spin(bodies)
        spun = -sheet.around(spin - summed(carried.alpha, carried.who, len(spin)) / (2.0 * volume[:, None]))
        number = np.bincount(sheet.who[bound], minlength=len(bodies.x))
        self._store_motion(former, bodies.v, spin, number)
        slip = flow - sheet.wall
        rings = self._solved(covered, sheet.wall - flow, spun)
        strengths, nothing = spun + rings, np.zeros_like(rings)
        shed = (nothing, nothing), (sheet.shed, rings)
        impulse, moment, found = exchange_of(self.world, bodies.x, sheet.who, *shed, slip)
        moment += filled(bodies, volume, spin - former.spin)
        record_exchange(entities, impulse + returned, moment, found)
        # Numbers that are not finite are in BoundaryExchange, where the guard finds them.
        if np.isfinite(strengths).all():
            self._shed(covered, strengths, released)

    def _covered(self, entities: list[Entity]) -> Covered:
        """All bodies with their panels."""
        bodies, hulls = gathered(entities)
        surfaces = list(self._surfaces(bodies, hulls))
        return Covered(bodies, hulls, surfaces, self._sheet(bodies, hulls, surfaces))

    def _surfaces(self, bodies: Bodies, hulls: Hulls) -> Iterator[Surface]:
        """The panels of each body, made and factorised when one of its shape is first met."""
        from ecs_fluid.kernels.bodies.rotation import matrix_of
        from ecs_fluid.kernels.bodies.table import BALL, CONTAINER
        from ecs_fluid.kernels.panels.panel_flow import ring_factors

        first = 0
        for i in range(len(bodies.x)):
            ball = bodies.shape[i] == BALL
            radius, corners = float(bodies.radius[i]), _corners(bodies, hulls, i)
            edge = self._edge(bodies, hulls, i)
            key = np.append(radius if ball else corners, edge).tobytes()
            if key not in self._known:
                panels = self._panels(bodies, hulls, i, edge)
                self._known[key] = panels, ring_factors(panels)
            panels, factors = self._known[key]
            turn = np.eye(3) if ball else matrix_of(bodies.q[i])
            yield Surface(panels, factors, turn, -1.0 if bodies.shape[i] == CONTAINER else 1.0, first)
            first += len(panels.area)

    def _edge(self, bodies: Bodies, hulls: Hulls, i: int) -> float:
        """Edge of the panels of body i, m."""
        return self.system.spacing or self._extent(bodies, hulls, i) / self.system.panels_across

    def _panels(self, bodies: Bodies, hulls: Hulls, i: int, edge: float) -> Panels:
        """Panels on body i, in its own axes."""
        from ecs_fluid.kernels.bodies.table import BALL
        from ecs_fluid.kernels.panels.outlines import disk_outline, prism_outline
        from ecs_fluid.kernels.panels.panels import ball_panels, hull_panels

        across, hull, radius = self.world.across, int(bodies.hull[i]), float(bodies.radius[i])
        if bodies.shape[i] == BALL:
            return ball_panels(radius, edge) if across is None else disk_outline(radius, edge, across)
        return hull_panels(hulls, hull, edge) if across is None else prism_outline(hulls, hull, edge, across)

    def _extent(self, bodies: Bodies, hulls: Hulls, i: int) -> float:
        """Longest extent of body i along its axes, in a plane along those in it, m."""
        corners = _corners(bodies, hulls, i)
        if not len(corners):
            return 2.0 * float(bodies.radius[i])
        return float(np.ptp(corners, axis=0)[np.arange(3) != self.world.across].max())

    def _sheet(self, bodies: Bodies, hulls: Hulls, surfaces: list[Surface]) -> Sheet:
        """All panels in the world."""
        who = np.concatenate([np.full(len(s.panels.area), i) for i, s in enumerate(surfaces)])
        center = np.concatenate(
            [turned(s.turn, s.panels.center) + x for s, x in zip(surfaces, bodies.x, strict=True)]
        )
        normal = np.concatenate([s.outward * turned(s.turn, s.panels.normal) for s in surfaces])
        area = np.concatenate([s.panels.area for s in surfaces])
        # One size for a whole body: vortons of equal cores keep their total strength when they stretch.
        size = np.concatenate([np.full(len(s.panels.area), self._size(s.panels)) for s in surfaces])
        shed = center + (self.system.offset * size)[:, None] * normal
        for part in (0.5, 0.25, 0.0):
            # Where bodies are closer than that, nearer to the surface.
            lost = astray(bodies, hulls, shed)
            shed[lost] = center[lost] + (part * self.system.offset * size[lost])[:, None] * normal[lost]
        arm = center - bodies.x[who]
        wall = bodies.v[who] + np.cross(bodies.angular_velocity[who], arm)
        sigma = self.system.overlap * size
        return Sheet(who, center, arm, wall, normal, area, shed, sigma, size * area)

    def _size(self, panels: Panels) -> float:
        """Root of the triangles' area, or length of the segments, in the mean over the surface, m."""
        mean = float((panels.area**2).sum() / panels.area.sum())
        return mean if self.world.dimension == 2 else float(np.sqrt(mean))

    # ------------------------------------------------------------------ spin

    def _former_motion(self, entities: list[Entity]) -> FormerMotion:
        """The motion of the present bodies that the fluid knows of, and which bodies were removed."""
        memory = self.system.field(ShedMotion)
        ids = row_ids(entities)
        rows, known = rows_of(memory.id, ids)
        columns = memory.v, memory.angular_velocity, memory.v_change, memory.spin_change
        motion = np.zeros((len(ids), 12))
        motion[known] = np.concatenate(columns, axis=1)[rows[known]]
        gone = ~np.isin(memory.id, ids)
        return FormerMotion(ids, known, motion[:, :3], motion[:, 3:6], motion[:, 6:], gone)

    def _store_motion(
        self, former: FormerMotion, v: Array, spin: Array, bound: Array, added: Array | None = None
    ) -> None:
        """Keep the motion (n, 3) that the fluid knows of now; `bound` (n,) vortons stand for each spin."""
        memory, number, known = self.system.field(ShedMotion), self.world.dtype, former.known[:, None]
        memory.v, memory.angular_velocity = v.astype(number), spin.astype(number)
        memory.v_change = (known * (v - former.v)).astype(number)
        memory.spin_change = (known * (spin - former.spin)).astype(number)
        memory.added = (np.zeros((len(v), 3, 3)) if added is None else added).astype(number)
        memory.id, memory.bound = former.ids, bound

    def _store_no_motion(self, former: FormerMotion) -> None:
        """The same where there are no bodies any more."""
        self._store_motion(former, np.zeros((0, 3)), np.zeros((0, 3)), np.zeros(0, np.int64))

    def _released(self, former: FormerMotion) -> WakeVortons:
        """Bound vortons of bodies that were removed; from now on they belong to the fluid.

        The vorticity 2 spin V that a body had stays where it was, so that neither the flow nor the total of
        wake and bound vorticity, zero, changes as the body goes: what fills its place turns as it did.
        """
        entity = self.world[self.bound_name]
        rows = np.repeat(former.gone, self.system.field(ShedMotion).bound)
        if len(rows) != len(entity):
            raise FluidError(
                f"BoundarySystem: {entity.name!r} has {len(entity)} rows in place of {len(rows)}; they stand "
                "for the spin of bodies, so nothing else may add or remove any"
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

    def _update_bound(self, bodies: Bodies, sheet: Sheet, solid: Array) -> Array:
        """Bring the bound vortons up to date; returns the velocity (p, 3) that is not in the tables yet.

        The vorticity 2 spin of a turning body is seen from outside as the sheet n x (spin x r) on its
        surface, of the same total 2 spin V; on the panels `solid` (s,) of bodies that may turn.
        """
        strength = sheet.around(bodies.angular_velocity)[solid]
        place, core = sheet.center[solid], sheet.sigma[solid]
        entity = self.world[self.bound_name]
        if len(entity) == len(solid):
            entity[Position].x, entity[Strength].alpha, entity[CoreRadius].sigma = place, strength, core
            return np.zeros_like(sheet.arm)
        # Made, or made anew, when the tick ends; until then it is summed here.
        entity[Strength].alpha = np.zeros_like(entity[Strength].alpha)
        entity.kill(np.ones(len(entity), bool))
        entity.spawn(Position(place), Strength(strength), CoreRadius(core))
        return self._velocity(sheet.center, place, strength, core)

    # ------------------------------------------------------------------ solution

    def _solved(self, covered: Covered, missing: Array, given: Array) -> Array:
        """Strengths (p, 3) of the rings that bring, once they are vortons, what is `missing` along normals.

        `missing` (p, 3) m/s is wanted of them and of the vortons `given` (p, 3) m^3/s together.

        The rings' own matrix is that of a sheet on the surface; what the vortons at their places beyond it,
        with their cores, and those of other bodies leave over is solved for again.

        A pattern of which the vortons bring the part m is left at 1 - m of it by a sweep. Patterns of the
        size of a panel, by vortons close to the wall, have a small m: rings that are asked for them sweep
        after sweep, and tick after tick, become 1/m times as strong, hardly change the flow at the wall, and
        stir the fluid. So after a sweep that leaves `LEFT` or more, what its rings bring is asked for in
        place of what is missing, which is the part m of each pattern, and that is the last one: the step of
        steepest descent of Landweber, Amer. J. Math. 73 (1951), which is regular when it is ended early.
        """
        sheet = covered.sheet
        scale = max(rms(missing, sheet.area), 1e-300)
        left = self._missing_normal(sheet, missing, given)
        size, strengths = rms(left[:, None], sheet.area) / scale, np.zeros_like(missing)
        for _ in range(self.system.sweeps):
            if size <= self.system.tolerance:
                break
            rings, brought = self._answer(covered, left)
            fine = rms((left - brought)[:, None], sheet.area) >= LEFT * size * scale
            if fine:
                rings, brought = self._answer(covered, brought)
            less = rms((left - brought)[:, None], sheet.area) / scale
            if less >= size:
                break
            left, size, strengths = left - brought, less, strengths + rings
            if fine:
                break
        self.residual = float(size)
        return strengths

    def _answer(self, covered: Covered, asked: Array) -> tuple[Array, Array]:
        """Strengths (p, 3) of the rings for the normal velocity `asked` (p,), and what they bring of it."""
        from ecs_fluid.kernels.panels.panel_flow import ring_circulations

        surfaces = covered.surfaces
        mu = [ring_circulations(s.panels, s.factors, s.outward * asked[s.rows]) for s in surfaces]
        strengths = strengths_of_rings(surfaces, mu)
        return strengths, -self._missing_normal(covered.sheet, np.zeros_like(strengths), strengths)

    def _missing_normal(self, sheet: Sheet, missing: Array, strengths: Array) -> Array:
        """Velocity (p,) along the normals that is still missing once vortons of these strengths are shed."""
        made = self._velocity(sheet.center, sheet.shed, strengths, sheet.sigma)
        return np.asarray(((missing - made) * sheet.normal).sum(axis=1))

    def _velocity(self, points: Array, x: Array, alpha: Array, sigma: Array) -> Array:
        """Velocity (m, 3) of vortons by the direct sum in double precision."""
        from ecs_fluid.kernels.biot_savart.direct import velocity

        u = np.empty_like(points)
        rows = np.ascontiguousarray(x.T), np.ascontiguousarray(alpha.T)
        code = self.world.require(VelocitySystem).code
        velocity(code, np.ascontiguousarray(points), *rows, np.ascontiguousarray(sigma), u)
        return u

    # ------------------------------------------------------------------ shedding

    def _shed(self, covered: Covered, strengths: Array, released: WakeVortons) -> None:
        """Add the vortons to the wake, with those released, and join those that lie close together."""
        wake, sheet = self.world[self.system.wake], covered.sheet
        old = len(wake)
        shed = WakeVortons(sheet.shed, strengths, sheet.sigma, sheet.volume)
        every = WakeVortons(
            *(
                np.concatenate([getattr(wake[kind], name).astype(np.float64), *fresh])
                for (kind, name), *fresh in zip(WAKE_COLUMNS, shed, released, strict=True)
            )
        )
        first, merged = self._merged(covered, every)
        stay = first < old
        rows = first[stay]
        for (kind, name), values in zip(WAKE_COLUMNS, merged, strict=True):
            getattr(wake[kind], name)[rows] = values[stay]
        gone = np.ones(old, bool)
        gone[rows] = False
        if gone.any():
            wake.kill(gone)
        new = ~stay
        if new.any():
            wake.spawn(*(kind(values[new]) for (kind, _), values in zip(WAKE_COLUMNS, merged, strict=True)))

    def _merged(self, covered: Covered, every: WakeVortons) -> tuple[Array, WakeVortons]:
        """Vortons that share a cell joined, and of each that is left the first row that is in it.

        Cells are `merge` core radii wide, coarser with the distance from bodies as far as `most` demands.
        """
        from ecs_fluid.kernels.vorticity.merging import cell_levels, merge

        bodies, hulls, _, sheet = covered
        x, sigma = every.x, every.sigma
        base = cell_levels(self.system.merge * sigma)
        distance, side = _distance(bodies, hulls, x), _side(bodies, hulls, x, sigma)
        for coarser in range(32):
            level = base + np.floor(coarser * distance).astype(np.int64)
            found = merge(*every, level, side)
            if len(found.first) <= self.system.most:
                break
        else:
            raise FluidError(
                f"BoundarySystem: {len(sheet.area)} panels shed more vortons than most = {self.system.most} "
                "allows; use fewer panels or a larger most"
            )
        # The middle of several vortons may lie in a body that curves between them.
        lost = astray(bodies, hulls, found.x)
        found.x[lost] = x[found.first[lost]]
        return found.first, WakeVortons(found.x, found.alpha, found.sigma, found.volume)


def _solid_spin(bodies: Bodies) -> Array:
    """Spin (n, 3) rad/s of bodies; 0 for containers, which slip along their fluid."""
    from ecs_fluid.kernels.bodies.table import CONTAINER

    return np.asarray(np.where((bodies.shape != CONTAINER)[:, None], bodies.angular_velocity, 0.0))


def _corners(bodies: Bodies, hulls: Hulls, i: int) -> Array:
    """Corners (m, 3) of body i, m, in its own axes; none of a ball."""
    from ecs_fluid.kernels.bodies.table import BALL

    return hulls.vertices[:0] if bodies.shape[i] == BALL else corners_of(hulls, int(bodies.hull[i]))


def put_back(world: World, centers: Array, carried: SpinVortons, placed: SpinVortons) -> Array:
    """Impulses (n, 3) over the density as the vorticity that stands for rotation returns to its bodies.

    From where it flowed, `carried`, to where it is `placed`. The flow takes it along nearly as the body goes;
    what is left is the force of what blows past it, density times circulation times the difference of
    velocity, as Magnus's is.
    """
    x, who = np.concatenate([carried.x, placed.x]), np.concatenate([carried.who, placed.who])
    before = np.concatenate([carried.alpha, 0.0 * placed.alpha])
    after = np.concatenate([0.0 * carried.alpha, placed.alpha])
    return exchange_of(world, centers, who, (x, before), (x, after), np.zeros_like(x))[0]


def strengths_of_rings(surfaces: list[Surface], mu: list[Array]) -> Array:
    """Strengths (p, 3) m^3/s in the world of the rings of circulations mu, m^2/s, of each surface."""
    from ecs_fluid.kernels.panels.panel_flow import sheet_strengths

    parts = [turned(s.turn, sheet_strengths(s.panels, m)) for s, m in zip(surfaces, mu, strict=True)]
    return np.concatenate(parts)


def turned(turn: Array, vectors: Array) -> Array:
    """Vectors (n, 3) turned by a matrix, without a library whose sums depend on its threads."""
    return np.asarray(np.einsum("ij,nj->ni", turn, vectors))


def rms(values: Array, area: Array) -> float:
    """Root of the mean square over the surface."""
    return float(np.sqrt(((values**2).sum(axis=1) * area).sum() / area.sum()))


def _distance(bodies: Bodies, hulls: Hulls, x: Array) -> Array:
    """log2(1 + distance from the nearest body's ball, or container's walls, in its diameters) (n,)."""
    from ecs_fluid.kernels.bodies.table import CONTAINER

    least = np.full(len(x), np.inf)
    for i, (center, radius) in enumerate(zip(bodies.x, bodies.radius, strict=True)):
        gap = np.linalg.norm(x - center, axis=1) / radius - 1.0
        if bodies.shape[i] == CONTAINER:
            own = bodies._replace(**{name: column[[i]] for name, column in bodies._asdict().items()})
            rows, _, walls, _ = near_bodies(own, hulls, x, np.full(len(x), 2.0 * radius))
            gap[rows] = walls / radius
        least = np.minimum(least, np.maximum(gap, 0.0) / 2.0)
    return np.asarray(np.log2(1.0 + least))


def _side(bodies: Bodies, hulls: Hulls, x: Array, sigma: Array) -> Array:
    """Number (n,) of the octant of the normal of a surface within two core radii, 0 where there is none."""
    rows, _, _, normal = near_bodies(bodies, hulls, x, 2.0 * sigma)
    side = np.zeros(len(x), np.int64)
    side[rows] = 1 + (normal > 0.0) @ np.array([4, 2, 1])
    return side
