"""The fluid is told once: density, viscosity, temperature and gravity of all systems are the world's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ecs_fluid as ef
from ecs_fluid.components.bodies import FREE
from ecs_fluid.fluid import options_of
from ecs_fluid.io.checkpoint import save_checkpoint
from ecs_fluid.state import packed_world
from ecs_fluid.systems.shared.fluid_at_rest import fluid_at_rest
from ecs_fluid.worlds import LiquidRecipe
from tests.resuming import resumed

MOON = (0.0, 0.0, -1.62)


def ball(world: ef.World, radius: float = 0.1, density: float = 1000.0) -> ef.Entity:
    """A free ball at rest at the origin."""
    mass = density * 4 / 3 * np.pi * radius**3
    return world.spawn(
        "ball",
        ef.Pose([[0.0, 0.0, 0.0]], [[1.0, 0.0, 0.0, 0.0]]),
        ef.RigidMotion(np.zeros((1, 3)), np.zeros((1, 3))),
        ef.Body([mass], 0.4 * mass * radius**2 * np.eye(3)[None], [FREE], [0.0], [0.0]),
        ef.BallShape([radius]),
    )


def fall(world: ef.World, name: str, table: Any, column: str) -> float:
    """Mean velocity along z of a population after ten ticks, over their time."""
    world.step(10)
    return float(getattr(world[name][table], column)[:, 2].mean()) / world.time


# ------------------------------------------------------------------ gravity


def test_gravity_of_the_moon_pulls_bodies_liquid_and_sparks_alike() -> None:
    """v = g t: 1.62 m/s after a second for whatever falls freely, with gravity told in one place."""
    world = ef.World(dt=0.01, precision="double", integrator="euler")
    world.set_fluid(gravity=MOON)
    ball(world)
    LiquidRecipe(name="water", sphere={"center": (5, 0, 0), "radius": 0.1}, spacing=0.05).build(world)
    world.spawn("sparks", ef.Position([[-5.0, 0, 0]]), ef.InertialVelocity)
    world.add_systems(
        [ef.BodySystem(), ef.SphSystem(sound_speed=20.0), ef.AccelerateSystem(), ef.AdvectionSystem()]
    )
    assert fall(world, "ball", ef.RigidMotion, "v") == pytest.approx(-1.62, rel=1e-12)
    # What holds the drop together is internal: it falls as a whole.
    assert fall(world, "water", ef.InertialVelocity, "v") == pytest.approx(-1.62, rel=1e-9)
    assert fall(world, "sparks", ef.InertialVelocity, "v") == pytest.approx(-1.62, rel=1e-9)
    assert world.lint() == []


@pytest.mark.parametrize("gravity", [1.62, 9.81])
def test_weight_and_buoyancy_have_one_gravity(gravity: float) -> None:
    """A ball of half the fluid's density starts with (m_f - m) g / (m + m_f/2) = g/2 upwards."""
    world = ef.World(dt=1e-3, precision="double", integrator="euler")
    world.set_fluid(gravity=(0, 0, -gravity), density=800.0)
    ball(world, density=400.0)
    world.add_system(ef.BuoyancySystem())
    world.step()
    assert world["ball"][ef.RigidMotion].v[0, 2] / 1e-3 == pytest.approx(gravity / 2, rel=1e-12)


@pytest.mark.parametrize("between", ["linear", "step"])
def test_keyed_gravity_is_the_same_for_all_and_after_a_checkpoint(between: str, tmp_path: Path) -> None:
    """Keys (0 s, 0), (1 s, -4 m/s^2): at 0.25 s a quarter of it, or nothing yet; also in a resumed world."""
    keys = [(0.0, [0.0, 0.0, 0.0]), (1.0, [0.0, 0.0, -4.0])]
    world = ef.World(dt=0.25, precision="single", integrator="euler")
    world.set_fluid(gravity=ef.Keyed(keys=keys, between=between))
    ball(world)
    world.add_system(ef.BodySystem())
    world.step()
    wanted = -1.0 if between == "linear" else 0.0
    for one in (world, resumed(world, tmp_path)):
        assert one.gravity.tolist() == [0.0, 0.0, wanted]
        assert fluid_at_rest(one).gravity.tolist() == [0.0, 0.0, wanted]
    resumed(world, tmp_path, 6)


