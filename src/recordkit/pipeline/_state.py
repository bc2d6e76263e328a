"""State: the position of an iteration, in a few numbers that JSON can hold."""

from __future__ import annotations

from typing import Any, Final

from recordkit.errors import StateError
from recordkit.storage.format import side_json as declare

FORMAT: Final = 1
_KEYS: Final = {
    "format": declare.number(1, FORMAT),
    "epoch": declare.number(0, (1 << 62) - 1),
    "at": declare.anything,
    "dataset": declare.text(),
    "order": declare.array(declare.text()),
}
_PAIR: Final = declare.array(declare.number(), 2)
_MORE: Final = {"ranks": declare.or_null(_PAIR), "every": declare.or_null(_PAIR)}
_STATE: Final = declare.record(_KEYS, _MORE)


def made(epoch: int, at: Any, dataset: str, order: list[str], ranks: list[int] | None) -> dict[str, Any]:
    """Return a state.

    Args:
        epoch: Which epoch it is.
        at: The mark after the last element given.
        dataset: The digest of the records.
        order: The steps that decide which elements come when, in words.
        ranks: Rank and world, if other ranks cannot use the state.
    """
    state: dict[str, Any] = {"format": FORMAT, "epoch": epoch, "at": at, "dataset": dataset, "order": order}
    return state if ranks is None else {**state, "ranks": ranks}


def checked(state: Any, dataset: str, order: list[str], ranks: list[int] | None, tied: str | None) -> tuple[int, Any]:
    """Return the epoch and mark of a state.

    Raises:
        StateError: It is not a state, or it is of another dataset, of other steps, or of other ranks.
    """
    if not isinstance(state, dict) or not _KEYS.keys() <= state.keys():
        message = f"expected what state_dict() returned, found {type(state).__name__}"
        raise StateError(message)
    found = state["format"]
    if type(found) is int and found > FORMAT:
        message = (
            f"the state has format {declare.in_words(found)}, and this recordkit knows {FORMAT}\n"
            "  Install a newer recordkit."
        )
        raise StateError(message)
    try:
        _STATE({key: value for key, value in state.items() if key in _KEYS or key in _MORE})
    except declare.FormatMismatch as unlike:
        message = f"this is not a state: {unlike}\n  Pass what state_dict() returned."
        raise StateError(message) from None
    if state["dataset"] != dataset:
        message = (
            "the state is of other records: "
            f"expected digest {state['dataset'][:16]}, found {dataset[:16]}\n"
            "  Open the dataset that the run started with, or start again."
        )
        raise StateError(message)
    then = state.get("ranks")
    if then is not None and then != ranks:
        found = "no ranks" if ranks is None else f"rank {ranks[0]} of {ranks[1]}"
        message = (
            f"the state is of rank {then[0]} of {then[1]}, and {found} cannot resume from it, "
            f"because of {tied or 'its steps'}\n  Resume with the same ranks."
        )
        raise StateError(message)
    if list(state["order"]) != order:
        expected, found = _line(state["order"]), _line(order)
        message = f"the state is of other steps\n  expected {expected}\n  found    {found}"
        raise StateError(message)
    return state["epoch"], state["at"]


def of_worker(state: Any, mark: Any, every: tuple[int, int] | None) -> Any:
    """Return the mark that a worker resumes from.

    Raises:
        StateError: The state is another worker's.
    """
    then = state.get("every")
    if then is None:
        return mark if every is None else [mark, 0]  # all workers resume where the whole pipeline was
    if every is None or list(every) != list(then):
        message = (
            f"the state is of worker {then[0]} of {then[1]}, and does not have the positions of the others\n"
            "  Resume with the same number of workers, each from its own state."
        )
        raise StateError(message)
    return mark


def whole_state(state: dict[str, Any]) -> dict[str, Any]:
    """Return the state of the whole pipeline after the last element that one of its workers gave."""
    return {**{name: value for name, value in state.items() if name != "every"}, "at": state["at"][0]}


def _line(order: Any) -> str:
    return " > ".join(map(str, order)) or "records in file order"
