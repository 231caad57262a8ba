"""Mirror images of vortons behind flat faces of bodies, for solvers of flow in unbounded space."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from ecs_fluid.component import Array
from ecs_fluid.components.bodies import FIXED, Body, HullShape, HullTable, Pose
from ecs_fluid.errors import FluidError
from ecs_fluid.recipe import Name
from ecs_fluid.settings import Settings
from ecs_fluid.systems.operations import winds
from ecs_fluid.systems.shared.body_tables import body_entities, exact_hulls, planes_of
from ecs_fluid.systems.shared.walls import EVEN, Walls, along
from ecs_fluid.targets import Targets
from ecs_fluid.validation_errors import nearest

if TYPE_CHECKING:
    from ecs_fluid.world import World


class MirrorFace(Settings):
    """Flat face of a fixed body, or wall of a container at rest; no fluid goes through the plane in it."""

    body: Name
    """entity of the body or container"""
    side: Literal["-x", "+x", "-y", "+y", "-z", "+z"]
    """axis of the body along which the outward normal of the face points: "+z" for the top of a slab, "-z"
    for the floor of a container"""


DEEP = 0.1
"""Vortons this far behind a plane, in core radii, are told; those that are nearer may be off by rounding."""


@dataclass
class Mirror:
    """Mirror images of points and vectors in one plane, or in two or three at right angles in turn."""

    normals: Array
    """(k, 3) unit normals of the planes, which point into the fluid"""
    offsets: Array
    """(k,) m, normal . x of the points x of each plane"""

    @property
    def walls(self) -> Walls:
        """The planes as walls of the half space, edge or corner before them, which has no end."""
        return Walls(-self.normals, -self.offsets, np.inf, np.zeros((0, 3)))

    def is_behind(self, x: Array) -> Array:
        """Mask (m,) of the points x (m, 3) m behind a plane."""
        pairs = zip(self.normals, self.offsets, strict=True)
        return np.asarray(np.any([along(x, normal) < offset for normal, offset in pairs], axis=0))

    def point(self, x: Array) -> Array:
        """Mirror image of the points x (m, 3) m."""
        for normal, offset in zip(self.normals, self.offsets, strict=True):
            x = x - (2.0 * (along(x, normal) - offset)[:, None] * normal).astype(x.dtype)
        return x

    def vector(self, v: Array) -> Array:
        """Mirror image of vectors v (m, ..., 3), such as velocities."""
        for normal in self.normals.astype(v.dtype):
            v = v - 2 * along(v, normal)[..., None] * normal
        return v

    def pseudovector(self, v: Array) -> Array:
        """Mirror image of pseudovectors v (m, 3), such as vorticity, which each mirror also turns round."""
        return self.vector(v) if len(self.normals) % 2 == 0 else -self.vector(v)

    def gradient(self, du: Array) -> Array:
        """Mirror image of velocity gradients du (m, 3, 3)."""
        return self.vector(self.vector(du).swapaxes(1, 2)).swapaxes(1, 2)

    def add(self, targets: Targets, fill: Callable[[Targets], None]) -> None:
        """Add the flow of the vortons' images to u and du of the targets; `fill` sums over the vortons.

        The flow of an image at x is the mirror image of the vorton's own flow at the image of x, so the
        vortons are summed once more, at the images of the targets. In the plane itself, both sums are the
        same, and their components across it cancel to rounding, whatever the error of the solver.
        """
        image = Targets.at(np.ascontiguousarray(self.point(targets.x)), targets.du is not None)
        fill(image)
        targets.u += self.vector(image.u)
        if targets.du is not None and image.du is not None:
            targets.du += self.gradient(image.du)


def behind_lint(mirrors: Sequence[Mirror], x: Array, sigma: Array) -> list[str]:
    """Warn of vortons at x (n, 3) m with core radii (n,) m that lie behind a plane, where no fluid is."""
    if not mirrors:
        return []
    every = mirrors[-1]
    behind = int(every.is_behind(x + (DEEP * sigma)[:, None] * every.normals.sum(axis=0)).sum())
    if not behind:
        return []
    return [
        f"VelocitySystem: {behind} vortons lie behind the plane of a mirror, so their images lie in the "
        "fluid in front of it; place and emit vortons in front of it, or make the body that mirrors so large "
        "that it keeps them there"
    ]


def mirrors_of(world: World, faces: Sequence[MirrorFace]) -> list[Mirror]:
    """The mirrors that together make all images behind these faces.

    One plane makes one image of each vorton, two that meet at an edge three, three at a corner seven.

    Raises:
        FluidError: if a body has no such face, is not fixed, or if planes are not at right angles.
    """
    planes = [_plane_of(world, face) for face in faces]
    normals, offsets = np.array([normal for normal, _ in planes]), np.array([offset for _, offset in planes])
    if (np.abs(normals @ normals.T - np.eye(len(faces))) > EVEN).any():
        raise FluidError(
            "VelocitySystem: the planes of mirrors must be at right angles to each other; between parallel "
            "ones images have no end (use solver = 'container' for a box)"
        )
    numbers = range(len(faces))
    sets = itertools.chain.from_iterable(itertools.combinations(numbers, k + 1) for k in numbers)
    return [Mirror(normals[list(some)], offsets[list(some)]) for some in sets]


def is_container(world: World, face: MirrorFace) -> bool:
    """Whether a face is a wall of a container."""
    return bool(world[face.body][HullShape].container[0])


def _plane_of(world: World, face: MirrorFace) -> tuple[Array, float]:
    """Unit normal (3,) of a face, which points into the fluid, and normal . x, m, of its points x."""
    from ecs_fluid.kernels.bodies.rotation import matrix_of

    what = f"VelocitySystem: mirrors names {face.body!r}"
    if face.body not in world:
        raise FluidError(f"{what}; {nearest(face.body, [entity.name for entity in body_entities(world)])}")
    entity = world[face.body]
    if HullShape not in entity or len(entity) != 1:
        raise FluidError(f"{what}; one body with flat faces, or one container, is needed")
    if (entity[Body].motion != FIXED).any():
        raise FluidError(f"{what}, which may move; a fixed body or container is needed")
    planes = planes_of(exact_hulls(entity[HullTable]), int(entity[HullShape].hull[0]))
    axis = np.where(np.arange(3) == "xyz".index(face.side[1]), 1.0 if face.side[0] == "+" else -1.0, 0.0)
    found = np.flatnonzero(planes[:, :3] @ axis > 1.0 - EVEN)
    if not len(found):
        raise FluidError(
            f"{what} and side = {face.side!r}, but no face of it points along that axis of its own"
        )
    normal = matrix_of(entity[Pose].q[0]) @ planes[found[0], :3]
    offset = float(planes[found[0], 3] + normal @ entity[Pose].x[0])
    return (-normal, -offset) if is_container(world, face) else (normal, offset)


def mirror_lint(world: World, faces: Sequence[MirrorFace]) -> list[str]:
    """Warn of a wind that blows through mirrors."""
    blows = [np.atleast_2d(getattr(wind, "values", wind)) for wind in winds(world)]
    through = {
        face.body
        for face in faces
        for wind in blows
        if (np.abs(wind @ _plane_of(world, face)[0]) > EVEN * np.abs(wind).max()).any()
    }
    if not through:
        return []
    names = " and ".join(map(repr, sorted(through)))
    return [f"VelocitySystem: the wind blows through the mirror of {names}; let it blow along the plane"]
