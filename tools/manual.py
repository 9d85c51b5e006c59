"""Writes the man pages and completions that packages bring, from the commands: `python tools/manual.py`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click
from click.shell_completion import ShellComplete, get_completion_class

from kubesched.cli.main import main
from kubesched.daemon.options import help_text

ROOT = Path(__file__).parents[1]
COMPLETIONS = {
    "bash": "bash-completion/completions/kubesched",
    "zsh": "zsh/site-functions/_kubesched",
    "fish": "fish/vendor_completions.d/kubesched.fish",
}
"""Where each shell looks for them, below a prefix's share/."""


def files() -> dict[str, str]:
    """Every file by its path in the repository: those of the sandbox are in its own distribution."""
    pages = {}
    for path, command in _commands(("kubesched",), main):
        share = "sandbox/share" if path[1:2] == ("sandbox",) else "share"
        pages[f"{share}/man/man1/{'-'.join(path)}.1"] = _page(path, command)
    pages["share/man/man1/kubectl-sched.1"] = ".so man1/kubesched.1\n"
    return pages | {f"share/{place}": _completion(shell) for shell, place in COMPLETIONS.items()}


def _completion(shell: str) -> str:
    complete = get_completion_class(shell)
    assert complete is not None
    # The method of the base class: that of bash asks the bash of this machine for its version.
    return ShellComplete.source(complete(main, {}, "kubesched", "_KUBESCHED_COMPLETE"))


def _commands(path: tuple[str, ...], command: click.Command) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    yield path, command
    for name, inner in _inner(command):
        yield from _commands((*path, name), inner)


def _inner(command: click.Command) -> Iterator[tuple[str, click.Command]]:
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield name, inner


def _page(path: tuple[str, ...], command: click.Command) -> str:
    name = "-".join(path)
    context = click.Context(command, info_name=" ".join(path), **main.context_settings)
    runs = path[1:] == ("run",)
    usage = "[FLAGS]" if runs else " ".join(command.collect_usage_pieces(context))
    beginning, _, rest = (command.help or "").strip().partition("\n\n")
    first = " ".join(beginning.split())
    lines = [
        f'.TH "{name.upper()}" "1" "" "kubesched"',
        *(".SH NAME", f"{_escaped(name)} \\- {_escaped(_sentence(first))}"),
        *(".SH SYNOPSIS", f".B {_escaped(' '.join(path))}", _escaped(usage)),
        *(".SH DESCRIPTION", _escaped(first), *_paragraphs(rest)),
        *(_flags_of_run() if runs else _options(command, context)),
    ]
    inner = list(_inner(command))
    if inner:
        lines.append(".SH COMMANDS")
    for name_of_inner, each in inner:
        lines += [
            ".TP",
            f".BR {_escaped('-'.join((*path, name_of_inner)))} (1)",
            _escaped(each.get_short_help_str(200)),
        ]
    return "\n".join(line for line in [*lines, *_see_also(path)] if line) + "\n"


def _sentence(text: str) -> str:
    """The first sentence without its full stop: what apropos shows."""
    return re.split(r"(?<=\w)\.(?:\s|$)", text)[0]


def _paragraphs(text: str) -> Iterator[str]:
    for paragraph in filter(None, text.split("\n\n")):
        yield from (".PP", _escaped(" ".join(paragraph.split())))


def _options(command: click.Command, context: click.Context) -> Iterator[str]:
    yield ".SH OPTIONS"
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record is not None and record[1]:
            yield from (".TP", f".B {_escaped(record[0])}", _escaped(" ".join(record[1].split())))


def _flags_of_run() -> Iterator[str]:
    """`run` reads kube-scheduler's flags itself, and says so in the form of kube-scheduler."""
    _, _, flags = help_text(width=0).partition("[flags]\n")
    for line in flags.splitlines():
        flag = re.match(r"\s+(--?\S.*?)(?:\s{2,}|$)(.*)", line)
        if flag is not None:
            yield from (".TP", f".B {_escaped(flag[1])}", _escaped(flag[2]))
        elif line.endswith("flags:"):
            yield f'.SH "{_escaped(line.removesuffix(":")).upper()}"'
        else:
            yield _escaped(line.strip())


def _see_also(path: tuple[str, ...]) -> Iterator[str]:
    yield ".SH SEE ALSO"
    if len(path) > 1:
        yield f".BR {_escaped('-'.join(path[:-1]))} (1),"
    yield "https://github.com/kubesched/kubesched"


def _escaped(text: str) -> str:
    """Text as roff takes it: a backslash, a hyphen, and a point or apostrophe that begins a line mean something."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return re.sub(r"^(?=[.'])", r"\\&", text, flags=re.MULTILINE)


if __name__ == "__main__":
    wanted = files()
    for share in ("share", "sandbox/share"):
        for old in (ROOT / share).rglob("*"):
            if old.is_file() and str(old.relative_to(ROOT)) not in wanted:
                old.unlink()
    for place, text in wanted.items():
        (ROOT / place).parent.mkdir(parents=True, exist_ok=True)
        (ROOT / place).write_text(text)
