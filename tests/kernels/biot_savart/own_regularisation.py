"""A regularisation of one's own, put behind the others as the manual says; run by test_records.

Arguments: the manual's lines, and a factor of the velocity. Prints the compiled velocity factor at d = 1.
"""

from __future__ import annotations

import sys
from typing import Any

from numba import njit

from ecs_fluid.kernels.biot_savart import regularisation
from ecs_fluid.kernels.compiled.wide_vectors import INLINE

SCALE = float(sys.argv[2])


@njit(**INLINE)
def velocity(d: Any, s2: Any, k: Any) -> Any:
    return SCALE / d


mine = regularisation.WINCKELMANS._replace(name="mine", velocity_factor=velocity)
exec(sys.argv[1])

from ecs_fluid.kernels.biot_savart.regularisation_dispatch import velocity_factor  # noqa: E402 - with the record


@njit(cache=True)
def factor(code: Any, d: float) -> float:
    """What the record says."""
    return float(velocity_factor(code, d, 1.0, 1.0))


print(factor(regularisation.CODES["mine"], 1.0))
