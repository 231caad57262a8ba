"""Runs of a world on disk: running, estimating, stored surfaces, compiling beforehand."""
