"""Warnings of vortons whose arrangement makes particle strength exchange miss the constant that was set."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from ecs_fluid.component import Array
from ecs_fluid.entity import Entity
from ecs_fluid.systems.shared.neighbourhoods import laid_apart
from ecs_fluid.systems.shared.populations import rows_of_each
from ecs_fluid.world import World

SPACINGS = {2: 1.5, 4: 1.25}
"""Least exchange radius, in spacings, by order of the exchange kernel."""

MOST_OFF = 0.05
"""Relative error of the constant (viscosity or diffusivity) above which a lint warns."""

WIDE, TOO_WIDE = 2.0, 0.8
"""From this many times `SPACINGS` on, the decay of short waves is checked; a lint warns below this fraction
of their decay with a radius of `SPACINGS`."""

SAMPLE = 128
"""Number of vortons of a population that are examined; each represents an equal part of its strength."""

CROWDED = 1.5
"""Total volume of vortons over the space that they occupy, above which a lint warns."""

THIN = 0.03
"""Vortons lie on a line or sheet if the least second moment of their neighbours over the largest is below
this."""

CENTRED, ENOUGH = 0.1, 16
"""A vorton has neighbours all round if their first moment over their mean distance is below the first number;
directions are compared if at least the second number of vortons among `SAMPLE` have."""

UNEVEN = 1 / 3
"""Least over largest effective constant by direction below which a lint warns; a cubic lattice has 1."""

FINE, FAR = 0.01, 2.5
"""Step and end, in spacings, of the table by radius of the fraction that exchange achieves on a lattice;
beyond its end the fraction is 1."""


class Words(NamedTuple):
    """Words of the sentences: the system, what it spreads, by which constant, and its alternative method."""

    system: str
    spread: str
    constant: str
    otherwise: str = ""


def crowded_lint(
    words: Words, world: World, entities: Sequence[Entity], columns: Sequence[Array]
) -> list[str]:
    """Warn of populations whose volumes represent the same space; ``columns`` as in `exchange_lint`."""
    x, _, sigma, volume = columns
    if len(entities) < 2:
        return []
    owner = np.repeat(np.arange(len(entities)), [len(entity) for entity in entities])
    hood, x = laid_apart(world, x, sigma, 3 * float(sigma.max(initial=0.0)))
    times, crowded = _crowded(
        hood.all_places(x), hood.all_of(volume), hood.all_of(owner), len(x), world.dimension
    )
    if times <= CROWDED:
        return []
    names = " and ".join(repr(entities[k].name) for k in crowded)
    return [
        f"{words.system}: the volumes of vortons of {names} cover the same space {times:.2g} times, so "
        "exchange there is that many times too fast; add a RemeshSystem, which shares out their volumes, "
        "or keep them apart"
    ]


def exchange_lint(
    words: Words,
    world: World,
    entities: Sequence[Entity],
    columns: Sequence[Array],
    order: int,
    radius: float,
    strengths: bool = False,
) -> list[str]:
    """Warn of populations in which exchange cannot spread, or spreads with another constant than was set.

    ``columns`` are positions, amounts or `strengths`, core radii and volumes of all; ``radius`` is in core
    radii.
    """
    x, alpha, sigma, volume = (column.astype(np.float64) for column in columns)
    narrow = SPACINGS[order] * volume ** (1 / world.dimension)
    cloud, texts = (world, strengths, order, x, volume), []
    for entity, rows in rows_of_each(entities):
        if not len(entity):
            continue
        sample = rows.start + _sample(alpha[rows], sigma[rows] / narrow[rows])
        parts, flat, by_direction = _achieved_fraction(*cloud, radius * sigma, sample)
        if len(entity) > 3 and np.median(flat) < THIN:
            texts.append(
                f"{words.system}: the vortons of {entity.name!r} lie on lines or sheets, so exchange cannot "
                f"spread their {words.spread} across; {words.otherwise}fill the space around them with "
                "vortons"
            )
            continue
        part, limit, off = float(parts.mean()), MOST_OFF, sample[np.abs(parts - 1) > MOST_OFF]
        if np.median(radius * sigma[sample] / narrow[sample]) > WIDE:
            part *= _left_to_short_waves(*cloud, alpha, radius * sigma, narrow, rows)
            limit, off = 1 - TOO_WIDE, sample
        if abs(part - 1) > limit:
            better = float(np.median(narrow[off] / sigma[off]))
            texts.append(
                f"{words.system}: exchange of order {order} within {SPACINGS[order] * radius / better:.2g} "
                f"spacings gives {entity.name!r} {part:.2g} times the {words.constant}; use radius = "
                f"{better:.3g}, which is {SPACINGS[order]:g} spacings of these vortons"
                f"{', or let them overlap more' if radius < better else ''}"
            )
        elif by_direction[0] < UNEVEN * by_direction[-1]:
            texts.append(
                f"{words.system}: exchange of order {order} gives {entity.name!r} {by_direction[0]:.2g} to "
                f"{by_direction[-1]:.2g} times the {words.constant}, depending on the direction, because its "
                "vortons are much closer along one axis than along another; space them evenly, or use a "
                "larger radius"
            )
    return texts


def _crowded(x: Array, volume: Array, owner: Array, real: int, dimension: int) -> tuple[float, list[int]]:
    """Largest volume of vortons over the space around one, a ball of three spacings, and their owners there.

    The first `real` are vortons, the others images. On a lattice the ratio is 1.09, in a plane 1.03. About
    200 vortons are examined, drawn at random, since rows at even distances would follow the lattice.
    """
    from scipy.spatial import cKDTree

    if not real:
        return 0.0, []
    sample = np.random.default_rng(0).permutation(real)[:200]
    reach = 3.0 * volume[sample].astype(np.float64) ** (1 / dimension)
    near = cKDTree(x).query_ball_point(x[sample], reach)
    space = np.pi * reach**2 if dimension == 2 else 4 / 3 * np.pi * reach**3
    full = np.array([volume[rows].sum(dtype=np.float64) for rows in near]) / space
    most = int(full.argmax())
    return float(full[most]), np.unique(owner[near[most]]).tolist()


def _sample(alpha: Array, spacings: Array) -> Array:
    """`SAMPLE` rows of the strengths (n, 3), each of which represents an equal part of sum |alpha|.

    They are drawn at random among rows of similar core radii, here (n,) `spacings`, since rows at even
    distances would follow the lattice.
    """
    mixed = np.random.default_rng(0).permutation(len(alpha))
    mixed = mixed[np.argsort(spacings[mixed], kind="stable")]
    size = np.linalg.norm(alpha[mixed], axis=1)
    below = np.cumsum(size if size.any() else np.ones(len(alpha)))
    middle = below[-1] * (np.arange(SAMPLE) + 0.5) / SAMPLE
    return np.asarray(mixed[np.searchsorted(below, middle)])


@lru_cache
def _table(order: int, dimension: int) -> tuple[Array, Array]:
    """Radii in spacings, and the fraction of the viscosity that exchange with each achieves on a lattice."""
    from ecs_fluid.kernels.vorticity.strength_exchange import part_of_viscosity

    spacings = FINE * np.arange(1, round(FAR / FINE) + 1)
    return spacings, np.array([part_of_viscosity(order, radius, dimension) for radius in spacings])


def _achieved_fraction(
    world: World, strengths: bool, order: int, x: Array, volume: Array, eps: Array, sample: Array
) -> tuple[Array, Array, Array]:
    """Fraction of the viscosity that exchange achieves at the vortons `sample`, and flatness of neighbours.

    The third result holds the fractions (d,), ascending, along the axes in which they differ most, for the
    vortons with neighbours all round.

    A vorton exchanges with each neighbour over the radius eps_pq. If a random part of a lattice's places is
    filled, a sum is that part of the lattice's sum. So the fraction is the mean of what a lattice achieves
    with eps_pq, weighted as long waves weigh neighbours: by V_q z^2 times a bell in place of eta that is at
    least `SPACINGS` wide. Flatness is the least over the largest second moment with that bell, 0 to 1.
    Fractions by direction come from the sums as they stand, the tensor sum V_q z z^T eta/(2 eps_pq^2),
    averaged over vortons, because noise has no direction on average.
    """
    from scipy.spatial import cKDTree

    from ecs_fluid.kernels.vorticity.strength_exchange import cutoff, falloff

    d, table = world.dimension, _table(order, world.dimension)
    apart, end = volume[sample] ** (1 / d), cutoff(order, d)
    least = SPACINGS[order] * apart
    reach = end * np.maximum(np.sqrt((eps[sample] ** 2 + float(eps.max()) ** 2) / 2), least)
    hood, x = laid_apart(world, x, eps, float(reach.max()), strengths)
    x, volume, eps = hood.all_places(x), hood.all_of(volume), hood.all_of(eps)
    tree, parts, flat = cKDTree(x), np.empty(len(sample)), np.ones(len(sample))
    inside, tensors = np.flatnonzero(np.arange(3) != world.across), []
    for k, p in enumerate(sample):
        near = np.array(tree.query_ball_point(x[p], reach[k]))
        z, eps_pq = x[near] - x[p], np.sqrt((eps[near] ** 2 + eps[p] ** 2) / 2)
        wide, r2 = np.maximum(eps_pq, least[k]), (z**2).sum(axis=1)
        bell = volume[near] * np.maximum(1 - r2 / (end * wide) ** 2, 0) ** 7 / wide ** (d + 2)
        moments = np.linalg.eigvalsh((bell[:, None] * z).T @ z)[3 - d :]
        alone = moments[-1] == 0
        flat[k] = 1.0 if alone else moments[0] / moments[-1]
        takes = np.interp(eps_pq / apart[k], *table, left=0)
        parts[k] = np.average(takes, weights=bell if alone else bell * r2)
        if np.linalg.norm(bell @ z) < CENTRED * (bell @ np.sqrt(r2)):
            eta = volume[near] * falloff(order, r2 / eps_pq**2, d) / (2 * eps_pq ** (d + 2))
            tensors.append(((eta[:, None] * z).T @ z)[np.ix_(inside, inside)])
    mean = np.mean(tensors, axis=0) if len(tensors) >= ENOUGH else np.eye(d)
    return parts, flat, np.linalg.eigvalsh(mean)


def _left_to_short_waves(
    world: World, strengths: bool, order: int, x: Array, volume: Array, alpha: Array, eps: Array,
    narrow: Array, rows: slice,
) -> float:  # fmt: skip
    """Decay rate of sum |alpha|^2/V of some rows by exchange over eps (n,) m, over that with narrow radii.

    A wave of wave number k decays as if the viscosity were smaller by the fraction (k eps)^2/8 + ... (order
    2) or (k eps)^4/96 + ... (order 4).
    """
    from ecs_fluid.kernels.vorticity.strength_exchange import exchange_rows, reach_of

    d, decays = world.dimension, []
    for radii in (eps, np.minimum(eps, narrow)):
        hood, apart = laid_apart(world, x, radii, reach_of(radii.max(), order, d), strengths)
        amount = hood.all_strengths(alpha) if strengths else hood.all_of(alpha)
        others = hood.all_of(radii), hood.all_of(volume)
        ours = np.arange(len(amount)) < len(x)
        rate, _ = exchange_rows(hood.all_places(apart), amount, *others, 1.0, order, d, ours)
        decays.append(-float((rate[rows] * alpha[rows] / volume[rows, None]).sum()))
    return decays[0] / decays[1] if decays[1] > 0 else 1.0
