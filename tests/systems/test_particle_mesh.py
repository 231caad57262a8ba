"""Fields from particles and back: conservation, bounds, ambient, flat worlds, tracers. Case 61, articles
B4."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import ecs_fluid as ef
from ecs_fluid.errors import DivergedError, LimitError, RecipeError
from ecs_fluid.kernels.grids.interpolation import interpolate
from ecs_fluid.systems.shared.walls import containers, fillers, mirrored
from ecs_fluid.worlds.bodies import ContainerRecipe


def loaded(
    count: int = 300, spread: float = 0.5, kernel: str = "linear", apart: bool = False, **ambient: Any
) -> ef.World:
    """Particles of uneven volume, density, temperature and species in a ball of air."""
    draw = np.random.default_rng(6)
    world = ef.World(dt=0.1, precision="double", debug=True)
    x = spread * draw.standard_normal((count, 3))
    if apart:
        # On a lattice of 0.5 m, each moved by up to 0.1 m: 0.3 m or more from one another.
        x = 0.5 * np.stack(np.unravel_index(draw.permutation(1000)[:count], (10, 10, 10)), axis=1)
        x += draw.uniform(-0.1, 0.1, (count, 3))
    parts = draw.random((4, count))
    parts /= parts.sum(axis=0)
    world.spawn(
        "puff", ef.Position(x), ef.Volume(draw.uniform(0.5, 2.0, count) * 1e-3),
        ef.Density(draw.uniform(0.3, 3.0, count)), ef.Temperature(draw.uniform(250.0, 900.0, count)),
        ef.Species(*parts[:3]),
    )  # fmt: skip
    world.set_fluid(density=1.0, **ambient)
    world.add_systems(
        [
            ef.TransferSystem(kernel=kernel, cell=0.13 if apart else None),
        ]
    )
    world.evaluate()
    return world


@pytest.mark.parametrize("kernel", ["linear", "m4"])
@pytest.mark.parametrize("profile", [None, [(-1.0, 1.4), (1.0, 0.8)]])
def test_total_excess_mass_is_kept(kernel: str, profile: list | None) -> None:
    """Case 61, B4: the integral of the excess field is sum (rho - rho_a(z)) V, to rounding, over-full
    cells or not."""
    world = loaded(kernel=kernel, density_profile=profile)
    puff, fluid = world["puff"], world.fluid
    z = puff[ef.Position].x[:, 2]
    at_rest = np.interp(z, [-1.0, 1.0], [1.4, 0.8]) if profile else 1.0
    exact = ((puff[ef.Density].rho - at_rest) * puff[ef.Volume].volume).sum()
    grid = fluid[ef.TransferGrid]
    total = fluid[ef.DensityField].excess.sum() * np.prod(grid.spacing)
    assert total == pytest.approx(exact, rel=1e-12)
    assert exact > 0.05


def test_mass_heat_and_species_are_kept_where_cells_are_not_over_full() -> None:
    """Mass-weighted means: sum rho V_c, sum rho T V_c and sum rho Y V_c are those of particles and ambient.

    The particles lie more than two cells of 0.13 m apart, and one of 2e-3 m^3 fills less than such a cell.
    """
    world = loaded(60, apart=True)
    puff, fluid = world["puff"], world.fluid
    cell = float(np.prod(fluid[ef.TransferGrid].spacing))
    rho, T = fluid[ef.DensityField].rho, fluid[ef.TemperatureField].T
    volume = puff[ef.Volume].volume
    mass = puff[ef.Density].rho * volume
    room = rho.size * cell - volume.sum()
    assert (rho * cell).sum() == pytest.approx(mass.sum() + room, rel=1e-12)
    heat = (mass * puff[ef.Temperature].T).sum() + 300 * room
    assert (rho * T * cell).sum() == pytest.approx(heat, rel=1e-12)
    for name in ("fuel", "flame", "smoke"):
        field, own = getattr(fluid[ef.SpeciesField], name), getattr(puff[ef.Species], name)
        assert (rho * field * cell).sum() == pytest.approx((mass * own).sum(), rel=1e-12)


@pytest.mark.parametrize("kernel", ["linear", "m4"])
def test_means_stay_within_what_went_in(kernel: str) -> None:
    world = loaded(2000, spread=0.2, kernel=kernel)
    puff, fluid = world["puff"], world.fluid
    T = fluid[ef.TemperatureField].T
    assert T.min() >= 250.0 and T.max() <= 900.0
    rho = fluid[ef.DensityField].rho
    assert puff[ef.Density].rho.min() <= rho.min() and rho.max() <= puff[ef.Density].rho.max()
    species = fluid[ef.SpeciesField]
    for part in (species.fuel, species.flame, species.smoke):
        assert part.min() >= 0 and part.max() <= 1
    assert species.fuel.max() > 0.3


def test_lattice_of_equal_particles_gives_their_values_inside() -> None:
    """Cells of the particles' size: a filled lattice at any offset is filled to exactly 1 inside."""
    ticks = 0.1 * np.arange(10) + 0.033
    x = np.stack(np.meshgrid(ticks, ticks, ticks, indexing="ij"), axis=-1).reshape(-1, 3)
    world = ef.World(precision="double")
    world.spawn(
        "block", ef.Position(x), ef.Volume(np.full(1000, 1e-3)), ef.Density(np.full(1000, 2.0)),
        ef.Species(np.full(1000, 0.25)),
    )  # fmt: skip
    world.set_fluid(density=1.0)
    world.add_systems([ef.TransferSystem()])
    world.evaluate()
    inner = (slice(4, -4),) * 3
    np.testing.assert_allclose(world.fluid[ef.TransferGrid].spacing, 0.1, rtol=1e-12)
    np.testing.assert_allclose(world.fluid[ef.DensityField].rho[inner], 2.0, rtol=1e-12)
    np.testing.assert_allclose(world.fluid[ef.SpeciesField].fuel[inner], 0.25, rtol=1e-12)
    # At the rim nothing but ambient: the grid has cells to spare.
    for face in (world.fluid[ef.DensityField].rho[0], world.fluid[ef.DensityField].rho[..., -1]):
        np.testing.assert_allclose(face, 1.0, rtol=1e-12)


