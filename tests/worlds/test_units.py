"""Shipped worlds know no metre, no second and no kilogram: in other units they do the same, to the bit.

With lengths l, times t and masses m as units, a quantity of the unit m^a s^b kg^c is another number: times
f = l^a t^b m^c. Laws of physics hold in any units, so a world whose parameters, defaults among them, are all
times their f has a state times f after any ticks. Powers of two change no digit of a number, so neither do
sums, products, quotients and even roots of such: all must agree exactly, unless something adds, compares or
rounds with a length (or time, or mass) that nobody can set, or a docstring tells a wrong unit.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import numpy as np
import pytest

import ecs_fluid as ef
from ecs_fluid.api.parameters import split_unit
from ecs_fluid.component import Column
from ecs_fluid.keyframes import Keyed
from ecs_fluid.settings import Settings
from ecs_fluid.shipped_worlds import shipped
from ecs_fluid.worlds.vortex_ring import VortexRing
from ecs_fluid.worlds.world_recipe import WorldRecipe, named_systems, read
from ecs_fluid.worlds.world_tables import FLUID, FluidTable

pytestmark = pytest.mark.filterwarnings("ignore::ecs_fluid.errors.FluidWarning")

ATOMS = {
    "1": (0, 0, 0), "m": (1, 0, 0), "s": (0, 1, 0), "kg": (0, 0, 1), "rad": (0, 0, 0), "degrees": (0, 0, 0),
    "K": (0, 0, 0), "N": (1, -2, 1), "Pa": (-1, -2, 1), "J": (2, -2, 1), "W": (2, -3, 1),
}  # fmt: skip
"""Powers of metre, second and kilogram; those of the kelvin, which stays, are left out."""

RELATIVE = ("core radii", "cells", "spacings", "ticks")  # of the world's own lengths and times


class Units(NamedTuple):
    """New numbers of what is 1 m, 1 s and 1 kg."""

    length: float
    time: float
    mass: float

    def factor(self, unit: str) -> float:
        """By what numbers of this unit grow; a number without a unit is refused."""
        over, _, under = unit.partition("/")
        powers = np.zeros(3)
        for part, sign in ((over, 1), (under.strip("()"), -1)):
            for atom in [] if unit in RELATIVE else part.split():
                name, _, power = atom.partition("^")
                powers += sign * int(power or 1) * np.array(ATOMS[name])
        assert unit, "a number with a fraction has no unit"
        return float(np.prod(np.array(self) ** powers))


LARGER, SMALLER = Units(2.0**9, 2.0**8, 2.0**24), Units(2.0**-9, 2.0**-8, 2.0**-24)
"""Masses go as times cubed: Stefan and Boltzmann's constant, in W/(m^2 K^4), which nobody can set, stays.
Velocities are times 2, densities 1/8, viscosities 1,024 and gravity 1/128, or the other way round."""

MESHES = (
    "curve_ball", "hot_ball", "plate_at_angle", "rifled_ball", "shear_layer", "spinning_box",
    "wavy_sheet",
)  # fmt: skip
"""Worlds by `pppm`, which rounds the core radius that its mesh is made for, in metres: its sums differ by a
part of its tolerance, 3e-3 or 1e-2."""

SET = {
    **dict.fromkeys(MESHES, "fluid.velocity.solver=tree"),
    # The wind is drawn anew for each number of its scale.
    **dict.fromkeys(("buoyant_plume", "thermal_plume"), "system.turbulence.speed=0"),
}
"""What is set in a world in which something else is meant to differ in other units."""

UNTOLD = {"filling_tank": "nozzle.density=1000"}
"""What a world leaves to numbers in the code that are no defaults of parameters: the density of what flows
into an entity without liquid."""

SMALL = {"lock_exchange": 1e-5, "stratified_ring": 1e-5, "two_layers": 1e-20}
"""How far worlds may be off in the smaller units, in which some of their numbers are below the least of
single precision: in lock_exchange products that the subfilter averages, 1e-20 at most; in stratified_ring
squares of 1e-16 m^3/s far from the ring. Around the drop of two_layers strengths fall off to nothing. In
double precision grids of fields would be finer or coarser by the last digit of a cube root."""

TURNING = ("curve_ball", "spinning_ball")
"""Worlds that are computed in double precision in the smaller units. The bound strengths 2 n (spin . r) A of
balls that turn are rounding, 1e-19 m^3/s, where panels face across. Their squares, by which the tree leaves
out small dipoles, are below the least of single precision, so last digits of sums depended on the units."""

OWN = ("SolverTimes", "SolverMeshes")
"""Components not compared: the computer's clock, and notes on meshes with several units in one column."""

