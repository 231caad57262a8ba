"""A column of water that is let go, against potential flow and against the experiment."""

from __future__ import annotations

import functools
from typing import Any, Literal

import numpy as np
import pytest
from liquid_tank import tank
from potential_flow import dam_break

import ecs_fluid as ef

Array = np.ndarray
Pressure = Literal["explicit", "implicit"]
G, A = 9.81, 0.24
UNTIL = 3.4
"""In units of sqrt(a / 2 g), in which the front comes to 4.7 a; the far wall is at 5 a."""
EXPERIMENT = np.array([(0.832, 1.217), (1.219, 1.474), (1.997, 2.292), (2.547, 2.995), (3.345, 4.134)])
"""t sqrt(2 g / a) and front / a of Martin and Moyce (Phil. Trans. R. Soc. A 244, 1952), a = 2.25 inches,
n^2 = 2, read off by others (PySPH, examples/db_exp_data.py)."""


@functools.cache
def theory() -> Array:
    """Times, fronts, heights at the wall, areas and energies of potential flow; the front to 0.015 a."""
    return dam_break(UNTIL, 0.02)


@functools.cache
def liquid(layers: int, pressure: Pressure) -> tuple[Array, Array, Array, list[dict[str, Any]], Array]:
    """Times, fronts, heights at the wall as of `theory`, books, and the mean excess of the density.

    Of a column that many spacings wide and five thick; the front is that of the third particle.
    """
    edge = A / layers
    box = {"low": (0, 0, 0), "high": (A, 5 * edge, 2 * A)}
    water = {"box": box, "spacing": edge, "hydrostatic": True}
    world, system = tank((5 * A, 5 * edge, 3 * A), water, 0.004, pressure=pressure)
    rows, record, dense = [], [system.measure()], []
    while world.time * np.sqrt(2 * G / A) < UNTIL:
        world.step()
        x = world["water"][ef.Position].x.astype(np.float64)
        high = x[x[:, 0] < 1.5 * edge, 2].max()
        front = np.sort(x[:, 0])[-3]
        rows.append((world.time * np.sqrt(2 * G / A), (front + edge / 2) / A, (high + edge / 2) / A))
        record.append(system.measure())
        density = world["water"][ef.LiquidState].density
        dense.append(float(np.maximum(density / 1000 - 1, 0).mean()))
    record[-1]["steps"] = int(world.fluid[ef.LiquidBudget].steps[0])
    time, front, high = np.array(rows).T
    return time, front, high, record, np.array(dense)


def speed(time: Array, front: Array) -> float:
    """Of the front between 2 a and 4.2 a, in units of sqrt(a / 2 g)."""
    late = (front > 2) & (front < 4.2)
    return float(np.polyfit(time[late], front[late], 1)[0])


def behind(time: Array, front: Array) -> Array:
    """By how much, a, the front is behind that of potential flow."""
    return np.asarray(np.interp(time, *theory().T[:2]) - front)


@pytest.mark.nightly
def test_potential_flow_keeps_its_books() -> None:
    """Area and energy, which nothing makes the elements keep: to 2.2e-3 and 3.8e-3 of what they were."""
    for kept in theory().T[3:]:
        assert np.ptp(kept) < 4.5e-3 * kept[0]


@pytest.mark.nightly
def test_potential_flow_has_converged() -> None:
    """Elements half as long move the front by 0.0144 a at most, and leave half of what the books were off."""
    fine = dam_break(3.2, 0.01)
    assert np.abs(behind(*fine.T[:2])).max() < 0.016
    for kept in fine.T[3:]:
        assert np.ptp(kept) < 2e-3 * kept[0]


@pytest.mark.parametrize(
    ("layers", "pressure"),
    [(10, "explicit"), pytest.param(15, "explicit", marks=pytest.mark.nightly), (15, "implicit")],
)
def test_front_follows_potential_flow(layers: int, pressure: Pressure) -> None:
    """Never ahead of it, at most 1.6 spacings behind it (measured 1.38 to 1.47); its speed within 2 %, the
    height at the wall within 0.65 spacings, as one particle tells it (0.59 to 0.61 implicit, 0.47 to 0.49
    explicit, of columns whose widths differ by 1e-6)."""
    time, front, high, _, _ = liquid(layers, pressure)
    assert (np.diff(front) > -1e-6).all()
    assert behind(time, front).min() > 0 and behind(time, front).max() < 1.6 / layers
    assert speed(time, front) == pytest.approx(speed(*theory().T[:2]), rel=0.02)
    assert np.abs(np.interp(time, theory()[:, 0], theory()[:, 2]) - high).max() < 0.65 / layers


def test_front_converges_to_potential_flow() -> None:
    """What it is behind falls like the spacing: two thirds with spacings of two thirds (measured 0.670)."""
    (time, coarse), (other, fine) = (liquid(layers, "explicit")[:2] for layers in (10, 15))
    late = time > 0.8
    left = np.interp(time, other, behind(other, fine))[late].mean() / behind(time, coarse)[late].mean()
    assert left == pytest.approx(2 / 3, abs=0.07)


def test_front_is_as_fast_as_the_experiment() -> None:
    """The speed of Martin and Moyce's front to 5 %. Their front is 0.19 to 0.53 a behind potential flow, that
    is let go at once: so places are not compared, and a liquid closer to it is farther from theirs."""
    time, front, *_ = liquid(15, "implicit")
    for flow in ((time, front), theory().T[:2], liquid(10, "explicit")[:2]):
        assert speed(*flow) == pytest.approx(speed(*EXPERIMENT.T), rel=0.05)
    late = np.interp(EXPERIMENT[:, 0], *theory().T[:2]) - EXPERIMENT[:, 1]
    assert late.min() > 0.18 and late.max() < 0.55


def test_dam_break_in_long_steps() -> None:
    """The front of the implicit liquid is that of the explicit one to 5 %, in a third of the steps; the mean
    excess of the density is below 1 %; energy and what viscosity took grow by less than 1 % of what moves."""
    _, front, _, record, dense = liquid(15, "implicit")
    _, explicit, _, other, _ = liquid(15, "explicit")
    assert np.abs(front / explicit - 1).max() < 0.05
    assert dense.max() < 0.01
    energy = np.array([each["energy"] + each["dissipated"] for each in record])
    assert (energy - np.minimum.accumulate(energy)).max() < 0.01 * record[-1]["kinetic"]
    assert 3 * record[-1]["steps"] <= other[-1]["steps"]


@pytest.mark.parametrize("layers", [10, 15])
def test_dam_break_keeps_its_energy(layers: int) -> None:
    """Energy less what viscosity and diffusion took: measured 1.5e-5 and 4.8e-5 of what went into motion."""
    before, *_, after = liquid(layers, "explicit")[3]
    assert abs(after["energy"] + after["dissipated"] - before["energy"]) < 1e-3 * after["kinetic"]
