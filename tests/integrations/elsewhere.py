"""A process of its own for what forks: the one that runs the tests has threads of TensorFlow's and JAX's."""

from __future__ import annotations

import multiprocessing
import warnings
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures import TimeoutError as NoAnswer
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


class Elsewhere:
    """Calls functions in another process, and ends it if it does not answer in time."""

    def __init__(self) -> None:
        self._pool: ProcessPoolExecutor | None = None

    def __call__(self, function: Callable[..., Any], *args: Any, timeout: float = 60, **options: Any) -> Any:
        """Return what the function does, or raise what it raises; `timeout` is in seconds, and hard."""
        if self._pool is None:
            context = multiprocessing.get_context("spawn")
            self._pool = ProcessPoolExecutor(1, mp_context=context, initializer=_warnings_are_errors)
        try:
            return self._pool.submit(function, *args, **options).result(timeout)
        except NoAnswer:
            self.end(kill=True)
            message = f"{function.__name__} did not end within {timeout} s"
            raise AssertionError(message) from None

    def end(self, *, kill: bool = False) -> None:
        """End the process."""
        pool, self._pool = self._pool, None
        if pool is None:
            return
        for process in list(pool._processes.values()) if kill else ():
            process.kill()
        pool.shutdown(wait=True, cancel_futures=True)


def _warnings_are_errors() -> None:
    warnings.simplefilter("error")
    # What torchdata 0.11 asks of newer versions of PyTorch, and what PyTorch thinks of machines with few processors.
    warnings.filterwarnings("ignore", "'set_vital' is deprecated", UserWarning)
    warnings.filterwarnings("ignore", "This DataLoader will create .* worker processes", UserWarning)
