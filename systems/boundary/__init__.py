"""BoundarySystem and its three conditions: the article's, panels, and the boundary layer."""
