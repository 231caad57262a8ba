"""Pictures of a run: plain arrays in, PyVista objects, PNGs and movies out.

A *frame* is ``dict[population name, dict[column name, array]]`` as a trajectory stores it. Only what draws
imports PyVista, so importing this package costs nothing:

* ``arrows``: arrows of strength; ``fields``: slices and streamlines of a velocity function;
* ``scene``: ``render`` and ``save_png``; ``movie``: ``movie``; ``shared_limits``: the view all frames share;
* ``surfaces``: pictures of a liquid's surface; ``surface_movie``: movies of it; ``camera_path``: cameras that
  move; ``matplotlib_picture``: pictures without OpenGL; ``window`` and ``serve``: a world while it is
  simulated; ``layers``: the parts of a picture;
* ``probe``: ``require_gl``, the check before every rendering.
"""
