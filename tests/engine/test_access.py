"""What systems say that they touch: the order that follows from it, and what is refused."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import ecs_fluid as ef
from ecs_fluid.component import Array, Component, column
from ecs_fluid.components.bodies import FREE
from ecs_fluid.errors import ScheduleError
from ecs_fluid.schedule import build
from ecs_fluid.system import System


class Heat(Component, derived=True, given=(ef.Position,)):
    """A derived table that systems fill and add to."""

    w: Array = column("W")


def make(title: str, **declared: Any) -> type[System]:
    return type(title, (System,), {"process": lambda self, dt: None, **declared})


def names(*kinds: type[System]) -> list[str]:
    return [type(system).__name__ for system in build([kind() for kind in kinds]).systems]


def refused(sentence: str) -> pytest.RaisesExc:
    return pytest.raises(ScheduleError, match=f"^{re.escape(sentence)}$")


# ---------------------------------------------------------------------- order


def test_may_read_comes_after_writers_and_adders_and_may_go_without_them() -> None:
    write = make("Fill", writes=(Heat,), phase="constrain")
    add = make("Warm", adds=(Heat,), phase="constrain")
    glance = make("Glance", may_read=(Heat,), phase="constrain")
    assert names(glance, add, write) == ["Fill", "Warm", "Glance"]
    assert names(glance) == ["Glance"]


def test_may_read_is_a_conflict_like_any_read() -> None:
    mover, glance = make("Mover", writes=(ef.Position,)), make("Glance", may_read=(ef.Position,))
    with refused(
        "Mover and Glance both touch Position in the phase 'move' with no order between them; give one of "
        "them before or after, for example Glance.after = (Mover,)"
    ):
        names(mover, glance)
    glance.after = (mover,)
    assert names(glance, mover) == ["Mover", "Glance"]


def test_may_read_of_what_is_filled_too_late_is_refused() -> None:
    late, glance = make("Late", writes=(Heat,), phase="observe"), make("Glance", may_read=(Heat,))
    with refused(
        "Glance reads Heat, which no system writes before it; add a system that writes Heat earlier (Late "
        "does so only in the phase 'observe')"
    ):
        names(glance, late)


def test_may_read_of_every_component() -> None:
    """`Component` stands for all of them: what anybody writes counts."""
    glance = make("Glance", may_read=(Component,))
    with refused(
        "Mover and Glance both touch Position in the phase 'move' with no order between them; give one of "
        "them before or after, for example Glance.after = (Mover,)"
    ):
        names(make("Mover", writes=(ef.Position,)), glance)


# ---------------------------------------------------------------------- loads


def flight(thruster: type[System], first: bool, loads: bool = True) -> ef.World:
    """A free ball of 2 kg without gravity, and a thruster added before or after its BodySystem."""
    world = ef.World(dt=0.1, precision="double", debug=True)
    ball = (np.zeros((1, 3)), np.tile([1.0, 0, 0, 0], (1, 1)))
    world.spawn(
        "ball",
        ef.Pose(*ball),
        ef.RigidMotion(np.zeros((1, 3)), np.zeros((1, 3))),
        ef.Body([2.0], np.eye(3)[None], [FREE], [0.0], [0.0]),
        ef.BallShape([0.1]),
    )
    world.set_fluid(gravity=(0, 0, 0))
    bodies = [ef.BodySystem(), *([ef.LoadSystem()] if loads else [])]
    world.add_systems([thruster(), *bodies] if first else [*bodies, thruster()])
    return world


def thruster(**declared: Any) -> type[System]:
    def process(self: System, dt: float) -> None:
        for (load,) in self.query(ef.BodyLoad):
            load.force[:, 0] += 3.0

    return type("Thruster", (System,), {"adds": (ef.BodyLoad,), "process": process, **declared})


@pytest.mark.parametrize("first", [True, False])
def test_a_thruster_acts_wherever_it_is_added(first: bool) -> None:
    """v = F t/m = 3 N * 1 s / 2 kg, before BodySystem in the list or after it."""
    world = flight(thruster(), first)
    world.step(10)
    assert world["ball"][ef.RigidMotion].v[0, 0] == pytest.approx(1.5, abs=1e-12)


@pytest.mark.parametrize("first", [True, False])
def test_a_thruster_where_it_cannot_act_is_refused(first: bool) -> None:
    for phase in ("constrain", "observe"):
        with refused(
            f"Thruster adds to BodyLoad in the phase '{phase}', after BodySystem has read it, so that it has "
            "no effect; set Thruster.phase to 'move'"
        ):
            flight(thruster(phase=phase), first).step()
    for phase in ("prepare", "rates"):
        with refused(
            f"Thruster adds to BodyLoad in the phase '{phase}', in every stage of the integrator, but "
            "LoadSystem empties it once a tick; set Thruster.phase to 'move'"
        ):
            flight(thruster(phase=phase), first).step()
    with pytest.raises(ScheduleError, match=r"circle: .*BodySystem before Thruster"):
        flight(thruster(after=("BodySystem",)), first).step()


def test_a_load_that_nobody_empties_is_refused() -> None:
    """It would grow from tick to tick."""
    with refused(
        "Thruster adds to BodyLoad, which no system empties when a tick begins; add a system that writes "
        "BodyLoad, such as LoadSystem"
    ):
        flight(thruster(), True, loads=False).step()


def test_what_is_added_before_it_is_written_is_refused() -> None:
    late, early = make("Late", writes=(Heat,)), make("Early", adds=(Heat,), phase="spawn")
    with refused(
        "Early adds to Heat in the phase 'spawn', before Late writes it, so that it has no effect; set "
        "Early.phase to a later one than 'move'"
    ):
        names(late, early)
