"""Blobs of flow in a plane."""
