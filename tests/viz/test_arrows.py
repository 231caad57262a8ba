"""Colours and arrows carry the columns' numbers."""

from __future__ import annotations

import numpy as np
import pytest

from ecs_fluid.errors import FluidError
from ecs_fluid.viz.arrows import glyphs
from ecs_fluid.viz.columns import Frame, positions, scalar, title


def test_derived_colours_follow_from_the_columns(frame: Frame) -> None:
    """|alpha| = 0.5 (1 + k/60) m^3/s on volumes of 0.01 m^3: omega = 50 (1 + k/60) 1/s; |u| = 2 m/s."""
    np.testing.assert_allclose(scalar(frame["ring"], "vorticity"), 50 * (1 + np.arange(60) / 60), rtol=1e-14)
    np.testing.assert_allclose(scalar(frame["ring"], "speed"), 2.0)


def test_colour_of_a_vector_is_its_magnitude_and_of_a_component_its_value(frame: Frame) -> None:
    smoke = frame["smoke"]
    np.testing.assert_allclose(scalar(smoke, "Velocity.u"), 5.0)  # (0, 3, 4)
    np.testing.assert_allclose(scalar(smoke, "Velocity.u.y"), 3.0)
    np.testing.assert_array_equal(scalar(smoke, "Age"), smoke["Age.t"])


def test_a_population_that_is_still_empty_has_colours_too() -> None:
    """What an emitter has not given off yet, in the first frames of a run."""
    empty = {"Position.x": np.empty((0, 3)), "InertialVelocity.v": np.empty((0, 3)), "Age.t": np.empty(0)}
    for name in ("InertialVelocity.v", "InertialVelocity.v.x", "Age"):
        assert scalar(empty, name).shape == (0,)


def test_units_come_from_the_components() -> None:
    titles = {
        "Velocity.u.z": " [m/s]",
        "Density.rho": " [kg/m^3]",
        "Species.fuel": "",
        "vorticity": " [1/s]",
        "X.y": "",
    }
    assert [title(name) for name in titles] == [name + unit for name, unit in titles.items()]


def test_unknown_colour_names_the_nearest_and_the_known(frame: Frame) -> None:
    with pytest.raises(FluidError, match=r"unknown colour 'vortcity'.*Strength\.alpha.*mean 'vorticity'"):
        scalar(frame["ring"], "vortcity")
    with pytest.raises(FluidError, match="unknown colour 'vorticity'"):
        scalar(frame["smoke"], "vorticity")


def test_misshapen_columns_are_refused(frame: Frame) -> None:
    with pytest.raises(FluidError, match=r"Age\.t .*60 positions"):
        positions({**frame["ring"], "Age.t": np.zeros(3)})
    with pytest.raises(FluidError, match=r"no Position\.x"):
        positions({"Age.t": np.zeros(3)})
    with pytest.raises(FluidError, match=r"\(2, 2\)"):
        positions({"Position.x": np.zeros((2, 2))})


def test_arrows_point_along_the_strength_and_their_lengths_are_in_proportion() -> None:
    alpha = np.array([[0.0, 0.0, 1.0], [0.0, 2.0, 0.0]])
    x = np.array([[0.0, 0.0, 0.0], [10.0, 0.0, 0.0]])
    mesh = glyphs({"Position.x": x, "Strength.alpha": alpha}, longest=3.0)
    points = np.asarray(mesh.points)
    first, second = points[points[:, 0] < 5.0], points[points[:, 0] > 5.0]
    # The 99th percentile of lengths (1, 2) is 1.99 and is drawn 3 m long: 1.5075 m and 3.0151 m.
    np.testing.assert_allclose(first[:, 2].max() - first[:, 2].min(), 3.0 / 1.99, rtol=1e-5)
    np.testing.assert_allclose(second[:, 1].max() - second[:, 1].min(), 6.0 / 1.99, rtol=1e-5)
    np.testing.assert_allclose(np.unique(mesh["color"]), [1.0, 2.0])


def test_a_colour_that_is_not_there_is_refused(frame: Frame) -> None:
    with pytest.raises(FluidError, match=r"did you mean 'Strength\.alpha'"):
        glyphs(frame["ring"], 1.0, "Strength.alfa")
