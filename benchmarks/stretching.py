"""Forms of stretching on lines, loops, fields and breakdown: ``python benchmarks/stretching.py``, 6 min.

Double precision, direct sum, RK3. The flows are those of tests/validation. Beside the forms of StretchSystem:
alignment at 3/s; the classical form turned towards the transposed one by sin^2 of the angle between strength
and vorticity; and d(alpha)/dt = J alpha - (curl u - omega) cross alpha with the blobs' vorticity omega, which
keeps the total strength pair by pair like the transposed form and is the classical one where omega has no
divergence.
"""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import ecs_fluid as ef

sys.path.append(str(Path(__file__).parents[1] / "tests/validation"))


class Turned(ef.System):
    """J alpha - w cross alpha, w a part of the vorticity."""

    reads = (ef.Position, ef.VelocityGradient, ef.Strength)
    adds = (ef.StrengthRate,)
    asks = (ef.VelocitySystem,)
    phase = "rates"

    by: str = "angle"

    def process(self, dt: float) -> None:
        """Add the rate."""
        for position, gradient, strength, rate in self.query(
            ef.Position, ef.VelocityGradient, ef.Strength, ef.StrengthRate
        ):
            du, alpha = gradient.du, strength.alpha
            curl = np.stack(
                [du[:, (i + 2) % 3, (i + 1) % 3] - du[:, (i + 1) % 3, (i + 2) % 3] for i in range(3)], 1
            )
            if self.by == "angle":
                sizes = np.maximum((curl**2).sum(1) * (alpha**2).sum(1), 1e-300)
                part = curl * ((np.cross(curl, alpha) ** 2).sum(1) / sizes)[:, None]
            else:
                part = curl - self.world.require(ef.VelocitySystem).pair_fields(position.x)[1]
            rate.dalpha += np.einsum("pij,pj->pi", du, alpha) - np.cross(part, alpha)


FORMS: dict[str, Callable[[], list[ef.System]]] = {
    **{
        name: lambda name=name: [ef.StretchSystem(scheme=name)]  # type: ignore[misc]
        for name in ("limited", "classical", "transposed", "mixed")
    },
    "limited, alignment": lambda: [ef.StretchSystem(), ef.AlignmentSystem(rate=3.0)],
    "transposed, alignment": lambda: [ef.StretchSystem(scheme="transposed"), ef.AlignmentSystem(rate=3.0)],
    "turned by the angle": lambda: [Turned()],
    "turned by the divergence": lambda: [Turned(by="divergence")],
}


def world_of(blobs: Any, form: str, dt: float, length: float = 0.0) -> ef.World:
    """The blobs in a world; repeated along x each `length`, if given."""
    from flows import RowSolver

    world = ef.World(dt=dt, integrator="rk3", precision="double")
    for number, columns in enumerate(blobs if isinstance(blobs, list) else [blobs]):
        kinds = zip((ef.Position, ef.Strength, ef.CoreRadius), columns, strict=True)
        world.spawn(f"vortex{number}", *(kind(column) for kind, column in kinds))
    direct = ef.VelocitySystem(solver="direct")
    world.add_system(ef.VelocitySystem.with_solver(RowSolver, length=length) if length else direct)
    world.add_systems([*FORMS[form](), ef.AdvectionSystem()])
    return world


def bending(form: str) -> str:
    """Shape error over half a turn at k sigma = 0.1, 0.2, 0.3, over the amplitude."""
    from test_stretching import shape_error

    if form == "turned by the divergence":
        return "-"
    errors = [
        shape_error(sigma, 2.4, make=lambda blobs, dt: world_of(blobs, form, dt, 2 * math.pi))
        for sigma in (0.1, 0.2, 0.3)
    ]
    return " ".join(f"{error:.1e}" for error in errors)