def test_light_and_smoke_fields() -> None:
    """4 a flame sigma_SB (T^4 - T_a^4) and extinction rho smoke, point by point; both 0 in clean air."""
    world = loaded()
    fluid = world.fluid
    T, species, fire = fluid[ef.TemperatureField].T, fluid[ef.SpeciesField], fluid[ef.FireField]
    light = 4 * 0.5 * 5.670374419e-8 * species.flame * np.maximum(T**4 - 300.0**4, 0)
    np.testing.assert_allclose(fire.luminosity, light, rtol=1e-12, atol=1e-12 * light.max())
    np.testing.assert_allclose(fire.opacity, 10.0 * fluid[ef.DensityField].rho * species.smoke, rtol=1e-12)
    assert fire.luminosity.max() > 0 and fire.luminosity[0].max() == 0.0 == fire.opacity[0].max()


def test_tracers_take_what_is_where_they_are() -> None:
    """On a particle of a filled lattice: its values; far away: the ambient at that height."""
    ticks = 0.1 * np.arange(9)
    x = np.stack(np.meshgrid(ticks, ticks, ticks, indexing="ij"), axis=-1).reshape(-1, 3)
    rho = 2.0 + x[:, 0]
    world = ef.World(precision="double", debug=True)
    world.spawn(
        "block", ef.Position(x), ef.Volume(np.full(729, 1e-3)), ef.Density(rho),
        ef.Temperature(np.full(729, 400.0)), ef.Species(np.full(729, 0.5)),
    )  # fmt: skip
    places = [[0.4, 0.4, 0.4], [0.43, 0.37, 0.41], [0.0, 0.0, 9.0], [5.0, 5.0, -9.0]]
    world.spawn("dye", ef.Position(places))
    profile = [(-10.0, 1.5), (10.0, 0.5)]
    world.set_fluid(density=1.0, density_profile=profile)
    world.add_systems([ef.SamplingSystem()])
    dye = world["dye"]
    np.testing.assert_allclose(dye[ef.Density].rho, [0.98, 0.9795, 0.55, 1.45], rtol=1e-12)
    world.evaluate()
    # Density is linear along x, so linear interpolation has it exactly.
    np.testing.assert_allclose(dye[ef.Density].rho, [2.4, 2.43, 0.55, 1.45], rtol=1e-12)
    np.testing.assert_allclose(dye[ef.Temperature].T, [400.0, 400.0, 300.0, 300.0], rtol=1e-12)
    np.testing.assert_allclose(dye[ef.Species].fuel, [0.5, 0.5, 0.0, 0.0], atol=1e-15)


