"""completion: print the completion script for bash, zsh or fish."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

from recordkit.wording import clean

from .._commands import SUMMARIES
from .._parser import field, names, parser_of

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Sequence

    from ..terminal.screen import Screen

EXAMPLES: Final = (
    'eval "$(recordkit completion bash)"          # in ~/.bashrc',
    'eval "$(recordkit completion zsh)"           # in ~/.zshrc, after compinit',
    "recordkit completion fish > ~/.config/fish/completions/recordkit.fish",
)

# Field names are data: the shell must never interpret them, whatever characters they contain.
_BASH: Final = """\
_recordkit() {
    local word
    COMPREPLY=()
    while IFS= read -r word; do
        case "$word" in *[!A-Za-z0-9_/.,:=@%+-]*) printf -v word %q "$word" ;; esac
        [[ -n "$word" ]] && COMPREPLY+=("$word")
    done < <(recordkit __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -o default -F _recordkit recordkit"""
_ZSH: Final = """\
_recordkit() {
    local -a found
    found=("${(@f)$(recordkit __complete "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    if [[ -n "${found[1]}" ]]; then compadd -- "${found[@]}"; else _files; fi
}
compdef _recordkit recordkit"""
_FISH: Final = """\
function __recordkit
    set -l found (recordkit __complete (commandline -opc)[2..] (commandline -ct) 2>/dev/null)
    if test -n "$found"
        printf '%s\\n' $found
    else
        __fish_complete_path (commandline -ct)
    end
end
complete -c recordkit -f -a '(__recordkit)'"""
_SCRIPTS: Final = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("shell", choices=list(_SCRIPTS), help="the shell")


def run(args: argparse.Namespace, screen: Screen) -> int:
    """Print the script."""
    screen.print(_SCRIPTS[args.shell])
    return 0


# --- Called by the scripts when Tab is pressed. The shell itself completes files.


def candidates(words: Sequence[str]) -> list[str]:
    """Return the completions of the last word.

    >>> candidates(["re"]), candidates(["schema", "a.tfrecord", "--as", "p"])
    (['rename', 'repair'], ['python'])
    """
    *before, last = words or [""]
    if not before:
        return sorted(name for name in SUMMARIES if name.startswith(last))
    if before[0] not in SUMMARIES:
        return []
    parser = parser_of(before[0], import_module(f"recordkit.cli.commands.{before[0]}"))
    options = {option: action for action in parser._actions for option in action.option_strings}
    action = options.get(before[-1])
    if action is None or action.nargs == 0:  # a flag has no value
        if last.startswith("-"):
            return _starting(options, last)
        positional = [action for action in parser._actions if not action.option_strings]
        action = positional[min(len(before), len(positional)) - 1] if positional else None
    if action is not None and action.choices:
        return _starting(map(str, action.choices), last)
    return _fields(before[1:], last) if action is not None and action.type in (field, names) else []


def _starting(names: Iterable[str], last: str) -> list[str]:
    return sorted(name for name in names if name.startswith(last))


def _fields(words: Sequence[str], last: str) -> list[str]:
    """Return the completions of a list of fields, from the first dataset among the words."""
    import recordkit as rk

    done, comma, start = last.rpartition(",")
    for word in words:
        try:
            schema = rk.open(word).schema if not word.startswith("-") else None
        except (rk.RecordKitError, OSError):
            continue
        if schema is not None:
            shown = (name for name in schema.names if clean(name) == name)  # no control characters
            return [f"{done}{comma}{name}" for name in _starting(shown, start)]
    return []
