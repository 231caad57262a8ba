"""Collisions of particles with bodies: paths, surfaces, and exchange of momentum and heat."""
