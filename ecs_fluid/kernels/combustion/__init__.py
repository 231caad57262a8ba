"""Burning."""
