"""The velocity of a blob in two parts: a smooth one for a mesh, and one that ends at a reach R.

A vorton gives u = g(r) alpha x r / (4 pi) with g = q/r^3 (`regularisation`). The smooth part has the same g
from R on, and inside the first terms of its Taylor series about r = R in v = 1 - r^2/R^2,

    g_long(r) = sum_{j <= M} a_j v^j,   a_j = (-1)^j/j! d^j g/d(r^2/R^2)^j at r = R,

so M derivatives of it have no step at R; what is left to the pairs, g - g_long, is zero from R on. For a
point vortex, and so for a blob that ends inside R, g_long is the velocity of a blob whose vorticity is
proportional to (1 - r^2/R^2)^M: (r^3 g_long)' is then a polynomial of degree M in v times r^2, and zero at R
with M - 1 derivatives. With D = 1/r d/dr = 2 d/d(r^2) and G the potential, 4 pi G = 1/r for a point,

    g = -D (4 pi G),   a_j = -(-R^2/2)^j/j! D^(j+1) (4 pi G).

Source: Hardy et al., J. Chem. Theory Comput. 12 (2016), multilevel summation with splittings of this kind.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecs_fluid.kernels.biot_savart.regularisation import Code, record

Array = NDArray[Any]


def smooth_part(code: Code, sigma: float, reach: float, terms: int) -> Array:
    """a_0 ... a_terms, 1/m^3, for a core radius ``sigma`` m, with R = ``reach`` m.

    A blob of bounded support has to end inside the reach.
    """
    slopes = _radial_derivatives(code, terms + 1, (sigma / reach) ** 2)
    return np.array([-slopes[j + 1] * (-0.5) ** j / math.factorial(j) for j in range(terms + 1)]) / reach**3


def _radial_derivatives(code: Code, order: int, s2: float) -> Array:
    """D^k (4 pi G) at r = 1 for k = 0 ... order, of the core radius squared ``s2``."""
    blob, found = record(code), np.zeros((order + 1, 1))
    if blob.derivatives is not None:
        blob.derivatives.py_func(order, s2, found, 0)
        return found[:, 0]
    factors = (1.0, *blob.series) if blob.softened else (1.0,)
    softening = s2 if blob.softened else 0.0
    for k in range(order + 1):
        for j, factor in enumerate(factors):
            # D^n 1/sqrt(r^2 + s2) = (-1)^n (2 n - 1)!! (r^2 + s2)^(-n - 1/2)
            n = j + k
            odd = math.prod(range(1, 2 * n, 2))
            found[k, 0] += factor * s2**j * (-1) ** n * odd * (1.0 + softening) ** (-n - 0.5)
    return found[:, 0]


def ends(code: Code) -> bool:
    """Whether the blob has an edge, beyond which it is a point vortex; it has to lie within the reach."""
    blob = record(code)
    return blob.derivatives is None and not blob.softened


def share_within(code: Code, sigma: Array, reach: float) -> Array:
    """q at the reach, 1, of blobs of these core radii m: the less they differ in it, the less beyond."""
    return np.array([-_radial_derivatives(code, 1, (s / reach) ** 2)[1] for s in sigma])
