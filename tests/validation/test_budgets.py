"""Who broke what: budgets of the invariants by system, and debug worlds that watch every table."""

from __future__ import annotations

import numpy as np
import pytest
from flows import Blobs, invariants, skew_rings, swirl_blob, vortons, world_of

import ecs_fluid as ef


class Leak(ef.System):
    """Pulls strengths towards +x at a fixed rate, which no fluid does by itself."""

    adds = (ef.StrengthRate,)
    phase = "rates"

    def process(self, dt: float) -> None:
        """d(alpha_x)/dt = 0.01."""
        for (rate,) in self.query(ef.StrengthRate):
            rate.dalpha[:, 0] += 0.01


class Nudge(ef.System):
    """Shifts all vortons along y after the motion, and with them the impulse of unbalanced strengths."""

    writes = (ef.Position,)
    reads = (ef.Strength,)
    phase = "constrain"

    def process(self, dt: float) -> None:
        """x_y += 0.001."""
        for position, _ in self.query(ef.Position, ef.Strength):
            position.x[:, 1] += 0.001


def lopsided() -> Blobs:
    """A hundred random vortons whose strengths do not add up to zero."""
    draw = np.random.default_rng(6)
    return draw.uniform(-1, 1, (100, 3)), 0.1 * draw.standard_normal((100, 3)) + 0.05, np.full(100, 0.4)


@pytest.mark.parametrize("integrator", ["euler", "rk2", "rk3", "rk4"])
def test_a_leak_of_strength_is_charged_to_its_system(integrator: str) -> None:
    """Strength: 100 vortons x 0.01/s, to rounding, whatever the integrator's stages; others are at zero."""
    watch = ef.DiagnosticsSystem(budget=True, every=0)
    world = world_of(lopsided(), watch, Leak(), dt=0.01, integrator=integrator, stretch="transposed")
    world.step(3)
    world.evaluate()  # a look between ticks is nobody's change
    world.step(2)
    leaked = watch.budgets["Leak"]["strength"]
    assert leaked == pytest.approx([100 * 0.01 * 0.05, 0.0, 0.0], abs=1e-14)
    assert np.abs(watch.budgets["StretchSystem"]["strength"]).max() < 1e-14
    assert np.abs(watch.budgets["PartitionSystem"]["strength"]).max() == 0.0
    assert np.abs(watch.budgets["Leak"]["impulse"]).max() > 1e-3 * np.abs(leaked).max()


def test_the_system_that_breaks_the_impulse_is_named() -> None:
    """Impulse: the nudge adds 1/2 (shift cross sum alpha) a tick, and is charged with exactly that."""
    watch = ef.DiagnosticsSystem(budget=True, every=0)
    world = world_of(lopsided(), watch, Nudge(), dt=0.01, stretch="none")
    world.step(4)
    total = invariants(world)["strength"]
    expected = 4 * 0.5 * np.cross([0.0, 0.001, 0.0], total)
    assert watch.budgets["Nudge"]["impulse"] == pytest.approx(expected, rel=1e-12, abs=1e-15)


def test_velocity_and_stretch_change_the_impulse_only_apart() -> None:
    """Two closed rings: velocity alone and stretch alone change the angular impulse, together they do not.

    They cancel to the lines' quadrature and its growth over the ticks, 1e-7 of either. (The impulse of
    closed rings is kept by each.)

    With a leak in the world the balance is broken by the leak: 1/2 sum x cross (0.01, 0, 0) dt, and by
    what the open lines, which it makes, do in turn, a tenth of that in 0.06 s.
    """
    watch = ef.DiagnosticsSystem(budget=True, every=0)
    world = world_of(skew_rings(), watch, dt=0.02, integrator="rk3", stretch="classical")
    world.step(3)
    velocity, stretch = (
        watch.budgets[f"{name}System"]["angular_impulse"] for name in ("Velocity", "Stretch")
    )
    assert np.abs(velocity + stretch).max() < 1e-7 * np.abs(velocity).max()
    assert np.abs(velocity).max() > 5e-4

    watch = ef.DiagnosticsSystem(budget=True, every=0)
    world = world_of(skew_rings(), watch, Leak(), dt=0.02, integrator="rk3", stretch="classical")
    x, _ = vortons(world)
    world.step(3)
    parts = {name: part["impulse"] for name, part in watch.budgets.items()}
    start = 0.5 * np.cross(x, (0.01, 0.0, 0.0)).sum(axis=0) * world.time
    assert parts["Leak"] == pytest.approx(start, abs=0.05 * np.abs(start).max())
    flow = np.abs(parts["VelocitySystem"] + parts["StretchSystem"]).max()
    assert flow < 0.2 * np.abs(parts["Leak"]).max()
    # The integrator carries out what the rates ask for: its charge is their sum, but for terms dt^2.
    asked = sum(part for name, part in parts.items() if name != "AdvectionSystem")
    assert np.abs(parts["AdvectionSystem"] - asked).max() < 1e-3 * np.abs(asked).max()


