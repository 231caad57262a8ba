"""Dam break beside SPlisHSPlasH: ``python benchmarks/splishsplash.py [particles [milliseconds]]``.

Default 16384 particles and 500 ms of the shipped dam break; particles are 4 k^3. Ours by both pressures of
SphSystem, theirs by DFSPH (mean errors of 0.1 %, CFL factor 0.5, no viscosity), from the same places, one
after the other on as many threads. Theirs needs pySPlisHSPlasH (``pip install pySPlisHSPlasH``) and is left
out without it. Its walls stand 1.5 radii farther out: nearer than 1.3 its boundary particles throw the liquid
about as it starts (2.19).

Told are seconds for a simulated second, wall time; steps for one; the mean excess of the density at the end;
and the place of the third particle from the front, m from the wall.
"""

from __future__ import annotations

import ctypes.util
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numba
import numpy as np
from liquid_pressure import TICK, density, place, shipped

import ecs_fluid as ef

BOX = [(x, y, z) for x in (-0.5, 0.5) for y in (-0.5, 0.5) for z in (-0.5, 0.5)]
FACES = [(1, 2, 4, 3), (5, 7, 8, 6), (1, 5, 6, 2), (3, 4, 8, 7), (1, 3, 7, 5), (2, 6, 8, 4)]


def ours(particles: int, end: float, pressure: str) -> tuple[float, ...]:
    """Seconds and steps a second, excess and front."""
    world = shipped("dam_break", particles, pressure)
    world.step(2)
    begin, steps = time.perf_counter(), int(world.fluid[ef.LiquidBudget].steps[0])
    ticks = round(end / TICK) - 2
    world.step(ticks)
    spent = time.perf_counter() - begin
    steps = int(world.fluid[ef.LiquidBudget].steps[0]) - steps
    simulated = ticks * TICK
    return spent / simulated, steps / simulated, density(world, ("water",)), place("dam_break", world)


def scene(folder: Path, particles: int) -> dict[str, Any]:
    """The dam break as their scenes tell it."""
    radius = 0.5 * (0.5 / particles) ** (1 / 3)
    corners = [f"v {x} {y} {z}" for x, y, z in BOX]
    (folder / "box.obj").write_text(
        "\n".join(corners + [f"f {a} {b} {c}\nf {a} {c} {d}" for a, b, c, d in FACES])
    )
    solver = {"minIterations": 2, "maxIterations": 100, "maxError": 0.1}
    solver |= {"maxIterationsV": 100, "maxErrorV": 0.1, "enableDivergenceSolver": True}
    low, high = (-1.5, -0.25, -1.0), (-0.5, 0.25, 0.0)
    return {
        "Configuration": {
            "particleRadius": radius,
            "simulationMethod": 4,
            "gravitation": [0, 0, -9.81],
            "timeStepSize": 1e-3,
            "cflMethod": 1,
            "cflFactor": 0.5,
            "cflMaxTimeStepSize": TICK,
            "boundaryHandlingMethod": 0,
            "DFSPH": solver,
        },
        "Materials": [{"id": "Fluid", "density0": 1000, "viscosityMethod": 0}],
        "RigidBodies": [
            {
                "geometryFile": str(folder / "box.obj"),
                "translation": [0, 0, 0],
                "rotationAxis": [1, 0, 0],
                "rotationAngle": 0,
                "scale": [size + 3 * radius for size in (3.0, 0.5, 2.0)],
                "isDynamic": False,
                "isWall": True,
            }
        ],
        "FluidBlocks": [
            {
                "denseMode": 0,
                "start": [x - radius for x in low],
                "end": [x + radius for x in high],
                "translation": [0, 0, 0],
                "scale": [1, 1, 1],
            }
        ],
    }


def simulate(particles: int, end: float) -> tuple[float, ...]:
    """As ``ours``, by pySPlisHSPlasH, in a process of its own."""
    import pysplishsplash as theirs  # type: ignore[import-not-found]

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "scene.json").write_text(json.dumps(scene(folder, particles)))
        base = theirs.Exec.SimulatorBase()
        base.init(
            sceneFile=str(folder / "scene.json"), useCache=False, outputDir=str(folder / "out"),
            initialPause=False, useGui=False, stopAt=end,
        )  # fmt: skip
        base.initSimulation()
        water = theirs.Simulation.getCurrent().getFluidModel(0)
        clock, marks = theirs.TimeManager.getCurrent(), list[tuple[float, float]]()
        started = np.array([water.getPosition(i) for i in range(water.numActiveParticles())])
        mine = shipped("dam_break", particles, "implicit")["water"][ef.Position].x
        np.testing.assert_allclose(
            *(part[np.lexsort(part.T.round(4))] for part in (started, mine)), atol=1e-5
        )
        base.setTimeStepCB(lambda: marks.append((time.perf_counter(), clock.getTime())))
        base.runSimulation()
        rows = range(water.numActiveParticles())
        x = np.array([water.getPosition(i)[0] for i in rows])
        dense = np.array([water.getDensity(i) for i in rows])
    (begin, first), (stop, last) = marks[0], marks[-1]
    simulated = last - first
    excess = float(np.maximum(dense / 1000 - 1, 0).mean())
    return (stop - begin) / simulated, (len(marks) - 1) / simulated, excess, float(np.sort(x)[-3]) + 1.5


def theirs_apart(particles: int, end: float) -> tuple[float, ...]:
    """What ``simulate`` finds, on as many threads as ours."""
    environment = os.environ | {"OMP_NUM_THREADS": str(numba.get_num_threads())}
    # The wheel brings a libGLdispatch in which the system's libGLX fails; the system's own serves both.
    if found := ctypes.util.find_library("GLdispatch"):
        environment["LD_PRELOAD"] = found
    here = f"from splishsplash import simulate; print('found', *simulate({particles}, {end}))"
    done = subprocess.run(
        [sys.executable, "-c", here], cwd=Path(__file__).parent, env=environment, capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    if done.returncode != 0:
        raise SystemExit(f"splishsplash: pySPlisHSPlasH failed: {done.stderr.strip()[-500:]}")
    line = next(line for line in done.stdout.splitlines() if line.startswith("found"))
    return tuple(float(word) for word in line.split()[1:])


def main(counts: Sequence[int] = ()) -> None:
    """Print the table."""
    particles, milliseconds = (*counts, *(16_384, 500)[len(counts) :])
    end = 1e-3 * milliseconds
    print(f"{numba.get_num_threads()} threads\n{'':12s} {'s a s':>6s} {'steps a s':>9s} excess front, m")
    for pressure in ("explicit", "implicit"):
        found = ours(particles, end, pressure)
        print(f"{pressure:12s} {found[0]:6.2f} {found[1]:9.0f} {found[2]:6.4f} {found[3]:8.3f}", flush=True)
    if importlib.util.find_spec("pysplishsplash") is None:
        print("SPlisHSPlasH is left out: there is no pySPlisHSPlasH")
        return
    found = theirs_apart(particles, end)
    print(f"{'SPlisHSPlasH':12s} {found[0]:6.2f} {found[1]:9.0f} {found[2]:6.4f} {found[3]:8.3f}")


if __name__ == "__main__":
    from asked import numbers

    main(*numbers(__file__, __doc__, "particles and milliseconds", 2))
