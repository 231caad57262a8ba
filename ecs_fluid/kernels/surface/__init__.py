"""Signed distances and the surfaces of liquids."""
