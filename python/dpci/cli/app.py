"""The application that every command joins, with help that shows options in groups and examples as they are typed."""

import contextlib
import sys
from json import dumps as to_json
from typing import Annotated, Any, Final

import typer
from typer.core import TyperCommand, TyperGroup

from dpci import _core
from dpci.base.progress import is_watched

# The base class of everything that is wrong with a command line; typer exports one of its kinds only.
WrongUsage: Final[Any] = typer.BadParameter.__bases__[0]

WORKFLOW: Final = """\
Differentially private models with confidence intervals.

\b
From a table to a published model:
  dpci check     show what a schema would change or refuse in a table
  dpci plan      predict the cost and the precision of a fit, before any data
  dpci ledger    keep one total budget for all fits to a table
  dpci schema    release the bounds that a schema lacks
  dpci fit       fit a private model to a table, and release it with its intervals
  dpci tune      choose one of several public candidates with privacy, and fit it
  dpci regress   release a moment matrix and a linear regression from it
  dpci report    show a released model, or write it as one HTML page
  dpci verify    check a model against its hash, its schema and its ledger
  dpci compare   differences of two released models, with intervals
  dpci predict   predict for the rows of another table
Evidence; these commands read data without privacy, or no data:
  dpci coverage, dpci audit, dpci data

Every command has --help with examples. --json prints JSON. Progress and notes go to stderr.
"""

EXIT_CODES: Final = """\
  0    success
  1    dpci audit refuted a claim, dpci verify or report --officer found a difference, or dpci check found a refusal
  2    wrong usage, or a refusal: one line on stderr names the rule and the value that broke it
  3    the ledger's total does not cover the budget; nothing was released
  4    the release failed after its budget was spent; a ledger with private errors gives no reason
  5    a linear regression was released and spent, but the noise hides it; stderr has the reason
  6    dpci verify or report --officer lacks the ledger, the agreed schema, or the version that made the file
  70   a defect of dpci, with its traceback; nothing was released
  74   released and spent, but not written in full: one line on stderr says where the model is
  129  ended by SIGHUP
  130  interrupted (Ctrl-C)
  141  the reader of the output closed it (as in dpci ... | head)
  143  ended by SIGTERM
"""

_ORDER: Final = (
    *("check", "plan", "ledger", "schema", "fit", "tune", "regress", "report", "verify", "compare", "predict"),
    *("data", "coverage", "audit", "demo"),
)


def _write_examples(epilog: str | None, formatter: Any) -> None:  # noqa: ANN401  # click's own, which typer packs
    """Write the examples without wrapping their lines: they are there to be copied."""
    if epilog:
        with formatter.section("Examples"):
            formatter.write("".join(f"  {line}\n" for line in epilog.splitlines()))


class Command(TyperCommand):
    """A command whose options are shown in the groups that they name, and whose epilog is its examples."""

    def format_options(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401  # click's own, which typer packs
        """Write one section for each group, in the order of the first of its options."""
        groups: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is not None:
                general = "Arguments" if param.param_type_name == "argument" else "Options"
                groups.setdefault(getattr(param, "rich_help_panel", None) or general, []).append(record)
        for title, records in groups.items():
            with formatter.section(title):
                formatter.write_dl(records)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401, ARG002  # as above
        """Write the examples."""
        _write_examples(self.epilog, formatter)


class ExampleGroup(TyperGroup):
    """Commands of one kind, with examples."""

    def format_epilog(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401, ARG002  # as above
        """Write the examples."""
        _write_examples(self.epilog, formatter)


class Group(TyperGroup):
    """The program itself: its commands in the order of their use, and its exit codes."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ANN401  # as above
        """Return the names of the commands, those of daily use first."""
        places = {name: place for place, name in enumerate(_ORDER)}
        return sorted(super().list_commands(ctx), key=lambda name: places.get(name, len(places)))

    def format_epilog(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401, ARG002  # as above
        """Write the epilog as it stands."""
        if self.epilog:
            with formatter.section("Exit codes"):
                formatter.write(self.epilog)


# Plain text everywhere: it reads the same in a terminal, a pipe and a log, and NO_COLOR has nothing to switch off.
app = typer.Typer(
    cls=Group,
    help=WORKFLOW,
    epilog=EXIT_CODES,
    no_args_is_help=True,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _version(wanted: bool) -> None:  # noqa: FBT001  # typer calls it
    if wanted:
        typer.echo(f"dpci {_core.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    *,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


def show_json(value: object) -> None:
    """Print one JSON document."""
    typer.echo(to_json(value, indent=2, allow_nan=False, ensure_ascii=False))


def note(text: str, *, quiet: bool = False) -> None:
    """Say something beside the output, which may be read by a program."""
    if not quiet:
        with contextlib.suppress(OSError):  # what it speaks of is done all the same
            typer.echo(text, err=True)


def wants_progress(progress: bool | None, *, quiet: bool) -> bool:  # noqa: FBT001  # the option as it was given
    """Whether to show progress: as asked, otherwise on a terminal where tqdm is installed."""
    if progress is not None:
        return progress and sys.stderr is not None  # closed
    return not quiet and is_watched()
