"""The rotation of the fluid in bodies, as it is read in their middle, and the sheets that change it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ecs_fluid.component import Array
from ecs_fluid.systems.boundary.sheets import Covered, Sheet

WAYS = np.concatenate([np.eye(3), -np.eye(3)])
"""Directions from the middle of a body to the points at which the flow in it is read."""

DEPTH = 0.5
"""Distance of these points from the middle, over that of the nearest panel."""

LEAST = 0.15
"""Part of a sheet's rotation that has to arrive in the middle, if the sheet is to make up for the rest."""


class Middles(NamedTuple):
    """Six points around the middle of each of the n bodies."""

    x: Array
    """places (6 n, 3) m"""
    step: Array
    """distances (n,) m from the middle"""

    def rotation(self, flow: Array) -> Array:
        """Half the vorticity (n, 3) rad/s, by central differences, of the flow (6 n, 3) m/s at the points.

        It is exact for a rotation; a potential flow has none but for derivatives of the third order.
        """
        around = np.cross(WAYS, flow.reshape(-1, 6, 3)).sum(axis=1)
        return np.asarray(around / (4.0 * self.step[:, None]))


def middles_of(covered: Covered) -> Middles:
    """The points in the middle of all bodies."""
    bodies, _, surfaces, sheet = covered
    depth = np.abs((sheet.arm * sheet.normal).sum(axis=1))
    step = DEPTH * np.minimum.reduceat(depth, [s.first for s in surfaces])
    return Middles((bodies.x[:, None] + step[:, None, None] * WAYS).reshape(-1, 3), step)


def turning_strengths(
    sheet: Sheet, middles: Middles, flow_of: Callable[[Array, Array], Array], lack: Array
) -> Array:
    """Strengths (p, 3) m^3/s of sheets that turn the fluid in bodies by `lack` (n, 3) rad/s.

    The sheet is `Sheet.turning` of a rotation d. As its vortons lie off the surface and have cores, only the
    part M d arrives in the middle of the body, which `flow_of` (places, strengths) tells. M d = `lack` is
    solved by singular values. Where less than `LEAST` arrives, as in bodies thinner than the cores, the
    solution would be a strong sheet that hardly turns anything: there, the less arrives the less is shed.
    """
    units = np.broadcast_to(np.eye(3)[:, None], (3, len(lack), 3))
    found = [middles.rotation(flow_of(middles.x, sheet.turning(unit))) for unit in units]
    left, parts, right = np.linalg.svd(np.stack(found, axis=2))
    most = parts / np.maximum(parts, LEAST) ** 2
    return sheet.turning(np.einsum("nka,nk,nbk,nb->na", right, most, left, lack))