PER_METRE = (
    "Strength.alpha", "StrengthRate.dalpha", "Sources.alpha", "Volume.volume",
    "Body.mass", "Body.inertia", "BoundaryExchange.impulse", "BoundaryExchange.moment", "BodyLoad.force",
    "BodyLoad.torque", "BodyLoad.added", "FluidReaction.vortons", "FluidReaction.vortons_angular",
    "ShedMotion.added",
)  # fmt: skip
"""Columns that are, in a plane, of a layer one metre thick, whatever the metre."""


def scaled(value: Any, unit: str, units: Units) -> Any:
    """A parameter's value in other units; texts with a unit are formulas of places."""
    if value is None or isinstance(value, bool) or (isinstance(value, int) and not unit):
        return value
    if isinstance(value, Keyed):
        keys = [(time * units.time, scaled(one, unit, units)) for time, one in value.keys]
        return Keyed(keys=keys, between=value.between)
    if isinstance(value, Settings):
        return in_units(value, units)
    if isinstance(value, dict) and all(isinstance(one, str) for one in value.values()):
        return value  # names
    if isinstance(value, str):
        return formula(value, unit, units) if unit else value
    if unit.startswith("[["):  # a profile, [[m, K], ...]
        each = unit[2 : unit.index("]")].split(", ")
        return [tuple(scaled(x, its, units) for x, its in zip(row, each, strict=True)) for row in value]
    if isinstance(value, list | tuple):
        return type(value)(scaled(one, unit, units) for one in value)
    assert isinstance(value, int | float), f"how does {value!r} scale?"
    factor = units.factor(unit)
    return value if factor == 1 else value * factor


def formula(text: str, unit: str, units: Units) -> str:
    """f(x, y, z, r) with lengths in the former unit, times the factor of its values."""
    former = re.sub(r"\b[xyzr]\b", rf"(\g<0>/{units.length!r})", text)
    return f"({former})*{units.factor(unit)!r}"


def in_units(model: Any, units: Units) -> Any:
    """A model of parameters with all of them, defaults too, in other units."""
    told = model.descriptions()
    new = {name: scaled(value, split_unit(told.get(name, ""))[0], units) for name, value in model}
    return model.model_copy(update={name: x for name, x in new.items() if x != getattr(model, name)})


def table_in_units(kind: type[ef.System], table: dict[str, Any], units: Units) -> dict[str, Any]:
    """What a file sets of a system."""
    told = kind.parameters_for(table, "table").descriptions()
    return {name: scaled(value, split_unit(told.get(name, ""))[0], units) for name, value in table.items()}


def recipe_in_units(recipe: WorldRecipe, units: Units) -> WorldRecipe:
    """The recipe with all that it tells in other units."""
    kinds = named_systems()
    fluid = in_units(recipe.fluid.model_copy(update=dict.fromkeys(FLUID)), units)
    systems = {key: table_in_units(kind, getattr(recipe.fluid, key), units) for key, kind in FLUID.items()}
    return WorldRecipe.from_tables(
        {
            "preset": recipe.preset,
            "world": in_units(recipe.world, units).given(),
            "fluid": {**fluid.model_dump(exclude_unset=True), **systems},
            "entity": [in_units(entity, units) for entity in recipe.entity],
            "system": [table_in_units(kinds[table["kind"]], table, units) for table in recipe.system],
        }
    )


def set_defaults(world: ef.World, other: ef.World, units: Units) -> None:
    """Parameters of systems that nobody has set; all others must have followed from the recipe."""
    for one, two in zip(world.systems, other.systems, strict=True):
        assert type(one) is type(two)
        for name, value in table_in_units(type(one), dict(one.parameters), units).items():
            if getattr(two, name) != value:
                default = type(one.parameters).model_fields[name].default
                assert getattr(two, name) == default, f"{type(one).__name__}.{name} has a unit of its own"
                setattr(two, name, value)


def factors(column: Column, world: ef.World, units: Units) -> np.ndarray:
    """By what a column grows; () or one for each of its last axis."""
    of_planes = column.label == "HullTable.planes"  # directions and distances
    told = ["1", "1", "1", "m"] if of_planes else column.unit.split(", ")
    metre = units.length if world.dimension == 2 and column.label in PER_METRE else 1.0
    found = np.array([units.factor(unit) for unit in told]) / metre
    return found if len(told) > 1 else found[0]


