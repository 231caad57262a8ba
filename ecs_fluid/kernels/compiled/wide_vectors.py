"""What the pair loops need from the processor: wide vectors and a fast reciprocal square root."""

from __future__ import annotations

import platform
from typing import Any

import llvmlite.binding
import numpy as np
from numba import config, njit, types
from numba.extending import intrinsic, overload

from ecs_fluid.kernels.compiled import FAST_LOOP

INLINE: dict[str, Any] = {**FAST_LOOP, "forceinline": True}
"""Options of small functions that must be inlined into the loop that calls them, or it does not vectorise."""

LANES = 16
"""Sources are padded to a multiple of this: one vector of float32 on AVX-512, two on AVX2, four on NEON."""

DIVISION_IS_FASTER = (config.CPU_NAME or llvmlite.binding.get_host_cpu_name()).startswith("znver")
"""Whether float64 pair loops run faster with the processor's root and division than with an estimate and its
refinements. LLVM's name of the processor decides, because bits must not depend on a measurement. In pairs per
second, division is 1.15 times as fast on a Zen 4, refinement 1.7 times as fast on an Emerald Rapids."""


CACHE_LINE = 64
"""Bytes of a cache line."""


@njit(**INLINE)
def aligned(size: int, like: Any) -> Any:
    """An array of ``size`` numbers, of the dtype of ``like``, that begins at a cache line.

    So no vector load touches two lines.
    """
    line = CACHE_LINE // like.itemsize
    raw = np.empty(size + line, like.dtype)
    first = (-(raw.ctypes.data // like.itemsize)) % line
    return raw[first : first + size]


@intrinsic
def wide_vectors(typingctx: Any) -> Any:
    """Compile the calling function with the widest vectors and keep it a function of its own.

    LLVM prefers 256 bit vectors on most processors that have 512, and refines a hardware reciprocal square
    root by itself; ``double_inverse_root`` does that refinement in fewer operations, so LLVM is told to
    leave it out. Only on x86: estimates of other processors are coarser than one refinement can repair.
    """

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        attributes = builder.function.attributes
        attributes.add("noinline")
        if platform.machine() in ("x86_64", "AMD64"):
            # llvmlite knows no attributes with a value; they are printed as they stand.
            set.add(attributes, '"prefer-vector-width"="512"')
            set.add(attributes, '"reciprocal-estimates"="vec-sqrtf:0"')
        return context.get_dummy_value()

    return types.void(), codegen


def double_inverse_root(d: float) -> float:
    """2 / sqrt(d), to full precision in float32 and float64; for compiled code only.

    One Newton step from an estimate y of 1/sqrt(d) is y (3 - d y^2) / 2. Leaving out the factor 1/2 saves one
    of about 25 operations per pair; callers fold it into their constants.
    """
    return 2.0 / float(np.sqrt(d))


@overload(double_inverse_root, jit_options=INLINE)
def _double_inverse_root(d: Any) -> Any:
    if d == types.float32:

        def single(d: Any) -> Any:
            # Estimate by hardware, relative error <= 3.7e-4; one step leaves 1.5 e^2 = 2e-7 at worst.
            y = np.float32(1.0) / np.sqrt(d)
            return y * (np.float32(3.0) - (d * y) * y)

        return single

    def divided(d: Any) -> Any:
        return 2.0 / np.sqrt(d)

    def double(d: Any) -> Any:
        # sqrt and division of a float64 vector take some 40 cycles; an estimate from the exponent bits
        # (relative error 3.5e-2) and three steps take 7: Newton 1.8e-3, third order 1.4e-8, Newton 3e-16.
        bits = np.float64(d).view(np.int64)
        y = np.int64(np.int64(0x5FE6EB50C7B537A9) - (bits >> np.int64(1))).view(np.float64)
        y = y * (1.5 - (0.5 * d * y) * y)
        c = 1.0 - (d * y) * y
        y = y + y * (c * (0.5 + 0.375 * c))
        return y * (3.0 - (d * y) * y)

    return divided if DIVISION_IS_FASTER else double


def two_to_the(n: float) -> float:
    """2^n for a whole number n held as a float, -126 <= n <= 127; for compiled code only."""
    return float(np.ldexp(1.0, int(n)))


@overload(two_to_the, jit_options=INLINE)
def _two_to_the(n: Any) -> Any:
    if n == types.float32:

        def single(n: Any) -> Any:
            return np.int32((np.int32(n) + np.int32(127)) << np.int32(23)).view(np.float32)

        return single

    def double(n: Any) -> Any:
        return np.int64((np.int64(n) + np.int64(1023)) << np.int64(52)).view(np.float64)

    return double
