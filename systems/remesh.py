"""Remeshing: vortons replaced by new ones on a regular lattice."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from pydantic import Field

from ecs_fluid.component import Array, Component
from ecs_fluid.components import CoreRadius, Position, Strength
from ecs_fluid.entity import Entity
from ecs_fluid.errors import FluidError, RecipeError
from ecs_fluid.input_limits import GRID_POINT, check_memory
from ecs_fluid.recipe import Name
from ecs_fluid.system import System
from ecs_fluid.systems.collision import CollisionSystem
from ecs_fluid.systems.shared.carried_quantities import Cargo, carried_kinds, has_matter
from ecs_fluid.systems.shared.divergence import ROOM
from ecs_fluid.systems.shared.lattices import Lattice, lattice_for
from ecs_fluid.systems.shared.overlap import LEAST_OVERLAP
from ecs_fluid.systems.shared.populations import of_bodies
from ecs_fluid.systems.shared.walls import containers
from ecs_fluid.world import World

ROUNDING = 1e-13
"""Points that together hold less than this fraction of sum |alpha| are empty: it is rounding of the
weights."""

ROUNDS = 3
"""How often vortons are asked for a smaller part of what would leave the range of values."""

EDGES = 3 / 16
"""What parts of cells h wide have too much at the edges of a cube a wide: 12 a h^2/64 over a^3, in (h/a)^2
(`CollisionSystem.open_part`)."""

UNCUT = 1e-4
"""Part of a cell beyond a surface below which the surface is between the cells, but for rounding."""

REACH = 2
"""Spacings that the weights which share cargo reach."""

MOST_MISSED, FEWER = 1e-14, 4.0
"""Allowed error of the moments, see `with_moments`; and the factor on `loss` for another pass if the points
left are too few to keep them."""


class RemeshSystem(System):
    """Remeshing: every `every` ticks new vortons on a lattice, `overlap` spacings wide, replace all.

    The flow gathers vortons in places and thins them out in others, where their cores no longer overlap and
    the vorticity between them is lost. The new vortons stand at multiples of `spacing` and take the strengths
    by M4' weights, which keep the moments 0, 1 and 2 of every strength component, and so total strength and
    both impulses, to rounding. (Weights `linear` keep moments 0 and 1 and spread by h^2/6 on average;
    `m6_prime`, for vortons without matter or with `fill`, keep moments 0 to 4, at 216 points in place of 64.
    A wave of 0.8/h loses 0.5 % of itself by M4' each time and 0.06 % by M6', and twice that of its energy.)

    The weakest new vortons, together at most the fraction `loss` of sum |alpha| (and of the volume, if they
    carry matter, or with `fill` of what they carry), are left out. The others compensate the change of the
    moments, by alpha += |alpha| times a quadratic polynomial of the position: the least change in the sense
    of sum |change|^2/|alpha|. If too few are left for that, fewer are left out. Matter goes to the nearest of
    them. `report` holds counts and figures of the last remeshing, by entity.

    Core radii become overlap times spacing. By default the spacing is such that the mean square core radius,
    weighted by |alpha|, stays. With a `spacing` that makes cores narrower, remeshing undoes core spreading.

    Volumes become spacing^3 (spacing^2 in a plane), divided where several populations have a vorton at one
    point. Vortons that carry matter (density, temperature, species, or other components of the population)
    instead share their volume, and each value times volume, by weights of the same reach that are never
    negative. So no value leaves its range and the totals stay (mass, and heat and fuel as ThermalSystem
    counts them: by volume, or by mass where gas swells), at the price of a spread by h^2/4 on average each
    time. New rows get new RowIds; tracers are left alone. Remeshing is for filled cores: a line of single
    vortons becomes a bundle of lines.

    Vortons that share their volume still end where they did, and neither heat nor vorticity can spread
    beyond. With `fill` the vorton of a point stands for all of its cell instead, and what the old ones lack
    of it is fluid at rest. What they have beyond such fluid (heat, species, excess density) keeps its totals.
    It is shared by `weights`, as far as no value leaves its range by that. Fluid at rest that neither turns
    nor carries anything is left out.

    Where a CollisionSystem keeps vortons out of bodies and in containers, lattice points where no vorton may
    be are moved to the surface, and the others compensate that change of the moments too. With `fill` points
    beside a surface stand for that part of their cell which is in the fluid.

    In a periodic world the spacing is adjusted so that a period is a whole number of it. Where the flow has
    images behind planes across an axis (`mirrors`, the walls of solver = "container"), these are halfway
    between points, and what points beyond them would get goes, mirrored, to those that they show. Points
    between two others become vortons even without strength, since exchange needs them; those that get no
    matter get the mean age. `solenoidal` removes the part of the strengths that is a gradient, which grows
    where vortons are stretched. It moves nothing by itself, but it is stretched as well: that adds energy in
    a periodic box, and takes impulse in open space.

    It runs after all observers, on the finished state of the tick, and the next tick starts from the lattice.
    Source: Cottet and Koumoutsakos, Vortex Methods (2000), chapter 7; Monaghan, J. Comput. Phys. 60 (1985).
    """

    reads = (Position, Strength, CoreRadius)
    may_read = (Component,)
    asks = (CollisionSystem,)
    phase = "observe"
    dimensions = (2, 3)
    after = ("*",)

    every: int = Field(default=10, ge=1)
    """ticks from one remeshing to the next"""
    spacing: float | None = Field(default=None, gt=0, le=1e9)
    """lattice spacing, m; default: so that the core radius stays"""
    overlap: float = Field(default=LEAST_OVERLAP, ge=0.1, le=10)
    """core radius of the new vortons, spacings; below 1 only with solver = "poisson" and grid points as close
    as the vortons"""
    weights: Literal["m6_prime", "m4_prime", "linear"] = "m4_prime"
    """how strengths are shared"""
    loss: float = Field(default=1e-4, ge=0, le=0.1)
    """part of sum |alpha| up to which the weakest new vortons are left out, 1"""
    fill: bool = False
    """let vortons that carry matter fill space: what they lack of a lattice point's cell is fluid at rest"""
    solenoidal: bool = False
    """remove the divergence of the new strengths. In a world that repeats along all axes, all of it: the
    correction falls off as r^-3, so all of the box gets weak vortons unless `loss` is some 1e-3 (which takes
    0.02 % of the energy in `reconnection`). Elsewhere that of short waves, by changes within eight spacings
    that keep total strength and impulse; there too a `loss` of some 1e-3 keeps their number down"""
    on: tuple[Name, ...] = ()
    """entities it works on; default all vortons but those of bodies"""

    def __post_init__(self) -> None:
        self.report: dict[str, dict[str, float]] = {}

    def added(self, world: World) -> None:
        """Refuse `solenoidal` in a plane, where strengths across it have no divergence."""
        if self.solenoidal and world.dimension == 2:
            raise RecipeError(
                "RemeshSystem: solenoidal = true is for worlds of three dimensions; leave it out, since "
                "strengths in a plane have no divergence"
            )

    def must_hold(self, world: World) -> None:
        """Refuse populations whose tables cannot be shared, or cannot with `fill` or these weights."""
        entities = self._populations()
        matter = [has_matter(carried_kinds(entity, self.fill)) for entity in entities]
        if self.fill and len(entities) > 1 and any(matter):
            raise FluidError(
                f"RemeshSystem: fill = true lets one population fill space, but {entities[0].name!r} and "
                f"{entities[1].name!r} are remeshed; name one of them in 'on'"
            )
        if any(matter) and not self.fill and self.weights == "m6_prime":
            name = entities[matter.index(True)].name
            raise FluidError(
                "RemeshSystem: weights = 'm6_prime' cannot share out density, temperature or species, but "
                f"{name!r} carries some; use weights = 'm4_prime', or fill = true"
            )

    def lint(self, world: World) -> list[str]:
        """Warn of rooms so narrow that the parts of lattice cells in them add up to too much."""
        collision, texts = world.system(CollisionSystem), []
        for entity in self._populations():
            kept = collision is not None and collision.keeps(entity)
            if not (self.fill and kept and len(entity) and has_matter(carried_kinds(entity, True))):
                continue
            spacing = self._spacing(entity)
            for wall in containers(world):
                if not wall.inside(entity[Position].x).any():
                    continue
                width = float((wall.offsets - (wall.corners @ wall.normals.T).min(axis=0)).min())
                if width < spacing:
                    texts.append(
                        f"RemeshSystem: {entity.name!r} is in a container {width:.3g} m wide, narrower than "
                        f"its spacing of {spacing:.3g} m, so with fill = true its vortons stand for up to "
                        f"{100 * EDGES * (spacing / width) ** 2:.0f} % more than that room's volume; use a "
                        f"spacing of {width / 3:.2g} m, with which it is 2 %"
                    )
        return texts

    def process(self, dt: float) -> None:
        """Queue the replacement of old rows by new ones, when due."""
        if self.world.tick % self.every:
            return
        made = [(entity, *self._remesh(entity)) for entity in self._populations() if len(entity)]
        of_space = (tables for _, tables, cargo in made if cargo.has_volume and not cargo.matter)
        _share_volume([(tables[0].x, tables[-1].volume) for tables in of_space])
        for entity, tables, _ in made:
            entity.kill(np.ones(len(entity), dtype=bool))
            entity.spawn(*tables)

    def _populations(self) -> list[Entity]:
        """The entities it works on."""
        found = [entity for entity, _ in self.chosen(Position, Strength, CoreRadius)]
        return [entity for entity in found if self.on or not of_bodies(entity)]

    def _remesh(self, entity: Entity) -> tuple[list[Any], Cargo]:
        """Tables of the vortons that replace the entity's; and what the old ones carry."""
        from ecs_fluid.kernels.vorticity.strength_moments import with_moments

        lattice, cargo = lattice_for(self.world, self._spacing(entity)), Cargo(entity, self.fill)
        self._check_size(entity, lattice)
        spacing, again = lattice.spacing, lattice.again
        low, field, load, space = self._shared(entity, cargo, lattice)
        x, shape = entity[Position].x, field.shape[:3]
        strength, load = (of.reshape(-1, of.shape[3]) for of in (field, load))
        filled = self.fill and cargo.matter
        volume, matter, loss = space.reshape(-1), np.zeros(len(load)), max(self.loss, ROUNDING)
        if cargo.matter:
            matter = cargo.beyond_rest(load) if filled else volume / volume.sum()
        while True:
            kept, out = _kept_points(strength, matter, loss)
            if again.any():
                kept, out = _with_gaps_filled(kept, out, shape, again)
            # A vorton that carries matter needs a volume.
            if cargo.matter and (none := volume[kept] == 0).any():
                kept, out = kept[~none], np.union1d(out, kept[none])
            places, far = (
                lattice.places(np.stack(np.unravel_index(rows, shape), axis=1) + low, x[0])
                for rows in (kept, out)
            )
            new, residue = strength[kept], 0.0
            moved, former = self._clear(entity, places)
            if len(out) + len(moved) and new.any():
                # The points left out, and the moved points at their old places less those at their new ones.
                x_from = np.concatenate([far, former, places[moved]])
                alpha_from = np.concatenate([strength[out], new[moved], -new[moved]])
                # Along a periodic axis a moment would depend on where the box begins, so it is not kept.
                new, residue = with_moments(places * ~again, new, x_from * ~again, alpha_from)
            if residue <= MOST_MISSED or loss == ROUNDING:
                break
            loss = max(loss / FEWER, ROUNDING)
        self.report[entity.name] = {
            "before": len(entity),
            "after": len(kept),
            "spacing": spacing,
            "left_out": float(_size(strength[out]).sum() / max(_size(strength).sum(), 1e-300)),
            "residue": residue,
            "moved": len(moved) / len(kept),
        }
        sigma = np.full(len(kept), self.overlap * spacing)
        share = _handed_on(load, kept, out, places, far) if cargo.matter else load[kept]
        carried = cargo.filled(share, places, volume[kept]) if filled else cargo.tables(share, lattice.cell)
        tables = [Position(places), Strength(new), CoreRadius(sigma), *carried]
        return tables, cargo

    def _spacing(self, entity: Entity) -> float:
        """Spacing of the lattice for an entity, m."""
        alpha, sigma = entity[Strength].alpha, entity[CoreRadius].sigma
        return self.spacing or _core_radius(alpha, sigma) / self.overlap

    def _shared(self, entity: Entity, cargo: Cargo, lattice: Lattice) -> tuple[Array, Array, Array, Array]:
        """The lowest lattice index (3,), the strengths and cargo that the points get, and their volumes."""
        from ecs_fluid.kernels.poisson.periodic import solenoidal

        x, weights, more = entity[Position].x, self.weights, ROOM if self.solenoidal else 0
        low, field = lattice.shares(x, entity[Strength].alpha, weights, weights, more, turns=True)
        _, load = lattice.shares(x, cargo.extensive, self._positive, weights, more)
        space = load[..., 0]
        if self.fill and cargo.matter:
            space = self._space(entity, lattice, low, space)
            if weights != "linear":
                load = load + self._finer(lattice, x, cargo, load, space, low, more)
        if self.solenoidal and lattice.again.all():
            field = solenoidal(field, lattice.edges)
        elif self.solenoidal:
            field = lattice.less_divergence(field, low)
        return low, field, load, space

    @property
    def _positive(self) -> str:
        """The weights, never negative, that share cargo."""
        return "linear" if self.weights == "linear" else "positive"

    def _space(self, entity: Entity, lattice: Lattice, low: Array, brought: Array) -> Array:
        """Volume, m^3, of the fluid that each of the lattice points (px, py, pz) from `low` on stands for.

        A cell, or beside surfaces that the entity's vortons are kept from, its part in the fluid. There what
        vortons bring to a point, `brought` m^3, is divided otherwise than the cells are, since none is
        beyond the surface: what a point gets beyond its part is taken from those that get less.
        """
        space = np.full(brought.shape, lattice.cell)
        collision = self.world.system(CollisionSystem)
        if collision is None or not collision.keeps(entity):
            return space
        sides = np.where(lattice.flat, 0.0, lattice.edges)
        points = lattice.places(np.argwhere(np.full(space.shape, True)) + low, entity[Position].x[0])
        reach = REACH * float(np.sqrt((sides**2).sum()))
        near = collision.overlap(points, reach) > -reach
        if not near.any():
            return space
        part = collision.open_part(points[near], sides)
        if part.min() > 1 - UNCUT:
            return space
        beside = near.reshape(space.shape)
        space[beside] *= part
        more = np.where(beside & (brought > 0), brought - space, 0.0)
        excess, lack = more.clip(min=0), (-more).clip(min=0)
        taken = min(1.0, excess.sum() / lack.sum()) if lack.any() else 0.0
        return np.asarray(space + excess - taken * lack)

    def _finer(
        self, lattice: Lattice, x: Array, cargo: Cargo, load: Array, space: Array, low: Array, more: int
    ) -> Array:
        """What points get by `weights` beyond `load`, of that part of each vorton's cargo by which no value
        leaves its range.

        A vorton's own difference keeps its total and first moments, so no part of it carries anything away.
        """
        from scipy.ndimage import minimum_filter

        reach, below = (6, 2) if self.weights == "m6_prime" else (4, 1)
        size = np.where(lattice.flat, 1, reach).tolist()
        modes: list[Literal["wrap", "nearest"]] = ["wrap" if axis else "nearest" for axis in lattice.again]
        at = np.where(lattice.flat, 0, np.floor((x - lattice.origin) / lattice.edges).astype(np.int64) - low)
        at = np.where(lattice.again, at % lattice.cells, at)
        # Between a plane that mirrors and the points beside it weights reach only these and the next.
        at = np.clip(at, 0, np.array(space.shape) - 1)
        part = np.ones(len(x))
        for turn in range(ROUNDS + 1):
            held = cargo.extensive * cargo.dilutes * part[:, None]
            change = lattice.shares(x, held, self.weights, self.weights, more)[1]
            change -= lattice.shares(x, held, self._positive, self.weights, more)[1]
            free = cargo.room(load, change, space)
            if turn == ROUNDS or free.min() == 1:
                break
            # The points that a vorton of a cell reaches begin `below` points before the cell's lower end.
            free = minimum_filter(
                free, size, mode=modes, origin=[below - n // 2 if n > 1 else 0 for n in size]
            )
            part *= free[tuple(at.T)]
        return change

    def _clear(self, entity: Entity, places: Array) -> tuple[Array, Array]:
        """Move places in bodies, or beyond walls, to the surface; returns which (m,), and where they were (m,
        3).

        This is done if a CollisionSystem keeps the entity's vortons out: it follows the path from the nearest
        of these vortons to the place.
        """
        collision = self.world.system(CollisionSystem)
        if collision is None or not collision.keeps(entity):
            return np.zeros(0, np.int64), np.zeros((0, 3))
        moved = np.flatnonzero(collision.overlap(places) > 0.0)
        former = places[moved]
        if len(moved):
            from scipy.spatial import cKDTree

            x = entity[Position].x.astype(np.float64)
            places[moved] = collision.followed(x[cKDTree(x).query(former)[1]], former)
        return moved, former

    def _check_size(self, entity: Entity, lattice: Lattice) -> None:
        from ecs_fluid.kernels.grids.lattice import lattice_box

        x = entity[Position].x - lattice.origin
        _, cells = lattice_box(x, lattice.edges, lattice.flat, self.weights)
        what = f"lattice points of {lattice.edges.max():g} m for RemeshSystem around entity {entity.name!r}"
        remedy = "use a larger spacing or remove strays"
        check_memory(GRID_POINT, float(np.prod(cells + 1.0)), what, remedy)


def narrow_lattice(world: World) -> float:
    """Spacing, m, of a RemeshSystem whose vortons are narrower than its spacing; 0 if there is none.

    A velocity grid as fine as that lattice smooths such vortons by the weights that bring them to it.
    """
    found = (other for other in world.systems if isinstance(other, RemeshSystem) and other.overlap < 1)
    return max((other.spacing or 0.0 for other in found), default=0.0)


def _size(alpha: Array) -> Array:
    """|alpha| of every row, float64."""
    return np.asarray(np.sqrt((alpha.astype(np.float64) ** 2).sum(axis=1)))


def _core_radius(alpha: Array, sigma: Array) -> float:
    """Root mean square core radius, m, weighted by |alpha|."""
    weight = _size(alpha)
    if not weight.any():
        weight = np.ones(len(alpha))
    return float(np.sqrt((weight * sigma.astype(np.float64) ** 2).sum() / weight.sum()))


def _share_volume(populations: list[tuple[Array, Array]]) -> None:
    """Divide the volume at points (n, 3) m that several populations share into equal parts, in place.

    Otherwise exchange would count that space once per population; the rates of m vortons of volume V/m add up
    to that of one vorton of volume V.
    """
    from ecs_fluid.kernels.compiled.columns import equal_rows

    if len(populations) < 2:
        return
    # Spacings derived from core radii differ by rounding.
    grain = 1e-6 * min(float(volume.min()) for _, volume in populations) ** (1 / 3)
    places = np.concatenate([np.rint(x / grain) for x, _ in populations])
    _, group = equal_rows(list(places.T))
    first, shares = 0, np.bincount(group)[group]
    for x, volume in populations:
        volume /= shares[first : first + len(x)]
        first += len(x)


def _with_gaps_filled(kept: Array, out: Array, shape: tuple[int, ...], again: Array) -> tuple[Array, Array]:
    """The result of `_kept_points`, but with the points between two kept ones along an axis kept too."""
    mask = np.zeros(shape, dtype=bool)
    mask.reshape(-1)[kept] = True
    filled = 0
    while (before := int(mask.sum())) > filled:
        filled = before
        for axis in range(3):
            lines, inner = np.moveaxis(mask, axis, 0), slice(None) if again[axis] else slice(1, -1)
            lines[inner] |= (np.roll(lines, 1, axis=0) & np.roll(lines, -1, axis=0))[inner]
    kept = np.flatnonzero(mask)
    return kept, np.setdiff1d(out, kept)


def _handed_on(load: Array, kept: Array, out: Array, places: Array, far: Array) -> Array:
    """Rows of `load` of the points kept, with what points left out held at the nearest of these.

    ``places`` (n, 3) and ``far`` (m, 3), m, are where the points kept and left out are.
    """
    share, some = load[kept], load[out].any(axis=1)
    if some.any():
        from scipy.spatial import cKDTree

        np.add.at(share, cKDTree(places).query(far[some])[1], load[out[some]])
    return share


def _kept_points(strength: Array, matter: Array, loss: float) -> tuple[Array, Array]:
    """Numbers, ascending, of the lattice points that become vortons, and of other points that are not empty.

    The others are the weakest, which together hold at most the fraction `loss` of sum |alpha| and of the
    `matter` (points,).
    """
    size = _size(strength)
    score = (size / size.sum() if size.any() else size) + matter
    order = np.argsort(score, kind="stable")
    empty = int((score == 0).sum())
    least = np.cumsum(score[order])
    first = max(empty, int(np.searchsorted(least, loss, side="right")))
    first = min(first, len(order) - 1)
    return np.sort(order[first:]), np.sort(order[empty:first])