def unset(world: ef.World) -> set[tuple[str, str]]:
    """Entities and columns that are 1 in any units: masses of what stands, distances of no vortons."""
    still = [table["name"] for table in (world.recipe or {})["entity"] if table["kind"] == "container"]
    left = {(name, label) for name in still for label in ("Body.mass", "Body.inertia")}
    if ef.TransferGrid in world.fluid and (world.fluid[ef.TransferGrid].cells == 1).all():
        left.add(("fluid", "TransferGrid.spacing"))
    if any(ef.Strength in entity for entity in world.entities):
        return left
    return left | {("fluid", f"{grid}.spacing") for grid in ("Sources", "Grid", "TransferGrid")}


def differences(world: ef.World, other: ef.World, units: Units, most: float) -> dict[str, float]:
    """How far columns are from the other world's, over their largest size, where that is above `most`."""
    found, left = {}, unset(world)
    for one, kind in ((entity, kind) for entity in world.entities for kind in entity.tables):
        for column, array in () if kind.__name__ in OWN else one[kind].items():
            theirs = getattr(other[one.name][kind], column.name)
            assert array.shape == theirs.shape, f"{one.name}: other rows of {column.label}"
            want = array * factors(column, world, units)
            off = float(np.abs(want - theirs).max(initial=0) / np.abs(want).max(initial=1e-300))
            # The grid of fields goes by cube roots of volumes, whose last digit may differ.
            least = max(most, 1e-15) if column.component == "TransferGrid" else most
            if (one.name, column.label) not in left and not off <= least:
                found[f"{one.name}: {column.label}"] = off
    return found


def stepped(name: str, units: Units, ticks: int, *settings: str, most: float = 0.0) -> dict[str, float]:
    """By what a world is off from the same in other units after some ticks."""
    recipe = read(name, settings)
    world, other = recipe.build(), recipe_in_units(recipe, units).build()
    set_defaults(world, other, units)
    world.step(ticks)
    other.step(ticks)
    return differences(world, other, units, most)


@pytest.mark.parametrize("name", ("vortex_ring", "dam_break", "heavy_ball_in_box"))
def test_worlds_do_the_same_in_other_units(name: str) -> None:
    """Vortons and tracers, a liquid, and a body."""
    assert stepped(name, LARGER, 2) == {}


@pytest.mark.nightly
@pytest.mark.parametrize("units", (LARGER, SMALLER), ids=("larger", "smaller"))
@pytest.mark.parametrize("name", sorted(shipped()))
def test_shipped_worlds_do_the_same_in_other_units(name: str, units: Units) -> None:
    """All of them, over a remeshing where there is one; what entities are made of agrees to the bit."""
    settings = (UNTOLD[name],) if name in UNTOLD else ()
    assert stepped(name, units, 0, *settings) == {}
    if name in SET:
        settings = (SET[name],)
    small = units is SMALLER
    if small and name in TURNING:
        settings += ("world.precision=double",)
    assert stepped(name, units, 12, *settings, most=SMALL.get(name, 0.0) if small else 0.0) == {}


@pytest.mark.nightly
@pytest.mark.parametrize("name", MESHES)
def test_meshes_of_pairs_nearly_do(name: str) -> None:
    """By their own solver, to a part in a thousand."""
    assert stepped(name, LARGER, 12, most=1e-3) == {}


WRONG = (
    (VortexRing, "circulation", "about the core, m/s", "ring: Strength.alpha"),
    (FluidTable, "gravity", "acceleration of gravity, m/s", "fluid: Fluid.gravity"),
)


@pytest.mark.parametrize(("kind", "name", "told", "off"), WRONG)
def test_a_wrong_unit_is_found(
    kind: type[Settings], name: str, told: str, off: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = {**kind.descriptions(), name: told}
    monkeypatch.setattr(kind, "descriptions", classmethod(lambda cls: wrong))
    assert off in stepped("vortex_ring", LARGER, 0)


def test_a_length_that_nobody_can_set_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Particles that advance by a millimetre more, in any units."""

    def process(self: ef.AdvectionSystem, dt: float) -> None:
        former(self, dt)
        for (position,) in self.query(ef.Position):
            position.x[:, 2] += 1e-3

    former = ef.AdvectionSystem.process
    monkeypatch.setattr(ef.AdvectionSystem, "process", process)
    assert "ring: Position.x" in stepped("vortex_ring", LARGER, 1)


@pytest.mark.nightly
def test_a_constant_in_other_units_is_found() -> None:
    """Where masses do not go as times cubed, Stefan and Boltzmann's constant is another number."""
    assert "gas: Temperature.T" in stepped("candle", LARGER._replace(mass=2.0**25), 2)
