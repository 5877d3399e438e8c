"""Answers a shell that completes words, from a file of all commands, because loading the commands takes long."""

import json
import os
import shlex
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from importlib.resources import files
from typing import Any, Final, NamedTuple

FILE: Final = "words.json"
"""Made by tests/support/words.py."""
_HELP: Final[dict[str, Any]] = {"kind": "flag", "names": ["-h/--help"], "help": "Show this message and exit."}


class Word(NamedTuple):
    """Word that may stand in the place of the one that is typed, and its meaning."""

    text: str
    meaning: str | None


def answer(asked: str) -> int:
    """Print what completes the line that the shell gives in environment variables; ``asked``: "complete_" and its name.

    The variables and the forms of the answers are those of the scripts of :mod:`typer.completion`.
    """
    if asked == "complete_bash":
        typed = _split(os.environ.get("COMP_WORDS", ""))
        place = int(os.environ.get("COMP_CWORD", "0"))
        line, last = typed[1:place], "".join(typed[place : place + 1])
    else:
        text = os.environ.get("_TYPER_COMPLETE_ARGS", "")
        line, last = _split(text)[1:], ""
        if line and not text.endswith(" "):
            *line, last = line
    found = completions(line, last)
    if asked == "complete_fish" and os.environ.get("_TYPER_COMPLETE_FISH_ACTION") == "is-args":
        return 0 if found else 1
    print(SHELLS[asked](found), flush=True)
    return 0


@dataclass
class _Place:
    """Where a line has got to: in which command, with which options, and behind which of them."""

    command: dict[str, Any]
    given: set[str] = field(default_factory=set)
    waiting: dict[str, Any] | None = None
    """The option whose value comes next."""
    n_arguments: int = 0

    @property
    def options(self) -> dict[str, dict[str, Any]]:
        """The options of the command by each of their names."""
        options = [param for param in (*self.command["params"], _HELP) if param["kind"] != "argument"]
        return {name: option for option in options for names in option["names"] for name in names.split("/")}

    def after(self, word: str) -> "_Place | None":
        """Return the place after one more word; None behind a command that is none."""
        if self.waiting is not None:
            return replace(self, waiting=None)
        if word.startswith("-") and "--" not in self.given:
            name, has_value, _ = word.partition("=")
            option = self.options.get(name, _HELP)
            waits = option["kind"] == "value" and not has_value
            return replace(self, given={*self.given, name}, waiting=option if waits else None)
        if "commands" not in self.command:
            return replace(self, n_arguments=self.n_arguments + 1)
        command = self.command["commands"].get(word)
        return None if command is None else _Place(command)

    def option_names(self) -> list[Word]:
        """Return the options that may still be given."""
        options = self.options
        spent = [options[name] for name in self.given if name in options and not options[name].get("many")]
        return [Word(name, option["help"]) for name, option in options.items() if option not in spent]

    def values(self) -> list[Word]:
        """Return what may be a value here, or a command."""
        if self.waiting is not None:
            return _values(self.waiting)
        if "commands" in self.command:
            return [Word(name, inner["help"]) for name, inner in self.command["commands"].items()]
        arguments = [param for param in self.command["params"] if param["kind"] == "argument"]
        here = arguments[self.n_arguments :] or [last for last in arguments[-1:] if last.get("many")]
        return _values(here[0]) if here else []


def completions(line: Iterable[str], last: str) -> list[Word]:
    """Return what may stand in place of ``last`` after the words of a line."""
    place: _Place | None = _Place(json.loads(files("dpci.cli").joinpath(FILE).read_text(encoding="utf-8")))
    for word in line:
        place = None if place is None else place.after(word)
    if place is None:
        return []
    name, has_value, value = last.partition("=")
    if has_value and name in place.options:
        last, possible = value, _values(place.options[name])
    elif last.startswith("-") and "--" not in place.given:
        possible = place.option_names()
    else:
        possible = place.values()
    return [word for word in possible if word.text.startswith(last)]


def _values(param: dict[str, Any]) -> list[Word]:
    return [Word(word, None) for word in param.get("words", ())]


def _split(text: str) -> list[str]:
    """Return the words of a line as a shell divides it; of an open quotation, what is there."""
    lexer = shlex.shlex(text, posix=True, punctuation_chars=False)
    lexer.whitespace_split, lexer.commenters = True, ""
    words: list[str] = []
    try:
        words.extend(lexer)
    except ValueError:
        words.append(lexer.token)
    return words


def _for_bash(found: list[Word]) -> str:
    return "\n".join(word.text for word in found)


def _for_zsh(found: list[Word]) -> str:
    def quoted(text: str) -> str:
        text = text.replace('"', '""').replace("'", "''").replace("$", "\\$").replace("`", "\\`")
        return '"' + text.replace(":", "\\\\:") + '"'

    if not found:
        return "_files"
    return "_arguments '*: :((" + "\n".join(":".join(quoted(part) for part in word if part) for word in found) + "))'"


def _for_fish(found: list[Word]) -> str:
    return "\n".join("\t".join(part for part in word if part) for word in found)


SHELLS: Final = {"complete_bash": _for_bash, "complete_zsh": _for_zsh, "complete_fish": _for_fish}
