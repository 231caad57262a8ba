"""Worlds that are stopped, and go on from what was saved."""

from __future__ import annotations

from pathlib import Path

import ecs_fluid as ef


def resumed(world: ef.World, folder: Path, *ticks: int, allow_code: bool = False) -> ef.World:
    """The world as it is now, saved and resumed: it has the same bits, also after each of so many ticks."""
    world.save(folder / "saved.npz")
    again = ef.resume(folder / "saved.npz", allow_code=allow_code)
    assert again.state_hash() == world.state_hash()
    for count in ticks:
        world.step(count)
        again.step(count)
        assert again.state_hash() == world.state_hash()
    return again
