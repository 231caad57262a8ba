"""The command that prints scripts for shell completion."""

from __future__ import annotations

from typing import Literal

from ecs_fluid.cli import app, register


@app.command
def completion(shell: Literal["bash", "zsh", "fish"], /) -> None:
    """Print the script with which a shell completes commands, options, names of worlds and files.

    * bash: `ecs-fluid completion bash > ~/.local/share/bash-completion/completions/ecs-fluid`
    * zsh, where `~/.zfunc` is in fpath: `ecs-fluid completion zsh > ~/.zfunc/_ecs-fluid`
    * fish: `ecs-fluid completion fish > ~/.config/fish/completions/ecs-fluid.fish`
    """
    register()
    script = app.generate_completion(shell=shell)
    # Where no name fits, bash completes files: a world may be one.
    print(script.replace("\ncomplete -F ", "\ncomplete -o default -F "))
