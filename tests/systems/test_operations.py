"""Ageing, removal, wind, acceleration and inertia against closed forms."""

from __future__ import annotations

import numpy as np
import pytest

import ecs_fluid as ef
from ecs_fluid.errors import FluidError, RecipeError

# ------------------------------------------------------------------ ageing


def emitting(dt: float, seconds: float, precision: str = "single") -> ef.World:
    world = ef.World(dt=dt, precision=precision, debug=True)
    world.spawn("a", ef.Position, ef.Age)
    world.add_system(ef.EmissionSystem(emitters=[{"name": "e", "into": "a", "rate": 1 / dt, "limit": 1}]))
    world.add_system(ef.AgeLimitSystem(seconds=seconds))
    return world


@pytest.mark.parametrize("precision", ["single", "double"])
@pytest.mark.parametrize(
    ("dt", "seconds", "ticks"),
    [
        (0.1, 1.0, 10),
        (1 / 30, 0.5, 15),
        (0.01, 3.0, 300),
        (0.1, 0.1, 1),
        (0.1, 0.02, 1),  # never less than the tick that notices it
        (0.1, 0.29, 3),
        (0.1, 0.31, 4),
        (0.1, 0.36, 4),
    ],
)
def test_a_particle_lives_a_whole_number_of_ticks(
    precision: str, dt: float, seconds: float, ticks: int
) -> None:
    """Born at the end of the first tick, it is seen after that tick and ticks - 1 more."""
    world = emitting(dt, seconds, precision)
    alive = []
    for _ in range(ticks + 3):
        world.step()
        alive.append(len(world["a"]))
    assert alive == [1] * ticks + [0] * 3


def test_age_is_the_time_since_birth() -> None:
    world = ef.World(dt=0.25, debug=True)
    world.spawn("a", ef.Position([[0.0, 0.0, 0.0]]), ef.Age([2.0]))
    world.spawn("b", ef.Position([[0.0, 0.0, 0.0]]))
    world.add_system(ef.EmissionSystem(emitters=[{"name": "e", "into": "a", "rate": 4.0}]))
    world.add_system(ef.LifetimeSystem())
    world.step(3)
    np.testing.assert_array_equal(world["a"][ef.Age].t, [2.75, 0.5, 0.25, 0.0])


def test_an_age_limit_works_on_what_it_names() -> None:
    world = ef.World(dt=0.1, debug=True)
    for name in ("a", "b", "c"):
        world.spawn(name, ef.Position(np.zeros((2, 3))), *((ef.Age,) if name == "c" else ()))
    world.add_system(ef.AgeLimitSystem(seconds=0.2, on=("a",)))
    world.step(4)
    assert [len(world[name]) for name in "abc"] == [0, 2, 2]
    assert ef.Age not in world["b"]


def test_several_age_limits_share_one_clock() -> None:
    world = ef.World(dt=0.1, debug=True)
    for name in ("a", "b"):
        world.spawn(name, ef.Position(np.zeros((1, 3))))
    world.add_system(ef.AgeLimitSystem(seconds=0.2, on=("a",)))
    world.add_system(ef.AgeLimitSystem(seconds=0.4, on=("b",)))
    counts = []
    for _ in range(4):
        world.step()
        counts.append((len(world["a"]), len(world["b"])))
    assert counts == [(1, 1), (0, 1), (0, 1), (0, 0)]


# ------------------------------------------------------------------ boxes


@pytest.mark.parametrize(("keep", "left"), [("inside", [1, 2, 3]), ("outside", [0, 4])])
def test_kill_box(keep: str, left: list[int]) -> None:
    """Faces belong to the box."""
    x = np.array([[-1.1, 0, 0], [-1.0, 0, 0], [0, 0, 0], [1.0, 2.0, 3.0], [0, 0, 3.1]])
    world = ef.World(debug=True)
    world.spawn("a", ef.Position(x))
    world.spawn("b", ef.Position(x))
    world.add_system(ef.KillBoxSystem(low=(-1, -2, -3), high=(1, 2, 3), keep=keep, on=("a",)))
    world.step()
    assert world["a"][ef.RowId].id.tolist() == left
    assert len(world["b"]) == 5


