"""Files of a run: its folder, the trajectory, checkpoints. Plain arrays in, plain arrays out.

Nothing here knows worlds or systems. Import from the module that names the thing:
``ecs_fluid.io.runfolder``, ``ecs_fluid.io.trajectory``, ``ecs_fluid.io.checkpoint``, ``ecs_fluid.io.xdmf``,
``ecs_fluid.io.fields``.
"""
