"""Surface tension: vorticity that a curved surface makes."""

from __future__ import annotations

import numpy as np
from pydantic import Field

from ecs_fluid.component import Array
from ecs_fluid.components import CoreRadius, Position, SignedDistance, Strength, Volume
from ecs_fluid.entity import Entity
from ecs_fluid.errors import FluidError
from ecs_fluid.fluid import Fluid
from ecs_fluid.input_limits import GRID_POINT, check_memory
from ecs_fluid.recipe import Name
from ecs_fluid.system import System
from ecs_fluid.systems.baroclinic import BaroclinicSystem
from ecs_fluid.systems.remesh import RemeshSystem
from ecs_fluid.systems.shared.overlap import LEAST_OVERLAP
from ecs_fluid.systems.surface.system import SurfaceSystem
from ecs_fluid.systems.velocity.system import VelocitySystem
from ecs_fluid.world import World


class SurfaceTensionSystem(System):
    """Vorticity of surface tension and of the jump of density at a liquid's surface.

        d(omega)/dt = curl f,    m f = s kappa grad(chi) + d (chi g - (chi - 1/2) a),

    where s is the tension, kappa the curvature of the SignedDistance, chi is 1 inside and 0 outside, m and d
    are mean and difference of the `liquid_density` inside and the fluid's outside, and a is the acceleration
    of the fluid. `kernels.surface.surface_tension` has the derivation, what is left out where the densities
    differ, and what is conserved.

    The vortons of the entity `on` (made if there is none) stand on the points of the SignedDistance's grid.
    At the end of a tick, after the SurfaceSystem, their strengths are shared anew among these points by M4'
    weights, which keep the moments 0, 1 and 2, and dt curl f is added; in the next tick they move and change
    like all vortons. Together with the carried surface that is the leapfrog method: it is of second order,
    and the time step makes waves neither grow nor decay. It must be below sqrt(m h^3 / (pi s)), h the grid's
    spacing (FluidError). The weakest vortons, up to the part `loss` of sum |alpha|, are left out, and the
    others take over their moments. The total strength stays 0; impulse and angular impulse are changed by the
    flow and gravity only.

    Cores of `overlap` spacings make the sheet about one cell thick, which would slow waves by an error of
    first order in the spacing. f - c Laplacian(f) takes the place of f, with c derived in `sharpening`; for
    equal densities the error is then of second order. A surface needs six cells in its smallest radius; what
    is finer is smoothed.

    Source: Fluid Simulation for Video Games, part 21, names the way (level set, curvature, vorticity);
    Brackbill, Kothe and Zemach, J. Comput. Phys. 100 (1992) 335.
    """

    reads = (SignedDistance, Position, Strength, CoreRadius, Fluid)
    phase = "observe"
    makes_vorticity = True
    periodic = False
    after = (SurfaceSystem,)

    surface_tension: float = Field(gt=0, le=1e6)
    """surface tension, N/m"""
    liquid_density: float | None = Field(default=None, gt=0, le=1e6)
    """density inside, kg/m^3; default that of the fluid outside"""
    on: Name = "surface"
    """entity of the surface's vortons"""
    overlap: float = Field(default=LEAST_OVERLAP, ge=1, le=10)
    """core radius of its vortons, in spacings"""
    loss: float = Field(default=2e-3, ge=0, le=0.1)
    """part of sum |alpha| up to which the weakest new vortons are left out, 1"""

    @property
    def sheds(self) -> tuple[str, ...]:
        """Entities whose vortons carry vorticity alone."""
        return (self.on,)

    def spawns(self, world: World) -> None:
        """Make the entity of the surface's vortons."""
        if self.on not in world:
            world.spawn(self.on, Position, Strength, CoreRadius, Volume)

    def added(self, world: World) -> None:
        """Require a surface, and the flow that carries it and that its vortons make."""
        world.require(SurfaceSystem, of="flow", carried=True)
        world.require(VelocitySystem)

    def process(self, dt: float) -> None:
        """Replace the vortons by new ones on the grid, whose strengths include what this tick adds."""
        table = self.field(SignedDistance)
        entity = self.world[self.on]
        self._refuse_company()
        if not table.surface[0] or not table.phi.size:
            return
        from ecs_fluid.kernels.surface.surface_tension import FARTHER

        h = table.spacing.astype(np.float64)
        self._check(table, dt, h)
        source = dt * float(np.prod(h)) * self._source(table, h)
        low, alpha = self._shared(entity, table, h)
        low, alpha = _added(low + FARTHER, alpha, source)
        self._replace(entity, table, h, low - FARTHER, alpha)

    # ------------------------------------------------------------------ the source

    def _source(self, table: SignedDistance, h: Array) -> Array:
        """curl f (nx, ny, nz, 3) 1/s^2 of the sharpened f, on a grid with FARTHER more points at each end."""
        from ecs_fluid.kernels.surface.surface_tension import (
            CELLS,
            FARTHER,
            rotation,
            settled_force,
            sharpened,
            sharpening,
            step,
            tension_force,
        )

        mean, contrast = self._mean_and_contrast()
        width = CELLS * float(h.max())
        parts, count = closed_parts(table.phi, h, width)
        force = tension_force(table.phi, table.origin, h, width, parts, count)
        force *= self.surface_tension / mean
        if contrast:
            chi = step(table.phi, width)
            force += contrast * chi[..., None] * self.world.gravity
            force = settled_force(force, chi, contrast, lambda f: self._induced(f, chi, h))
        _clear_faces(force)
        cores = self.world.require(VelocitySystem).regularisation
        force = sharpened(force, sharpening(cores.gaussians, self.overlap))
        return rotation(np.pad(force, [(FARTHER, FARTHER)] * 3 + [(0, 0)]), h)

    def _induced(self, force: Array, chi: Array, h: Array) -> Array:
        """Acceleration (px, py, pz, 3) m/s^2 that strengths growing by curl f make where chi > 0, else 0."""
        from ecs_fluid.kernels.biot_savart.direct import velocity
        from ecs_fluid.kernels.surface.surface_tension import rotation

        rate = rotation(force, h) * np.prod(h)
        at, within = np.nonzero(rate.any(axis=-1)), np.nonzero(chi > 0)
        sources, targets = (np.stack(index, axis=1) * h for index in (at, within))
        found = np.zeros_like(force)
        a = np.empty((len(targets), 3))
        sigma = np.full(len(sources), self.overlap * h.max())
        code = self.world.require(VelocitySystem).code
        vortons = (np.ascontiguousarray(rows.T) for rows in (sources, rate[at]))
        velocity(code, targets, *vortons, sigma, a)
        found[within] = a
        return found

    def _mean_and_contrast(self) -> tuple[float, float]:
        """Mean density, kg/m^3, and density inside minus that outside, over the mean."""
        outside = float(self.field(Fluid).density)
        inside = outside if self.liquid_density is None else self.liquid_density
        mean = 0.5 * (inside + outside)
        return mean, 2.0 * (inside - mean) / mean

    # ------------------------------------------------------------------ the vortons

    def _shared(self, entity: Entity, table: SignedDistance, h: Array) -> tuple[Array, Array]:
        """Strengths of the present vortons on the grid's points: lowest index (3,), and (nx, ny, nz, 3)."""
        from ecs_fluid.kernels.grids.lattice import lattice_box, to_lattice

        x, strength = entity[Position].x, entity[Strength].alpha
        if not len(x):
            return np.zeros(3, np.int64), np.zeros((0, 0, 0, 3))
        places = (x.astype(np.float64) - table.origin.astype(np.float64)) / h
        flat = np.zeros(3, dtype=bool)
        _, cells = lattice_box(places, 1.0, flat)
        what = f"grid points for SurfaceTensionSystem around the vortons of {entity.name!r}"
        remedy = "some have flown off, so use a smaller dt or larger cells"
        check_memory(GRID_POINT, float(np.prod(cells + 1.0)), what, remedy)
        return to_lattice("m4_prime", places, strength, 1.0, flat)

    def _replace(self, entity: Entity, table: SignedDistance, h: Array, low: Array, alpha: Array) -> None:
        from ecs_fluid.kernels.vorticity.strength_moments import with_moments

        used = np.flatnonzero(alpha.any(axis=-1))
        rows = alpha.reshape(-1, 3)[used]
        size = np.sqrt(np.einsum("pi,pi->p", rows, rows))
        order = np.argsort(size, kind="stable")
        weak = np.zeros(len(used), dtype=bool)
        weak[order[: np.searchsorted(np.cumsum(size[order]), self.loss * size.sum(), side="right")]] = True
        origin = table.origin.astype(np.float64)
        places, far = (
            origin + h * (np.stack(np.unravel_index(used[chosen], alpha.shape[:3]), axis=1) + low)
            for chosen in (~weak, weak)
        )
        new = rows[~weak]
        if len(far) and len(new):
            new, _ = with_moments(places, new, far, rows[weak])
        sigma, volume = np.full(len(new), self.overlap * h.max()), np.full(len(new), np.prod(h))
        entity.kill(np.ones(len(entity), dtype=bool))
        entity.spawn(Position(places), Strength(new), CoreRadius(sigma), Volume(volume))

    # ------------------------------------------------------------------ mistakes

    def _check(self, table: SignedDistance, dt: float, h: Array) -> None:
        if 1 in table.phi.shape:
            raise FluidError(
                "SurfaceTensionSystem: the surface lies in a plane, but its vortons are made for three "
                "dimensions; use a surface in space"
            )
        limit = self.longest_step(float(h.min()))
        if dt > limit:
            raise FluidError(
                f"SurfaceTensionSystem: dt = {dt:g} s is unstable with surface_tension = "
                f"{self.surface_tension:g} N/m on cells of {h.min():g} m; use dt <= {limit:.3g} s or "
                "larger cells"
            )

    def longest_step(self, spacing: float) -> float:
        """Longest step that is allowed, s: sqrt(m h^3 / (pi s)).

        Waves of two cells, omega^2 = s k^3 / (2 m) with k = pi / h, would turn by 2.2 radians in it, where 2
        is the limit; the thickness of the sheet slows them by more than that.
        """
        return float(np.sqrt(self._mean_and_contrast()[0] * spacing**3 / (np.pi * self.surface_tension)))

    def _refuse_company(self) -> None:
        """Raise FluidError if another system would do this one's work a second time."""
        for other in self.world.systems:
            if isinstance(other, RemeshSystem) and (not other.on or self.on in other.on):
                raise FluidError(
                    f"RemeshSystem would replace the vortons of {self.on!r}, which SurfaceTensionSystem "
                    "replaces itself; name other entities in 'on' of RemeshSystem"
                )
            if isinstance(other, BaroclinicSystem) and self._mean_and_contrast()[1]:
                raise FluidError(
                    "BaroclinicSystem and SurfaceTensionSystem would both generate vorticity from the jump "
                    "in density; leave one of them out, or leave out 'liquid_density'"
                )

    def lint(self, world: World) -> list[str]:
        """Warn of too long a step before the first tick."""
        table = world.fluid.tables.get(SignedDistance)
        if not isinstance(table, SignedDistance) or not table.phi.size:
            return []
        limit = self.longest_step(float(table.spacing.min()))
        if world.dt <= limit:
            return []
        return [f"SurfaceTensionSystem: dt = {world.dt:g} s is unstable; use dt <= {limit:.3g} s"]