@pytest.mark.parametrize("keep", ["inside", "outside"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_kill_box_hides_nothing_that_is_not_finite(keep: str, value: float) -> None:
    """A row at NaN was removed as one outside, without a word."""
    world = ef.World()
    world.spawn("a", ef.Position([[0.0, 0.0, 0.0], [5.0, 0.0, 0.0]]))
    world.add_system(ef.KillBoxSystem(low=(-1, -1, -1), high=(1, 1, 1), keep=keep))
    world["a"][ef.Position].x[1, 2] = value
    with pytest.raises(ef.DivergedError, match=r"Position.x row 1 was not finite before the tick began"):
        world.step()


def test_kill_box_turned_inside_out() -> None:
    with pytest.raises(RecipeError, match=r"low = \(0.0, 0.0, 0.0\) must be below high = \(1.0, 0.0, 1.0\)"):
        ef.World().add_system(ef.KillBoxSystem(low=(0, 0, 0), high=(1, 0, 1)))


# ------------------------------------------------------------------ motion


def test_a_kill_box_that_takes_all_at_the_start_is_told() -> None:
    """Entities of which some stay, or which are empty or not named, are not."""
    world = ef.World()
    for name, x in (("far", [[5.0, 0, 0], [6, 0, 0]]), ("some", [[0.0, 0, 0], [6, 0, 0]]), ("none", [])):
        world.spawn(name, ef.Position(np.array(x, float).reshape(-1, 3)))
    box = world.add_system(ef.KillBoxSystem(low=(-1, -1, -1), high=(1, 1, 1)))
    assert world.lint() == [
        "KillBoxSystem: all particles of 'far' are removed in the first tick; check low, high and keep = "
        "'inside', or name other entities in 'on'"
    ]
    box.keep = "outside"
    assert not world.lint()
    box.put(keep="inside", on=("some",))
    assert not world.lint()


@pytest.mark.parametrize("integrator", ["euler", "rk2", "rk3", "rk4"])
def test_constant_wind_is_exact(integrator: str) -> None:
    """x = x0 + u t; powers of two leave no round-off."""
    world = ef.World(dt=0.125, integrator=integrator, precision="double", debug=True)
    x = np.arange(9.0).reshape(3, 3)
    world.spawn("a", ef.Position(x))
    world.spawn("b", ef.Position(x))
    world.add_system(ef.WindSystem(velocity=(1.0, -0.5, 0.25), on=("a",)))
    world.add_system(ef.WindSystem(velocity=(0.0, 1.0, 0.0)))
    world.add_system(ef.AdvectionSystem())
    world.step(16)
    # rk4's weights are rounded decimals, so its sum of weights is 1 to round-off only.
    tolerance = 1e-14 if integrator == "rk4" else 4e-15
    np.testing.assert_allclose(
        world["a"][ef.Position].x, x + np.array([2.0, 1.0, 0.5]), rtol=tolerance, atol=tolerance
    )
    np.testing.assert_allclose(
        world["b"][ef.Position].x, x + np.array([0.0, 2.0, 0.0]), rtol=tolerance, atol=tolerance
    )


@pytest.mark.parametrize("integrator", ["rk2", "rk3", "rk4"])
def test_free_fall_is_exact_from_the_second_order_on(integrator: str) -> None:
    """x = x0 + v0 t + a t^2 / 2, v = v0 + a t, to round-off: 100 steps of numbers below 100."""
    world = ef.World(dt=0.02, integrator=integrator, precision="double", debug=True)
    x0, v0 = np.array([[1.0, 2.0, 30.0], [0.0, 0.0, 0.0]]), np.array([[3.0, 0.0, 5.0], [-1.0, 2.0, 0.0]])
    world.spawn("a", ef.Position(x0), ef.InertialVelocity(v0))
    world.set_fluid(gravity=(0.0, 0.0, 0.0))
    world.add_system(ef.AccelerateSystem(acceleration=(0.5, 0.0, -9.81)))
    world.add_system(ef.AdvectionSystem())
    world.step(100)
    a, t = np.array([0.5, 0.0, -9.81]), 2.0
    np.testing.assert_allclose(world["a"][ef.Position].x, x0 + v0 * t + a * t**2 / 2, atol=2e-13)
    np.testing.assert_allclose(world["a"][ef.InertialVelocity].v, v0 + a * t, atol=2e-13)


def test_free_fall_by_euler_is_off_by_its_known_error() -> None:
    """Euler takes the velocity at the start of each tick: x = x0 + v0 t + a t (t - dt) / 2."""
    world = ef.World(dt=0.02, integrator="euler", precision="double", debug=True)
    world.spawn("a", ef.Position([[0.0, 0.0, 0.0]]), ef.InertialVelocity([[0.0, 0.0, 1.0]]))
    world.add_system(ef.AccelerateSystem())
    world.add_system(ef.AdvectionSystem())
    world.step(100)
    assert world["a"][ef.Position].x[0, 2] == pytest.approx(2.0 - 9.81 * 2.0 * 1.98 / 2, abs=1e-12)


def test_drag_lets_the_own_velocity_decay() -> None:
    """v = v0 exp(-k t), x = v0 (1 - exp(-k t)) / k; rk4 with k dt = 0.1: local error (k dt)^5 / 200 at most,
    times 20 steps, 1e-6 of v0."""
    world = ef.World(dt=0.05, integrator="rk4", precision="double", debug=True)
    world.spawn("a", ef.Position([[0.0, 0.0, 0.0]]), ef.InertialVelocity([[3.0, 0.0, -1.0]]))
    world.spawn("b", ef.Position([[0.0, 0.0, 0.0]]))
    world.add_system(ef.InertiaSystem(drag=2.0))
    world.add_system(ef.AdvectionSystem())
    world.step(20)
    left = np.exp(-2.0)
    np.testing.assert_allclose(world["a"][ef.InertialVelocity].v, [[3 * left, 0, -left]], atol=3e-6)
    np.testing.assert_allclose(
        world["a"][ef.Position].x, [[1.5 * (1 - left), 0, -0.5 * (1 - left)]], atol=3e-6
    )
    assert (world["b"][ef.Position].x == 0.0).all()


@pytest.mark.parametrize(
    "system",
    [
        lambda: ef.WindSystem(velocity=(1, 0, 0), on=("aa",)),
        lambda: ef.AccelerateSystem(on=("aa",)),
        lambda: ef.AgeLimitSystem(seconds=1.0, on=("aa",)),
        lambda: ef.KillBoxSystem(low=(0, 0, 0), high=(1, 1, 1), on=("aa",)),
    ],
)
def test_operations_refuse_unknown_entities(system: object) -> None:
    world = ef.World()
    world.spawn("aab", ef.Position([[0.0, 0.0, 0.0]]))
    with pytest.raises(FluidError, match=r"the world has no entity 'aa'; did you mean 'aab'?"):
        world.add_system(system())  # type: ignore[operator]


@pytest.mark.parametrize("rows", [0, 1])
def test_populations_of_no_and_of_one_row(rows: int) -> None:
    """Every shipped operation at once, on nothing and on one particle."""
    world = ef.World(dt=0.1, debug=True)
    world.spawn("a", ef.Position(np.zeros((rows, 3))), ef.InertialVelocity, ef.Age)
    for system in (
        ef.AdvectionSystem(),
        ef.WindSystem(velocity=(1.0, 0.0, 0.0)),
        ef.AccelerateSystem(acceleration=(0.0, 0.0, -1.0)),
        ef.AgeLimitSystem(seconds=0.3),
        ef.KillBoxSystem(low=(-9, -9, -9), high=(9, 9, 9)),
        ef.WindSystem(velocity=(0.0, 1.0, 0.0)),
    ):
        world.add_system(system)
    world.step(2)
    assert len(world["a"]) == rows
    assert world["a"][ef.Position].x[:, 0].tolist() == pytest.approx([0.2] * rows)
    world.step(2)
    assert len(world["a"]) == 0


@pytest.mark.parametrize(
    ("system", "said"),
    [
        ({"kind": "thermal"}, "ThermalSystem does nothing: the fluid has no conductivity"),
        ({"kind": "cooling"}, "CoolingSystem does nothing: its rate and absorption are 0"),
        ({"kind": "combustion"}, "CombustionSystem does nothing: no particle has fuel"),
        ({"kind": "surface_barrier"}, "SurfaceBarrierSystem does nothing: no system makes the surface"),
        ({"kind": "baroclinic"}, "the acceleration of the container 'tank', which moves by keys"),
        ({"kind": "buoyancy", "acceleration": True}, "that of the container 'tank', which moves by keys"),
    ],
)
def test_systems_that_leave_something_out_are_told(system: dict[str, object], said: str) -> None:
    """A tank of gas that is pushed along x, with a ball; each system alone."""
    keys = {"keys": [[0.0, [0, 0, 0]], [1.0, [0.5, 0, 0]]], "between": "smooth"}
    box = {"shape": "box", "size": [1, 1, 1]}
    tables = {
        "world": {"dt": 0.02},
        "fluid": {"law": "ideal_gas", "velocity": {"solver": "container"}},
        "entity": [
            {"kind": "container", "name": "tank", "shape": box, "center": keys},
            {
                "kind": "fluid_block",
                "name": "gas",
                "fills": "tank",
                "spacing": 0.25,
                "temperature": "300+20*x",
            },
            {"kind": "body", "name": "ball", "shape": {"shape": "ball", "radius": 0.1}},
        ],
        "system": [system],
    }
    assert sum(said in text for text in ef.load(tables).lint()) == 1


def test_an_inflow_on_a_free_body_has_no_recoil() -> None:
    """It is told, as the jet's momentum would throw the body back."""
    box = {"kind": "body", "name": "boat", "shape": {"shape": "box", "size": [1, 1, 1]}}
    tap = {"kind": "inflow", "name": "tap", "into": "water", "attached": "boat", "center": [0.8, 0, 0]}
    world = {"dt": 0.01, "integrator": "euler"}
    for motion, count in (("free", 1), ("fixed", 0)):
        tables = {"world": world, "entity": [{**box, "motion": motion}, tap], "system": [{"kind": "sph"}]}
        texts = ef.load(tables).lint()
        assert sum("feels no recoil of the jet of 'tap'" in text for text in texts) == count
