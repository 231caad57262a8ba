"""A trefoil knot loses helicity as its strands meet: a published flow, against a Fourier series of it."""

from __future__ import annotations

import math

import numpy as np
import pytest

import ecs_fluid as ef
from ecs_fluid.component import Array
from ecs_fluid.worlds.world_recipe import WorldRecipe, read
from tests.validation.spectral import PeriodicFlow, vorticity_of_blobs, writhe

END = 8.0
"""s; the enstrophy, which has a peak as strands meet, is on its way up."""


def knot(spacing: float, kernel: str = "rankine", overlap: float = 1.5) -> ef.World:
    """The shipped world without tracers in double precision, from blobs of this spacing (m) and kind."""
    tables = read("trefoil").tables()
    tables["world"]["precision"] = "double"
    tables["fluid"]["velocity"]["kernel"] = kernel
    tables["entity"] = [{**tables["entity"][0], "spacing": spacing, "overlap": overlap}]
    tables["fluid"]["partition"]["cells"] = round(400 / spacing**3)
    tables["system"][0] |= {"spacing": spacing, "overlap": overlap}
    return WorldRecipe.from_tables(tables).build()


def kept(spacing: float) -> Array:
    """Helicity and energy after `END` over those at the start, (2,)."""
    world, found = knot(spacing), []
    for seconds in (0.0, END):
        world.step(round(seconds / world.dt))
        record = world.diagnostics()
        found.append((record["helicity"], record["energy"]))
    return np.divide(found[1], found[0])


def kept_by_series(waves: int) -> tuple[float, Array]:
    """Helicity of the knot of the world, of Gaussian blobs, at the start, m^4/s^2, and what `kept` finds."""
    start = knot(0.1, "gaussian", overlap=0.9)["knot"]
    sigma = float(start[ef.CoreRadius].sigma[0])
    omega = vorticity_of_blobs(start[ef.Position].x, start[ef.Strength].alpha, sigma, waves)
    flow, found = PeriodicFlow.of_vorticity(omega, viscosity=1e-3), []
    for steps in (0, round(END / 0.1)):
        for _ in range(steps):
            flow.step(0.1)
        found.append((flow.helicity, flow.energy))
    return found[0][0] * (2 * math.pi) ** 3, np.divide(found[1], found[0])


@pytest.mark.nightly
@pytest.mark.filterwarnings("ignore::ecs_fluid.errors.FluidWarning")
def test_helicity_of_a_trefoil_until_its_strands_meet() -> None:
    """Gamma/nu = 1000: helicity at 8 s within 3 % of the series with 64 waves at a/2.75, order above 2.

    The series starts from the writhe and keeps 0.9401 of the helicity and 0.8539 of the energy (with 80 waves
    0.9395 and 0.8538). Of what is missed at h = 0.1 m, rk3 changes 1e-3 and loss = 1e-4 makes it 1e-2 more.
    """
    formulas = {key: getattr(read("trefoil").entity[0], key) for key in "xyz"}
    start, exact = kept_by_series(64)
    assert start == pytest.approx(writhe(**formulas), rel=1e-3)
    np.testing.assert_allclose(exact, (0.9401, 0.8539), rtol=1e-3)
    helicity, energy = np.transpose([kept(spacing) / exact - 1 for spacing in (0.13, 0.1, 0.08)])
    assert abs(helicity[-1]) < 0.03 and abs(energy[-1]) < 0.01
    assert math.log(helicity[0] / helicity[-1]) / math.log(0.13 / 0.08) > 2.0
