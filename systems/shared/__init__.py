"""What several systems use, each module with one subject: populations, bodies, walls, births, ..."""
