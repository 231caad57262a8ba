"""Cost of heat and fire: the tick of the candle, and the share of heat and fire in a tick with fmm.

First the candle as it burns, about 1,000 vortons and 50,000 tracers. Then 16,000 vortons of uneven hot gas
with fuel, in rk2 with fmm: the share of buoyancy, conduction, combustion and transfers in the tick, by the
times that the world keeps of its systems. All by the clock, so on a machine with nothing else to do; threads
that wait awake would count in processor time. With NUMBA_NUM_THREADS=1 on one core. Run: python
benchmarks/fire.py
"""

from __future__ import annotations

import statistics
import time
import warnings

import numba
import numpy as np

import ecs_fluid as ef
from ecs_fluid.worlds.world_recipe import read

VORTONS, SETTLED, TICKS, CANDLE_TICKS = 16_000, 16, 15, 100
SHARED = ("BaroclinicSystem", "ThermalSystem", "CombustionSystem", "TransferSystem")
GATE = 0.15
"""Share of the tick that they may take."""
CANDLE_GATE = 32.0
"""ms of a candle's frame on two cores, whatever its ticks: 4 ms for each of the eight that it once had."""


def gas() -> ef.World:
    """A cube of hot gas of uneven temperature with a little fuel."""
    draw = np.random.default_rng(1)
    side = round(VORTONS ** (1 / 3) + 0.5)
    ticks = (np.arange(side) - (side - 1) / 2) * 2 / side
    x = np.stack(np.meshgrid(ticks, ticks, ticks, indexing="ij"), -1).reshape(-1, 3)[:VORTONS]
    n, spacing = len(x), 2 / side
    x = x + 0.3 * spacing * (draw.random((n, 3)) - 0.5)
    world = ef.World(dt=0.01, integrator="rk2")
    world.spawn(
        "gas",
        ef.Position(x),
        ef.Strength(1e-4 * draw.standard_normal((n, 3))),
        ef.CoreRadius(np.full(n, 1.5 * spacing)),
        ef.Volume(np.full(n, spacing**3)),
        ef.Temperature(300 + 200 * draw.random(n)),
        ef.Species(0.1 * draw.random(n)),
    )
    world.set_fluid(law="ideal_gas")
    world.add_systems(
        [
            ef.VelocitySystem(solver="fmm"),
            ef.StretchSystem(),
            ef.BaroclinicSystem(),
            ef.ThermalSystem(eddy_diffusivity=1e-4),
            ef.CombustionSystem(),
            ef.CoolingSystem(rate=0.1, absorption=0.1),
            ef.AdvectionSystem(),
        ]
    )
    return world


def measured(world: ef.World, ticks: int) -> tuple[dict[str, float], float]:
    """Median ms a tick of every system, and of the whole tick."""
    rows, whole = [], []
    for _ in range(ticks):
        clock = time.perf_counter()
        world.step()
        whole.append(1e3 * (time.perf_counter() - clock))
        rows.append({name: 1e3 * timing.last for name, timing in world.timings().items()})
    return {name: statistics.median(row[name] for row in rows) for name in rows[0]}, statistics.median(whole)


def main() -> None:
    """Print both figures."""
    warnings.simplefilter("ignore", ef.FluidWarning)
    recipe = read("candle")
    candle, steps = recipe.build(), recipe.world.steps_per_frame
    candle.step(round(2.2 / candle.dt))
    # Not before: numba would start threads of its own choice, and ecs_fluid chooses those of OpenMP.
    print(f"{numba.get_num_threads()} threads ({numba.threading_layer()})")
    _, tick = measured(candle, CANDLE_TICKS)
    print(
        f"candle, {len(candle['gas']):,} vortons, {len(candle['fire']):,} tracers: {tick:.1f} ms a tick, "
        f"{tick * steps:.0f} ms a frame; gate {CANDLE_GATE:.0f} ms a frame on two quiet cores"
    )
    world = gas()
    world.step(SETTLED)
    each, tick = measured(world, TICKS)
    parts = ", ".join(f"{name.removesuffix('System')} {100 * each[name] / tick:.1f} %" for name in SHARED)
    share = sum(each[name] for name in SHARED) / tick
    print(
        f"{len(world['gas']):,} vortons, fmm, rk2: {tick:.0f} ms a tick; {parts}; "
        f"together {100 * share:.1f} %, gate {100 * GATE:.0f} %"
    )


if __name__ == "__main__":
    from asked import nothing

    nothing(__file__, __doc__)
    main()