def crow(form: str) -> str:
    """Growth of Crow's instability less that of his formula, %, at 0.7, 1 and 1.2 of the fastest wave."""
    import test_crow

    if form == "turned by the divergence":
        return "-"
    cut = test_crow.cut_off("winckelmans", 0.15)
    fastest = test_crow.best(lambda k: test_crow.growth(test_crow.crow_rates(k, cut)), 0.4, 1.2)
    found = []
    for k in (0.7 * fastest, fastest, 1.2 * fastest):
        theory = test_crow.growth(test_crow.crow_rates(k, cut)) / (2 * math.pi)
        make = lambda blobs, dt, k=k: world_of(blobs, form, dt, 2 * math.pi / k)  # noqa: E731
        found.append(100 * (test_crow.marched_growth(k, 0.15, 2.4, make=make) / theory - 1))
    return " ".join(f"{error:+.1f}" for error in found)


def drifts(blobs: Any, form: str, seconds: float, *names: str) -> str:
    """Drift of invariants over their first values."""
    import test_stretching

    found = test_stretching.drifts(world_of(blobs, form, 0.05), seconds)
    return " ".join(f"{found[name]:.1e}" for name in names)


def skew(form: str) -> str:
    """Skew rings to 5 s: impulse, energy."""
    from flows import skew_rings

    return drifts(skew_rings(), form, 5.0, "impulse", "energy")


def linked(form: str) -> str:
    """Two linked rings to 3 s: impulse, energy, helicity."""
    from flows import ring

    blobs = [ring(120, 0.2), ring(120, 0.2, center=(1.0, 0.0, 0.0), axis=(0.0, 1.0, 0.0))]
    return drifts(blobs, form, 3.0, "impulse", "energy", "helicity")


def field(form: str) -> str:
    """Random field of spacing 0.35 m to 4 s: helicity, energy, impulse."""
    from flows import helical_field

    return drifts(helical_field(0.35), form, 4.0, "helicity", "energy", "impulse")


def leapfrog(form: str) -> str:
    """Leapfrogging rings (case 35): largest error of radii and heights."""
    from flows import ring
    from oracles import thin_rings
    from test_leapfrog import R0, TIME, radius_and_height

    world = world_of(
        [ring(100, R0 / 10, R0), ring(100, R0 / 10, R0, center=(0.0, 0.0, R0))], form, TIME / 350
    )
    world.step(350)
    exact = zip(*thin_rings(np.array((R0, R0)), np.array((0.0, R0)), 0.1 * R0, -0.5, TIME), strict=True)
    found = [radius_and_height(world, f"vortex{k}") for k in range(2)]
    return f"{max(np.abs(np.array(found) / np.array(list(exact)) - 1).ravel()):.1e}"


def breakdown(form: str, rings: list[tuple[float, float, float]]) -> str:
    """Last half second with less than a thousand times the enstrophy (at most 14 s); energy at 4 s."""
    from flows import wavy_ring

    world = world_of([wavy_ring(*ring) for ring in rings], form, 0.05)
    records = [world.diagnostics()]
    try:
        while world.time < 14 - 1e-9 and records[-1]["enstrophy"] < 1e3 * records[0]["enstrophy"]:
            world.step(10)
            records.append(world.diagnostics())
        lasts = "> 14" if world.time > 14 - 1e-9 else f"{world.time - 0.5:.1f}"
    except ef.DivergedError:
        lasts = f"{0.5 * (len(records) - 1):.1f}"
    energy = records[8]["energy"] / records[0]["energy"] if len(records) > 8 else math.nan
    return f"{lasts} {energy:.2f}"


CASES: dict[str, Callable[[str], str]] = {
    "bending wave": bending,
    "Crow": crow,
    "skew rings": skew,
    "linked rings": linked,
    "leapfrog": leapfrog,
    "random field": field,
    "colliding rings": lambda form: breakdown(form, [(-0.6, 1.0, 0.05), (0.6, -1.0, -0.05)]),
    "one wavy ring": lambda form: breakdown(form, [(0.0, 1.0, 0.25)]),
}


def main() -> None:
    """Print the table, case by case."""
    warnings.simplefilter("ignore")
    for name, case in CASES.items():
        print(f"\n{name}: {case.__doc__ or 'seconds until it breaks down, energy at 4 s'}", flush=True)
        for form in FORMS:
            print(f"  {form:26} {case(form)}", flush=True)


if __name__ == "__main__":
    from asked import nothing

    nothing(__file__, __doc__)
    main()