@pytest.mark.parametrize("integrator", ["euler", "rk2", "rk3", "rk4"])
def test_rising_gravity_gives_bodies_liquid_and_sparks_one_velocity(integrator: str) -> None:
    """g = 4 t downwards gives 2 t^2, exactly but by Euler's method, there 2 t (t - dt)."""
    world = ef.World(dt=0.1, precision="double", integrator=integrator)
    world.set_fluid(gravity=ef.Keyed(keys=[(0.0, [0.0, 0.0, 0.0]), (1.0, [0.0, 0.0, -4.0])]), density=500.0)
    ball(world)
    LiquidRecipe(name="water", sphere={"center": (5, 0, 0), "radius": 0.1}, spacing=0.05).build(world)
    world.spawn("sparks", ef.Position([[-5.0, 0, 0]]), ef.InertialVelocity)
    world.add_systems(
        [ef.BodySystem(), ef.SphSystem(sound_speed=20.0), ef.AccelerateSystem(), ef.AdvectionSystem()]
    )
    world.step(10)
    wanted = -2.0 * (1.0 - (0.1 if integrator == "euler" else 0.0))
    assert world["ball"][ef.RigidMotion].v[0, 2] == pytest.approx(wanted, rel=1e-11)
    assert world["water"][ef.InertialVelocity].v[:, 2].mean() == pytest.approx(wanted, rel=1e-9)
    assert world["sparks"][ef.InertialVelocity].v[0, 2] == pytest.approx(wanted, rel=1e-11)


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [("density", -1.0, "above 0 kg/m"), ("viscosity", -1e-6, "at least 0"), ("law", 3, "at most 2"),
     ("expansion", 2.0, "at most 1"), ("temperature", np.nan, "finite")],
)  # fmt: skip
def test_constants_written_in_a_tick_or_a_checkpoint_keep_their_range(
    name: str, value: float, allowed: str, tmp_path: Path
) -> None:
    """What `World.set_fluid` refuses no system can write, nor a checkpoint bring along."""
    world = ef.World()
    world.set_fluid(density=1000.0)
    refused = rf"Fluid.{name} is {value:g}.*; .*{allowed}"
    with pytest.raises(ef.FluidError, match=refused):
        setattr(world.fluid[ef.Fluid], name, value)
    assert world.fluid[ef.Fluid].density == 1000.0
    meta, arrays = packed_world(world)
    arrays[f"fluid/Fluid.{name}"] = np.array(value)
    save_checkpoint(tmp_path / "a.npz", meta, arrays)
    with pytest.raises(ef.FluidError, match=refused):
        ef.resume(tmp_path / "a.npz")


class Stirrer(ef.System):
    """Writes a constant of the fluid in the middle of a tick."""

    writes = (ef.Fluid,)
    phase = "move"

    def __init__(self, **columns: Any) -> None:
        super().__init__()
        self.columns = columns

    def process(self, dt: float) -> None:
        self.world.fluid[ef.Fluid].put(**self.columns)


@pytest.mark.parametrize("between", [True, False])
@pytest.mark.parametrize(
    ("columns", "said"),
    [({"gravity": np.eye(3)}, "Fluid has 3 rows of gravity for 1 gravity_times"),
     ({"gravity": np.eye(3), "gravity_times": [0.0, 2.0, 1.0]}, "times of keys must increase"),
     ({"density_profile": [[1.0, 5.0], [0.0, 3.0]]}, "Fluid.*: density_profile = .* must increase"),
     ({"density_profile": [[0.0, 5.0], [1.0, 3.0]]}, "Fluid.*: density 1.2 lies outside density_profile")],
)  # fmt: skip
def test_what_is_written_into_the_fluid_is_checked_as_a_whole(
    columns: dict[str, Any], said: str, between: bool
) -> None:
    world = ef.World()
    if between:
        world.fluid[ef.Fluid].put(**columns)
    else:
        world.add_system(Stirrer(**columns))
    with pytest.raises(ef.FluidError, match=said):
        world.step()
    assert world.tick == 0