def closed_parts(phi: Array, h: Array, width: float) -> tuple[Array, int]:
    """The number (px, py, pz) of the closed part that each point belongs to, and how many parts there are.

    Points beyond the reach of the force have 0. Drops count as one where their sheets, ``width`` m to each
    side, are less than two cells apart; points farther out belong to the part nearest to them.
    """
    from scipy.ndimage import distance_transform_edt, label

    from ecs_fluid.kernels.surface.surface_tension import reach

    parts, count = label(phi <= width + 1.01 * h.max())
    if count == 1:
        return (phi <= reach(width, h)).astype(parts.dtype), 1
    nearest = distance_transform_edt(parts == 0, return_distances=False, return_indices=True)
    return np.where(phi <= reach(width, h), parts[tuple(nearest)], 0), int(count)


def _clear_faces(force: Array) -> None:
    """Set the two outer layers to 0, so that summation by parts leaves no terms at the faces."""
    for axis in range(3):
        layers = np.moveaxis(force, axis, 0)
        layers[:2] = layers[-2:] = 0.0


def _added(low: Array, alpha: Array, source: Array) -> tuple[Array, Array]:
    """Sum of strengths ``alpha`` with the lowest index ``low`` and of ``source`` with the lowest index 0.

    Returns the lowest index (3,) of the lattice that holds both, and the sums on it.
    """
    if not alpha.size:
        return np.zeros(3, np.int64), source
    first = np.minimum(low, 0)
    last = np.maximum(low + alpha.shape[:3], source.shape[:3])
    both = np.zeros((*(last - first), 3))
    for start, part in ((low - first, alpha), (-first, source)):
        both[tuple(slice(a, a + n) for a, n in zip(start, part.shape[:3], strict=True))] += part
    return first, both
