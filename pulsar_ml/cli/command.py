"""The click classes of every command: groups of options, examples, exit codes, errors."""

from __future__ import annotations

import errno
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import click

from pulsar_ml.errors import PulsarMlError
from pulsar_ml.exit_codes import BASIC, FAILED, INTERRUPTED, USAGE, ExitCode
from pulsar_ml.input_files import one_line
from pulsar_ml.terminal import signals
from pulsar_ml.terminal.printer import echo, leave_closed_output

NAMES_OF_HELP = {"help_option_names": ["-h", "--help"]}
GENERAL, LIMITS, OUTPUT = "General", "Limits", "Output"
NUMBERS = (click.types.IntParamType, click.types.FloatParamType)
TRACEBACK = "pulsar_ml.cli.traceback"
PERMISSION = "; check the rights and the owner of this place, or choose another one"
ROOM = "; make room or choose another place"
ADVICE = {
    errno.ENOSPC: ROOM,
    errno.EDQUOT: ROOM,
    errno.EFBIG: ROOM,
    errno.EACCES: PERMISSION,
    errno.EPERM: PERMISSION,
    errno.EROFS: PERMISSION,
    errno.EIO: "; the disk may be broken: choose another place",
    errno.EMFILE: "; raise the limit of open files (ulimit -n)",
    errno.EAGAIN: "; this user may start no more processes (ulimit -u)",
}

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


class Option(click.Option):
    """An option that knows the group under which the help lists it."""

    def __init__(self, *arguments: Any, group: str = GENERAL, **attributes: Any) -> None:
        super().__init__(*arguments, **attributes)
        self.group = group
        if self.metavar is None and isinstance(self.type, NUMBERS) and not self.is_flag:
            self.metavar = "N"

    def get_help_extra(self, context: click.Context) -> click.types.OptionHelpExtra:
        extra = super().get_help_extra(context)
        extra.pop("range", None)  # the message about a wrong number names it
        return extra


def option(*names: str, group: str = GENERAL, **attributes: Any) -> Decorator:
    """``click.option`` with a group."""
    return click.option(*names, cls=Option, group=group, **attributes)


# Here and not in options.py, so that a command that takes no time does not import that module.
as_json = option("--json", "as_json", is_flag=True, group=OUTPUT, help="Print JSON.")


class Command(click.Command):
    """A command whose function returns its exit code, or None for 0."""

    def __init__(
        self,
        *arguments: Any,
        examples: Sequence[str] = (),
        exit_codes: Sequence[ExitCode] = BASIC,
        go_on: str = "",
        **attributes: Any,
    ) -> None:
        """``go_on``: how to go on after the disk was full, where the command can."""
        attributes.setdefault("context_settings", NAMES_OF_HELP)
        super().__init__(*arguments, **attributes)
        self.examples = examples
        self.exit_codes = exit_codes
        self.go_on = go_on
        self.params.append(
            Option(
                ["--traceback"],
                is_flag=True,
                is_eager=True,
                expose_value=False,
                callback=_keep_traceback,
                help="Print the Python traceback of an unexpected error.",
            )
        )

    def make_context(self, *arguments: Any, **more: Any) -> click.Context:
        try:
            return super().make_context(*arguments, **more)
        except BrokenPipeError:  # of --help
            leave_closed_output()
        except PulsarMlError as error:  # of a callback
            message, code = explained(error)
            raise ReportedError(message, code) from None

    def invoke(self, context: click.Context) -> Any:
        with errors_as_sentences(context), signals.interrupting():
            code = super().invoke(context)
        if code == INTERRUPTED:  # by which signal
            code = signals.code()
        if isinstance(code, int) and code:
            context.exit(int(code))
        return None

    def format_options(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        groups: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(context):
            record = parameter.get_help_record(context)
            if record is not None and isinstance(parameter, click.Option):
                groups.setdefault(getattr(parameter, "group", GENERAL), []).append(record)
        general = groups.pop(GENERAL, None)
        for title, records in [*groups.items(), *([(GENERAL, general)] if general else [])]:
            with formatter.section(title):
                formatter.write_dl(records, col_max=26)

    def format_epilog(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        if self.examples:
            with formatter.section("Examples"):
                for example in self.examples:
                    formatter.write(f"{'':>{formatter.current_indent}}{example}\n")
        write_exit_codes(formatter, self.exit_codes)


def write_exit_codes(formatter: click.HelpFormatter, codes: Sequence[ExitCode]) -> None:
    with formatter.section("Exit codes"):
        formatter.write_dl([(str(int(code)), code.sentence) for code in codes])


def command(
    name: str, *, examples: Sequence[str] = (), exit_codes: Sequence[ExitCode] = BASIC, **more: Any
) -> Callable[[Callable[..., Any]], Command]:
    """The decorator of a command of ``pulsar-ml``; examples lack the program's name."""
    full = [f"pulsar-ml {example}" for example in examples]
    return click.command(name, cls=Command, examples=full, exit_codes=exit_codes, **more)


def _keep_traceback(context: click.Context, parameter: click.Parameter, value: bool) -> None:
    if value:
        context.meta[TRACEBACK] = True


class ReportedError(click.ClickException):
    """An error whose message is complete; ``exit_code`` is the command's."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.exit_code = int(code)  # type: ignore[misc]

    def show(self, file: Any = None) -> None:
        echo(self.message, err=True)


@contextmanager
def errors_as_sentences(context: click.Context) -> Iterator[None]:
    """Turns exceptions into one sentence and an exit code; no exception ends with code 1."""
    try:
        yield
    except (click.ClickException, click.exceptions.Exit):
        raise
    except (KeyboardInterrupt, click.Abort) as error:
        code = signals.code(getattr(error, "number", 0))
        raise ReportedError("Interrupted", code) from None
    except Exception as error:
        if context.meta.get(TRACEBACK):
            traceback.print_exc()
        message, code = explained(error)
        if isinstance(error, OSError) and ADVICE.get(error.errno or 0) == ROOM:
            message += getattr(context.command, "go_on", "")
        raise ReportedError(message, code) from None


def explained(error: Exception) -> tuple[str, ExitCode]:
    """The message about an error, and the exit code."""
    if isinstance(error, PulsarMlError):
        if isinstance(error, ValueError):  # a wrong input, not a failure
            return f"Error: {error}", USAGE
        return f"Failed: {error}", FAILED
    if isinstance(error, OSError):  # a name that is too long, a full disk
        return f"Failed: {system_error(error)}", FAILED
    if isinstance(error, MemoryError):
        return f"Failed: out of memory{f': {error}' if str(error) else ''}", FAILED
    if isinstance(error, ImportError):
        return f"Failed: {one_line(error)}", FAILED
    return f"Failed: unexpected {one_line(error)} (--traceback shows where)", FAILED


def system_error(error: OSError) -> str:
    """The sentence about a refusal of the system: its place, its reason, and advice."""
    place = "" if error.filename is None else f"{error.filename}: "
    return f"{place}{error.strerror or error}{ADVICE.get(error.errno or 0, '')}"
