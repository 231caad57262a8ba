"""Vortex-particle fluid simulation as an entity-component-system."""
