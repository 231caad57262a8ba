"""SurfaceSystem: signed distance, mesh and motion of a liquid's surface."""