def test_sampling_takes_only_what_it_is_told() -> None:
    world = loaded()
    world.spawn("dye", ef.Position(np.zeros((3, 3))))
    world.spawn("dust", ef.Position(np.zeros((2, 3))))
    world.add_system(ef.SamplingSystem(take=("temperature",), on=("dye",)))
    world.evaluate()
    carried = [kind for kind in (ef.Density, ef.Temperature, ef.Species) if kind in world["dye"]]
    assert carried == [ef.Temperature]
    assert ef.Temperature not in world["dust"]
    assert (world["dye"][ef.Temperature].T > 301.0).all()
    with pytest.raises(RecipeError, match="entity 'puff' has a Volume or a Strength"):
        world.add_system(ef.SamplingSystem(on=("puff",)))


def test_liquid_beside_smoke_takes_nothing_of_it() -> None:
    """Water had the density of the gas, and an inflow into it failed once it began."""
    world = loaded()
    kinds = (ef.Position, ef.InertialVelocity, ef.Liquid)
    world.spawn("water", *(kind.blank(0, world.dtype) for kind in kinds))
    world.add_system(ef.SamplingSystem())
    assert not {ef.Density, ef.Temperature, ef.Species} & set(world["water"].tables)


class Wild(ef.System):
    """Throws one particle out of the world, or makes one swell without end."""

    reads = writes = (ef.Position, ef.Volume)
    phase = "prepare"
    before = (ef.TransferSystem,)
    column: str
    value: str

    def process(self, dt: float) -> None:
        puff = self.world["puff"]
        (puff[ef.Position].x[:, 1] if self.column == "x" else puff[ef.Volume].volume)[7] = float(self.value)


@pytest.mark.parametrize("kernel", ["linear", "m4"])
@pytest.mark.parametrize("column", ["x", "volume"])
@pytest.mark.parametrize("value", ["inf", "-inf", "nan"])
def test_what_is_not_finite_ends_the_tick_in_one_sentence(kernel: str, column: str, value: str) -> None:
    """And numpy says nothing beside it."""
    world = loaded(kernel=kernel)
    world.add_systems([Wild(column=column, value=value)])
    named = {"x": r"Position\.x", "volume": r"Volume\.volume"}[column]
    with pytest.raises(DivergedError, match=rf"Wild made.*{named} row 7"), warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        world.step()


@pytest.mark.parametrize("kernel", ["linear", "m4"])
def test_a_particle_very_far_away_is_left_out(kernel: str) -> None:
    """The grid is hardly coarser for it (a margin is around the others), and has their excess mass."""
    world, alone = loaded(kernel=kernel), loaded(kernel=kernel)
    alone.step()
    world.add_systems([Wild(column="x", value="1e30")])
    world.step()
    grid, puff = world.fluid[ef.TransferGrid], world["puff"]
    excess = (puff[ef.Density].rho - 1.0) * puff[ef.Volume].volume
    assert (grid.spacing < 1.2 * alone.fluid[ef.TransferGrid].spacing).all()
    total = world.fluid[ef.DensityField].excess.sum() * np.prod(grid.spacing)
    assert total == pytest.approx(np.delete(excess, 7).sum(), rel=1e-9)


