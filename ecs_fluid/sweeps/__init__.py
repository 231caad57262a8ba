"""Sweeps and ensembles: many runs of one world, side by side, each a normal run folder.

Dask is imported only for workers.
"""

from ecs_fluid.sweeps.member import Member
from ecs_fluid.sweeps.study import Study, Sweep, Watcher, plan_sweep, run_sweep, sweep

__all__ = ["Member", "Study", "Sweep", "Watcher", "plan_sweep", "run_sweep", "sweep"]
