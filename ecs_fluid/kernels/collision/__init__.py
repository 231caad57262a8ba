"""Particles against bodies: paths, surfaces, and what is exchanged there."""