def test_there_is_one_fluid() -> None:
    world = ef.World()
    world.spawn("oil", ef.Position([[0.0, 0.0, 0.0]]))
    with pytest.raises(ef.ComponentError, match=r"entity 'oil': only the entity 'fluid' .* World\.set_fluid"):
        world.attach("oil", world.fluid[ef.Fluid])


def test_gravity_told_to_particles_a_second_time_is_told() -> None:
    world = ef.World()
    world.spawn("sparks", ef.Position([[0.0, 0, 0]]), ef.InertialVelocity)
    world.add_system(ef.AdvectionSystem())
    system = world.add_system(ef.AccelerateSystem(acceleration=(0.0, 0.0, -9.81)))
    assert world.lint() == []  # sparks fall by this acceleration alone
    world.step()
    assert world["sparks"][ef.InertialVelocity].v[0, 2] == pytest.approx(-9.81 * world.dt)
    drop = {"kind": "liquid", "name": "water", "spacing": 0.1, "sphere": {"radius": 0.2}}
    world = ef.load({"entity": [drop], "system": [{"kind": "accelerate", "acceleration": [0.0, 0.0, -9.81]}]})
    (system,) = (one for one in world.systems if isinstance(one, ef.AccelerateSystem))
    assert world.lint() == [
        "AccelerateSystem has acceleration = [0.0, 0.0, -9.81] m/s^2 along the fluid's gravity "
        "[0.0, 0.0, -9.81] m/s^2, and both act; leave one of them out"
    ]
    world.set_fluid(gravity=ef.Keyed(keys=[(0.0, [0.0, 0.0, 0.0]), (1.0, [0.0, 0.0, -1.62])]))
    assert "gravity [0.0, 0.0, -1.62] m/s^2, and both act; leave" in world.lint()[0]
    world.set_fluid(gravity=(0.0, 0.0, -9.81))
    for other in ((0.0, 0.0, 9.81), (9.81, 0.0, 0.0), None):
        system.acceleration = other
        assert world.lint() == []
    assert ef.load("wind_fountain").lint() == []


# ------------------------------------------------------------------ viscosity


@pytest.mark.filterwarnings("error::ecs_fluid.errors.FluidWarning")
@pytest.mark.parametrize("on", [(), ("ball",), ("other",)])
def test_wind_carries_balls_as_it_carries_particles(on: tuple[str, ...]) -> None:
    """m dv/dt = -6 pi rho nu R (v - U): from rest v = U (1 - exp(-t / tau)), if it blows on the ball."""
    world = ef.World(dt=0.1, precision="double")
    world.set_fluid(density=2.0, viscosity=0.01, gravity=(0, 0, 0))
    ball(world, density=100.0)
    world.spawn("other", ef.Position([[5.0, 0.0, 0.0]]))
    wind = ef.WindSystem(velocity=(3.0, 0.0, 0.0), on=on)
    world.add_systems([ef.DragSystem(law="stokes"), wind, ef.AdvectionSystem()])
    world.step(10)
    tau = 100.0 * 4 / 3 * np.pi * 1e-3 / (6 * np.pi * 2.0 * 0.01 * 0.1)
    wanted = 3.0 * (1 - np.exp(-1.0 / tau)) if on != ("other",) else 0.0
    assert world["ball"][ef.RigidMotion].v[0].tolist() == pytest.approx([wanted, 0.0, 0.0], rel=1e-12)


def test_a_viscosity_that_vortons_do_not_feel_is_told() -> None:
    world = ef.World()
    world.spawn("vorton", ef.Position([[0.0, 0, 0]]), ef.Strength([[0.0, 0, 1e-4]]), ef.CoreRadius([0.1]))
    world.add_systems([ef.VelocitySystem(), ef.AdvectionSystem()])
    said = (
        "the fluid has a viscosity of 0.001 m^2/s, but no DiffusionSystem spreads Strength by it; add "
        "one, or set the viscosity to 0"
    )
    assert world.lint() == []
    world.step()
    world.set_fluid(viscosity=1e-3)
    with pytest.warns(ef.FluidWarning, match="no DiffusionSystem"):
        world.step()
    assert world.lint() == [said]
    world.add_system(ef.DiffusionSystem(method="core_spreading"))
    world.set_fluid(conductivity=0.026)
    assert world.lint() == []
    world.attach("vorton", ef.Temperature([300.0]))
    assert world.lint() == [
        "the fluid has a conductivity of 0.026 W/(m K), but no ThermalSystem spreads Temperature by it; add "
        "one, or set the conductivity to 0"
    ]
    world.add_system(ef.ThermalSystem())
    assert [text for text in world.lint() if "conductivity" in text] == []


