"""What a tick of the boundary layer condition works on: vortons, mirror images, pieces of panels."""

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
    """Vortons (n rows) of the fluid around bodies, without those that stand for the bodies' own rotation."""

    x: Array
    alpha: Array
    rows: Array
    """of those that came into a body (c,)"""
    who: Array
    """these bodies (c,)"""
    carried: SpinVortons
    """those that stand for their rotation, where these flowed"""


class Pieces(NamedTuple):
    """Panels in pieces no longer than the lattice spacing (q rows)."""

    x: Array
    who: Array
    """numbers of the bodies"""
    panel: Array
    """numbers of the panels"""
    of: Array
    """number of pieces of that panel"""

    def shares(self, strengths: Array) -> Array:
        """Strengths (q, 3) of the pieces of panels of these strengths (p, 3)."""
        return np.asarray(strengths[self.panel] / self.of[:, None])


class Inside(NamedTuple):
    """Lattice points in or at bodies (i rows)."""

    x: Array
    who: Array
    """numbers of the bodies"""
    volume: Array
    """volume inside the body that each has, m^3"""

    def vortons(self, spin: Array) -> SpinVortons:
        """The vorticity 2 spin of bodies of these spins (n, 3) rad/s."""
        return SpinVortons(self.x, 2.0 * self.volume[:, None] * spin[self.who], self.who)


class Tick(NamedTuple):
    """What a tick has found before it solves for the sheets."""

    covered: Covered
    former: FormerMotion
    coupling: Coupling
    spacing: float
    """of the lattice, m"""
    pieces: Pieces
    inner: Inside
    """points in bodies that turn or turned, and in those that the fluid moves"""
    old: Vortons
    new: Vortons
    """the same at their mirror images"""

    def spun(self) -> Array:
        """Strengths (p, 3) of the sheets of what the fluid does not know yet of the bodies' spins."""
        return self.covered.sheet.around(-(self.covered.bodies.angular_velocity - self.former.spin))

    def mirrored(self) -> Array:
        """Strengths (p, 3) that cancel what mirrors did to the total around each body."""
        old, new, volumes = self.old, self.new, self.covered.volumes
        gained = new.alpha[new.rows] - old.alpha[old.rows]
        total = summed(gained, new.who, len(volumes))
        return self.covered.sheet.around(-total / (2.0 * volumes[:, None]))

    def exchanged(self, world: World, strengths: Array, slip: Array) -> tuple[Array, Array, Array]:
        """The columns of BoundaryExchange of what was mirrored, and of sheets of these strengths (p, 3)."""
        old, new, pieces = self.old, self.new, self.pieces
        who, shares = np.concatenate([new.who, pieces.who]), pieces.shares(strengths)
        places = [np.concatenate([each.x[old.rows], pieces.x]) for each in (old, new)]
        before = np.concatenate([old.alpha[old.rows], 0.0 * shares])
        after = np.concatenate([new.alpha[old.rows], shares])
        first, then = (places[0], before), (places[1], after)
        return exchange_of(world, self.covered.bodies.x, who, first, then, slip[who])


def mirror_images(covered: Covered, old: Vortons) -> Vortons:
    """Those inside at their mirror images outside, with the part along the normal reversed."""
    x, alpha = old.x.copy(), old.alpha.copy()
    at_most = np.full(len(old.rows), 1e-300)
    rows, _, gap, normal = near_bodies(covered.bodies, covered.hulls, x[old.rows], at_most)
    rows = old.rows[rows]
    x[rows] -= 2.0 * gap[:, None] * normal
    alpha[rows] -= 2.0 * (alpha[rows] * normal).sum(axis=1, keepdims=True) * normal
    return old._replace(x=x, alpha=alpha)


def cut(covered: Covered, spacing: float) -> Pieces:
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
    who = np.repeat(np.arange(len(surfaces)), [len(at) for at in places])
    return Pieces(np.concatenate(places), who, np.concatenate(panels), np.concatenate(parts))


def _sub_centers(parts: int, corners: int) -> Array:
    """Barycentric weights of the middles of equal parts of triangles (parts^2, 3), segments (parts, 2)."""
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
