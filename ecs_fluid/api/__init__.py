"""What users call from Python, and the command line too: runs, and pictures of runs and worlds.

* ``running``: `run` makes a world into a run folder; ``runs``: `open_run` and the `Run` that reads one;
* ``table``: the diagnostics of a run; ``stored``: what pictures need of a run folder;
* ``pictures``: windows, pictures and movies; ``pyvista_objects``: populations, fields and bodies for PyVista;
* ``sampling``: the fields of a world at the points of a mesh;
* ``progress``: bars; ``stopping``: Ctrl-C.
"""
