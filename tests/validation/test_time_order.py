"""Order in time of every system that ships, alone and with others. Validation case 114 (T1)."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from solids import balls, body_world, box, solid

import ecs_fluid as ef

Array = np.ndarray
INTEGRATORS = ("euler", "rk2", "rk3", "rk4")
SPACING = 0.25  # m, of the puff's lattice


class March(NamedTuple):
    """A world that is marched to `time` s in any number of ticks, at least `least`, and its orders."""

    orders: tuple[int, int, int, int]
    systems: tuple[Callable[[], ef.System], ...]
    time: float = 0.4
    puff: bool = True
    species: dict[str, float] | None = None
    body: Callable[[ef.World], ef.Entity] | None = None
    fluid: dict[str, Any] = {}
    least: int = 8

    def __call__(self, integrator: str, ticks: int) -> ef.World:
        world = ef.World(dt=self.time / ticks, integrator=integrator, precision="double")
        world.set_fluid(**{"density": 1.2, "gravity": (0.0, 0.0, 0.0), **self.fluid})
        if self.puff:
            _puff(world, self.species)
        if self.body is not None:
            self.body(world)[ef.RigidMotion].angular_velocity[0] = (3.0, -2.0, 5.0)
            world.add_system(ef.BodySystem())
        world.add_systems([*(system() for system in self.systems), ef.AdvectionSystem()])
        world.step(ticks)
        return world

    def slopes(self, integrator: str) -> Array:
        """log2 of the ratios of the differences between each step and its half, all columns together."""
        found = [_columns(self(integrator, self.least * 2**k)) for k in range(4)]
        parts = [
            sum(np.linalg.norm(a[k] - b[k]) / np.linalg.norm(b[k]) for k in b if b[k].any())
            for a, b in itertools.pairwise(found)
        ]
        return np.asarray(-np.diff(np.log2(parts)))


def _puff(world: ef.World, species: dict[str, float] | None) -> None:
    """125 overlapping vortons of a lattice that was shaken: a swirl, warm in the middle."""
    draw, axis = np.random.default_rng(7), SPACING * np.arange(-2, 3)
    x = np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), axis=-1).reshape(-1, 3)
    x = x + draw.uniform(-0.1, 0.1, x.shape) * SPACING
    near, n = np.exp(-3 * (x**2).sum(axis=1)), len(x)
    turn = np.stack([-x[:, 1], x[:, 0] + 0.3 * x[:, 2], 0.2 + 0.4 * x[:, 0]], axis=1)
    tables: list[ef.Component] = [ef.Temperature(300 + 60 * near)]
    if species:
        parts = {name: species.get(name, 0.0) * near for name in ef.Species.columns}
        tables.append(ef.Species(**parts))
    world.spawn(
        "puff", ef.Position(x), ef.Strength(12.0 * SPACING**3 * near[:, None] * turn),
        ef.CoreRadius(np.full(n, 1.6 * SPACING)), ef.Volume(np.full(n, SPACING**3)), *tables,
    )  # fmt: skip


def _columns(world: ef.World) -> dict[str, Array]:
    """Every column of the state, but those of the fluid."""
    return {
        f"{entity.name}/{field.label}": array
        for entity in world.entities
        for kind, table in entity.tables.items()
        if not kind.derived and entity.name != "fluid"
        for field, array in table.items()
        if field.kind == "float"
    }


def _ball(world: ef.World) -> ef.Entity:
    return balls(world, "ball", [0.9, 0.3, 0.1], radius=0.2, mass=0.06, v=[-0.4, 0.5, 0.3])


def _hot_ball(world: ef.World) -> ef.Entity:
    ball = _ball(world)
    world.attach("ball", ef.BodyHeat([500.0], capacity=[20.0], transfer=[30.0]))
    return ball


def _box(world: ef.World) -> ef.Entity:
    return solid(
        world, "box", box(0.4, 0.2, 0.1), density=2.0, rotation=(0.3, 1.0, -0.2), velocity=(0.4, 0.5, 0.3)
    )


RATES, SPLIT, FIRST = (1, 2, 3, 4), (1, 2, 2, 2), (1, 1, 1, 1)
ONCE_SMOOTH = (1, 2, 3, 3)
"""Of gradients among neighbours, whose weights (1 - s^2)^2 have one continuous derivative where they end."""
ITSELF = (2, 2, 2, 2)
"""What is of second order by itself, and moves beside nothing."""
FALL = {"gravity": (0.0, 0.0, -9.81)}
GAS = {"law": "ideal_gas", "temperature": 300.0, "conductivity": 24.0, "viscosity": 0.02, **FALL}
LAYERS = {"density_profile": [(-5.0, 2.2), (5.0, 0.2)], **FALL}
REACTANTS = {"fuel": 0.2, "flame": 0.2}
FLOW = ef.VelocitySystem, ef.StretchSystem
MOTION = *FLOW, ef.DiffusionSystem, ef.BaroclinicSystem, ef.ThermalSystem


def fire(**given: Any) -> Callable[[], ef.System]:
    return lambda: ef.CombustionSystem(rate=60.0, activation=1200.0, heat=1e6, **given)


def cooling() -> ef.System:
    return ef.CoolingSystem(rate=0.8, absorption=20.0)


def heater() -> ef.System:
    keys = ef.Keyed(keys=[(0.0, 320.0), (1.0, 400.0)])
    return ef.HeaterSystem(size=(9.0, 9.0, 9.0), temperature=keys, time=0.2)


ALONE = {
    "velocity": March(RATES, (ef.VelocitySystem,)),
    "stretch": March(RATES, FLOW),
    "diffusion": March(RATES, (ef.VelocitySystem, ef.DiffusionSystem), fluid={"viscosity": 0.02}),
    "core_spreading": March(
        RATES,
        (ef.VelocitySystem, lambda: ef.DiffusionSystem(method="core_spreading")),
        fluid={"viscosity": 0.02},
    ),
    "reformulation": March(RATES, (*FLOW, ef.ReformulationSystem)),
    "turbulence": March(RATES, (lambda: ef.TurbulenceSystem(speed=0.2, scale=1.0),)),
    "baroclinic": March(ONCE_SMOOTH, (ef.VelocitySystem, ef.BaroclinicSystem), fluid=GAS),
    "thermal": March(RATES, (ef.VelocitySystem, ef.ThermalSystem), fluid={"conductivity": 24.0}),
    "species": March(
        RATES, (ef.VelocitySystem, lambda: ef.ThermalSystem(species_diffusivity=0.02)), species=REACTANTS
    ),
    "combustion": March(ITSELF, (fire(),), species=REACTANTS, time=2.0),
    "limited oxygen": March(ITSELF, (fire(oxygen="limited", air_need=3.0),), species=REACTANTS, time=2.0),
    "cooling": March(ITSELF, (cooling,)),
    "heater": March(ITSELF, (heater,)),
    "buoyancy": March(ITSELF, (ef.BuoyancySystem,), puff=False, body=_ball, fluid=LAYERS),
    "drag": March(ITSELF, (ef.DragSystem,), puff=False, body=_ball, fluid={"viscosity": 5e-3, **FALL}),
    "lift": March(
        ITSELF, (lambda: ef.DragSystem(lift=1.0),), puff=False, body=_ball, fluid={"viscosity": 5e-3, **FALL}
    ),
    "tumbling": March(ITSELF, (ef.DragSystem,), puff=False, body=_box, fluid={"viscosity": 1e-3}),
    # What is of first order, and why: docs/systems.md.
    "full baroclinic": March(
        FIRST, (ef.VelocitySystem, lambda: ef.BaroclinicSystem(model="full")), fluid=GAS, least=64
    ),
    "alignment": March(FIRST, (*FLOW, lambda: ef.AlignmentSystem(rate=0.5))),
}
TOGETHER = {
    "heat and motion": March(ONCE_SMOOTH, MOTION, fluid=GAS),
    "fire": March(SPLIT, (*MOTION, fire(), cooling), species=REACTANTS, fluid=GAS),
    "heater, fire": March(SPLIT, (*MOTION, heater, fire(), cooling), species=REACTANTS, fluid=GAS),
    "conduction of a body": March(
        SPLIT, (*MOTION, lambda: ef.ConductionSystem(reach=6.0), cooling), body=_hot_ball, fluid=GAS
    ),
    "drag in a flow": March(SPLIT, (*FLOW, ef.DragSystem), body=_ball, fluid={"viscosity": 1e-2}),
}
FAST = [("heat and motion", "rk2"), ("heat and motion", "rk3"), ("fire", "rk2"), ("drag in a flow", "rk2")]
SLOW = [pair for pair in itertools.product(ALONE | TOGETHER, INTEGRATORS) if pair not in FAST]


def _check(name: str, integrator: str) -> None:
    """T1: the order, by halving the step three times, within 0.2."""
    march = (ALONE | TOGETHER)[name]
    wanted = march.orders[INTEGRATORS.index(integrator)]
    assert march.slopes(integrator) == pytest.approx([wanted] * 2, abs=0.2)


@pytest.mark.parametrize(("name", "integrator"), FAST)
def test_order_of_worlds_with_defaults(name: str, integrator: str) -> None:
    _check(name, integrator)


@pytest.mark.nightly
@pytest.mark.parametrize(("name", "integrator"), SLOW)
def test_order_of_every_system(name: str, integrator: str) -> None:
    _check(name, integrator)


@pytest.mark.parametrize("law", ["stokes", "schiller_naumann"])
def test_a_falling_ball_follows_the_law_of_its_drag(law: Any) -> None:
    """(m + m_a) dv/dt = (m - m_f) g - k(v) v against an ODE solver at 1e-12: order 2, and 1e-4 at 0.01 s.

    With k of the start of the tick the way was 0.39 % off at 0.01 s, in first order.
    """
    radius, mass, rho, nu, end = 0.01, 0.02, 1000.0, 1e-4, 0.4
    displaced = rho * 4 / 3 * np.pi * radius**3

    def pull(_: float, y: Array) -> list[float]:
        reynolds = 2 * radius * abs(y[1]) / nu
        law_ = 1 + 0.15 * reynolds**0.687 if law == "schiller_naumann" else 1.0
        force = -(mass - displaced) * 9.81 - 6 * np.pi * rho * nu * radius * law_ * y[1]
        return [y[1], force / (mass + 0.5 * displaced)]

    exact = solve_ivp(pull, (0, end), [0.0, 0.0], method="DOP853", rtol=1e-12, atol=1e-15).y[:, -1]
    errors = []
    for ticks in (10, 20, 40, 80):
        world = body_world(dt=end / ticks)
        world.set_fluid(density=rho, viscosity=nu)
        ball = balls(world, "ball", [0, 0, 0], radius=radius, mass=mass)
        world.add_systems([ef.BuoyancySystem(), ef.DragSystem(law=law)])
        world.step(ticks)
        found = np.array([ball[ef.Pose].x[0, 2], ball[ef.RigidMotion].v[0, 2]])
        errors.append(np.abs(found / exact - 1))
    errors = np.array(errors)
    assert errors[2].max() < 1e-4
    assert np.log2(errors[:-1, 0] / errors[1:, 0]) == pytest.approx([2.0] * 3, abs=0.2)
    if law == "stokes":
        assert errors[:, 1].max() < 1e-12
    else:
        assert np.log2(errors[:-1, 1] / errors[1:, 1]) == pytest.approx([2.0] * 3, abs=0.2)