def test_warm_and_heavy_fluid_that_nothing_makes_rise_is_told() -> None:
    """A fire with a `buoyancy`, which is of bodies, in place of a `baroclinic` stood still without a word."""
    gas = {"kind": "emitter", "name": "vent", "into": "gas", "population": "vortons", "temperature": 600}
    drop = {"kind": "fluid_block", "name": "drop", "sphere": {"radius": 0.2}}

    def said(entity: dict[str, Any], system: str = "buoyancy", **fluid: Any) -> list[str]:
        tables = {"fluid": fluid, "entity": [entity], "system": [{"kind": system}] if system else []}
        lint = ef.load(tables).lint()
        return [text.split(",")[0] for text in lint if "no BaroclinicSystem makes it rise or sink" in text]

    assert said(gas, law="ideal_gas") == ["'gas' has a temperature of its own"]
    assert said(drop | {"density": 1.3}) == ["'drop' has a density of its own"]
    assert said(gas, "baroclinic", law="ideal_gas") == []
    assert said(drop | {"density": 1.3}, "baroclinic") == []
    # Without an equation of state heat has no weight, which is told alike; gravity says whether it is meant.
    assert said(gas) == said(gas, law="none") == ["'gas' has a temperature of its own"]
    assert "use law = 'ideal_gas' or 'liquid' and add one" in " ".join(ef.load({"entity": [gas]}).lint())
    # Heat that only spreads, air as the air around it, and no weight.
    assert said(gas, gravity=[0, 0, 0]) == []
    assert said(drop | {"density": 1.2}) == []
    assert said(drop | {"density": 1.3}, gravity=[0, 0, 0]) == []


def terminal(density: float, fluid: float, viscosity: float, radius: float) -> float:
    """Speed w at which weight less buoyancy is the drag of Schiller and Naumann, by bisection.

    (rho_b - rho) V g = 6 pi rho nu R w (1 + 0.15 Re^0.687), Re = 2 R w / nu.
    """
    weight = (density - fluid) * 4 / 3 * np.pi * radius**3 * 9.81
    low, high = 0.0, 100.0
    for _ in range(100):
        w = 0.5 * (low + high)
        drag = 6 * np.pi * fluid * viscosity * radius * w * (1 + 0.15 * (2 * radius * w / viscosity) ** 0.687)
        low, high = (low, w) if drag > weight else (w, high)
    return low


def test_a_steel_ball_sinks_in_glycerine() -> None:
    """Glycerine's viscosity, told once, gives the terminal velocity of the drag law; gone are air's 1.5e-5.

    20 mm of steel (7800 kg/m^3) in glycerine (1260 kg/m^3, 1.2e-3 m^2/s): w = 0.557 m/s at Re = 9.3.
    """
    world = ef.World(dt=0.01, precision="double", integrator="euler")
    world.set_fluid(density=1260.0, viscosity=1.2e-3)
    ball(world, radius=0.01, density=7800.0)
    world.add_systems([ef.BuoyancySystem(), ef.DragSystem(flow=False)])
    world.step(200)
    wanted = terminal(7800.0, 1260.0, 1.2e-3, 0.01)
    assert wanted == pytest.approx(0.557, abs=1e-3)
    assert -world["ball"][ef.RigidMotion].v[0, 2] == pytest.approx(wanted, rel=1e-6)
    assert world.lint() == []


def test_a_fluid_without_viscosity_is_told_where_there_is_drag() -> None:
    world = ef.World()
    ball(world)
    world.add_system(ef.DragSystem(law="stokes"))
    assert world.lint() == [
        "DragSystem: the fluid has no viscosity, so law = 'stokes' gives no drag, and nothing slows the "
        "spin of bodies; give the fluid a viscosity, such as 1.5e-5 m^2/s (air)"
    ]


