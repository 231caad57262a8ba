"""VelocitySystem and its solvers."""
