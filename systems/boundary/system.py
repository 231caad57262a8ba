"""Fluid meets bodies: no flow through their surfaces, and none along them."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from ecs_fluid.components import CoreRadius, Position, Strength, Velocity, Volume
from ecs_fluid.components.bodies import (
    Body,
    BodyLoad,
    BodyPart,
    BoundaryExchange,
    BoundaryLayer,
    ContactMemory,
    FormerPose,
    HullShape,
    Pose,
    RigidMotion,
    ShedMotion,
)
from ecs_fluid.entity import Entity
from ecs_fluid.errors import FluidError, RecipeError
from ecs_fluid.fluid import Fluid
from ecs_fluid.recipe import Name
from ecs_fluid.schedule import named
from ecs_fluid.system import System
from ecs_fluid.systems.bodies import BodySystem
from ecs_fluid.systems.boundary.article import reassign_vortons
from ecs_fluid.systems.boundary.layer import LayerBoundary
from ecs_fluid.systems.boundary.panels import PanelBoundary
from ecs_fluid.systems.boundary.sheets import SheetBoundary
from ecs_fluid.systems.diffusion import DiffusionSystem
from ecs_fluid.systems.shared.body_tables import SHAPES, body_entities
from ecs_fluid.systems.shared.fluid_at_rest import density_lint
from ecs_fluid.systems.shared.overlap import LEAST_OVERLAP
from ecs_fluid.systems.stretch import StretchSystem
from ecs_fluid.systems.velocity.system import VelocitySystem
from ecs_fluid.world import World

LASTING = 45.0
"""Reynolds number, by extent and speed, up to which a wake with full stretching was found to last.

