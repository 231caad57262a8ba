"""Velocity, gradient and vector potential of vortons: regularised pairs, direct sum, tree."""
