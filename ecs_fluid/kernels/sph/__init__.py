"""Smoothed particle hydrodynamics."""
