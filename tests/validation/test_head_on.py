"""Two vortex rings that collide head on: the shipped world head_on_rings."""

from __future__ import annotations

import math

import numpy as np
import pytest
from axisymmetric import AxisymmetricFlow, ring_core
from flows import Array, bare, vortons
from test_crow import crow_rates

import ecs_fluid as ef

NIGHTLY = pytest.mark.nightly
CORE, DISTANCE, VISCOSITY = 0.2, 0.6, 2e-3
WAVES = np.arange(3, 11)


def lower_half(omega: Array, flow: AxisymmetricFlow) -> tuple[float, float, float]:
    """Circulation of the half z < 0, its mean radius and twice its mean depth, m^2/s and m."""
    part = np.where(flow.z < 0, omega, 0.0) * flow.weight[:, None]
    circulation = (part / flow.r[:, None]).sum()
    step = flow.z[1] - flow.z[0]
    height = (part / flow.r[:, None] * flow.z).sum() / circulation
    return float(circulation * step), float(part.sum() / circulation), float(-2 * height)


def round_rings(times: Array, dt: float = 0.0125) -> Array:
    """Rows of `lower_half` at `times`, multiples of dt, of the collision of two round rings."""
    flow = AxisymmetricFlow(160, 256, 5.0, 8.0, VISCOSITY)
    rings = [ring_core(flow.r[:, None], flow.z - at, CORE) for at in (-DISTANCE / 2, DISTANCE / 2)]
    flow.set(rings[0] - rings[1])
    rows, tick = [], 0
    for time in times:
        while tick < round(time / dt):
            flow.step(dt)
            tick += 1
        rows.append(lower_half(flow.omega(), flow))
    return np.array(rows)


def mean_radius(world: ef.World) -> float:
    """Mean radius of the vorticity of the half z > 0, by its velocity on the half's edge and inside, m.

    int r omega dr dz with omega = d(u_r)/dz - d(u_z)/dr, by parts, over that of omega; mean of four angles.
    """
    step = 0.05
    r, z = np.arange(0, 4.6001, step), np.arange(0, 1.5001, step)
    wr, wz = np.full(len(r), step), np.full(len(z), step)
    for weight in (wr, wz):
        weight[[0, -1]] /= 2
    found = []
    for angle in (0.3, 1.4, 3.9, 5.1):
        along = np.array((math.cos(angle), math.sin(angle), 0.0))
        points = r[:, None, None] * along + z[:, None] * np.array((0.0, 0.0, 1.0))
        u = world.velocity(points.reshape(-1, 3)).reshape(*points.shape)
        out, up = u @ along, u[..., 2]
        jump = out[:, -1] - out[:, 0]
        circulation = wr @ jump - wz @ (up[-1] - up[0])
        found.append(((wr * r) @ jump - r[-1] * (wz @ up[-1]) + wr @ up @ wz) / circulation)
    return float(np.mean(found))


@NIGHTLY
def test_round_rings_grow_as_the_axisymmetric_flow() -> None:
    """Mean radius of two rings without waves, which grows from 1 to 1.73 m in 3 s; a/2, a/2.5, a/3.

    The reference is the axisymmetric flow of `axisymmetric.py`. Off by 10.9, 6.7, 4.7 % at 3 s: blobs
    blur the two layers, which press together. Without that error, as its order tells it, they meet.
    """
    times = np.arange(1, 7) * 0.5
    theirs, ours = round_rings(times)[:, 1], []
    for spacing in (0.1, 0.08, 0.0667):
        still = [f"{ring}.{key}=0" for ring in ("upper", "lower") for key in ("amplitude", "wavenumber")]
        world = bare("head_on_rings", *still, *(f"{ring}.spacing={spacing}" for ring in ("upper", "lower")))
        radii = []
        for _ in times:
            world.step(20)
            radii.append(mean_radius(world))
        ours.append(np.array(radii) / theirs - 1)
    assert math.log(ours[0][-1] / ours[2][-1]) / math.log(1.5) > 1.8
    without = ours[2] - (ours[0] - ours[2]) / (1.5**2 - 1)
    assert np.abs(without).max() < 0.005


def grown_by_crow(times: Array) -> Array:
    """Factor (time, wave) by which radial waves on both rings grow, by Crow's theory along round rings, 1.

    dy/dt = A z, dz/dt = B y with y the distance of a line from the other and z its way back, in Gamma/(2 pi
    b^2) of the moment; the circulation, radius R and distance b are those of the axisymmetric flow, the wave
    number is n/R, the cut-off 0.874 a (that of a Gaussian core: (a/2) exp(0.558)). The core a^2 gains 4 nu t
    and loses by the rings' growth, so that a^2 R stays.
    """
    dt = 0.0125
    ticks = np.arange(round(times[-1] / dt) + 1)
    rows = round_rings(ticks * dt)
    lines, square, grown = np.tile((0.0, 1.0), (len(WAVES), 1)), CORE**2, []
    for tick, (circulation, radius, distance) in enumerate(rows):
        if tick:
            square += 4 * VISCOSITY * dt - square * math.log(radius / rows[tick - 1][1])
        if np.abs(times - tick * dt).min() < 1e-9:
            grown.append(np.abs(lines[:, 1]))
        turn = dt * circulation / (2 * math.pi * distance**2)
        for line, wave in zip(lines, WAVES, strict=True):
            a, b = crow_rates(wave * distance / radius, 0.874 * math.sqrt(square) / distance)
            line += turn * np.array((a * line[1], b * line[0])) + turn**2 * a * b / 2 * line
    return np.array(grown)


def waves(world: ef.World) -> Array:
    """Amplitudes of the waves of the mean radius of both rings, m."""
    x, alpha = vortons(world)
    away, angle = np.hypot(x[:, 0], x[:, 1]), np.arctan2(x[:, 1], x[:, 0])
    share = np.abs(x[:, 0] * alpha[:, 1] - x[:, 1] * alpha[:, 0]) / away**2
    part = share * (away - (share * away).sum() / share.sum())
    return np.abs(2 * np.exp(-1j * np.outer(WAVES, angle)) @ part / share.sum())


@NIGHTLY
def test_six_waves_become_six_lobes() -> None:
    """By Crow's theory five and six radial waves grow most until 5 s; made with six, rings get six lobes.

    The theory has factors of 16.4 and 16.0 for small waves on thin cores. Waves 0.05 m high on cores as wide
    as their distance grow to 0.064 m, after they were 0.004 m high at 2.5 s; the others, of which 4 and 8 are
    the lattice's own, stay below 0.004 m.
    """
    most = grown_by_crow(np.array((5.0,)))[0]
    assert 6 in WAVES[np.argsort(most)[-2:]]
    world = bare("head_on_rings")
    world.step(200)
    found = waves(world)
    six = WAVES == 6
    assert found[six] > 0.05
    assert found[~six].max() < found[six] / 4
