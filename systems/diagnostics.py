"""Diagnostics: what a run conserves, how well it is resolved, and which system changed what."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from pydantic import Field

from ecs_fluid.component import Array
from ecs_fluid.components import (
    CoreRadius,
    Position,
    Strength,
    StrengthRate,
    Velocity,
    VelocityGradient,
    VelocityHistory,
)
from ecs_fluid.components.bodies import FluidReaction
from ecs_fluid.plane import impulse_factors
from ecs_fluid.system import System, Types
from ecs_fluid.systems.remesh import narrow_lattice
from ecs_fluid.systems.shared.overlap import LEAST_OVERLAP, overlap
from ecs_fluid.systems.sph import SphSystem
from ecs_fluid.systems.velocity.system import VelocitySystem
from ecs_fluid.world import World

NEARLY = 5e-3
"""An overlap below `LEAST_OVERLAP` by less than this fraction causes no warning: it rounds to the same
number."""
FEW = 8
"""Up to this many vortons are vortices of their own: they do not stand for vorticity between them."""
MOST_ERROR = 0.05
"""Relative error of the velocity above which a record warns."""

INVARIANTS = ("strength", "impulse", "angular_impulse")
"""Names of the results of `vortex_invariants`."""


class DiagnosticsSystem(System):
    """Integrals of the vorticity (impulses, energy, enstrophy, helicity), resolution and time step.

    * vortons: number of vortons, 1
    * strength: sum alpha, m^3/s
    * impulse: 1/2 sum x cross alpha per unit density, m^4/s
    * angular_impulse: 1/3 sum x cross (x cross alpha), m^5/s
    * energy: 1/2 sum_pq alpha_p . alpha_q G(x_p - x_q), G the regularised Green function, m^5/s^2; it falls
      at the rate 2 nu enstrophy under exchange and at half of that under core spreading, since G smooths one
      of the two fields only
    * enstrophy: 1/2 sum_p alpha_p . omega(x_p) with the blobs' vorticity, m^3/s^2
    * helicity: sum_p alpha_p . u(x_p), m^4/s^2
    * speed: largest velocity among all particles in the last stage, m/s
    * overlap: median of core radius over the distance to the nearest vorton, 1
    * dt_grad_u: dt times the largest Frobenius norm of the velocity gradient, 1; None where there are more
      than `pair_limit` vortons, and all were made when the tick ended, as by `boundary` = "layer"
    * jerk: mean of |d^3 x / dt^3| from the last three velocities, m/s^3; with `jerk` only, 0 in the first two
      ticks
    * velocity_error: RMS difference of the velocities from the sum over all vortons, relative to its RMS, at
      64 vortons or 64 other particles, whichever is larger, in the first stage of the tick, 1; None but in
      ticks that are recorded
    * force_by_tracers, force_by_vortons: of the fluid on all bodies by the FluidReaction, N; where there is a
      ReactionSystem
    * liquid_mass: mass of all liquid, kg; this and the following where there is liquid, once it has moved
    * liquid_center: its centre of mass, m
    * liquid_kinetic: its kinetic energy, J
    * liquid_energy: that, its potential energy from z = 0, and those of compression and surface, J
    * liquid_dissipated: energy that its viscosity has taken so far, J
    * liquid_work: energy that accelerations beside gravity have given to it so far, J
    * liquid_density: largest of its densities over that at rest, 1

    In a plane all sums are per metre across it. The impulse is sum x cross alpha, the angular impulse
    1/2 sum x cross (x cross alpha); the energy uses the logarithm of lengths in metres, and lacks a constant
    unless the strengths add up to zero (Saffman, Vortex Dynamics, 3.10).

    In a periodic world impulses have no meaning (None). Energy and enstrophy are those of one period; where
    sides are open, the Green function of the energy is -|z|/2 of a sheet or -ln(r)/(2 pi) of a line, with
    lengths in metres.

    Pair sums cost N^2, so in a run they are taken only up to `pair_limit` vortons (None in the record
    otherwise); in a periodic world they come from the grid. The system warns when the overlap is below 1.5 or
    dt_grad_u above 1. With `budget`, `budgets` holds the change of strength and impulses by every system.
    Source: Winckelmans and Leonard, J. Comput. Phys. 109 (1993); Fluid Simulation for Video Games, part 12.
    """

    may_read = (Position, Strength, CoreRadius, Velocity, VelocityGradient, StrengthRate, FluidReaction)
    writes: Types = (VelocityHistory,)
    asks = (VelocitySystem, SphSystem)
    phase = "observe"
    dimensions = (2, 3)

    every: int = Field(default=10, ge=0)
    """ticks from one record to the next; 0 keeps none"""
    pair_limit: int = Field(default=4000, ge=0)
    """largest number of vortons for which records have sums over all pairs"""
    jerk: bool = False
    """keep two former velocities per vorton and record the mean jerk"""
    budget: bool = False
    """record what every system does to the invariants"""

    def _set_parameters(self, values: dict[str, Any]) -> None:
        super()._set_parameters(values)
        self.writes = (VelocityHistory,) if self.jerk else ()

    def __post_init__(self) -> None:
        self.budgets: dict[str, dict[str, Array]] = {}
        self._before: dict[str, Array] = {}

    def added(self, world: World) -> None:
        """Add the VelocitySystem, which fills the velocities that are read."""
        self.watching = self.budget
        world.require(VelocitySystem)

    def process(self, dt: float) -> None:
        """Record when due, and warn."""
        if self.jerk:
            self._keep_velocities()
        if self.every == 0:
            return
        if self.world.tick == 1:
            self._warn_of_first_step()
        if self.world.tick % self.every:
            return
        record = self.measure(self.pair_limit)
        self.record(**record)
        for key, text in self.advice(record).items():
            self.warn(text, key)

    def _warn_of_first_step(self) -> None:
        """Warn of too long a step in the first tick: above `pair_limit` vortons `lint` cannot know it."""
        rows = sum(len(entity) for entity, _ in self.entities(Position, Strength, CoreRadius))
        if rows > self.pair_limit:
            for key, text in self._step_lint(self._gradient_of_last_stage()).items():
                self.warn(text, key)

    # ------------------------------------------------------------------ measuring

    def measure(self, pair_limit: int | None = None) -> dict[str, Any]:
        """The record of the present state; pair sums up to `pair_limit` vortons (default: always)."""
        from ecs_fluid.kernels.compiled.columns import vortex_invariants

        _, (x, alpha, sigma) = self.joined(Position, Strength, CoreRadius)
        record: dict[str, Any] = {"vortons": len(x)}
        totals = zip(INVARIANTS, vortex_invariants(x, alpha), self._in_plane, strict=True)
        told = self._invariants()
        record.update(
            (name, (factor * value).tolist() if name in told else None) for name, value, factor in totals
        )
        record["speed"] = self._fastest()
        record["overlap"] = overlap(x, sigma)
        record.update(dict.fromkeys(("energy", "enstrophy", "helicity", "dt_grad_u")))
        if pair_limit is None or len(x) <= pair_limit or self.world.require(VelocitySystem).has_images:
            record.update(self._pair_sums(x, alpha))
        else:
            record["dt_grad_u"] = self._gradient_of_last_stage()
        record["velocity_error"] = self.world.require(VelocitySystem).velocity_error
        record["jerk"] = self._mean_jerk()
        record.update(self._forces())
        record.update(self._liquid())
        return record

    @property
    def _in_plane(self) -> tuple[float, float, float]:
        """Factors on the `INVARIANTS` of space, which are 1 there and differ in a plane."""
        return 1.0, *impulse_factors(self.world)

    def _invariants(self) -> tuple[str, ...]:
        """The `INVARIANTS` that have a meaning: in a periodic box, impulses depend on where it begins."""
        return INVARIANTS[:1] if self.world.periods.any() else INVARIANTS

    def _forces(self) -> dict[str, list[float]]:
        """Force of the fluid on all bodies in the last tick, N, by two methods; empty without a reaction."""
        tables = [entity[FluidReaction] for entity in self.world.entities if FluidReaction in entity]
        if not tables:
            return {}
        return {
            f"force_by_{way}": (
                sum(getattr(table, way).sum(axis=0, dtype=np.float64) for table in tables) / self.world.dt
            ).tolist()
            for way in ("tracers", "vortons")
        }

    def _liquid(self) -> dict[str, Any]:
        """Budgets of the liquid from the SphSystem; empty without liquid and before its first tick."""
        system = self.world.system(SphSystem)
        if system is None or not system.started:
            return {}
        told = system.measure()
        names = {name: name for name in ("mass", "center", "kinetic", "energy", "dissipated", "work")}
        found = {f"liquid_{name}": told[key] for name, key in (names | {"density": "largest"}).items()}
        return found | {"liquid_center": found["liquid_center"].tolist()}

    def _fastest(self) -> float:
        """Largest velocity among all particles in the last stage, m/s."""
        from ecs_fluid.kernels.compiled.columns import max_norm

        return max((max_norm(table.u) for (table,) in self.query(Velocity) if len(table.u)), default=0.0)

    def _pair_sums(self, x: Array, alpha: Array) -> dict[str, float]:
        velocity = self.world.require(VelocitySystem)
        psi, omega, u, du = velocity.pair_fields(x)
        weight = alpha.astype(np.float64)
        from ecs_fluid.kernels.compiled.columns import max_norm

        return {
            "energy": 0.5 * float((weight * psi).sum()),
            "enstrophy": 0.5 * float((weight * omega).sum()),
            "helicity": float((weight * u).sum()),
            "dt_grad_u": self.world.dt * max_norm(du) if len(du) else 0.0,
        }

    def _gradient_of_last_stage(self) -> float | None:
        from ecs_fluid.kernels.compiled.columns import max_norm

        if self.world.tick == 0:
            return None
        gradients = (
            max_norm(entity[VelocityGradient].du)
            for entity, _ in self.entities(Position, Strength, CoreRadius)
            if VelocityGradient in entity and len(entity)
        )
        # Vortons that a boundary made as the tick ended have no gradient yet: it is unknown, not zero.
        return self.world.dt * max(gradients, default=0.0) or None

    def advice(self, record: dict[str, Any]) -> dict[str, str]:
        """Warnings, by topic, of what a record shows to be too coarse."""
        texts: dict[str, str] = {}
        velocity = self.world.require(VelocitySystem)
        smooth = velocity.at == "vortons" and velocity.from_grid and narrow_lattice(self.world) > 0
        overlap = record["overlap"]
        several = record["vortons"] > FEW
        if several and overlap is not None and overlap < LEAST_OVERLAP * (1 - NEARLY) and not smooth:
            ratio = LEAST_OVERLAP / max(overlap, 1e-12)
            texts["overlap"] = (
                f"overlap {overlap:.2f} is below {LEAST_OVERLAP}: vorticity between vortons is "
                f"noisy; make the spacing or the number of vortons {ratio:.3g} times finer, or the core "
                "radius larger"
            )
        error = record["velocity_error"]
        if error is not None and error > MOST_ERROR:
            place = ", at = 'vortons'" if velocity.at == "grid" else ""
            texts["velocity_error"] = (
                f"velocities are {100.0 * error:.2g} % off what the vortons induce (RMS, at a sample); use "
                f"solver = 'auto'{place} and tracers = 'solver', or more cells of PartitionSystem"
            )
        return texts | self._step_lint(record["dt_grad_u"])

    def _step_lint(self, step: float | None) -> dict[str, str]:
        texts: dict[str, str] = {}
        if step is not None and step > 1.0:
            texts["dt"] = (
                f"dt * max |grad u| = {step:.2g} is above 1: paths are not resolved in time; use "
                f"dt <= {self.world.dt / step:.2g} s or a larger core radius"
            )
        return texts

    def lint(self, world: World) -> list[str]:
        """Warn of poor resolution in space and time at the start."""
        if world.tick > 0:
            return []
        return list(self.advice(self.measure(self.pair_limit)).values())

    # ------------------------------------------------------------------ jerk

    def _keep_velocities(self) -> None:
        for entity, _ in list(self.entities(Position, Strength, Velocity)):
            self.world._attach_missing(entity.name, VelocityHistory)
        for velocity, history in self.query(Velocity, VelocityHistory):
            history.before[...] = history.last
            history.last[...] = history.newest
            history.newest[...] = velocity.u
            history.count += 1

    def _mean_jerk(self) -> float | None:
        if not self.jerk:
            return None
        total, count = 0.0, 0
        for (history,) in self.query(VelocityHistory):
            ready = history.count >= 3
            second = history.newest[ready] - 2 * history.last[ready] + history.before[ready]
            total += math.fsum(np.linalg.norm(second.astype(np.float64), axis=1))
            count += int(ready.sum())
        return total / count / self.world.dt**2 if count else 0.0

    # ------------------------------------------------------------------ budgets

    def before_system(self, system: System) -> None:
        """Remember rates and totals before a system runs; a look between ticks counts in no budget."""
        if not self.world.evaluating:
            self._before = self._totals(system.phase == "rates")

    def after_system(self, system: System) -> None:
        """Add the system's change of the invariants to its budget of this run.

        For a system of the phase rates that is dt times the rate it adds, weighted as the integrator weights
        its stages; for any other system it is the change of the totals.
        """
        if self.world.evaluating:
            return
        rates = system.phase == "rates"
        after = self._totals(rates)
        factor = self.world.dt * self.world.stage.weight if rates else 1.0
        budget = self.budgets.setdefault(type(system).__name__, {name: np.zeros(3) for name in INVARIANTS})
        for name, share in zip(self._invariants(), self._in_plane, strict=False):
            budget[name] += share * factor * (after[name] - self._before[name])

    def _rows_after_tick(self, name: str, x: Array, alpha: Array) -> Iterator[tuple[Array, Array]]:
        """Places (n, 3) m and strengths (n, 3) m^3/s of an entity's rows that stay, and of queued new rows.

        So rows that a system adds or removes count in its budget, though they come and go later in the tick.
        """
        killed, new = self.world._pending_rows(name)
        yield (x, alpha) if killed is None else (x[~killed], alpha[~killed])
        for batch in new:
            tables = (batch.tables[Position], "x"), (batch.tables[Strength], "alpha")
            columns = (np.broadcast_to(vars(table)[key], (batch.rows, 3)) for table, key in tables)
            place, strength = (np.ascontiguousarray(column, self.world.dtype) for column in columns)
            yield place, strength

    def _totals(self, rates: bool) -> dict[str, Array]:
        from ecs_fluid.kernels.compiled.columns import vortex_invariants

        result = {name: np.zeros(3) for name in INVARIANTS}
        if not rates:
            for entity, (position, strength, _) in self.entities(Position, Strength, CoreRadius):
                for x, alpha in self._rows_after_tick(entity.name, position.x, strength.alpha):
                    for name, value in zip(INVARIANTS, vortex_invariants(x, alpha), strict=True):
                        result[name] += value
            return result
        for position, strength, velocity, rate in self.query(Position, Strength, Velocity, StrengthRate):
            x, a, u, d = (
                np.asarray(table, dtype=np.float64)
                for table in (position.x, strength.alpha, velocity.u, rate.dalpha)
            )
            swirl, turned = np.cross(x, a), np.cross(u, a) + np.cross(x, d)
            result["strength"] += d.sum(axis=0)
            result["impulse"] += 0.5 * turned.sum(axis=0)
            result["angular_impulse"] += (np.cross(u, swirl) + np.cross(x, turned)).sum(axis=0) / 3
        return result
