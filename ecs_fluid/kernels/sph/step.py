"""Time steps of liquid particles: drift, kick, drift, with one evaluation of the forces in each step.

A step of length s is x += v s/2; v += s a(x, v); x += v s/2. Without viscosity this is the symplectic
position form of Verlet's method, of second order. No step needs anything from the one before but x and v, so
a run can stop between any two.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ecs_fluid.kernels.bodies.polytope import Hulls
from ecs_fluid.kernels.bodies.rotation import matrices_after
from ecs_fluid.kernels.collision.swept_bodies import Obstacles
from ecs_fluid.kernels.compiled import CHUNKS, Array
from ecs_fluid.kernels.compiled.columns import bounds
from ecs_fluid.kernels.compiled.parallel import parallel
from ecs_fluid.kernels.compiled.vector3 import cross_of, minus, row_of
from ecs_fluid.kernels.compiled.wide_vectors import LANES
from ecs_fluid.kernels.grids.neighbours import boxed_grid, search_box
from ecs_fluid.kernels.grids.partition import gather_sorted, partition, scatter_sorted
from ecs_fluid.kernels.sph.forces import (
    AIRBORNE,
    DIFFUSION,
    LEAST_PLACE,
    compression,
    forces,
    lattice_weight,
    tait,
)
from ecs_fluid.kernels.sph.mirror_images import (
    Images,
    container_planes,
    find_containers,
    mirror_back,
    mirroring_planes,
    with_images,
)
from ecs_fluid.kernels.sph.wall_pressure import MOST_BODIES, Joints, joints_of, wall_forces, wall_law, walls

CELL_EDGE = 0.75
"""Edge of the cells of the neighbour search, in reaches."""


class LiquidLaw(NamedTuple):
    """Constants of a liquid.

    reach: R, m. support: R divided by the spacing. volume: V_0, m^3. stiffness: B, Pa. viscosity: m^2/s.
    gravity: m/s^2, (3,). ambient_density: of the surrounding fluid, whose buoyancy reduces the weight,
    kg/m^3. no_slip: whether walls exert friction. tension: surface tension, N/m. wetting: cosine of the
    contact angle, or None if only planes that mirror meet the surface, at 90 degrees.
    """

    reach: float
    support: float
    volume: float
    stiffness: float
    viscosity: float
    gravity: tuple[float, ...] = (0.0, 0.0, 0.0)
    ambient_density: float = 0.0
    no_slip: bool = False
    tension: float = 0.0
    wetting: float | None = None


class Evaluation(NamedTuple):
    """Forces at one moment.

    force (n, 3): N, without gravity. nu (n,): compression. load (n,): s P, J. rate (n,): that of the excess,
    1/s. loss: power that the liquid loses, W. loads (bodies, 6): on bodies, N and N m. surface: energy of
    surface tension, J.
    """

    force: Array
    nu: Array
    load: Array
    rate: Array
    loss: float
    loads: Array
    surface: float = 0.0


def sorted_columns(near: Surroundings) -> Array:
    """Columns (9, n + m + LANES) of particles and images, sorted: places, velocities and masses in the rows 0
    to 5 and 7. What is behind the last is 0, as are the other rows."""
    many = len(near.order)
    data = np.zeros((9, many + LANES), near.place.dtype)
    data[:3, :many] = gather_sorted(near.place, near.order)
    data[3:6, :many] = gather_sorted(near.images.v, near.order)
    data[7, :many] = near.mass[near.order]
    return data


def moved_bodies(obstacles: Obstacles, time: float) -> Obstacles:
    """The bodies `time` s after the start of the tick, moved by their velocities and spins."""
    if time == 0.0 or not (obstacles.v.any() or obstacles.angular_velocity.any()):
        return obstacles
    turned = matrices_after(time * obstacles.angular_velocity, obstacles.q0)
    return obstacles._replace(x1=obstacles.x0 + time * obstacles.v, turn1=turned)


def mirror_into_containers(
    law: LiquidLaw, x: Array, v: Array, mass: Array, obstacles: Obstacles | None, hulls: Hulls | None,
    container: Array | None,
) -> tuple[Array, Array]:  # fmt: skip
    """Mirror particles that have just passed a wall of a container back into it, in place.

    ``container`` (n,) are the containers that held the particles before the step, or None if not known. With
    it a particle that was inside is put back however far it went. Returns the impulse on bodies (bodies, 6),
    N s and N m s, and the containers (n,) that hold the particles now, -1 for none.
    """
    impulses = np.zeros((0 if obstacles is None else len(obstacles.x1), 6))
    before, container, depth_inside = container, np.full(len(x), -1), np.empty(len(x))
    if obstacles is not None and len(obstacles.containers):
        planes, first = container_planes(obstacles, hulls)
        find_containers(planes, first, x, law.reach, container, depth_inside)
        if before is not None:
            far = (container < 0) & (before >= 0)
            container[far] = before[far]
        impulse = np.zeros((len(obstacles.containers), 6))
        mirror_back(planes, first, container, depth_inside, mass, x, v, impulse)
        impulses[obstacles.containers] = impulse
    return impulses, container


class Surroundings(NamedTuple):
    """Particles and their images, sorted, and the bodies that press on them.

    images: the n particles and their m images. planes (planes, 13): those of containers, at which images are
    mirrored. container (n,): the container that holds each particle. mirroring: the containers with planes
    that mirror. bare, joints: bodies and containers with planes that do not mirror, and how these planes
    meet, or None. place (n + m, 3): positions in reaches, from LEAST_PLACE on. mass (n + m,): kg. start,
    grid, order: the neighbour search. low (3,): the position in m that ``place`` counts as LEAST_PLACE.
    """

    images: Images
    planes: Array
    container: Array
    mirroring: list[int]
    bare: Obstacles | None
    joints: Joints | None
    place: Array
    mass: Array
    start: Array
    grid: tuple[Array, Array, Array]
    order: Array
    low: Array


def in_reaches(x: Array, low: Array, reach: float) -> Array:
    """Places (n, 3) in reaches of ``x`` (n, 3) m, such that ``low`` (3,) m is at `LEAST_PLACE`."""
    kind = x.dtype.type
    return np.asarray((x - low) * kind(1 / reach) + kind(LEAST_PLACE))


def _low_corner(x: Array, low: Array, reach: float) -> Array:
    """``low``, or a position further down, such that no stray of ``x`` (n, 3) m is near the padding of lists.

    The padding lies at 0 in reaches, so a stray particle outside the grid must not come within reach of it.
    """
    if (bounds(x)[0] < low).any():
        while (np.abs(x - (low - LEAST_PLACE * reach)) < 2 * reach).all(axis=1).any():
            low = low - 4 * reach
    return low


def surroundings_of(
    law: LiquidLaw, x: Array, v: Array, mass: Array, obstacles: Obstacles | None, hulls: Hulls | None
) -> Surroundings:
    """Images, neighbour search and bodies for one evaluation; the arguments are those of ``evaluate``."""
    container, planes = np.empty(0, np.int64), np.empty((0, 13))
    found = Images(x, v, container, np.empty((0, 3), np.int32), np.empty((0, 3)))
    mirroring: list[int] = []
    bare, joints = None, None
    if obstacles is not None and hulls is not None:
        mirroring_planes_of = mirroring_planes(obstacles, hulls)
        mirroring = [c for c, planes in enumerate(mirroring_planes_of) if planes.any()]
        others = [c for c, planes in enumerate(mirroring_planes_of) if not planes.all()]
        if mirroring:
            planes, first = container_planes(obstacles, hulls)
            container, depth_inside = np.empty(len(x), np.int64), np.empty(len(x))
            find_containers(planes, first, x, law.reach, container, depth_inside)
            found = with_images(
                planes, first, np.concatenate(mirroring_planes_of), container, depth_inside, x, v, law.reach
            )
        if others or len(obstacles.containers) < len(obstacles.x1):
            bare = obstacles._replace(containers=obstacles.containers[others])
            joints = joints_of(bare, hulls, [mirroring_planes_of[c] for c in others])
    most = 8 * len(found.x) + 64
    least, highest = search_box(found.x, CELL_EDGE * law.reach, most)
    begin = _low_corner(found.x, least, law.reach)
    low = begin.astype(x.dtype)
    place = in_reaches(found.x, low, law.reach)
    box = LEAST_PLACE + (least - begin) / law.reach, LEAST_PLACE + (highest - begin) / law.reach
    grid = boxed_grid(box, CELL_EDGE, most)
    start, order = partition(place, *grid)
    all_mass = np.concatenate([mass, mass[found.owner]])
    return Surroundings(
        found, planes, container, mirroring, bare, joints, place, all_mass, start, grid, order, low
    )


def wall_compression(
    law: LiquidLaw, near: Surroundings, hulls: Hulls | None, x: Array
) -> tuple[Array, Array, Array]:
    """G (n,), and the bodies (n, MOST_BODIES), filled up with -1, and slopes (n, MOST_BODIES, 3) 1/m of
    ``walls``.

    Without bodies G is 0 and the others have no columns.
    """
    n = len(x)
    wall = np.zeros(n, x.dtype)
    if near.bare is None:
        return wall, np.empty((n, 0), np.int32), np.empty((n, 0, 3), x.dtype)
    body, slope = np.empty((n, MOST_BODIES), np.int32), np.empty((n, MOST_BODIES, 3), x.dtype)
    spacing = law.reach / law.support
    walls(near.bare, hulls, near.joints, x, spacing, wall_law(law.support), wall, body, slope)
    return wall, body, slope


def sound_speed(law: LiquidLaw, mass: Array, size: Array) -> float:
    """Speed of sound at rest, sqrt(7 B / rho), m/s, with rho the largest density of any particle.

    ``mass`` (n,) kg and ``size`` (n,) V / V_0 of all particles.
    """
    return math.sqrt(7 * law.stiffness / float((mass / size).max()) * law.volume)


def excess_rate(
    law: LiquidLaw, sums: Array, mass: Array, size: Array, excess: Array, nu: Array, part: float
) -> Array:
    """Rate [1/s] of the excess (n,) by diffusion, and by decay in the air.

    ``sums`` (n,) J are the last of those of ``forces``, ``nu`` (n,) the compressions, `part` is C.
    """
    kind, weight = nu.dtype.type, lattice_weight(law.support)
    c = sound_speed(law, mass, size)
    rate = kind(part * c * 20 * weight / (7 * law.stiffness * law.volume * law.reach)) * sums
    aloft = nu - excess < AIRBORNE[0]
    rate[aloft] -= kind(c / (AIRBORNE[1] * law.reach)) * excess[aloft]
    return np.asarray(rate)


@parallel()
def _container_loads(
    chunk: int, container: Array, x: Array, force: Array, centre: Array, parts: Array
) -> None:
    """Add the loads of images on the containers that mirror to ``parts`` (CHUNKS, containers, 6) N and N m.

    The load on a container is minus the sum of the forces on the particles in it: those of pairs of particles
    cancel, so only those of pairs with images are left.
    """
    n = len(container)
    for row in range(chunk * n // CHUNKS, (chunk + 1) * n // CHUNKS):
        c = container[row]
        if c < 0:
            continue
        pull = (float(force[row, 0]), float(force[row, 1]), float(force[row, 2]))
        moment = cross_of(minus(row_of(x, row), row_of(centre, c)), pull)
        for k in range(3):
            parts[chunk, c, k] -= pull[k]
            parts[chunk, c, 3 + k] -= moment[k]


def body_loads(
    near: Surroundings, obstacles: Obstacles | None, x: Array, pressure: Array, body: Array, slope: Array,
    force: Array,
) -> Array:  # fmt: skip
    """Loads (bodies, 6) N and N m on all bodies; adds the push of those that do not mirror to ``force``.

    ``force`` (n, 3) N holds the forces of pairs before. ``pressure`` (n,) is P [J]; ``body`` and ``slope``
    are results of ``wall_compression``.
    """
    loads = np.zeros((0 if obstacles is None else len(obstacles.x1), 6))
    if near.mirroring and obstacles is not None:
        parts = np.zeros((CHUNKS, len(obstacles.containers), 6))
        _container_loads(near.container, x, force, obstacles.x1[obstacles.containers], parts)
        loads[obstacles.containers[near.mirroring]] = parts.sum(axis=0)[near.mirroring]
    if near.bare is not None:
        parts = np.zeros((CHUNKS, *loads.shape))
        wall_forces(x, pressure, body, slope, near.bare.x1, force, parts)
        loads += parts.sum(axis=0)
    return loads


class OtherForces(NamedTuple):
    """Forces beside the pressure and viscosity of pairs and the pressure of walls; None where there is none.

    tension (n, 3): surface tension, N, and surface, its energy, J. friction (n, 3): friction at walls, N, and
    power, the power that it takes, W. loads (bodies, 6): of both on bodies, N and N m. Kernels of a force are
    compiled only if a liquid needs them.
    """

    tension: Array | None = None
    surface: float = 0.0
    friction: Array | None = None
    loads: Array | float = 0.0
    power: float = 0.0

    def accelerations(self, pull: Array, mass: Array) -> Array:
        """Accelerations (n, 3) m/s^2 by these forces and by ``pull`` (n, 3) m/s^2 together."""
        for force in (self.friction, self.tension):
            if force is not None:
                pull = pull + force / mass[:, None]
        return pull

    def total_forces(
        self, near: Surroundings, obstacles: Obstacles | None, x: Array, pressure: Array, body: Array,
        slope: Array, force: Array,
    ) -> tuple[Array, Array]:  # fmt: skip
        """All forces (n, 3) N and all loads on bodies (bodies, 6); ``force`` (n, 3) N are those of pairs.

        The other arguments are those of ``body_loads``.
        """
        loads = body_loads(near, obstacles, x, pressure, body, slope, force) + self.loads
        for more in (self.friction, self.tension):
            if more is not None:
                force = force + more
        return force, loads


def other_forces(
    law: LiquidLaw, near: Surroundings, x: Array, v: Array, mass: Array, obstacles: Obstacles | None,
    hulls: Hulls | None,
) -> OtherForces:  # fmt: skip
    """Surface tension and friction at walls, where the liquid has them; arguments as in ``evaluate``."""
    forces = OtherForces()
    if law.tension:
        from ecs_fluid.kernels.sph.wetting import surface_forces

        tension, loads, surface = surface_forces(law, near, len(x), obstacles, hulls)
        forces = forces._replace(tension=tension, loads=loads, surface=surface)
    if law.no_slip:
        from ecs_fluid.kernels.sph.wall_friction import wall_friction

        friction = wall_friction(obstacles, hulls, x, v, mass, law.reach, law.support, law.viscosity)
        loads = forces.loads + friction[1]
        forces = forces._replace(friction=friction[0], loads=loads, power=friction[2])
    return forces


def _compressions(
    law: LiquidLaw, near: Surroundings, data: Array, x: Array, size: Array, excess: Array,
    hulls: Hulls | None,
) -> tuple[Array, Array, Array, Array]:  # fmt: skip
    """nu (n,), loads (n,) J, and the bodies and slopes of ``wall_compression``.

    ``data`` are the ``sorted_columns``, whose rows 6 and 8 are filled.
    """
    n, weight = len(x), lattice_weight(law.support)
    phi_sums = np.zeros(len(near.order), x.dtype)
    compression(data[:3], near.start, *near.grid, near.order, n, phi_sums)
    wall, body, slope = wall_compression(law, near, hulls, x)
    nu, load = np.empty(n, x.dtype), np.empty(n, x.dtype)
    tait(
        phi_sums, near.order, near.images.owner, wall + excess, size, weight, law.stiffness, law.volume, nu,
        load, data[6], data[8],
    )  # fmt: skip
    return nu, load, body, slope


def compression_and_surface(
    law: LiquidLaw, x: Array, v: Array, mass: Array, size: Array, excess: Array, obstacles: Obstacles | None,
    hulls: Hulls | None,
) -> tuple[Array, float]:  # fmt: skip
    """Compressions (n,), and the energy of surface tension, J; the arguments are those of ``evaluate``."""
    near = surroundings_of(law, x, v, mass, obstacles, hulls)
    nu = _compressions(law, near, sorted_columns(near), x, size, excess, hulls)[0]
    if not law.tension:
        return nu, 0.0
    from ecs_fluid.kernels.sph.wetting import surface_forces

    return nu, surface_forces(law, near, len(x), obstacles, hulls)[2]


def evaluate(
    law: LiquidLaw, x: Array, v: Array, mass: Array, size: Array, excess: Array, obstacles: Obstacles | None,
    hulls: Hulls | None,
) -> Evaluation:  # fmt: skip
    """Forces between particles and from walls.

    ``x``, ``v`` (n, 3) m and m/s, ``mass`` (n,) kg, ``size`` (n,) V / V_0, ``excess`` (n,) e; ``obstacles``
    and ``hulls`` are the bodies where they are now, or None.
    """
    n, kind, weight = len(x), x.dtype.type, lattice_weight(law.support)
    near = surroundings_of(law, x, v, mass, obstacles, hulls)
    start, grid, order = near.start, near.grid, near.order
    many, data = len(order), sorted_columns(near)
    nu, load, body, slope = _compressions(law, near, data, x, size, excess, hulls)
    sums = np.zeros((5, many), x.dtype)
    forces(
        data, start, *grid, order, n, kind(20 * weight / law.reach), kind(5 * law.viscosity / law.reach),
        law.reach * np.array(law.gravity, x.dtype), kind(law.ambient_density * law.volume), sums,
    )  # fmt: skip
    back = scatter_sorted(sums, order, np.empty((many, 5), x.dtype))[:n]
    loss = float(sums[3].sum(dtype=np.float64))
    rate = excess_rate(law, back[:, 4], mass, size, excess, nu, DIFFUSION)
    # A change of the excess changes the compression: the work of pressure on it is lost, or gained.
    loss -= float((load / size * rate).sum(dtype=np.float64))
    more, pairs = other_forces(law, near, x, v, mass, obstacles, hulls), np.ascontiguousarray(back[:, :3])
    force, loads = more.total_forces(near, obstacles, x, load / size, body, slope, pairs)
    return Evaluation(force, nu, load, rate, loss + more.power, loads, more.surface)
