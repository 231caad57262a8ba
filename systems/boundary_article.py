"""The articles' boundary condition: vortons near a surface get the place and strength that stop the slip."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ecs_fluid.component import Array
from ecs_fluid.components import CoreRadius, Position, Strength, Velocity, Volume
from ecs_fluid.components.bodies import FREE, Body, BoundaryExchange, RigidMotion
from ecs_fluid.systems.body_tables import gathered
from ecs_fluid.systems.operations import wind_at
from ecs_fluid.systems.populations import joined, spread
from ecs_fluid.systems.velocity import VelocitySystem

if TYPE_CHECKING:
    from ecs_fluid.entity import Entity
    from ecs_fluid.kernels.contact_solver import Bodies
    from ecs_fluid.kernels.obstacles import Obstacles
    from ecs_fluid.kernels.polytope import Hulls
    from ecs_fluid.systems.boundary import BoundarySystem
    from ecs_fluid.world import World


def reassign_vortons(system: BoundarySystem, entities: list[Entity]) -> None:
    """Change the vortons near the surfaces of bodies; fills BoundaryExchange.

    With the spin momentum of a vorton, 0.4 m r^2 omega/2 = 0.2 rho sigma^2 alpha of a ball of its core
    radius, free bodies get back what their vortons gain.
    """
    from ecs_fluid.kernels.rotation import crosses

    world = system.world
    tables = [
        (entity, position, strength, core, velocity)
        for entity, (position, strength, core, velocity) in system.entities(
            Position, Strength, CoreRadius, Velocity
        )
        if not system.on or entity.name in system.on
    ]
    number = world.dtype
    x = joined([position.x for _, position, *_ in tables], (3,), number).copy()
    strengths = joined([strength.alpha for _, _, strength, *_ in tables], (3,), number).copy()
    sigma = joined([core.sigma for *_, core, _ in tables], (), number)
    bodies, hulls = gathered(entities)
    rows, who, gap, normal = near_bodies(bodies, hulls, x, sigma * number(system.reach))
    old_x, old, core = (array[rows].astype(np.float64) for array in (x, strengths, sigma))
    point = old_x - gap[:, None] * normal
    if system.sample == "surface":
        flow = flow_at(world, point)
    else:
        flow = joined([velocity.u for *_, velocity in tables], (3,), number)[rows].astype(np.float64)
    turning = crosses(bodies.spin[who], point - bodies.x[who])
    slip = flow - bodies.v[who] - turning
    followed = _followed(flow - bodies.v[who], turning, who, len(bodies.x))
    # What turns with the body is right, and what is missing there is the next line's affair.
    rest = slip + (1 - followed) * turning
    wanted = _targets(system, bodies, (old_x, old, core), (point, normal, rest), who)
    volume = joined([_volumes(entity, core.sigma) for entity, _, _, core, _ in tables], (), number)
    missing = (1 - followed) * (bodies.spin[who] * normal).sum(axis=1, keepdims=True)
    spun = old + 2.0 * missing * normal * volume[rows].astype(np.float64)[:, None]
    parts = _parts(system, len(bodies.x), (old_x, old, core), (wanted, (old_x, spun)), (point, slip), who)
    to_wanted, to_spun = parts[who, 0, None], parts[who, 1, None]
    change = to_wanted * (wanted[1] - old) + to_spun * (spun - old)
    momentum = (0.2 * system.density * core**2)[:, None]
    if system.reaction == "spin":
        bearable = _bearable(system, bodies, who, momentum * change, slip)[who, None]
        change, to_wanted = bearable * change, bearable * to_wanted
    x[rows] = old_x + to_wanted * (wanted[0] - old_x)
    strengths[rows] = old + change
    lost = astray(bodies, hulls, x[rows])
    x[rows[lost]] = old_x[lost]
    spread(x, [position.x for _, position, *_ in tables])
    spread(strengths, [strength.alpha for _, _, strength, *_ in tables])
    # The books are kept on what the tables hold in their own precision.
    new_x, new = x[rows].astype(np.float64), strengths[rows].astype(np.float64)
    record_exchange(entities, bodies.x, who, (old_x, old), (new_x, new), slip)
    if system.reaction == "spin":
        _take_spin(entities, bodies, who, momentum * (new - old))


def _targets(
    system: BoundarySystem,
    bodies: Bodies,
    vortons: tuple[Array, Array, Array],
    surface: tuple[Array, Array, Array],
    who: Array,
) -> tuple[Array, Array]:
    """Places and strengths (x, alpha) that stop the slip, each vorton by itself."""
    from ecs_fluid.kernels.contacts import CONTAINER
    from ecs_fluid.kernels.reassign import reassign

    x, alpha, core = (array.copy() for array in vortons)
    # Off the normal a vorton might leave a container by another wall.
    bent = ((bodies.shape[who] != CONTAINER) & (system.placement == "bent")).astype(np.int64)
    reassign(_code(system), x, alpha, core, *surface, bent)
    return x, alpha


def _code(system: BoundarySystem) -> int:
    from ecs_fluid.kernels.regularisation import CODES

    return CODES[system.world.require(VelocitySystem).kernel]


def _followed(flow: Array, turning: Array, who: Array, count: int) -> Array:
    """Part (n, 1) of its body's rotation that the flow at each point takes part in, from 0 to 1."""
    same = np.bincount(who, (flow * turning).sum(axis=1), count)
    size = np.bincount(who, (turning**2).sum(axis=1), count)
    return np.clip(same / np.where(size > 0.0, size, 1.0), 0.0, 1.0)[who, None]


