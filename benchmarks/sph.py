"""Cost of a tick of liquid: ``python benchmarks/sph.py [particles ...]``, default 16800.

The dam break of the shipped world at a finer spacing. A tick is one force evaluation, as in the articles
(whose liquid took 70 to 130 ms a tick at 16,800 particles), and a tick of the world cut into the steps it
needs. Two clocks: wall time on all threads, and processor time on one thread, which other work on the machine
does not change much. The least of several ticks counts, after the flow has begun.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import numba

import ecs_fluid as ef
from ecs_fluid.worlds import WorldRecipe
from ecs_fluid.worlds.world_recipe import read

ROUNDS = 8
HEIGHT, WIDTH, LENGTH = 1.0, 0.5, 1.0


def dam(particles: int, steps: int) -> ef.World:
    """The dam break with about that many particles; `steps` per tick, 0 for what the world's tick needs."""
    spacing = (HEIGHT * WIDTH * LENGTH / particles) ** (1 / 3)
    tables = read("dam_break", (f"water.spacing={spacing}",)).tables()
    if steps:
        # A tick as long as one step may be: about a seventh of the world's, and less as the spacing is finer.
        tables["world"]["dt"] = steps * 0.9e-3 * spacing / 0.05
    return WorldRecipe.from_tables(tables).build()


def least(world: ef.World, clock: Callable[[], float]) -> float:
    """Seconds of the fastest tick."""
    best = float("inf")
    for _ in range(ROUNDS):
        start = clock()
        world.step()
        best = min(best, clock() - start)
    return best


def main(counts: Sequence[int] = (16_800,)) -> None:
    """Print the table."""
    threads = numba.get_num_threads()
    both_head = f"{threads} threads, ms"
    print(
        f"{'particles':>9s} {'steps':>5s} {'1 thread, cpu ms':>17s} {both_head:>14s} {'us a particle':>14s}"
    )
    for count in counts:
        for steps in (1, 0):
            world = dam(count, steps)
            world.step(2)
            books = world.fluid[ef.LiquidBudget]
            before, tick = int(books.steps[0]), world.tick
            numba.set_num_threads(1)
            single = least(world, time.process_time)
            numba.set_num_threads(threads)
            both = least(world, time.perf_counter)
            taken = (int(books.steps[0]) - before) / (world.tick - tick)
            n = len(world["water"])
            rate = 1e6 * single / n / taken
            print(f"{n:9d} {taken:5.1f} {1e3 * single:17.1f} {1e3 * both:14.1f} {rate:14.2f}")


if __name__ == "__main__":
    from asked import numbers

    main(*numbers(__file__, __doc__, "particles"))
