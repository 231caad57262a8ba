"""Uniform grids, particles sorted by cell, neighbours, interpolation and finite differences."""
