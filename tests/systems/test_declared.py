"""The source of every shipped system: what it looks at while it runs is what it declares."""

from __future__ import annotations

import pytest

import ecs_fluid as ef
import ecs_fluid.worlds
from ecs_fluid.entity import Entity
from ecs_fluid.system import System
from ecs_fluid.systems.velocity.container import ContainerSolver
from tests.systems.declared import undeclared

BY_PARTS = {"VelocitySystem": [kind.__name__ for kind in ContainerSolver.reads] + list(ContainerSolver.asks)}
"""What parts of a system declare, which that of a world then has in its lists."""

SHIPPED = [kind for kind in System.registry.values() if kind.__module__.startswith("ecs_fluid.systems.")]


@pytest.mark.parametrize("kind", SHIPPED, ids=lambda kind: kind.__name__)
def test_shipped_systems_declare_what_they_look_at(kind: type[System]) -> None:
    assert undeclared(kind) == sorted(BY_PARTS.get(kind.__name__, ()))


def test_all_systems_are_looked_at() -> None:
    assert {"VelocitySystem", "RemeshSystem", "SphSystem"} <= {kind.__name__ for kind in SHIPPED}


def ages(entity: Entity) -> float:
    """A helper that reads, in a way that no query sees."""
    return float(entity[ef.Age].t.sum())


class Lists:
    """A helper with a state."""

    def volumes(self, world: ef.World) -> list[object]:
        return [entity.tables.get(ef.Volume) for entity in world.entities]


class Looks(System):
    """All ways to look at something."""

    reads = (ef.Position, ef.Strength, ef.CoreRadius, ef.Age, ef.Volume, ef.Fluid)
    may_read = (ef.Liquid,)
    asks = (ef.VelocitySystem, ef.PartitionSystem)
    phase = "observe"

    def __post_init__(self) -> None:
        self.lists = Lists()

    def lint(self, world: ef.World) -> list[str]:
        return [entity.name for entity in world.entities if ef.Density in entity]

    def process(self, dt: float) -> None:
        for entity, _ in self.entities(ef.Position, ef.Strength):
            if all(kind not in entity for kind in (ef.Liquid,)):
                ages(entity)
        assert self.world.gravity.shape == (3,)
        self.lists.volumes(self.world)
        self.fastest()

    def fastest(self) -> None:
        (core,) = next(iter(self.world.query(ef.CoreRadius)))
        velocity = self.world.system(ef.VelocitySystem)
        if velocity is not None and velocity.solver == "direct":
            velocity.velocity_at(core.sigma[:, None].repeat(3, axis=1))
        self.world.require(ef.PartitionSystem).present()
        assert self.world.require(ef.BodySystem).substeps


def test_the_reader_of_sources_finds_every_declaration_that_is_missing() -> None:
    """Each declaration taken away is the one that is found."""
    assert undeclared(Looks, __name__) == []
    for listed in ("reads", "may_read", "asks"):
        declared = getattr(Looks, listed)
        for gone in declared:
            setattr(Looks, listed, tuple(kind for kind in declared if kind is not gone))
            assert undeclared(Looks, __name__) == [gone.__name__]
        setattr(Looks, listed, declared)