@pytest.mark.parametrize("far", [20.0, 3000.0])
def test_a_small_population_far_from_a_large_one_is_no_stray(far: float) -> None:
    """A flame of 64 particles far from a room of 8,000: the fields have the excess mass of both, and a
    tracer in the flame is warm, as far as cells of that size are. At 20 m they need not grow, so a particle
    of the room that is as far is not left out either.
    """
    h, edge, world = 0.05, np.arange(20) * 0.05, ef.World(dt=0.01, precision="double")
    world.set_fluid(law="ideal_gas", density=1.2, temperature=300.0)
    room = np.stack(np.meshgrid(edge, edge, edge), -1).reshape(-1, 3)
    flame = room[(room < 3.5 * h).all(axis=1)] + (far, 0.0, 0.0)
    if far < 100.0:
        room[7, 0] = -far
    for name, x, T in (("room", room, 290.0), ("flame", flame, 900.0)):
        size, heat = ef.Volume(np.full(len(x), h**3)), ef.Temperature(np.full(len(x), T))
        world.spawn(name, ef.Position(x), size, heat)
    world.spawn("probe", ef.Position(flame.mean(axis=0, keepdims=True)))
    world.add_systems([ef.TransferSystem(), ef.SamplingSystem(take=("temperature",))])
    world.step()
    grid = world.fluid[ef.TransferGrid]
    exact = sum((1.2 * 300.0 / T - 1.2) * n * h**3 for T, n in ((290.0, len(room)), (900.0, len(flame))))
    total = world.fluid[ef.DensityField].excess.sum() * np.prod(grid.spacing)
    assert total == pytest.approx(exact, rel=1e-9)
    assert world["probe"][ef.Temperature].T[0] > (800.0 if far < 100.0 else 302.0)


@pytest.mark.parametrize("kernel", ["linear", "m4"])
@pytest.mark.parametrize("turn", [0.0, 30.0])
def test_no_ambient_is_mixed_in_at_the_walls_of_a_container(kernel: str, turn: float) -> None:
    """Fluid that fills a box is what it is up to the walls, edges and corners, of a turned box too.

    A turned lattice does not meet the grid, and leaves cells up to a tenth empty: with what is more of the
    same as long as the box is full, with ambient fluid, at walls as within, once it is not.
    """
    world = ef.World(dt=0.1, precision="double")
    angle = np.radians(turn)
    spin = np.array([[np.cos(angle), -np.sin(angle), 0], [np.sin(angle), np.cos(angle), 0], [0, 0, 1]])
    box = {"shape": "box", "size": [1.0, 0.8, 0.6]}
    ContainerRecipe(name="tank", shape=box, center=(0.3, 0, 0), rotation=(0, 0, angle)).spawn(world)  # type: ignore[arg-type]
    lines = [np.arange(-n / 2 + 0.5, n / 2) * 0.1 for n in (10, 8, 6)]
    x = np.stack(np.meshgrid(*lines, indexing="ij"), axis=-1).reshape(-1, 3)
    many = np.random.default_rng(3).uniform(-1, 1, (400, 3))
    many[:100, 0] = many[100:200, 1] = many[200:300, 2] = 1.0  # at walls
    center = [0.3, 0, 0]
    own = np.full(len(x), 0.001), np.full(len(x), 3.0)
    world.spawn("water", ef.Position(x @ spin.T + center), ef.Volume(own[0]), ef.Density(own[1]))
    world.spawn("dye", ef.Position(0.4999999 * many * [1.0, 0.8, 0.6] @ spin.T + center))
    world.set_fluid(density=1.0)
    world.add_systems(
        [ef.BodySystem(), ef.TransferSystem(kernel=kernel), ef.SamplingSystem(take=("density",))]
    )
    world.evaluate()
    found = world["dye"][ef.Density].rho
    np.testing.assert_allclose(found, 3.0, rtol=1e-12)
    # Two layers less do not fill the box: at the other walls it is as within.
    world["water"].kill(x[:, 0] > 0.3)
    world.step()
    found, seen = world["dye"][ef.Density].rho, (many[:, 0] < 0.3) & (many[:, 0] > -0.99)
    at_walls = seen & (np.abs(many).max(axis=1) > 0.99)
    assert abs(found[at_walls].mean() - found[seen & ~at_walls].mean()) < 0.02
    assert found[seen].min() > 2.8


