"""Entities of world files that tests of commands and runs share; lines after them add to their tables."""

from __future__ import annotations

RING = """
[[entity]]
kind = "vortex_ring"
name = "ring"
circulation = 5.0
"""

NOZZLE = """
[[entity]]
kind = "emitter"
name = "nozzle"
into = "smoke"
population = "tracers"
spread = [1.0, 1.0, 0.1]
"""
