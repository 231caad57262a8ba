"""Velocity by particle-particle particle-mesh: near pairs in full, and the smooth rest on a mesh."""