@pytest.mark.parametrize("second", ["nothing", "empty", "thin", "full", "half", "outside"])
def test_particles_that_fill_containers(second: str) -> None:
    """A full box of ten particles a side is full, whatever is beside it; another one is, if that is full."""
    lines = [np.arange(-4.5, 5.0) * 0.1] * 3
    x = np.stack(np.meshgrid(*lines, indexing="ij"), axis=-1).reshape(-1, 3)
    world = ef.World(dt=0.1, precision="double")
    size = {
        "empty": [1.0, 1.0, 1.0],
        "thin": [0.05, 1.0, 1.0],
        "full": [1.0, 1.0, 1.0],
        "half": [1.0, 1.0, 1.0],
    }
    ContainerRecipe(name="first", shape={"shape": "box", "size": [1.0, 1.0, 1.0]}).spawn(world)  # type: ignore[arg-type]
    if second in size:
        center = (0.53 + 0.5 * size[second][0], 0, 0)
        shape = {"shape": "box", "size": size[second]}
        ContainerRecipe(name="second", shape=shape, center=center).spawn(world)  # type: ignore[arg-type]
    beside = np.array([1.03, 0.0, 0.0])
    places = {
        "full": x + beside,
        "half": x[x[:, 0] < 0] + beside,
        "outside": np.array([[1.7, 0, 0]]),
    }
    x = np.concatenate([x, places.get(second, x[:0])])
    found = fillers(containers(world), x, np.full(len(x), 1e-3), 0.1)
    far = x[:, 0] > 0.6
    assert found[:1000].all() and (found[far] == (second == "full")).all()


@pytest.mark.parametrize("kernel", ["linear", "m4"])
def test_what_is_elsewhere_does_not_change_a_full_container(kernel: str) -> None:
    """Particles in disorder that fill a box have the fluid's density, with one more at 3 m too.

    Few points have nearly none around, and ambient fluid. One more let ambient in everywhere: 2.52, m4 2.37.
    """
    draw = np.random.default_rng(1)
    x = draw.uniform(-0.5, 0.5, (1001, 3))
    x[-1] = [3.0, 0.0, 0.0]
    world = ef.World(dt=0.1, precision="double")
    ContainerRecipe(name="tank", shape={"shape": "box", "size": [1.0] * 3}).spawn(world)  # type: ignore[arg-type]
    world.spawn("water", ef.Position(x), ef.Volume(np.full(1001, 1e-3)), ef.Density(np.full(1001, 3.0)))
    world.spawn("dye", ef.Position(draw.uniform(-0.5, 0.5, (5000, 3))))
    world.set_fluid(density=1.0)
    world.add_systems(
        [ef.BodySystem(), ef.TransferSystem(kernel=kernel, cell=0.1), ef.SamplingSystem(take=("density",))]
    )
    world.evaluate()
    found = world["dye"][ef.Density].rho
    assert found.mean() > 2.7


