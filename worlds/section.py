"""Section of a vortex core, cut into equal areas that each carry their exact share of the circulation.

A central disc of radius r0 is wrapped by rings of width 2 r0; ring j is cut into 8 j cells. Every cell has
the area pi r0^2, so L layers have (2 L - 1)^2 cells. (The layering of Knio & Ghoniem, J. Comput. Phys. 86,
1990.) A cell's share is the integral of the profile over its ring divided by 8 j, not a sample of it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ecs_fluid.component import Array
from ecs_fluid.system import Settings
from ecs_fluid.worlds.parameters import LEAST_OVERLAP, Blobs, Length, Overlap, Profile, overlap_lint

GAUSSIAN_REACH = 3.0
"""Radius, in core radii, where a Gaussian core is cut off: exp(-9) = 1.2e-4 of it lies outside."""

SPREAD = {"winckelmans": 1.0, "gaussian": 2.0, "points": 0.0}
"""Growth of a^2, in sigma^2, when a core exp(-s^2/a^2) is made of blobs: twice a blob's variance per axis.

Winckelmans: <rho^2>/3 = 1/2 from zeta = 15/(8 pi) (rho^2 + 1)^(-7/2); Gaussian exp(-rho^2/2): 1.
"""


@dataclass(frozen=True)
class Section:
    """Cells of a core section: distance s and angle from the core's centre, share of circulation, area."""

    s: Array
    angle: Array
    share: Array
    area: float


def enclosed(profile: Profile, s: Array, core: float) -> Array:
    """Circulation within distance `s` of the centre of a plane vortex, up to a constant factor.

    uniform: s^2. gaussian, omega = exp(-s^2/core^2): 1 - exp(-s^2/core^2).
    article, omega = (1 + cos(pi s/core))/2: p^2/2 + p sin p + cos p - 1 with p = pi s/core.
    """
    if profile == "gaussian":
        return np.asarray(-np.expm1(-((s / core) ** 2)))
    if profile == "article":
        p = np.pi * s / core
        return np.asarray(p**2 / 2 + p * np.sin(p) + np.cos(p) - 1.0)
    return np.asarray(s**2)


def shrunk(core: float, sigma: float, blobs: Blobs) -> float:
    """Core radius to lay out so that the blobs' own width brings it back to `core` (Gaussian core), m."""
    square = core**2 - SPREAD[blobs] * sigma**2
    if square < 0.04 * core**2:
        allowed = core * np.sqrt(0.96 / SPREAD[blobs])
        raise ValueError(
            f"a core of {core:g} m cannot be made of blobs of radius {sigma:g} m (overlap times spacing); "
            f"blobs of at most {allowed:.3g} m are allowed, so use a finer spacing or blobs = 'points'"
        )
    return float(np.sqrt(square))


def layers(
    profile: Profile, core: float, spacing: float, overlap: float, blobs: Blobs
) -> tuple[int, float, float]:
    """Number of layers, outer radius of the section and core radius of its profile (both m)."""
    if profile == "thin":
        return 1, core, core
    laid = shrunk(core, overlap * spacing, blobs) if profile == "gaussian" else core
    outer = laid * (GAUSSIAN_REACH if profile == "gaussian" else 1.0)
    count = int(np.ceil((outer * np.sqrt(np.pi) / spacing + 1) / 2 - 1e-6))
    return max(count, 1), outer, laid


def ring_moments(profile: Profile, edges: Array, core: float) -> tuple[Array, Array]:
    """Circulation of the rings between `edges` (m + 1,), and the mean of s^2 over it; both (m,).

    The first ring is the central disc, whose blob stands at s = 0. Cells that stand at the root mean square
    of their ring keep the second moment of the core, and with it the impulse of a ring.
    """
    inner, outer = edges[:-1, None] ** 2, edges[1:, None] ** 2
    fine = np.sqrt(inner + (outer - inner) * np.linspace(0.0, 1.0, 17))
    parts = np.diff(enclosed(profile, fine, core), axis=1)
    middles = (fine[:, 1:] ** 2 + fine[:, :-1] ** 2) / 2
    share = parts.sum(axis=1)
    square = (parts * middles).sum(axis=1) / share
    square[0] = 0.0
    return share, square


def section(profile: Profile, core: float, spacing: float, overlap: float, blobs: Blobs) -> Section:
    """Cells of a core section, at most `spacing` apart (square root of the area); shares sum to one.

    A thin core is a single cell.
    """
    count, outer, laid = layers(profile, core, spacing, overlap, blobs)
    r0 = outer / (2 * count - 1)
    cells = np.array([1] + [8 * j for j in range(1, count)])
    layer = np.repeat(np.arange(count), cells)
    within = np.arange(len(layer)) - np.repeat(np.cumsum(cells) - cells, cells)
    edges = np.maximum(r0 * (2 * np.arange(count + 1) - 1.0), 0.0)
    share, square = ring_moments(profile, edges, laid)
    share = (share / cells)[layer]
    return Section(
        s=np.sqrt(square)[layer],
        angle=2 * np.pi * (within + 0.5 * (layer % 2)) / cells[layer],
        share=share / share.sum(),
        area=float(np.pi * r0**2),
    )


def section_lint(
    profile: Profile, core: float, spacing: float, overlap: float, blobs: Blobs, thing: str
) -> list[str]:
    """Sentences on a core that is coarse or wider than it says."""
    if profile == "thin":
        ratio = core / spacing
        if ratio >= LEAST_OVERLAP * (1 - 1e-6):
            return []
        return [
            f"spacing {spacing:.3g} m with core {core:.3g} m: overlap {ratio:.2f} < "
            f"{LEAST_OVERLAP}, the {thing} will be noisy and its speed off; use spacing <= "
            f"{core / LEAST_OVERLAP:.3g} m"
        ]
    said = overlap_lint(overlap, thing)
    sigma = overlap * spacing
    if sigma > 0.75 * core and not (profile == "gaussian" and blobs != "points"):
        said.append(
            f"blobs of radius {sigma:.3g} m widen the core of {core:.3g} m; "
            f"use spacing <= {0.5 * core / overlap:.3g} m"
        )
    return said


class CoredVortex(Settings):
    """What rings and tubes have in common: a core, thin or filled with blobs."""

    core: Length = 0.2
    """core radius, m (thin: of a blob)"""
    spacing: Length = 0.08
    """largest distance between neighbouring blobs, m"""
    profile: Profile = "thin"
    """vorticity over the core's section"""
    overlap: Overlap = 1.5
    """blob radius over spacing of a filled core, 1"""
    blobs: Blobs = "winckelmans"
    """regularisation whose width is taken off a gaussian core; 'points' takes nothing off"""

    @property
    def _core(self) -> tuple[Profile, float, float, float, Blobs]:
        return self.profile, self.core, self.spacing, self.overlap, self.blobs

    @property
    def _sigma(self) -> float:
        return self.core if self.profile == "thin" else self.overlap * self.spacing
