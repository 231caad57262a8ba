"""Rigid bodies: rotation, shapes, contacts, impacts, drag and buoyancy."""