def test_eddies_add_to_the_viscosity_of_diffusion_alone() -> None:
    """d(sigma^2)/dt = 4 (nu + nu_eddy); the ball beside it is braked by nu: m dv/dt = -6 pi rho nu R v."""
    tables = {
        "world": {"dt": 0.1, "precision": "double"},
        "fluid": {
            "density": 2.0,
            "viscosity": 0.01,
            "gravity": [0, 0, 0],
            "diffusion": {"method": "core_spreading", "eddy_viscosity": 0.03},
        },
        "entity": [{"kind": "vortex_ring", "name": "ring", "circulation": 1e-9, "spacing": 0.1}],
        "system": [{"kind": "drag", "law": "stokes", "flow": False}],
    }
    recipe = ef.WorldRecipe.from_tables(tables)
    world = recipe.build()
    one = ball(world, radius=0.1, density=100.0)
    one[ef.RigidMotion].v[0, 0] = 1.0
    sigma = world["ring"][ef.CoreRadius].sigma.copy()
    world.step(10)
    grown = world["ring"][ef.CoreRadius].sigma ** 2 - sigma**2
    np.testing.assert_allclose(grown, 4 * 0.04 * 1.0, rtol=1e-9)
    mass = 100.0 * 4 / 3 * np.pi * 1e-3
    slowed = np.exp(-6 * np.pi * 2.0 * 0.01 * 0.1 * 1.0 / mass)
    assert one[ef.RigidMotion].v[0, 0] == pytest.approx(slowed, rel=1e-12)


def test_a_rate_is_no_viscosity() -> None:
    """index_space exchanges at a rate in 1/s; a viscosity in m^2/s says nothing to it, nor a rate to pse."""
    world = ef.World()
    world.set_fluid(viscosity=1e-3)
    world.add_system(ef.DiffusionSystem(method="index_space"))
    assert (
        "DiffusionSystem: method = 'index_space' exchanges by its rate, which is 0, and ignores the "
        "fluid's viscosity of 0.001 m^2/s; give it a rate in 1/s, or use another method"
    ) in world.lint()
    with pytest.raises(ef.RecipeError, match=r"rate = 0\.5 has no effect with method = 'pse'"):
        world.add_system(ef.DiffusionSystem(rate=0.5))
    with pytest.raises(ef.RecipeError, match="eddy_viscosity = 3 has no effect with method = 'index_space'"):
        world.add_system(ef.DiffusionSystem(method="index_space", rate=0.5, eddy_viscosity=3.0))
    with pytest.raises(ef.RecipeError, match="order = 4 has no effect with method = 'core_spreading'"):
        world.add_system(ef.DiffusionSystem(method="core_spreading", order=4))
    with pytest.raises(ef.RecipeError, match=r"radius = 0\.5 has no effect with method = 'index_space'"):
        world.add_system(ef.DiffusionSystem(method="index_space", rate=0.5, radius=0.5))
    with pytest.raises(ef.RecipeError, match="dissipation = true has no effect with method = 'pse'"):
        world.add_system(ef.DiffusionSystem(dissipation=True))


def test_bodies_take_no_rate_for_a_viscosity() -> None:
    """Vortons that bodies shed are stretched without viscosity, whatever the rate of index_space is."""
    world = ef.World()
    ball(world)
    diffusion = ef.DiffusionSystem(method="index_space", rate=0.5)
    world.add_systems([ef.BoundarySystem(boundary="panels"), ef.StretchSystem(), diffusion])
    assert diffusion.viscosity == 0.0
    assert any("are stretched in a fluid without viscosity" in text for text in world.lint())


# ------------------------------------------------------------------ density


def test_another_density_on_the_command_line_is_that_of_all_systems() -> None:
    """hot_ball with 1000 kg/m^3: the law of state, the fields, the boundary and conduction have it."""
    world = ef.load("hot_ball", "fluid.density=1000")
    gas = world["air"]
    rho = gas[ef.Density].rho if ef.Density in gas else fluid_at_rest(world).density
    assert np.allclose(rho, 1000.0)
    world.evaluate()
    assert world.fluid[ef.DensityField].rho.max() == pytest.approx(1000.0)
    told = [
        (type(system).__name__, name)
        for system in world.systems
        for name in type(system).Parameters.model_fields
        if name in ef.FluidOptions.model_fields and getattr(system, name) is not None
    ]
    assert told == []
    assert float(world.fluid[ef.Fluid].density) == 1000.0
    assert not [text for text in world.lint() if "density" in text]


