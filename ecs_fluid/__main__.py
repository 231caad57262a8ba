"""`python -m ecs_fluid`: the command `ecs-fluid`, for where its script is not on the path."""

from ecs_fluid.cli import main

main()
