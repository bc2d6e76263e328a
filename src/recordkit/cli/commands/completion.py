"""completion: for bash, zsh or fish."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import argparse

    from ..terminal.screen import Screen

EXAMPLES: Final = (
    'eval "$(recordkit completion bash)"          # in ~/.bashrc',
    'eval "$(recordkit completion zsh)"           # in ~/.zshrc, after compinit',
    "recordkit completion fish > ~/.config/fish/completions/recordkit.fish",
)

# Names of fields are data: a shell must never take them for anything else, whatever letters are in them.
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
    """Declare what the command takes."""
    parser.add_argument("shell", choices=list(_SCRIPTS), help="the shell")


def run(args: argparse.Namespace, screen: Screen) -> int:
    """Print the script."""
    screen.print(_SCRIPTS[args.shell])
    return 0
