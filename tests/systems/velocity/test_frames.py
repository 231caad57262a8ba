"""How far it is from a system to its kernel, counted in Python frames."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

import numpy as np
import pytest

import ecs_fluid as ef
from ecs_fluid.kernels.biot_savart import direct


@pytest.mark.parametrize(("gradient", "kernel"), [(True, "velocity_gradient"), (False, "velocity")])
def test_three_frames_from_the_system_to_the_direct_sum(
    monkeypatch: pytest.MonkeyPatch, gradient: bool, kernel: str
) -> None:
    """`process`, the solver's `fill`, and the kernel, for which a Python function of its name stands."""
    world = ef.World(dt=0.01)
    world.spawn("blob", ef.Position(np.eye(3)), ef.Strength(np.eye(3)), ef.CoreRadius(np.full(3, 0.1)))
    world.add_system(ef.VelocitySystem(gradient=gradient))
    world.step()
    called, compiled = [], getattr(direct, kernel)

    def entry(*arguments: Any) -> None:
        compiled(*arguments)

    def watch(frame: FrameType, event: str, argument: Any) -> None:
        if event == "call" and frame.f_code is entry.__code__:
            names, at = [], frame
            while at.f_code.co_name != "process":
                assert at.f_back is not None
                names, at = [at.f_code.co_name, *names], at.f_back
            called.append([at.f_code.co_name, *names])

    monkeypatch.setattr(direct, kernel, entry)
    sys.setprofile(watch)
    try:
        world.step()
    finally:
        sys.setprofile(None)
    assert called == [["process", "fill", "entry"]]
