"""Section of a vortex core, cut into equal areas that each carry their exact share of the circulation.

A central disc of radius r0 is wrapped by rings of width 2 r0; ring j is cut into 8 j cells. Every cell has
the area pi r0^2, so L layers have (2 L - 1)^2 cells. (The layering of Knio & Ghoniem, J. Comput. Phys. 86,
1990.) A cell's share is the integral of the profile over its ring divided by 8 j, not a sample of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal, get_args

import numpy as np
from pydantic import AfterValidator, PrivateAttr

from ecs_fluid.component import Array
from ecs_fluid.errors import RecipeError
from ecs_fluid.settings import Settings
from ecs_fluid.systems.shared.overlap import LEAST_OVERLAP
from ecs_fluid.systems.velocity.system import SHIPPED_KERNELS, VelocitySystem
from ecs_fluid.validation_errors import nearest
from ecs_fluid.world import World
from ecs_fluid.worlds.parameters import Length, Overlap, Profile, overlap_lint

GAUSSIAN_REACH = 3.0
"""Radius, in core radii, where a Gaussian core is cut off: exp(-9) = 1.2e-4 of it lies outside."""

KERNEL: str = VelocitySystem().kernel
"""Regularisation of a world that does not name one."""


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


def shrunk(core: float, sigma: float, blobs: str) -> float:
    """Core radius, m, for the places of blobs, so that with their own width the core (Gaussian) is `core`
    wide.

    A core exp(-s^2/a^2) made of blobs has an a^2 that is larger by twice a blob's variance per axis.
    """
    if blobs == "points":
        return core
    from ecs_fluid.kernels.biot_savart.regularisation import CODES, record

    spread = 2 * record(CODES[blobs]).variance
    square = core**2 - spread * sigma**2
    if square < 0.04 * core**2:
        raise ValueError(
            f"a core of {core:g} m cannot be made of {blobs} blobs of radius {sigma:g} m (overlap times "
            f"spacing); blobs of at most {core * np.sqrt(0.96 / spread):.3g} m are allowed, so use a finer "
            "spacing or blobs = 'points'"
        )
    return float(np.sqrt(square))


def layers(
    profile: Profile, core: float, spacing: float, overlap: float, blobs: str
) -> tuple[int, float, float]:
    """Number of layers, outer radius of the section and core radius of its profile (both m)."""
    if profile == "thin":
        return 1, core, core
    laid = shrunk(core, overlap * spacing, blobs) if profile == "gaussian" else core
    outer = laid * (GAUSSIAN_REACH if profile == "gaussian" else 1.0)
    count = int(np.ceil((outer * np.sqrt(np.pi) / spacing + 1) / 2 - 1e-6))
    return max(count, 1), outer, laid


def ring_moments(profile: Profile, edges: Array, core: float) -> tuple[Array, Array]:
    """Circulation of the rings between `edges` (m + 1,), and the mean of s^2 over it; both (m,)."""
    inner, outer = edges[:-1, None] ** 2, edges[1:, None] ** 2
    fine = np.sqrt(inner + (outer - inner) * np.linspace(0.0, 1.0, 17))
    parts = np.diff(enclosed(profile, fine, core), axis=1)
    middles = (fine[:, 1:] ** 2 + fine[:, :-1] ** 2) / 2
    share = parts.sum(axis=1)
    return share, (parts * middles).sum(axis=1) / share


def _distances(r0: float, share: Array, square: Array) -> Array:
    """Distances (m,) from the core's centre of the cells of a disc and rings, from their moments.

    For blobs at the distances s = 2 j r0, the sum of 8 j pi r0^2 zeta(s), plus pi r0^2 zeta(0) of the disc,
    is the trapezoidal rule for the integral of 2 pi s zeta(s), and too large by pi r0^2 zeta(0)/3 (Euler and
    Maclaurin). At s + c r0/j the sum is smaller by 4 c pi r0^2 zeta(0): with c = 1/12, s^2 = (4 j^2 + 1/3)
    r0^2, the vorticity at the centre is right. Then all distances are scaled by one factor, so that the core
    keeps its second moment, and a ring its impulse.
    """
    places = (4.0 * np.arange(len(share)) ** 2 + 1.0 / 3.0) * r0**2
    places[0] = 0.0
    moment = float(share @ places)
    return np.asarray(np.sqrt(places * (float(share @ square) / moment if moment > 0.0 else 0.0)))


def section(profile: Profile, core: float, spacing: float, overlap: float, blobs: str) -> Section:
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
    distance = _distances(r0, share, square)
    share = (share / cells)[layer]
    return Section(
        s=distance[layer],
        angle=2 * np.pi * (within + 0.5 * (layer % 2)) / cells[layer],
        share=share / share.sum(),
        area=float(np.pi * r0**2),
    )


def _known(blobs: str) -> str:
    if blobs not in (*get_args(SHIPPED_KERNELS), "points"):
        from ecs_fluid.kernels.biot_savart.regularisation import CODES

        if blobs not in CODES:
            raise ValueError(f"{blobs!r} is not known; {nearest(blobs, (*CODES, 'points'))}")
    return blobs


Blobs = Annotated[SHIPPED_KERNELS | Literal["points"] | str, AfterValidator(_known)]


class CoredVortex(Settings):
    """Base of rings and tubes: a vortex with a core, thin or filled with blobs."""

    core: Length = 0.2
    """core radius, m (thin: of a blob)"""
    spacing: Length = 0.08
    """largest distance between neighbouring blobs, m"""
    profile: Profile = "thin"
    """vorticity over the core's section"""
    overlap: Overlap = LEAST_OVERLAP
    """blob radius over spacing of a filled core, 1"""
    blobs: Blobs | None = None
    """regularisation of the blobs, whose width is subtracted from that of a gaussian core; default the kernel
    of the world's velocity, if it is known when the vortons are made; 'points' subtracts nothing"""
    _kernel: str = PrivateAttr(KERNEL)
    _dimension: int = PrivateAttr(3)

    def made_for(self, world: World) -> None:
        """Use the world's regularisation if it is known; RecipeError if the core is too thin for it."""
        if velocity := world.system(VelocitySystem):
            self._kernel = velocity.kernel
        try:
            layers(*self._core)
        except ValueError as error:
            raise RecipeError(str(error)) from None

    @property
    def _core(self) -> tuple[Profile, float, float, float, str]:
        return self.profile, self.core, self.spacing, self.overlap, self.blobs or self._kernel

    def core_lint(self, thing: str) -> list[str]:
        """Warn of a core that is coarse, wider than the parameter says, or made for other blobs than the
        world's."""
        profile, core, spacing, overlap, blobs = self._core
        if profile == "thin":
            ratio = core / spacing
            # In a plane a thin core is one blob.
            if ratio >= LEAST_OVERLAP * (1 - 1e-6) or self._dimension == 2:
                return []
            return [
                f"spacing {spacing:.3g} m with core {core:.3g} m: overlap {ratio:.2f} < "
                f"{LEAST_OVERLAP}, the {thing} will be noisy and its speed off; use spacing <= "
                f"{core / LEAST_OVERLAP:.3g} m"
            ]
        # Blobs of the kind "points" are smoothed elsewhere: by a grid, or by remeshing.
        texts = [] if blobs == "points" else overlap_lint(overlap, thing)
        sigma = overlap * spacing
        if sigma > 0.75 * core and not (profile == "gaussian" and blobs != "points"):
            texts.append(
                f"blobs of radius {sigma:.3g} m widen the core of {core:.3g} m; "
                f"use spacing <= {0.5 * core / overlap:.3g} m"
            )
        if profile == "gaussian" and self.blobs not in (None, "points", self._kernel):
            texts.append(
                f"the core is laid out for blobs = {self.blobs!r}, but the world's kernel is "
                f"{self._kernel!r}; leave blobs out to use the world's"
            )
        return texts

    @property
    def _sigma(self) -> float:
        return self.core if self.profile == "thin" else self.overlap * self.spacing
