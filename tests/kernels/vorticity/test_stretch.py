"""Forms of stretching in uniform strain, and where growth is held back."""

from __future__ import annotations

import numpy as np
import pytest

import ecs_fluid as ef
from ecs_fluid.kernels.vorticity.stretch import OWN_SHARES, stretch


def rate(share: float, strain: float, own: float, dtype: type = np.float64) -> np.ndarray:
    """d(alpha)/dt of alpha = (0, 0, 2), sigma = 1/2, in strain (-x/2, -y/2, z) and du_x/dz = 3."""
    turning = 0.8 * 2.0 / 0.5**3 / share
    du = strain * np.diag([-0.5, -0.5, 1.0]) + turning / 2 * np.array([[0, -1, 0], [1, 0, 0], [0, 0, 0]])
    du[0, 2] = 3.0
    alpha, sigma = np.array([[0.0, 0.0, 2.0]], dtype), np.array([0.5], dtype)
    dalpha = np.zeros_like(alpha)
    stretch(du[None].astype(dtype), alpha, sigma, dalpha, dtype(1), dtype(0), dtype(own))
    return dalpha[0]


def curl_with_shear(share: float) -> float:
    """Share of the own blob when du_x/dz = 3 adds 3 along y to the curl."""
    turning = 0.8 * 2.0 / 0.5**3
    return turning / float(np.hypot(turning / share, 3.0))


@pytest.mark.parametrize(("dtype", "bound"), [(np.float32, 1e-5), (np.float64, 1e-12)])
def test_growth_ends_where_a_vorton_is_alone(dtype: type, bound: float) -> None:
    """Held back by s z^2 (3 - 2 z), z = (q^2 - a^2)/(b^2 - a^2): growth alone, neither turning nor shrinking.

    The tilt towards x, 2 m^3/s times du_x/dz = 3/s, is always there.
    """
    low, high = OWN_SHARES
    for share in (0.2, 0.6, 0.7, 1.0, 1.5):
        z = min(max((curl_with_shear(share) ** 2 - low**2) / (high**2 - low**2), 0.0), 1.0)
        grown, shrunk = rate(share, 1.5, 0.8, dtype), rate(share, -1.5, 0.8, dtype)
        assert grown == pytest.approx([6.0, 0.0, 3.0 * (1 - z * z * (3 - 2 * z))], rel=bound, abs=bound)
        assert shrunk.tolist() == rate(share, -1.5, 0.0, dtype).tolist() == [6.0, 0.0, -3.0]
        assert rate(share, 1.5, 0.0, dtype).tolist() == [6.0, 0.0, 3.0]


def test_what_makes_no_vorticity_or_has_no_strength() -> None:
    """Without a curl around it a vorton does not grow; without strength nothing happens."""
    du = np.diag([-0.5, -0.5, 1.0])[None]
    for alpha in ([[0.0, 0.0, 2.0]], [[0.0, 0.0, 0.0]]):
        dalpha = np.zeros((1, 3))
        stretch(du, np.array(alpha), np.array([0.5]), dalpha, 1.0, 0.0, 0.8)
        assert not dalpha.any()


def test_auto_goes_by_what_a_world_makes_and_where_its_velocity_comes_from() -> None:
    """Limited; transposed beside walls that shed, and for lines by a grid in open space.

    Classical by a grid where cores are filled, as remeshing has them. In a box that repeats lines are whole.
    """
    for period, velocity, more, form in (
        (0.0, {}, [], "limited"),
        (0.0, {"solver": "hybrid"}, [], "transposed"),
        (0.0, {"solver": "tree", "at": "grid"}, [], "transposed"),
        (0.0, {}, [ef.BaroclinicSystem()], "limited"),
        (0.0, {}, [ef.BaroclinicSystem(), ef.BoundarySystem()], "transposed"),
        (0.0, {"solver": "tree", "at": "grid"}, [ef.BaroclinicSystem()], "limited"),
        (0.0, {}, [ef.RemeshSystem()], "limited"),
        (0.0, {"solver": "hybrid"}, [ef.RemeshSystem()], "classical"),
        (0.0, {"solver": "hybrid"}, [ef.RemeshSystem(), ef.BaroclinicSystem()], "classical"),
        (1.0, {"solver": "auto"}, [], "limited"),
        (1.0, {"solver": "auto"}, [ef.BaroclinicSystem()], "limited"),
        (1.0, {"solver": "auto"}, [ef.RemeshSystem()], "classical"),
    ):
        world = ef.World(periodic=(0.0, 0.0, period))
        world.add_systems([ef.VelocitySystem(**velocity), ef.StretchSystem(), *more])
        found = world.system(ef.StretchSystem)
        assert found is not None and found.form == form