@pytest.mark.parametrize("kernel", ["linear", "m4"])
@pytest.mark.parametrize("beside", ["tank", "fluid", "tank inside"])
def test_walls_keep_the_fluid_on_both_sides_apart(beside: str, kernel: str) -> None:
    """Images have no room where other fluid is: a cell behind a wall it has its own density, and one excess.

    Lattices of both that fill a box of 1 m, density 3, and what is beside or inside it, density 5.
    """
    size, middle = (0.4, 0.0) if beside == "tank inside" else (1.0, 1.0)
    line = np.arange(-9.5, 30.0) * 0.05
    x = np.stack(np.meshgrid(line, line[:20], line[:20], indexing="ij"), axis=-1).reshape(-1, 3)
    x = x[x[:, 0] < 0.5] if beside == "tank inside" else x
    other = np.abs(x - [middle, 0, 0]).max(axis=1) < size / 2
    world = ef.World(dt=0.1, precision="double")
    ContainerRecipe(name="first", shape={"shape": "box", "size": [1.0] * 3}).spawn(world)  # type: ignore[arg-type]
    if beside != "fluid":
        box = {"shape": "box", "size": [size] * 3}
        ContainerRecipe(name="second", shape=box, center=(middle, 0, 0)).spawn(world)  # type: ignore[arg-type]
    n = len(x)
    world.spawn(
        "water", ef.Position(x), ef.Volume(np.full(n, 0.05**3)), ef.Density(np.where(other, 5.0, 3.0))
    )
    seen = np.random.default_rng(2).uniform(-0.44, 0.44, (2000, 3))  # beside edges images of both are alone
    seen[:, 0] += middle / 2
    off = np.abs(seen - [middle, 0, 0]).max(axis=1) - size / 2
    seen, off = seen[np.abs(off) > 0.05], off[np.abs(off) > 0.05]
    world.spawn("dye", ef.Position(seen))
    world.set_fluid(density=1.0)
    world.add_systems(
        [ef.BodySystem(), ef.TransferSystem(kernel=kernel), ef.SamplingSystem(take=("density",))]
    )
    world.evaluate()
    assert len(seen) > 1000
    np.testing.assert_allclose(world["dye"][ef.Density].rho, np.where(off < 0, 5.0, 3.0), rtol=1e-12)
    grid, excess = world.fluid[ef.TransferGrid], world.fluid[ef.DensityField].excess
    found = interpolate(seen, grid.origin, grid.spacing, np.ascontiguousarray(excess))
    np.testing.assert_allclose(found, np.where(off < 0, 4.0, 2.0), rtol=1e-12)


@pytest.mark.parametrize("sides", [5, 6, 8, 62])
def test_images_in_a_round_container_do_not_pile_up(sides: int) -> None:
    """Excess beside the walls of a full prism is that of the fluid, and images are not thousands a particle.

    Images in all walls that are near would be many one upon the other: seven times the excess with 62 walls.
    Particles of a lattice fill cells at a wall unevenly, so the mean over all of it is asked.
    """
    turns = 2 * np.pi * np.arange(sides) / sides
    corners = [[0.5 * np.cos(t), 0.5 * np.sin(t), z] for t in turns for z in (-0.5, 0.5)]
    world = ef.World(dt=0.1, precision="double")
    ContainerRecipe(name="tank", shape={"shape": "points", "points": corners}).spawn(world)  # type: ignore[arg-type]
    (wall,) = containers(world)
    line = np.arange(-9.5, 10.0) * 0.05
    x = np.stack(np.meshgrid(line, line, line, indexing="ij"), axis=-1).reshape(-1, 3)
    x = x[wall.inside(x)]
    n = len(x)
    for reach in (0.2, 3.0):  # the second one is that of cells wider than the container
        assert len(mirrored([wall], x[::40], reach)[0]) < 200 * len(x[::40])
    world.spawn("water", ef.Position(x), ef.Volume(np.full(n, wall.volume / n)), ef.Density(np.full(n, 3.0)))
    world.set_fluid(density=1.0)
    world.add_systems([ef.BodySystem(), ef.TransferSystem()])
    world.evaluate()
    grid = world.fluid[ef.TransferGrid]
    near = np.random.default_rng(2).uniform(-0.5, 0.5, (20000, 3))
    near = near[wall.inside(near, 0.0) & ~wall.inside(near, 0.02)]
    found = interpolate(
        near, grid.origin, grid.spacing, np.ascontiguousarray(world.fluid[ef.DensityField].excess)
    )
    assert found.mean() == pytest.approx(2.0, rel=0.1)