def _parts(
    system: BoundarySystem,
    count: int,
    vortons: tuple[Array, Array, Array],
    ways: tuple[tuple[Array, Array], ...],
    looked: tuple[Array, Array],
    who: Array,
) -> Array:
    """Parts (count, 2) to go of the two ways, one row per body.

    With the slip w and its changes d_k if all vortons of a body went one of the ways to its end, the parts
    p_k that leave the least sum |w + p_1 d_1 + p_2 d_2|^2 are the most that may be gone: `gain` of the first
    way where that is less, and `gain` times p_2 of the second.
    """
    from ecs_fluid.kernels.direct import velocity

    (x, alpha, core), (point, slip) = vortons, looked
    flows = []
    for place, strength in ((x, alpha), *ways):
        out = np.empty_like(point)
        rows = np.ascontiguousarray(place.T), np.ascontiguousarray(strength.T)
        velocity(_code(system), np.ascontiguousarray(point), *rows, core, out)
        flows.append(out)
    changes = [flow - flows[0] for flow in flows[1:]]

    def total(a: Array, b: Array) -> Array:
        return np.bincount(who, (a * b).sum(axis=1), count)

    matrix = np.empty((count, 2, 2))
    right = np.empty((count, 2))
    for i, one in enumerate(changes):
        right[:, i] = -total(slip, one)
        for j, two in enumerate(changes):
            matrix[:, i, j] = total(one, two)
    best = np.maximum((np.linalg.pinv(matrix) @ right[..., None])[..., 0], 0.0)
    return np.stack([np.minimum(best[:, 0], system.gain), system.gain * best[:, 1]], axis=1)


def _volumes(entity: Entity, sigma: Array) -> Array:
    """Volumes (n,) m^3 of the vortons: their own, or that of balls of their core radius."""
    if Volume in entity:
        return entity[Volume].volume
    return np.asarray(4 / 3 * np.pi * sigma**3, dtype=sigma.dtype)


def flow_at(world: World, points: Array) -> Array:
    """Velocity (m, 3) m/s of the fluid at points (m, 3) m at the end of the tick, with a wind on all."""
    flow = world.require(VelocitySystem).velocity_at(points).astype(np.float64)
    return flow + wind_at(world, world.time + world.dt)


def standing(bodies: Bodies, clearance: float) -> Obstacles:
    """The bodies where they are, as obstacles with a clearance, m."""
    from ecs_fluid.kernels.obstacles import obstacles

    pose = (bodies.x, bodies.q)
    return obstacles(pose, pose, (bodies.v, bodies.spin), bodies.shape, bodies.radius, bodies.hull, clearance)


