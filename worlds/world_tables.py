"""The tables [world], [fluid] and [output] of a world file: their keys, and the values of presets."""

from __future__ import annotations

from typing import Any

from pydantic import Field, ValidationInfo, field_validator, model_validator

from ecs_fluid.fluid import FluidOptions
from ecs_fluid.settings import LARGEST, Settings
from ecs_fluid.system import System
from ecs_fluid.systems.diagnostics import DiagnosticsSystem
from ecs_fluid.systems.diffusion import DiffusionSystem
from ecs_fluid.systems.partition import PartitionSystem
from ecs_fluid.systems.stretch import StretchSystem
from ecs_fluid.systems.velocity.system import VelocitySystem
from ecs_fluid.validation_errors import validated
from ecs_fluid.world_files import LookName
from ecs_fluid.world_options import WorldOptions

FLUID: dict[str, type[System]] = {
    "partition": PartitionSystem,
    "velocity": VelocitySystem,
    "stretch": StretchSystem,
    "diffusion": DiffusionSystem,
    "diagnostics": DiagnosticsSystem,
}
"""Systems that the [fluid] table configures, by key, in the order in which they are added."""

PRESETS: dict[str, dict[str, Any]] = {
    "physical": {},
    "article": {
        "world": {"integrator": "euler"},
        "fluid": {
            "partition": {"cells_per_core": 0.0},
            "velocity": {
                "solver": "tree",
                "at": "grid",
                "interpolation": "linear",
                "kernel": "rankine",
                "leaf": "supervortons",
                "multipole": "monopole",
                "opening": "box",
                "mollify": 2.0,
            },
            "stretch": {"scheme": "transposed", "rate": 0.5},
            "diffusion": {"method": "index_space"},
        },
    },
}
"""Default values of each preset, which those of the file override."""

SECTIONS = ("world", "fluid", "entity", "system", "output")
"""Tables of a world file; `entity` and `system` are lists of tables."""

LEAST_FPS = 1e-9


class WorldTable(WorldOptions):
    """[world]: clock, arithmetic, seed and length of the run."""

    fps: float | None = Field(default=None, ge=LEAST_FPS)
    """stored frames per second of simulated time, 1/s; dt is then 1/(fps steps_per_frame)"""
    steps_per_frame: int = Field(default=1, ge=1)
    """ticks from one frame to the next"""
    duration: float = Field(default=5.0, gt=0)
    """length of the run, s"""

    @model_validator(mode="before")
    @classmethod
    def _step(cls, given: Any) -> Any:
        """dt from fps; values of the wrong kind are left to the fields, which say so."""
        if not isinstance(given, dict) or "dt" in given:
            return given
        fps, steps = given.get("fps"), given.get("steps_per_frame", 1)
        if not (isinstance(fps, int | float) and isinstance(steps, int)):
            return given
        usable = LEAST_FPS <= fps <= LARGEST and 0 < steps <= LARGEST
        return {**given, "dt": 1.0 / (fps * steps)} if usable else given

    @model_validator(mode="after")
    def _agree(self) -> WorldTable:
        if self.fps is not None and abs(self.dt * self.fps * self.steps_per_frame - 1) > 1e-6:
            raise ValueError(
                f"dt = {self.dt:g} s, but fps = {self.fps:g} and steps_per_frame = {self.steps_per_frame} "
                f"make it {1 / (self.fps * self.steps_per_frame):g} s; give dt or fps, not both"
            )
        return self

    def _names_plane(self) -> bool:
        return "plane" in self.model_fields_set

    def given(self, **options: Any) -> dict[str, Any]:
        """The values given, without a dt that follows from fps, so that steps_per_frame can be changed."""
        follows = self.fps is not None and self.dt == 1.0 / (self.fps * self.steps_per_frame)
        return self.model_dump(exclude_unset=True, exclude={"dt"} if follows else None, **options)


class FluidTable(FluidOptions):
    """[fluid]: the fluid and how it is computed; each sub-table holds the parameters of one system."""

    partition: dict[str, Any] = Field(default_factory=dict)
    """parameters of PartitionSystem"""
    velocity: dict[str, Any] = Field(default_factory=dict)
    """parameters of VelocitySystem"""
    stretch: dict[str, Any] = Field(default_factory=dict)
    """parameters of StretchSystem"""
    diffusion: dict[str, Any] = Field(default_factory=dict)
    """parameters of DiffusionSystem"""
    diagnostics: dict[str, Any] = Field(default_factory=dict)
    """parameters of DiagnosticsSystem"""

    @field_validator(*FLUID)
    @classmethod
    def _system(cls, value: dict[str, Any], info: ValidationInfo) -> dict[str, Any]:
        name = str(info.field_name)
        if name == "diffusion" and "viscosity" in value:
            raise ValueError("viscosity belongs in [fluid] itself")
        place = f"[fluid] {name}"
        validated(FLUID[name].parameters_for(value, place), value, place)
        return value

    def constants(self) -> dict[str, Any]:
        """Constants of the fluid in the file, for `World.set_fluid`."""
        return {
            name: getattr(self, name) for name in FluidOptions.model_fields if name in self.model_fields_set
        }


class OutputTable(Settings):
    """[output]: what a run stores."""

    every: int | None = Field(default=None, ge=1)
    """ticks from one stored frame to the next; steps_per_frame of [world] if not given"""
    checkpoint_seconds: float = Field(default=60.0, ge=0)
    """wall-clock time between checkpoints, s; 0 writes one after every tick"""
    look: LookName | None = None
    """look of pictures; default liquid in worlds with a liquid that no tracers fill, else smoke"""


TABLES: dict[str, type[Settings]] = {"world": WorldTable, "fluid": FluidTable, "output": OutputTable}
"""The tables of a file that are checked by a model, by name."""