def test_budgets_add_up_to_the_change() -> None:
    """With Euler dt times the rates is the change of strength itself: budgets sum to it to rounding."""
    x, alpha, volume = swirl_blob(0.5, 1.5)
    world = ef.World(dt=0.01, integrator="euler", precision="double")
    world.spawn(
        "blob",
        ef.Position(x),
        ef.Strength(alpha + 0.01),
        ef.CoreRadius(np.full(len(x), 0.75)),
        ef.Volume(volume),
    )
    watch = ef.DiagnosticsSystem(budget=True, every=0)
    world.set_fluid(viscosity=0.01)
    world.add_systems(
        [watch, ef.VelocitySystem(), ef.StretchSystem(scheme="classical"), ef.DiffusionSystem()]
    )
    world.add_systems([Leak(), ef.AdvectionSystem()])
    before = invariants(world)["strength"]
    world.step(3)
    change = invariants(world)["strength"] - before
    parts = [watch.budgets[name]["strength"] for name in ("StretchSystem", "DiffusionSystem", "Leak")]
    assert sum(parts) == pytest.approx(change, abs=1e-13)
    assert watch.budgets["AdvectionSystem"]["strength"] == pytest.approx(change, abs=1e-13)
    assert np.abs(watch.budgets["DiffusionSystem"]["strength"]).max() < 1e-15


@pytest.mark.filterwarnings("ignore::ecs_fluid.errors.FluidWarning")
@pytest.mark.parametrize("method", ["pse", "core_spreading", "index_space"])
@pytest.mark.parametrize("at", ["vortons", "grid"])
def test_every_system_declares_what_it_touches(at: str, method: str) -> None:
    """A debug world with all systems: derived tables start each tick as NaN, undeclared writes raise.

    The same ticks without debug give the same bits, so nothing is read before it is written.
    """
    states = []
    for debug in (True, False):
        draw = np.random.default_rng(3)
        world = ef.World(dt=0.02, integrator="rk2", precision="double", debug=debug)
        world.spawn(
            "cloud",
            ef.Position(draw.uniform(-1, 1, (60, 3))),
            ef.Strength(0.01 * draw.standard_normal((60, 3))),
            ef.CoreRadius(np.full(60, 0.3)),
            ef.Volume(np.full(60, 0.01)),
        )
        world.spawn("sparks", ef.Position(np.zeros((5, 3))), ef.InertialVelocity(np.ones((5, 3))), ef.Age)
        tap = ef.Emitter(name="tap", into="cloud", rate=100.0, strength=(0.0, 0.0, 0.01), core=0.3)
        world.set_fluid(viscosity=1e-3)
        world.add_systems(
            [
                ef.VelocitySystem(at=at, mollify=1.0),
                ef.StretchSystem(scheme="mixed"),
                ef.DiffusionSystem(method=method, rate=1e-3 if method == "index_space" else 0.0),
                ef.EmissionSystem(emitters=[tap]),
                ef.AgeLimitSystem(seconds=0.05, on=("sparks",)),
                ef.KillBoxSystem(low=(-0.9, -2.0, -2.0), high=(2.0, 2.0, 2.0), on=("cloud",)),
                ef.WindSystem(velocity=(0.1, 0.0, 0.0)),
                ef.AccelerateSystem(),
                ef.DiagnosticsSystem(every=1, jerk=True, budget=True),
                ef.AdvectionSystem(),
            ]
        )
        world.step(4)
        states.append(world.state_hash())
        assert len(world["sparks"]) == 0 and len(world["cloud"]) > 60 - 6
    assert states[0] == states[1]


RATES = ("VelocitySystem", "StretchSystem", "DiffusionSystem")
"""Systems whose charge is what they ask for; the AdvectionSystem carries it out."""


def test_what_is_born_and_removed_is_charged_to_its_system() -> None:
    """Vortons given off, too old, shed by a ball and remeshed: charges add up to the change, to rounding.

    Rows come and go when a tick, or its first half, ends. What the emitter gives off is 8 vortons of
    (0, 0, 0.001) m^3/s in 0.08 s; a lattice of the same moments as before is no change.
    """
    block = {"kind": "fluid_block", "sphere": {"radius": 0.2, "center": [0, 0, 1]}, "agitation": 3.0}
    emitter = {"kind": "emitter", "name": "e", "into": "new", "population": "vortons", "rate": 100.0}
    ball = {"kind": "body", "name": "ball", "shape": {"shape": "ball", "radius": 0.2}, "motion": "scripted"}
    place = {"center": [0.5, 0.0, 0.0], "velocity": [1.0, 0.0, 0.0], "angular_velocity": [0.0, 5.0, 0.0]}
    table = {
        "world": {"dt": 0.02, "precision": "double"},
        "fluid": {"diffusion": {"eddy_viscosity": 1e-3}, "diagnostics": {"every": 0, "budget": True}},
        "entity": [
            {**block, "name": "gas", "spacing": 0.08},
            {**emitter, "strength": [0.0, 0.0, 0.001], "center": [-1.0, 0.0, 0.0]},
            {**ball, **place},
        ],
        "system": [
            {"kind": "boundary", "boundary": "panels", "panels_across": 4},
            {"kind": "age_limit", "seconds": 0.03, "on": ["new"]},
            {"kind": "remesh", "every": 2, "on": ["gas"]},
        ],
    }
    world = ef.load(table)
    before = invariants(world)
    world.step(4)
    after, watch = invariants(world), world.require(ef.DiagnosticsSystem)
    done = {name: part for name, part in watch.budgets.items() if name not in RATES}
    size = np.abs(vortons(world)[1]).sum()
    for name in ("strength", "impulse", "angular_impulse"):
        charged = sum(part[name] for part in done.values())
        assert charged == pytest.approx(after[name] - before[name], abs=1e-13 * size)
    assert done["EmissionSystem"]["strength"] == pytest.approx([0.0, 0.0, 0.008], abs=1e-15)
    assert done["AgeLimitSystem"]["strength"][2] < -0.004
    assert np.abs(done["RemeshSystem"]["impulse"]).max() < 1e-12 * size
    assert np.abs(done["BoundarySystem"]["impulse"]).max() > 0.01