def near_bodies(bodies: Bodies, hulls: Hulls, x: Array, reach: Array) -> tuple[Array, Array, Array, Array]:
    """(row, body, distance m, normal) of the vortons within reach of a surface."""
    from ecs_fluid.kernels.near import near_surfaces

    n = len(x)
    who, gap, normal = np.empty(n, np.int64), np.zeros(n), np.zeros((n, 3))
    obstacles = standing(bodies, float(reach.max()) if n else 0.0)
    near_surfaces(obstacles, hulls, x, reach, who, gap, normal)
    rows = np.flatnonzero(who >= 0)
    return rows, who[rows], gap[rows], normal[rows]


def astray(bodies: Bodies, hulls: Hulls, x: Array) -> Array:
    """Mask of places inside a body, or outside all containers."""
    from ecs_fluid.kernels.collide import misplaced

    depth = np.empty(len(x))
    misplaced(standing(bodies, 0.0), hulls, x, depth)
    return depth > 0.0


def record_exchange(
    entities: list[Entity],
    centers: Array,
    who: Array,
    before: tuple[Array, Array],
    after: tuple[Array, Array],
    slip: Array,
) -> None:
    """Fill BoundaryExchange from vortons (x, alpha) before and after, of the bodies `who`."""
    from ecs_fluid.kernels.rotation import crosses

    count = len(centers)
    impulse, moment = np.zeros((count, 3)), np.zeros((count, 3))
    for sign, (x, alpha) in ((-1.0, before), (1.0, after)):
        arm = x - centers[who]
        impulse += _summed(0.5 * sign * crosses(x, alpha), who, count)
        moment += _summed(sign / 3 * crosses(arm, crosses(arm, alpha)), who, count)
    number, square = np.bincount(who, minlength=count), np.bincount(who, (slip**2).sum(axis=1), count)
    rms = np.sqrt(square / np.maximum(number, 1))
    spread(impulse, [entity[BoundaryExchange].impulse for entity in entities])
    spread(moment, [entity[BoundaryExchange].moment for entity in entities])
    spread(rms, [entity[BoundaryExchange].slip for entity in entities])


def _bearable(system: BoundarySystem, bodies: Bodies, who: Array, gained: Array, slip: Array) -> Array:
    """Part (n,) of the change that each free body can react to.

    A body much lighter than its fluid would be thrown about by the spin momentum (c, 3) N m s that its
    vortons gain in one tick. Its spin may change by `gain` times its own and that of the slip, |w|/R.
    """
    count = len(bodies.x)
    total = _summed(gained, who, count)
    number = np.maximum(np.bincount(who, minlength=count), 1)
    speed = np.sqrt(np.bincount(who, (slip**2).sum(axis=1), count) / number)
    most = system.gain * (np.linalg.norm(bodies.spin, axis=1) + speed / bodies.radius)
    part = np.ones(count)
    for i in np.flatnonzero((bodies.motion == FREE) & total.any(axis=1)):
        change = float(np.linalg.norm(np.linalg.solve(_tensor(bodies.q[i], bodies.inertia[i]), total[i])))
        part[i] = min(1.0, most[i] / change)
    return part


def _summed(values: Array, who: Array, count: int) -> Array:
    """Sums (count, 3) over the rows of each body, in the order of the rows."""
    return np.stack([np.bincount(who, values[:, k], count) for k in range(3)], axis=1)


def _tensor(q: Array, inertia: Array) -> Array:
    """Inertia tensor (3, 3) in world axes."""
    from ecs_fluid.kernels.rotation import matrix_of

    turn = matrix_of(q.astype(np.float64))
    return np.asarray(turn @ inertia.astype(np.float64) @ turn.T)


def _take_spin(entities: list[Entity], bodies: Bodies, who: Array, gained: Array) -> None:
    """Free bodies lose the angular momentum (c, 3) N m s that their vortons gained."""
    lost = _summed(gained, who, len(bodies.x))
    first = 0
    for entity in entities:
        motion, free = entity[RigidMotion], entity[Body].motion == FREE
        for row in np.flatnonzero(free & lost[first : first + len(entity)].any(axis=1)):
            i = first + row
            motion.spin[row] -= np.linalg.solve(_tensor(bodies.q[i], bodies.inertia[i]), lost[i])
        first += len(entity)
