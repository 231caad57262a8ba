"""The pressure of a flow of vortons, at any points."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from copy import copy
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ecs_fluid.component import Array
from ecs_fluid.components import Position, Volume
from ecs_fluid.errors import FluidError
from ecs_fluid.fluid import Fluid
from ecs_fluid.systems.partition import VORTONS
from ecs_fluid.systems.shared.fluid_at_rest import density_at, fluid_at_rest
from ecs_fluid.systems.shared.properties import particle_density, shed
from ecs_fluid.systems.velocity.container import ContainerSolver
from ecs_fluid.systems.velocity.container_pressure import head_in_container
from ecs_fluid.systems.velocity.hybrid import HybridSolver
from ecs_fluid.systems.velocity.poisson import PoissonSolver
from ecs_fluid.systems.velocity.vorton_flow import VortonFlow, summing
from ecs_fluid.targets import Targets

if TYPE_CHECKING:
    from ecs_fluid.systems.velocity.solver import Solver


def pressure_in(flow: VortonFlow, x: Array) -> Array:
    """Pressure (m,) Pa at x (m, 3) m, less that of the fluid far away.

    A fluid of one density moves by du/dt + omega cross u = - grad H + nu laplace u with H = p/rho + u^2/2.
    The divergence is laplace H = - div(omega cross u), to which viscosity adds nothing. With omega = sum_p
    alpha_p zeta_p(x - x_p) the H that is 0 far away is, G the Green's function of a blob (laplace G = -
    zeta),

        H = - sum_p (v_p cross alpha_p) . grad G + sum_p V sigma_p^2 ((d_j u) cross alpha_p)_i d_i d_j G

    up to terms of the order of sigma^4. v_p is the mean of u over the blob, that is u(x_p) by cores that are
    sqrt(2) times as wide; the second sum is the moment of u within the blob, with d_j u at x_p and the
    variance V of zeta, in sigma^2. Where V is infinite, terms of the order of sigma^2 ln(sigma) are left out.

    The weight f = (rho - rho_a) g / rho_0 of density that vortons carry beyond that of the fluid at rest adds
    div f to the source. It is spread as vorticity is, f = sum_p f_p zeta_p, so f_p is added to v_p cross
    alpha_p; p is then less than that of the fluid at rest at the same height.

    Behind mirrors, and in a world that repeats, the sums have the terms of images. Where it repeats along all
    axes p is such that the mean of H is 0. A uniform wind only moves the frame of reference, so it is left
    out, as it is of u.

    Raises:
        FluidError: the pressure does not follow from the vortons alone.
    """
    _refuse_others(flow)
    number = x.dtype.type
    if not len(flow.sources.sigma):
        return np.zeros(len(x), number)
    u = _filled(flow, x).u
    if isinstance(flow.solver, ContainerSolver):
        weight = _weight(flow) if flow.solver.system.weighs else None
        head = head_in_container(flow.solver, flow.sources, weight, x)
    else:
        images = [x, *(mirror.point(x) for mirror in flow.mirrors)]
        head = _head(flow, np.concatenate(images)).reshape(len(images), len(x)).sum(axis=0)
    rho = number(flow.solver.world.fluid[Fluid].density)
    return np.asarray(rho * (head - number(0.5) * (u * u).sum(axis=1)))


def _refuse_others(flow: VortonFlow) -> None:
    """Refuse flows whose pressure depends on more than the vortons."""
    solver = flow.solver
    if makers := solver.system.makers_of_vorticity:
        raise FluidError(
            f"pressure: forces make vorticity in this world ({', '.join(makers)}), and it depends on these "
            "too, which the vortons do not tell; it is known where vortons only move with the flow, stretch "
            "and spread, and where density is buoyant by model = 'boussinesq'"
        )
    if flow.potential is not None:
        raise FluidError(
            "pressure: vortons swell or shrink in this world, and the pressure depends on how fast that "
            "changes, which is not known; it is known where they keep their volume"
        )
    on_open_grid = isinstance(solver, PoissonSolver) and (
        solver.boundary == "open" or isinstance(solver, HybridSolver)
    )
    if not (solver.sums_pairs or on_open_grid or isinstance(solver, ContainerSolver)):
        raise FluidError(
            f"pressure: solver = {solver.name!r} adds walls, or a field of its own, to the flow of the "
            "vortons, and their part of the pressure is not known; it is known in unbounded space, in front "
            "of mirrors, and in worlds that repeat"
        )


def _filled(flow: VortonFlow, x: Array, gradient: bool = False) -> Targets:
    """The flow at any points x (m, 3) m: at `place` = "vortons", solvers would change the world's state."""
    targets = Targets.at(np.ascontiguousarray(x), gradient)
    flow.fill(targets)
    return targets


