"""Vortex sheets on the surfaces of bodies."""
