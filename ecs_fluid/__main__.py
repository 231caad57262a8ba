"""`python -m ecs_fluid`: the command `ecs-fluid`, for where its script is not on the path."""

import sys

from ecs_fluid.cli import main

sys.exit(main())