@pytest.mark.parametrize("far", [0.0, 0.11, 0.3])
def test_images_of_one_particle_stay_behind_the_wall(far: float) -> None:
    """Beside a wall a particle is seen as far as alone: two cells from it there is ambient fluid."""
    world = ef.World(dt=0.1, precision="double")
    box = {"shape": "box", "size": [2.0, 2.0, 2.0]}
    ContainerRecipe(name="tank", shape=box).spawn(world)  # type: ignore[arg-type]
    place = np.array([[1.0 - far - 1e-9, 0.0, 0.0]])
    world.spawn("drop", ef.Position(place), ef.Volume(np.full(1, 1e-3)), ef.Density(np.full(1, 3.0)))
    x = np.zeros((200, 3))
    x[:, 0] = np.linspace(0.5, 1.0, 200)
    world.spawn("dye", ef.Position(x))
    world.set_fluid(density=1.0)
    world.add_systems([ef.BodySystem(), ef.TransferSystem(), ef.SamplingSystem(take=("density",))])
    world.evaluate()
    found = world["dye"][ef.Density].rho
    edge = float(world.fluid[ef.TransferGrid].spacing[0])
    off = np.abs(x[:, 0] - place[0, 0])
    assert edge == pytest.approx(0.1)
    assert (found[off > 2 * edge] == 1.0).all()
    assert found.max() > 1.3


def test_world_without_particles_has_ambient_fields() -> None:
    world = ef.World(precision="double")
    world.set_fluid(density=1.1, temperature=290.0)
    world.add_systems([ef.TransferSystem()])
    world.evaluate()
    assert (world.fluid[ef.DensityField].rho == 1.1).all()
    assert (world.fluid[ef.TemperatureField].T == 290.0).all()


def test_flat_population_shares_areas() -> None:
    """In the plane y = 0 volumes are areas: a filled lattice is 1 in the plane, and the total stays."""
    ticks = 0.1 * np.arange(12)
    x = np.stack(np.meshgrid(ticks, [0.0], ticks, indexing="ij"), axis=-1).reshape(-1, 3)
    world = ef.World(precision="double", dimension=2, plane="xz")
    world.spawn("sheet", ef.Position(x), ef.Volume(np.full(144, 0.01)), ef.Density(np.full(144, 3.0)))
    world.set_fluid(density=1.0)
    world.add_systems([ef.TransferSystem()])
    world.evaluate()
    field, grid = world.fluid[ef.DensityField], world.fluid[ef.TransferGrid]
    assert grid.flat.tolist() == [0, 1, 0]
    np.testing.assert_allclose(field.rho[4:-4, 0, 4:-4], 3.0, rtol=1e-12)
    assert field.excess.sum() * 0.01 == pytest.approx(144 * 0.01 * 2.0, rel=1e-12)


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"density": 0.0}, "density = 0.0; a number above 0"),
        ({"temperature": -1.0}, "temperature = -1.0; a number above 0"),
        ({"density_profile": [(0.0, 1.0), (0.0, 2.0)]}, "the heights must increase"),
        ({"density_profile": [(0.0, -1.0)]}, "-1 at the height 0 m; values above 0 are needed"),
        ({"law": "gas"}, "law = 'gas'; allowed"),
    ],
)
def test_ambients_that_make_no_sense(parameters: dict[str, Any], words: str) -> None:
    with pytest.raises(RecipeError, match=words):
        ef.World().set_fluid(**parameters)


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        (
            {"density_profile": [(0.0, 1.0)], "temperature_profile": [(0.0, 300.0)], "law": "ideal_gas"},
            "density_profile and temperature_profile are both given",
        ),
        ({"temperature_profile": [(0.0, 300.0), (1.0, 310.0)]}, "needs an equation of state"),
        ({"density_profile": [(0.0, 1.0)], "gravity": (1.0, 0.0, -9.0)}, "gravity along z is needed"),
    ],
)
def test_ambients_that_contradict_themselves(parameters: dict[str, Any], words: str) -> None:
    world = ef.World()
    with pytest.raises(RecipeError, match=words):
        world.set_fluid(**parameters)


