"""A burning world with every system of heat and fire; prints its state hash by thread count, as JSON.

Usage: python fire_worker.py 1,2,4,8
The environment's NUMBA_NUM_THREADS must be at least the largest of the thread counts.
"""

from __future__ import annotations

import sys
import warnings

import numpy as np
from thread_hashes import print_hashes

import ecs_fluid as ef

CHOICES = (("double", "linear", "neighbours"), ("single", "m4", "grid"))


def burning(
    precision: str = "double", kernel: str = "linear", gradient: str = "neighbours", **combustion: float
) -> ef.World:
    """A burner: fuel rises from a disc, burns and glows; vortons emitted in a world of every fire system."""
    world = ef.World(dt=1 / 30, precision=precision, seed=4)
    world.spawn(
        "fire",
        ef.Position,
        ef.Strength,
        ef.CoreRadius,
        ef.Volume,
        ef.Temperature,
        ef.Density,
        ef.Species,
        ef.Age,
    )
    world.spawn("dust", ef.Position(np.random.default_rng(1).uniform(-0.3, 0.3, (50, 3))))
    burner = ef.Emitter(
        name="burner", into="fire", rate=150.0, shape="disc", spread=(0.3, 0.3, 0.0), temperature=500.0,
        fuel=0.1, core=0.08, volume=1e-4, strength_spread=(1e-5, 1e-5, 1e-5),
    )  # fmt: skip
    chosen = {"rate": 20.0, "activation": 600.0, "heat": 1e7, "flame_rate": 6.0, "flame_temperature": 2000.0}
    world.set_fluid(law="ideal_gas")
    world.add_systems(
        [
            ef.VelocitySystem(),
            ef.StretchSystem(),
            ef.TransferSystem(kernel=kernel),
            ef.BaroclinicSystem(gradient=gradient),
            ef.ThermalSystem(eddy_diffusivity=2e-4, species_diffusivity=2e-4),
            ef.CombustionSystem(**{**chosen, **combustion}),
            ef.CoolingSystem(rate=1.0, absorption=0.2),
            ef.SamplingSystem(),
            ef.EmissionSystem(emitters=[burner]),
            ef.AgeLimitSystem(seconds=0.5, on=("fire",)),
            ef.SpeciesLimitSystem(species=("smoke",), above=0.09, on=("fire",)),
            ef.TurbulenceSystem(speed=0.05, scale=0.2, modes=6),
            ef.AdvectionSystem(),
        ]
    )
    return world


def hashed() -> list[str]:
    """Of each choice."""
    found = []
    for choice in CHOICES:
        world = burning(*choice)
        world.step(12)
        found.append(world.state_hash())
    return found


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    print_hashes(sys.argv[1], hashed)
