"""Fields on the uniform grid; they live on the world's `fluid` entity."""

from __future__ import annotations

from ecs_fluid.component import Array, Component, column


class Grid(Component, derived=True, per_row=False):
    """Uniform grid that encloses all particles; points stand at origin + index * spacing.

    ``flat`` is 1 for an axis along which the particles have no extent (a two-dimensional world).
    """

    origin: Array = column("m", shape=(3,))
    spacing: Array = column("m", shape=(3,))
    cells: Array = column("1", shape=(3,), kind="int")
    flat: Array = column("1", shape=(3,), kind="int", default=0)


class VelocityField(Component, derived=True, per_row=False):
    """Velocity at the grid points; empty where no particle or system reads it (`to_pyvista` computes it)."""

    u: Array = column("m/s", shape=(None, None, None, 3))


class TransferGrid(Component, derived=True, per_row=False):
    """Uniform grid around particles with density, temperature or species; cells as large as a particle."""

    origin: Array = column("m", shape=(3,))
    spacing: Array = column("m", shape=(3,))
    cells: Array = column("1", shape=(3,), kind="int")
    flat: Array = column("1", shape=(3,), kind="int", default=0)


class DensityField(Component, derived=True, per_row=False):
    """Density at the points of the TransferGrid.

    ``rho`` is the density of the mixture of particles, and of ambient fluid where they leave room. ``excess``
    is, per volume, the mass of particles less that of the ambient fluid they displace; its total is that of
    all particles.
    """

    rho: Array = column("kg/m^3", shape=(None, None, None))
    excess: Array = column("kg/m^3", shape=(None, None, None))


class TemperatureField(Component, derived=True, per_row=False):
    """Temperature of the mixture at the points of the TransferGrid."""

    T: Array = column("K", shape=(None, None, None))


class SpeciesField(Component, derived=True, per_row=False):
    """Mass fractions of the mixture at the points of the TransferGrid."""

    fuel: Array = column("1", shape=(None, None, None))
    flame: Array = column("1", shape=(None, None, None))
    smoke: Array = column("1", shape=(None, None, None))


class FireField(Component, derived=True, per_row=False):
    """What a renderer needs of a fire, at the points of the TransferGrid.

    ``luminosity`` is the power that flame radiates per volume, ``opacity`` the fraction of light that smoke
    absorbs per length of path.
    """

    luminosity: Array = column("W/m^3", shape=(None, None, None))
    opacity: Array = column("1/m", shape=(None, None, None))
