"""Reads the words of all commands off the command line; run by hand, it writes the file that answers shells."""

import json
from pathlib import Path

import typer

from dpci.cli import words
from dpci.cli.commands.all import app

FILE = Path(words.__file__).with_name(words.FILE)


def read_off():
    """The text of the file: every command, its options and the words that complete them, a line for each option."""
    return text_of(typer.main.get_command(app), None) + "\n"


def text_of(command, parent):
    context = command.make_context("dpci", ["--"], parent=parent, resilient_parsing=True)
    params = ",\n".join(json.dumps(of_parameter(each, context), ensure_ascii=False) for each in command.params)
    text = f'{{"help": {json.dumps(command.get_short_help_str())}, "params": [\n{params}\n]'
    if hasattr(command, "commands"):
        inner = ((name, command.commands[name]) for name in command.list_commands(context))
        commands = ",\n".join(f"{json.dumps(name)}: {text_of(each, context)}" for name, each in inner)
        text += f', "commands": {{\n{commands}\n}}'
    return text + "}"


def of_parameter(param, context):
    kind = "argument" if param.param_type_name == "argument" else "flag" if param.is_flag else "value"
    names = (
        [param.name] if kind == "argument" else ["/".join((*param.opts[:1], *param.secondary_opts)), *param.opts[1:]]
    )
    words = [item.value for item in param.shell_complete(context, "")]
    found = {"kind": kind, "names": names, "help": param.help}
    return {
        **found,
        **({"many": True} if param.multiple or param.nargs == -1 else {}),
        **({"words": words} if words else {}),
    }


if __name__ == "__main__":
    FILE.write_text(read_off(), encoding="utf-8")
