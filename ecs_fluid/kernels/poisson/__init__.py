"""Poisson's equation on grids: multigrid, and the Green's function of unbounded space."""
