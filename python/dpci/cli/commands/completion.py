"""The command ``completion``: prints what makes a shell complete commands, options, names of schemas and data sets."""

from typing import Annotated

import typer
from typer.completion import (  # type: ignore[attr-defined]  # there in every version, though not marked as exported
    get_completion_script,
)

from dpci.base.validation import check_choice
from dpci.cli import options
from dpci.cli.app import Command, app

SHELLS = ("bash", "zsh", "fish")

_EXAMPLES = """\
dpci completion bash                       # once: eval "$(dpci completion bash)"; for good: in ~/.bashrc
dpci completion fish                       # to ~/.config/fish/completions/dpci.fish
"""


@app.command(cls=Command, epilog=_EXAMPLES)
def completion(
    shell: Annotated[str, typer.Argument(help="Shell: bash, zsh or fish.", autocompletion=options.completes(*SHELLS))],
) -> None:
    """Print the completion script of a shell."""
    shell = check_choice("shell", shell, SHELLS)
    typer.echo(get_completion_script(prog_name="dpci", complete_var="_DPCI_COMPLETE", shell=shell))
