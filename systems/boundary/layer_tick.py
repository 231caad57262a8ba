"""The data of a tick of the boundary layer condition: vortons, mirror images, pieces of panels."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ecs_fluid.component import Array
from ecs_fluid.systems.boundary.article import exchange_of, summed
from ecs_fluid.systems.boundary.coupling import Coupling
from ecs_fluid.systems.boundary.shed_motion import FormerMotion, SpinVortons
from ecs_fluid.systems.boundary.sheets import Covered, turned
from ecs_fluid.systems.shared.body_tables import near_bodies

if TYPE_CHECKING:
    from ecs_fluid.world import World


class Vortons(NamedTuple):
    """Vortons (n rows) of the fluid around bodies, without those that represent the bodies' own rotation."""

    x: Array
    alpha: Array
    rows: Array
    """row numbers (c,) of the vortons that came into a body"""
    owner: Array
    """numbers (c,) of these bodies"""
    carried: SpinVortons
    """the vortons that represent rotation, at the places to which the flow carried them"""


class Pieces(NamedTuple):
    """Panels in pieces no longer than the lattice spacing (q rows)."""

    x: Array
    owner: Array
    """numbers of the bodies"""
    panel: Array
    """numbers of the panels"""
    of: Array
    """number of pieces into which that panel is cut"""

    def shares(self, strengths: Array) -> Array:
        """Strengths (q, 3) of the pieces, from the strengths (p, 3) of the panels."""
        return np.asarray(strengths[self.panel] / self.of[:, None])


class InnerPoints(NamedTuple):
    """Lattice points in or at bodies (i rows)."""

    x: Array
    owner: Array
    """numbers of the bodies"""
    volume: Array
    """volume inside the body that each point represents, m^3"""

    def vortons(self, spin: Array) -> SpinVortons:
        """Vortons with the vorticity 2 spin of bodies of these spins (n, 3) rad/s."""
        return SpinVortons(self.x, 2.0 * self.volume[:, None] * spin[self.owner], self.owner)


class LayerTick(NamedTuple):
    """What is known in a tick before the sheets are solved for."""

    covered: Covered
    former: FormerMotion
    coupling: Coupling
    spacing: float
    """spacing of the lattice, m"""
    pieces: Pieces
    inner: InnerPoints
    """lattice points in bodies that turn or turned, and in bodies that the fluid moves"""
    old: Vortons
    new: Vortons
    """the same vortons after reflection of those inside bodies"""

    def spin_strengths(self) -> Array:
        """Strengths (p, 3) of the sheets for the changes of spin that are not yet in the fluid."""
        return self.covered.sheet.around(-(self.covered.bodies.angular_velocity - self.former.spin))

    def mirrored(self) -> Array:
        """Strengths (p, 3) of sheets that cancel the mirrors' change of the total strength at each body."""
        old, new, volumes = self.old, self.new, self.covered.volumes
        gained = new.alpha[new.rows] - old.alpha[old.rows]
        total = summed(gained, new.owner, len(volumes))
        return self.covered.sheet.around(-total / (2.0 * volumes[:, None]))

    def exchanged(self, world: World, strengths: Array, slip: Array) -> tuple[Array, Array, Array]:
        """The columns of BoundaryExchange, for the reflections and sheets of these strengths (p, 3)."""
        old, new, pieces = self.old, self.new, self.pieces
        owner, shares = np.concatenate([new.owner, pieces.owner]), pieces.shares(strengths)
        places = [np.concatenate([each.x[old.rows], pieces.x]) for each in (old, new)]
        before = np.concatenate([old.alpha[old.rows], 0.0 * shares])
        after = np.concatenate([new.alpha[old.rows], shares])
        first, then = (places[0], before), (places[1], after)
        return exchange_of(world, self.covered.bodies.x, owner, first, then, slip[owner])


def mirror_images(covered: Covered, old: Vortons) -> Vortons:
    """The vortons, with those inside bodies moved to their mirror images, normal components reversed."""
    x, alpha = old.x.copy(), old.alpha.copy()
    at_most = np.full(len(old.rows), 1e-300)
    rows, _, gap, normal = near_bodies(covered.bodies, covered.hulls, x[old.rows], at_most)
    rows = old.rows[rows]
    x[rows] -= 2.0 * gap[:, None] * normal
    alpha[rows] -= 2.0 * (alpha[rows] * normal).sum(axis=1, keepdims=True) * normal
    return old._replace(x=x, alpha=alpha)


def cut_panels(covered: Covered, spacing: float) -> Pieces:
    """The panels cut into pieces no longer than the lattice spacing."""
    bodies, _, surfaces, _ = covered
    places, panels, parts = [], [], []
    for x, s in zip(bodies.x, surfaces, strict=True):
        corners = s.panels.vertices[s.panels.corners]
        longest = float(np.sqrt(((corners - np.roll(corners, 1, axis=1)) ** 2).sum(axis=2).max()))
        weights = _sub_centers(max(1, int(np.ceil(longest / spacing - 1e-9))), corners.shape[1])
        at = np.einsum("sk,tkj->tsj", weights, corners).reshape(-1, 3)
        places.append(turned(s.turn, at) + x)
        panels.append(np.repeat(np.arange(s.first, s.first + len(corners)), len(weights)))
        parts.append(np.full(len(at), len(weights)))
    owner = np.repeat(np.arange(len(surfaces)), [len(at) for at in places])
    return Pieces(np.concatenate(places), owner, np.concatenate(panels), np.concatenate(parts))


def _sub_centers(parts: int, corners: int) -> Array:
    """Barycentric weights of the centres of equal parts of a triangle (parts^2, 3) or segment (parts, 2)."""
    if corners == 2:
        second = (np.arange(parts) + 0.5) / parts
        return np.stack([1.0 - second, second], axis=1)
    pairs = []
    for i in range(parts):
        for j in range(parts - i):
            pairs.append((i + 1 / 3, j + 1 / 3))
            if i + j < parts - 1:
                pairs.append((i + 2 / 3, j + 2 / 3))
    two = np.array(pairs) / parts
    return np.column_stack([1.0 - two.sum(axis=1), two])