def _head(flow: VortonFlow, x: Array) -> Array:
    """H (m,) m^2/s^2 at x (m, 3) m, without the terms of images behind mirrors."""
    solver, sources, head = flow.solver, flow.sources, np.zeros(len(x), x.dtype)
    kind: type[Solver] = type(solver) if solver.has_images else summing(solver, len(sources.sigma))
    push, moment = _moments(flow)
    for part in _parts(push, moment, solver.world.across):
        turned, made = copy(sources), kind(solver.system)
        turned.alpha = np.array(part.strengths)
        made.prepare(turned, flow.grid)
        targets = Targets.at(x, part.along is not None)
        made.fill(targets)
        head += targets.u[:, part.axis] if targets.du is None else targets.du[:, part.axis, part.along]
    return head


def _moments(flow: VortonFlow) -> tuple[Array, Array]:
    """v cross alpha + f (3, n) m^4/s^2, and (3, 3, n) m^5/s^2, symmetric, what multiplies d_i d_j G."""
    sources, variance = flow.sources, flow.solver.system.regularisation.variance
    alpha, real, wide = sources.alpha.T, sources.x.dtype.type, copy(sources)
    if not math.isfinite(variance):
        mean, variance = _filled(flow, sources.x.T, gradient=True), 0.0
    else:
        wide.sigma = real(math.sqrt(2)) * sources.sigma
        mean = _filled(VortonFlow.by(flow.solver, wide, flow.grid), sources.x.T, gradient=True)
    assert mean.du is not None
    turned = np.cross(mean.du.swapaxes(1, 2), alpha[:, None])  # [p, j, i]: component i of d_j u cross alpha
    moment = real(0.5 * variance) * (sources.sigma**2)[:, None, None] * (turned + turned.swapaxes(1, 2))
    push = np.cross(mean.u, alpha).T
    if flow.solver.system.weighs:
        push += _weight(flow)
    return push, moment.T


def _weight(flow: VortonFlow) -> Array:
    """f (3, n) m^4/s^2: g times the excess mass of each vorton over the density of the fluid."""
    system = flow.solver.system
    vortons = [entity for entity, _ in system.entities(*VORTONS)]
    fluid, without = fluid_at_rest(system.world), shed(system.world)
    excess: list[Array] = []
    for entity in vortons:
        z = entity[Position].x[:, 2]
        if Volume in entity and entity.name not in without:
            rho = particle_density(entity.tables, fluid)
            excess.append((rho - density_at(fluid, z)) * entity[Volume].volume)
        else:
            excess.append(np.zeros_like(z))
    (mass,) = system.world.processes.gathered(vortons, [np.concatenate(excess)])
    return np.asarray((fluid.gravity / fluid.density)[:, None] * mass[flow.sources.order])


class _Part(NamedTuple):
    """A part of H: the velocity of vortons of these strengths along an axis, or its slope `along` another."""

    strengths: Sequence[Array]
    axis: int
    along: int | None = None


def _parts(push: Array, moment: Array, across: int | None) -> Iterator[_Part]:
    """The sums of which H consists, as velocities u = sum grad G cross s of vortons of other strengths s.

    So any solver sums them. In a plane, strengths are across it.
    """
    none = np.zeros_like(push[0])
    if across is None:
        yield _Part((push[1], -push[0], none), 2)
        yield _Part((none, push[2], none), 0)
        for i in range(3):
            j, k = (i + 1) % 3, (i + 2) % 3
            strengths = [none, none, none]
            strengths[i], strengths[k] = 2 * moment[i, k], -moment[i, i]
            yield _Part(strengths, j, i)
        return
    a, b = (across + 1) % 3, (across + 2) % 3
    for strength, axis, along in (
        (push[a], b, None), (-push[b], a, None),
        (-moment[a, a], b, a), (moment[b, b], a, b), (2 * moment[a, b], a, a),
    ):  # fmt: skip
        yield _Part([strength if i == across else none for i in range(3)], axis, along)