By 16 radii with five panels across, and 20 with six; docs/notes/bodies.md.
"""


class BoundarySystem(System):
    """Boundary condition at bodies: the fluid follows their surfaces (free slip, no slip or boundary layer).

    article: vortons within `reach` core radii of a surface get a new place and strength, each as if the
    others stayed, such that the fluid stops at the nearest point of the surface (articles, part 4). They go
    the part `gain` of the way in each tick, or less where all together would go too far. Where a body spins
    and the fluid does not yet, they also take up vorticity along the normal, 2 spin . n, as fluid that turns
    with the surface has it. No vortons are made, so a body acts only on fluid that has vortons. What a solid
    changes in the strengths sums to zero, whatever its spin: the sheet of a closed surface and the vorticity
    2 spin of the body in it, for which its vortons stand too, sum to zero. Two do otherwise: containers,
    whose fluid may hold any sum, and free bodies with `reaction` "spin", whose spin momentum and that of
    their vortons are kept together as far as that turns them as the fluid at their surface turns.

    panels: the surface is covered by triangles, each with a vortex ring round it, whose circulations follow
    from the velocity along the normal at all centres: (u + u_rings - v_body) . n = 0. The fluid inside then
    follows the body altogether, so this sheet is what has to be shed to stop both the flow through the
    surface and the flow along it. It is shed at every tick, `offset` panels off the surface, as vortons
    of exactly its strength, into the entity `wake`; vortons that come closer than `merge` core radii there
    are joined, and those far from all bodies in ever coarser cells once there are more than `most`. The
    vorticity of bodies that spin is in the entity `wake`-bound; the total of both is zero. That of a body
    which is taken out of the world goes to the wake: fluid that turns as the body did fills its place.
    With `friction`, the rotation d that the fluid in a body lacks is shed at every tick too, as the strength
    2 n (d . r) - n x (d x r) per area: this turns what is in the body, and makes no vorticity outside.
    Containers act on the fluid in them; one that moves slips along it, but lets none through.

    layer: the sheet of `panels` and all of the wake are vortons on a lattice, whose spacing resolves the
    boundary layer, and are put back on it at every tick by M4'. With a DiffusionSystem, drag, torque and lift
    then follow from the vorticity, see `systems.boundary.layer`. For solids, with a `lattice` of at most a
    third of the layer, which is about sqrt(4 nu R/U) thick, and dt of at most lattice/U. With a
    ReactionSystem by vortons, all free bodies and their sheets are solved together, light bodies too.

    Runs after collisions, on the state at the end of the tick. What each body gave to the vortons is in its
    BoundaryExchange. Source: Fluid Simulation for Video Games, parts 4 and 7; Ploumhans, Winckelmans,
    Salmon, Leonard and Warren, J. Comput. Phys. 178 (2002); Katz and Plotkin, Low-Speed Aerodynamics (2001).
    """

    reads = (Pose, Body, Fluid)
    may_read = (*SHAPES, Velocity, FormerPose, BodyLoad, ContactMemory)
    writes = (
        Position,
        Strength,
        CoreRadius,
        Volume,
        RigidMotion,
        BoundaryExchange,
        ShedMotion,
        BoundaryLayer,
    )
    asks = (VelocitySystem, "WindSystem")
    phase = "constrain"
    dimensions = (2, 3)
    makes_vorticity = True
    periodic = False
    after = ("CollisionSystem",)

    boundary: Literal["article", "panels", "layer"] = "article"
    """how the condition is met"""
    reach: float = Field(default=1.2, gt=0, le=10)
    """article: reach of a surface, core radii"""
    gain: float = Field(default=0.1, gt=0, le=1)
    """article: largest part of the correction per tick, 1"""
    sample: Literal["surface", "vorton"] = "surface"
    """article: where the flow is evaluated: at the surface point, or at the vorton"""
    placement: Literal["normal", "bent"] = "normal"
    """article: vortons stand on the normal, or where each alone also stops the flow through the surface"""
    reaction: Literal["spin", "none"] = "spin"
    """article: whether free bodies lose the spin momentum that their vortons gain"""
    density: float | None = Field(default=None, gt=0, le=1e6)
    """article: density of vortons, kg/m^3; default the fluid's"""
    on: tuple[Name, ...] = ()
    """article: entities of vortons it changes; default all"""
    panels_across: int = Field(default=8, ge=1, le=64)
    """panels, layer: edges of triangles along the longest extent of a body"""
    spacing: float | None = Field(default=None, gt=0, le=1e6)
    """panels, layer: edge of the triangles, m; default by panels_across"""
    offset: float = Field(default=1.0, ge=0, le=4)
    """panels: distance of a shed vorton from its panel, over the square root of the panel's area, 1"""
    overlap: float = Field(default=LEAST_OVERLAP, gt=0, le=8)
    """panels, layer: core radius of shed vortons, over the root of a panel's area or the lattice, 1"""
    tolerance: float = Field(default=5e-3, gt=0, le=1)
    """panels: rms normal velocity left at the centres, over the rms slip, 1"""
    sweeps: int = Field(default=10, ge=1, le=100)
    """panels: most solutions per tick"""
    merge: float = Field(default=0.5, gt=0, le=4)
    """panels: edge of the cells in which shed vortons are joined, core radii"""
    friction: bool = False
    """panels: whether friction turns the fluid at a body with it; for bodies past which nothing flows"""
    lattice: float | None = Field(default=None, gt=0, le=1e6)
    """layer: spacing of the lattice, m; default: smallest body's extent/20"""
    loss: float = Field(default=1e-4, ge=0, le=0.1)
    """layer: part of sum |alpha| up to which the weakest points are left out in a tick, 1"""
    most: int = Field(default=20_000, ge=100, le=10_000_000)
    """panels: most vortons of the wake"""
    wake: Name = "wake"
    """panels, layer: entity that gets the vortons"""

    @property
    def _has_friction(self) -> bool:
        return self.boundary == "panels" and self.friction

    @property
    def sheds(self) -> tuple[str, ...]:
        """Entities whose vortons carry vorticity alone."""
        return () if self.boundary == "article" else (self.wake,)

    def spawns(self, world: World) -> None:
        """Entities of what is shed."""
        layer = self.boundary == "layer"
        self.sheets: SheetBoundary = LayerBoundary(self) if layer else PanelBoundary(self)
        """What solves for the sheets of `panels` and `layer`"""
        if self.boundary != "article":
            self.sheets.spawns(world)

    def added(self, world: World) -> None:
        """The velocity must be known, and bodies must move."""
        if world.dimension == 2 and self.boundary != "layer":
            raise RecipeError(
                f"BoundarySystem: boundary = {self.boundary!r} is for a world of dimension = 3; in a plane "
                "use boundary = 'layer'"
            )
        for name in self.on:
            world[name][Strength]  # an error without one
        world.require(VelocitySystem)
        world.require(BodySystem)
        refuse_two_spins(world)

    def must_hold(self, world: World) -> None:
        """Bodies with a layer are solids with one surface, and know no images behind mirrors."""
        if self.boundary == "layer" and (mirrors := world.require(VelocitySystem).mirrors):
            raise FluidError(
                f"BoundarySystem: boundary = 'layer' does not know mirror images, and VelocitySystem has a "
                f"mirror at {mirrors[0].body!r}; use boundary = 'panels', or no mirrors"
            )
        for entity, (shape,) in world.entities_with(HullShape) if self.boundary == "layer" else ():
            if shape.container.any():
                raise FluidError(
                    f"BoundarySystem: boundary = 'layer' is for solids, but {entity.name!r} is a container; "
                    "use boundary = 'panels'"
                )
        for entity, _ in world.entities_with(BodyPart) if self.boundary == "layer" else ():
            raise FluidError(
                "BoundarySystem: boundary = 'layer' needs one closed surface around each body, but "
                f"{entity.name!r} is made of parts; use boundary = 'panels', or a convex shape"
            )
        for entity, _ in world.entities_with(BodyPart) if self._has_friction else ():
            raise FluidError(
                f"BoundarySystem: friction = true is for balls and convex bodies, but {entity.name!r} is "
                "made of parts; leave friction out"
            )

    def process(self, dt: float) -> None:
        """Meet the condition at all bodies."""
        entities = body_entities(self.world)
        if self.boundary != "article":
            self.sheets.process(self._with_sheets(entities))
        elif any(len(entity) for entity in entities):
            reassign_vortons(self, entities)

    def _with_sheets(self, entities: list[Entity]) -> list[Entity]:
        """Bodies that shed: those without faces that mirror, through which nothing flows anyway."""
        mirrors = self.world.require(VelocitySystem).mirror_bodies
        return [entity for entity in entities if entity.name not in mirrors]

    def lint(self, world: World) -> list[str]:
        """Too little diffusion for stretched sheets; no vortons to act on; another density."""
        texts = density_lint(self, world)
        if self.boundary == "article" and not any(Strength in entity for entity in world.entities):
            return [
                *texts,
                "BoundarySystem: boundary = 'article' only changes vortons near bodies, and the world has "
                "no vortons, so the fluid flows through its bodies; with boundary = 'panels' bodies make "
                "their own",
            ]
        if self._has_friction:
            texts += self.sheets.friction_lint(self._with_sheets(body_entities(world)))
        stretch, diffusion = world.system(StretchSystem), world.system(DiffusionSystem)
        viscosity = diffusion.viscosity if diffusion is not None else 0.0
        if isinstance(self.sheets, LayerBoundary):
            method = "pse" if diffusion is None else diffusion.method
            texts += self.sheets.lint(body_entities(world), method, viscosity)
        if self.boundary == "article" or stretch is None or stretch.scheme == "none" or stretch.rate == 0.0:
            return texts
        if viscosity == 0.0:
            return [
                *texts,
                "BoundarySystem: vortons shed by bodies are stretched in a fluid without viscosity, where "
                "they break up after a few body lengths of flow; give the fluid a viscosity, preferably with "
                "StretchSystem.rate = 0.5, or set StretchSystem.scheme = 'none'",
            ]
        speed, extent = self.sheets.speeds_and_extents(self._with_sheets(body_entities(world)))
        reynolds = float((speed * extent).max(initial=0.0)) / viscosity
        if self.boundary == "panels" and stretch.rate > 0.5 and reynolds > LASTING:
            texts.append(
                f"BoundarySystem: vortons shed by bodies are stretched in full at a Reynolds number of "
                f"{reynolds:.3g}, and break up after four to ten radii of flow; set StretchSystem.rate = 0.5 "
                "([fluid] stretch = { rate = 0.5 }), or give the fluid a larger eddy viscosity"
            )
        return texts

    @property
    def residual(self) -> float:
        """Rms normal velocity over rms slip at the centres: panels what was left, layer what was found."""
        return self.sheets.residual


def refuse_two_spins(world: World) -> None:
    """RecipeError where both a ReactionSystem and a BoundarySystem change the spin of bodies."""
    boundary = world.system(BoundarySystem)
    if boundary is None or boundary.boundary != "article" or boundary.reaction == "none":
        return
    for angular in (reaction.angular for reaction in named(world.systems, "ReactionSystem")):
        if angular != "none":
            raise RecipeError(
                f"ReactionSystem has angular = {angular!r}, but BoundarySystem changes the spin of bodies "
                "too; set BoundarySystem.reaction = 'none' or ReactionSystem.angular = 'none'"
            )
