"""What several systems use: populations, properties, bodies, buffers."""
