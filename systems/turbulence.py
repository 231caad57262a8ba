"""Turbulence noise: a random solenoidal wind."""

from __future__ import annotations

import numpy as np
from pydantic import Field

from ecs_fluid.component import Array
from ecs_fluid.components import Position, Velocity
from ecs_fluid.components.bodies import FREE, Body
from ecs_fluid.recipe import Name
from ecs_fluid.schedule import named
from ecs_fluid.system import System
from ecs_fluid.systems.shared.body_tables import BODIES, body_entities
from ecs_fluid.systems.shared.random_numbers import stream
from ecs_fluid.systems.velocity.system import VelocitySystem
from ecs_fluid.world import World


class TurbulenceSystem(System):
    """Random, divergence-free wind: u = sum_m a_m cos(k_m . x + omega_m t + phi_m), a_m . k_m = 0.

    `modes` waves in random directions with lengths from `scale` down to `smallest` of it, amplitudes
    |k|^(-5/6) (with wave numbers spread evenly in their logarithm that is Kolmogorov's spectrum |k|^(-5/3)),
    scaled to the root mean square `speed`; frequencies |k| speed / 2 let eddies change. Everything follows
    from the world's seed and `scale`, so a resumed run goes on with the same wind.

    Behind the `mirrors` of the VelocitySystem the wind goes on as its mirror image, so that none blows
    through these planes: u(x) + sum_i M_i u(M_i x) over the root of the number of terms, M_i the mirrors.
    Away from planes, where the terms have nothing to do with each other, it has the same root mean square; in
    a plane, where they agree, sqrt(4/3) of it, all along the plane. Other bodies and containers only stop
    particles. A DragSystem with `flow` drags free bodies along with it.

    Source: Kraichnan, Phys. Fluids 13 (1970); Fung et al., J. Fluid Mech. 236 (1992).
    """

    may_read = (Position, *BODIES)
    adds = (Velocity,)
    phase = "rates"
    periodic = False

    speed: float = Field(default=0.1, ge=0, le=1e6)
    """root mean square of the velocity, m/s"""
    scale: float = Field(default=1.0, gt=0, le=1e6)
    """largest wavelength, m"""
    smallest: float = Field(default=0.25, gt=0, le=1)
    """smallest wavelength over the largest, 1"""
    modes: int = Field(default=24, ge=1, le=1000)
    """number of waves"""
    on: tuple[Name, ...] = ()
    """entities it blows on; default all"""

    def lint(self, world: World) -> list[str]:
        """Warn of bodies and containers that the wind blows through, unless drag carries them along."""
        velocity = world.system(VelocitySystem)
        mirrors = velocity.mirror_bodies if velocity else ()
        dragged = any(getattr(system, "flow", False) for system in named(world.systems, "DragSystem"))
        names = [
            repr(one.name)
            for one in body_entities(world)
            if len(one) and one.name not in mirrors and not (dragged and (one[Body].motion == FREE).all())
        ]
        blown = any(Velocity in one for one in world.entities if not self.on or one.name in self.on)
        if not names or not blown or self.speed == 0.0:
            return []
        return [
            f"TurbulenceSystem: its wind blows through {' and '.join(names)}: bodies only stop particles at "
            "the surface; name flat faces in mirrors of the fluid's velocity, or entities away from them in "
            "'on'"
        ]

    def process(self, dt: float) -> None:
        """Add the wind at this time."""
        for entity, (position, column) in self.chosen(Position, Velocity):
            if len(entity):
                self.add_wind(position.x, column.u)

    def add_wind(self, x: Array, u: Array, du: Array | None = None) -> None:
        """Add the wind at this time and at the points `x` (n, 3) m to `u` (n, 3) m/s.

        And its gradient to `du` (n, 3, 3) 1/s, du[:, i, j] = du_i/dx_j.
        """
        velocity = self.world.system(VelocitySystem)
        mirrors = velocity.mirror_planes if velocity else []
        waves, amplitude, phase = self._waves()
        number = u.dtype
        frequency = 0.5 * self.speed * np.linalg.norm(waves, axis=1)
        shift = (phase + frequency * self.world.time) % (2 * np.pi)
        amplitude /= np.sqrt(1 + len(mirrors))
        sums = waves.T.astype(number), shift.astype(number), amplitude.astype(number)
        _add_waves(x, *sums, u, du)
        for mirror in mirrors:
            image = np.zeros_like(u)
            slope = None if du is None else np.zeros_like(du)
            _add_waves(mirror.point(x), *sums, image, slope)
            u += mirror.vector(image)
            if du is not None and slope is not None:
                du += mirror.gradient(slope)

    def _waves(self) -> tuple[Array, Array, Array]:
        """Wave vectors (m, 3) 1/m, amplitudes (m, 3) m/s and phases (m,)."""
        draw = stream(self.world.seed, f"turbulence {self.scale!r}")
        direction, across = draw.standard_normal((2, self.modes, 3))
        direction /= np.linalg.norm(direction, axis=1, keepdims=True)
        across -= (across * direction).sum(axis=1, keepdims=True) * direction
        across /= np.linalg.norm(across, axis=1, keepdims=True)
        length = self.scale * self.smallest ** ((np.arange(self.modes) + 0.5) / self.modes)
        number = 2 * np.pi / length
        size = number ** (-5 / 6)
        # A wave a cos() has the mean square a^2 / 2.
        size *= self.speed / np.sqrt((size**2).sum() / 2)
        return number[:, None] * direction, size[:, None] * across, draw.random(self.modes) * 2 * np.pi


def _add_waves(
    x: Array, waves: Array, shift: Array, amplitude: Array, u: Array, du: Array | None = None
) -> None:
    """Add to u (n, 3) m/s at x (n, 3) m the sum of waves (3, m) 1/m with amplitudes (m, 3) m/s and shifts
    (m,), and its gradient to du (n, 3, 3) 1/s."""
    from ecs_fluid.kernels.compiled.columns import add_products

    angle = x @ waves
    angle += shift
    if du is not None:
        du -= np.einsum("nm,mi,jm->nij", np.sin(angle), amplitude, waves, optimize=True)
    add_products(np.cos(angle, out=angle), amplitude, u)