@pytest.mark.parametrize("law", ["ideal_gas", "liquid", "none"])
def test_density_and_temperature_are_not_told_both_where_one_makes_the_other(law: str) -> None:
    told = {"density": 0.5, "temperature": 310.0}
    block = {"kind": "fluid_block", "name": "p", "sphere": {"radius": 0.2}}
    emitter = {"kind": "emitter", "name": "e", "into": "p", "population": "vortons", "strength": [0, 0, 1]}
    for one in (block, emitter):
        recipe = ef.WorldRecipe.from_tables({"fluid": {"law": law}, "entity": [{**one, **told}]})
        if law == "none":
            recipe.build()
            continue
        said = f"density = 0.5 kg/m\\^3 and temperature = 310.0 K, but with the fluid's law = '{law}'"
        with pytest.raises(ef.RecipeError, match=said):
            recipe.build()


@pytest.mark.parametrize("kind", ["baroclinic", "buoyancy"])
def test_temperatures_that_lift_nothing_are_told(kind: str) -> None:
    block = {"kind": "fluid_block", "name": "gas", "sphere": {"radius": 0.2}, "temperature": 400.0}
    body = {"kind": "body", "name": "ball", "shape": {"shape": "ball", "radius": 0.1}, "center": [1, 0, 0]}
    tables = {"entity": [block, body], "system": [{"kind": kind}]}
    said = [
        text for text in ef.WorldRecipe.from_tables(tables).build().lint() if "causes no buoyancy" in text
    ]
    assert said == [
        f"{kind.capitalize()}System: 'gas' has temperatures but no density, and with the fluid's law = "
        "'none' temperature causes no buoyancy; use law = 'ideal_gas' or 'liquid', or give it a density"
    ]
    for quiet in ({"fluid": {"law": "ideal_gas"}}, {"entity": [{**block, "density": 1.0}, body]}):
        made = ef.WorldRecipe.from_tables({**tables, **quiet}).build()
        assert not [text for text in made.lint() if "causes no buoyancy" in text]


def test_two_densities_are_told_in_one_sentence() -> None:
    world = ef.World()
    ball(world)
    world.add_systems([ef.BoundarySystem(density=1.0), ef.DiagnosticsSystem()])
    assert [text for text in world.lint() if "density" in text] == [
        "BoundarySystem has density = 1 kg/m^3, but the fluid has 1.2 kg/m^3; leave density out of the "
        "system to use the fluid's"
    ]
    world.set_fluid(density=1.0)
    assert not [text for text in world.lint() if "density" in text]


@pytest.mark.filterwarnings("ignore::ecs_fluid.errors.FluidWarning")
@pytest.mark.parametrize("own", [True, False])
def test_vortons_that_take_spin_have_the_density_of_the_fluid(own: bool) -> None:
    """I spin + sum 0.2 rho sigma^2 alpha stays, rho that of the fluid, or what BoundarySystem is told."""
    line = np.arange(-0.45, 0.5, 0.1)
    x = np.stack(np.meshgrid(line, line, line, indexing="ij"), axis=-1).reshape(-1, 3)
    away = np.linalg.norm(x, axis=1)
    x = x[(away > 0.3) & (away < 0.47)]
    n = len(x)
    world = ef.World(dt=1 / 30, precision="double", integrator="euler")
    world.set_fluid(gravity=(0, 0, 0), density=700.0 if own else 30.0)
    one = ball(world, radius=0.3, density=50.0)
    one[ef.RigidMotion].angular_velocity[0] = [0.0, 0.0, 5.0]
    gas = world.spawn(
        "gas", ef.Position(x), ef.Strength(np.zeros((n, 3))), ef.CoreRadius(np.full(n, 0.15)),
        ef.Volume(np.full(n, 1e-3)),
    )  # fmt: skip
    world.add_system(ef.BoundarySystem(density=30.0 if own else None))
    inertia = one[ef.Body].inertia[0, 2, 2]
    world.step(3)
    lost = inertia * (5.0 - one[ef.RigidMotion].angular_velocity[0, 2])
    taken = 0.2 * 30.0 * 0.15**2 * gas[ef.Strength].alpha[:, 2].sum()
    assert lost > 1e-3 * inertia
    assert taken == pytest.approx(lost, rel=1e-9)