def test_a_liquid_that_would_have_no_density() -> None:
    world = ef.World(precision="double")
    world.spawn("hot", ef.Position(np.zeros((1, 3))), ef.Volume([1e-3]), ef.Temperature([9000.0]))
    world.set_fluid(law="liquid", expansion=2e-4)
    world.add_systems([ef.TransferSystem()])
    with pytest.raises(
        ef.FluidError, match=r"expansion = 0.0002 1/K a liquid at 9000 K has no density above 0"
    ):
        world.evaluate()


@pytest.mark.parametrize(("gradient", "fills"), [("neighbours", 1), ("grid", 2)])
def test_fields_are_filled_in_the_stages_that_read_them(gradient: str, fills: int) -> None:
    """rk2 has two stages; the grid's gradient reads the fields in both, the neighbours' in neither.

    What a tick shows is of the last stage either way.
    """
    draw = np.random.default_rng(4)
    n = 60
    world = ef.World(dt=1e-9, precision="double", integrator="rk2")
    world.spawn(
        "drop", ef.Position(draw.random((n, 3))), ef.Strength(np.zeros((n, 3))),
        ef.CoreRadius(np.full(n, 0.3)), ef.Volume(np.full(n, 1 / n)), ef.Density(np.full(n, 1.4)),
    )  # fmt: skip
    world.spawn("dye", ef.Position(draw.random((5, 3))))
    world.set_fluid(density=1.2)
    world.add_systems(
        [
            ef.BaroclinicSystem(gradient=gradient),
            ef.SamplingSystem(take=("density",)),
            ef.AdvectionSystem(),
        ]
    )
    transfer = world.require(ef.TransferSystem)
    calls, mix = [], transfer._fill
    object.__setattr__(transfer, "_fill", lambda *given: (calls.append(world.stage.last), mix(*given)))
    world.step()
    assert calls == [False, True][-fills:]
    grid, field = world.fluid[ef.TransferGrid], world.fluid[ef.DensityField]
    # Excess 1.4 - 1.2 times the volume of all, 1 m^3.
    assert field.excess.sum() * np.prod(grid.spacing) == pytest.approx(0.2, rel=1e-12)
    assert (world["dye"][ef.Density].rho > 1.2).all()
    world.evaluate()
    assert len(calls) == fills + 1


def test_images_that_would_fill_the_memory_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A vorton that one stage had thrown 20 m out of a lamp of 0.1 m made cells of 0.4 m, and images up to
    1.3 m behind its walls: 26 x 26 x 10 of each of 2,500 vortons, which took 24 GB, all of the machine's."""
    world = ef.World()
    ContainerRecipe(name="lamp", shape={"shape": "box", "size": (0.1, 0.1, 0.25)}).build(world)
    walls, x = containers(world), np.random.default_rng(1).uniform(-0.05, 0.05, (50, 3))
    assert len(mirrored(walls, x, 0.05).places) < 50 * 26
    monkeypatch.setattr(ef.limits(), "memory", 1e7)
    with pytest.raises(
        LimitError, match=r"images of particles, up to 1\.3 m behind walls, of about .* smaller dt"
    ):
        mirrored(walls, x, 1.3)