# ------------------------------------------------------------------ the component


def test_what_is_not_given_stays() -> None:
    world = ef.World()
    world.set_fluid(law="liquid", expansion=3e-4, density=998.0)
    world.set_fluid(temperature=293.0, density_profile=[(-1.0, 1000.0), (1.0, 996.0)])
    options = options_of(world.fluid[ef.Fluid])
    assert (options.law, options.expansion, options.density, options.temperature) == (
        "liquid",
        3e-4,
        998.0,
        293.0,
    )
    assert [tuple(row) for row in options.density_profile or []] == [(-1.0, 1000.0), (1.0, 996.0)]
    assert world.gravity.tolist() == [0.0, 0.0, -9.81]  # not rounded to the world's float32


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"densty": 1.0}, "set_fluid: unknown key 'densty'; did you mean 'density'?"),
        ({"viscosity": -1.0}, "set_fluid: viscosity = -1.0; a number at least 0.0 is needed"),
        (
            {"density_profile": [(0.0, 1000.0), (1.0, 996.0)]},
            "set_fluid: density 1.2 lies outside density_profile; a reference value from 996 to 1000 is "
            "needed",
        ),
        (
            {"temperature_profile": [(0.0, 1000.0), (1.0, 900.0)], "law": "ideal_gas"},
            "set_fluid: temperature 300 lies outside temperature_profile; a reference value from 900 to "
            "1000 is needed",
        ),
        (
            {"temperature_profile": [(0.0, 300.0)]},
            "set_fluid: temperature_profile needs an equation of state; law = 'ideal_gas' or 'liquid' is "
            "needed",
        ),
    ],
)
def test_a_fluid_that_cannot_be(given: dict[str, Any], sentence: str) -> None:
    world = ef.World()
    before = world.state_hash()
    with pytest.raises(ef.RecipeError) as caught:
        world.set_fluid(**given)  # type: ignore[typeddict-item]
    assert str(caught.value) == sentence
    assert world.state_hash() == before


def test_the_recipe_of_a_world_says_what_its_fluid_is() -> None:
    """What `set_fluid` changes after `load`: a run folder stores the recipe, which makes the same world."""
    entity = {"kind": "vortex_ring", "name": "ring"}
    tables = {"fluid": {"viscosity": 1e-3, "density_profile": [[0.0, 1.2]]}, "entity": [entity]}
    world = ef.WorldRecipe.from_tables(tables).build()
    keyed = ef.Keyed(keys=[[0.0, [0, 0, -9.81]], [1.0, [0, 0, -1.62]]])
    world.set_fluid(density=998.0, gravity=keyed, density_profile=None)
    assert world.recipe is not None and set(world.recipe["fluid"]) == {"viscosity", "density", "gravity"}
    again = ef.WorldRecipe.from_tables(world.recipe).build()
    assert options_of(again.fluid[ef.Fluid]) == options_of(world.fluid[ef.Fluid])
    assert again.state_hash() == world.state_hash()


@pytest.mark.filterwarnings("error")
def test_a_profile_is_told_to_the_recipe_without_a_warning() -> None:
    tables = {"entity": [{"kind": "vortex_ring", "name": "ring"}]}
    world = ef.WorldRecipe.from_tables(tables).build()
    world.set_fluid(density_profile=[(-1.0, 1.2), (1.0, 1.1)])
    assert world.recipe is not None
    assert world.recipe["fluid"] == {"density_profile": [[-1.0, 1.2], [1.0, 1.1]]}


def test_a_speed_of_sound_without_stiffness_is_refused() -> None:
    """Its square over that of any velocity would be rounded to 0."""
    with pytest.raises(ef.FluidError, match="sound_speed = 1e-30; a number at least 1e-06 is needed"):
        ef.SphSystem(sound_speed=1e-30)
