"""Harness: runs a scenario under the shim, breaks it at every operation, and judges what is left.

A scenario is a few functions that are called in a child process with a folder: `prepare` makes what is there before,
`write` is what is broken, `recover` and `resume` are what a user does afterwards. The laws:

1. Under the target's name there is exactly the old dataset or the new one, before and after `recover` (for appending,
   after it).
2. Resuming gives, byte for byte, what a run without a crash gives, leaves nothing else behind, and redoes no rows of
   shards that were finished.
3. A run that ended without an error has put the new dataset there, and it lasts: no crash afterwards takes it away.
4. A call that fails ends the run with an error that names the path and says what to do.

Every check returns the violations it found, each as text with the operations around the place.
"""

from __future__ import annotations

import copy
import errno
import itertools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from queue import SimpleQueue
from typing import IO, TYPE_CHECKING, Any, cast

from .laws import check_error, check_state, check_visible, differences, ending, is_published, target_in, visible_in
from .replay import Crash, Disk, Operation, Tree, crashes, materialise, read_log, snapshot
from .serving import Outcome, Request

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

REPOSITORY = Path(__file__).parents[3]
FULL = "RECORDKIT_CRASH_FULL"  # in the environment: every operation and every way of going on, instead of some


def build_shim(folder: Path) -> Path:
    """Compile the shim and return the library."""
    library = folder / "shim.so"
    source = Path(__file__).with_name("shim.cc")
    compiler = os.environ.get("CXX") or shutil.which("g++") or "clang++"
    options = ["-std=c++20", "-O1", "-fPIC", "-shared", "-Wall", "-Wextra", "-pthread"]
    subprocess.run([compiler, *options, "-o", str(library), str(source), "-ldl"], check=True)
    return library


@dataclass(frozen=True)
class Step:
    """A function of the scenario's module, which is called with the folder, and more arguments for it."""

    function: str
    options: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.function


@dataclass(frozen=True)
class Scenario:
    """What to break.

    Attributes:
        name: For people.
        module: Where the functions of the steps are.
        target: The name of the target in the folder.
        write: The run that is broken.
        resume: What is called after a crash, until there is the new dataset.
        prepare: Makes what is there before.
        recover: What whoever opens the target does first.
        discard: Removes what a run that broke off has left.
        is_safe_to_repeat: Whether `resume` may be called when the new dataset is there.
        needs_recover: Whether the target is neither the old dataset nor the new one before `recover`.
        old_renames: Whether the file system can rename only, and not exchange.
        finishes: The name, as a regular expression, that a file gets when rows are finished, never to be redone.
        finished_rows: How many rows each such file stands for, the last one for one at least; `resume` returns how many
            rows it did not redo.
        look: Opens the dataset and returns what a reader sees, for what is done to a dataset that is there: then hidden
            files may be anywhere, and may stay once the new state is there.
        read: Opens the target and returns what a reader sees; or says that it is to be recovered first, where there is
            nothing under its name, or only part of what is being added.
        only_look: Whether files do not count at all, and old and new are what `look` returns.
    """

    name: str
    module: str
    target: str
    write: Step
    resume: Step
    prepare: Step | None = None
    recover: Step | None = None
    discard: Step | None = None
    is_safe_to_repeat: bool = True
    needs_recover: bool = False
    old_renames: bool = False
    finishes: str = ""
    finished_rows: int = 0
    look: Step | None = None
    read: Step | None = None
    only_look: bool = False

    def seen(self, tree: Tree) -> Tree:
        """Return what of a folder counts."""
        return target_in(tree, self.target) if self.look is None else visible_in(tree)

    def finished(self, operations: Iterable[Operation]) -> int:
        """Return how many rows are finished after these operations."""
        names = [one.other for one in operations if one.name == "rename" and one.result == 0]
        count = sum(re.search(self.finishes, name) is not None for name in names)
        return self.finished_rows * (count - 1) + 1 if count and self.finished_rows else 0

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Recording:
    """An uninterrupted run.

    Attributes:
        scenario: What was run.
        before: The folder before.
        after: The folder afterwards, and after any other way to the new dataset.
        old: The target before.
        new: The target afterwards.
        operations: What was done.
        start: The disk before.
        step: What is broken: the scenario's `write`, or a later one.
        ends_new: Whether the new dataset is there when the run has ended.
        ends_tidy: Whether nothing of the run is left once the new dataset is there; not so if it is written once more.
        views: What readers see before and afterwards, if the scenario has them look.
    """

    scenario: Scenario
    before: Tree
    after: Tree
    old: Tree
    new: Tree
    operations: tuple[Operation, ...]
    start: Disk
    step: Step
    ends_new: bool = True
    ends_tidy: bool = True
    views: tuple[Any, ...] = ()

    def disk(self, operations: Iterable[Operation] = ()) -> Disk:
        """Return the disk as it was before the run, or after these operations of it."""
        disk = copy.deepcopy(self.start)
        for operation in operations:
            disk.apply(operation)
        return disk


class Server:
    """A process that runs functions in children under the shim; see `serving`."""

    def __init__(self, shim: Path) -> None:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("RK_SHIM_")}
        environment |= {"LD_PRELOAD": str(shim), "OPENBLAS_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.storage.crash.serving"],
            cwd=REPOSITORY,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def call(self, request: Request) -> Outcome:
        """Call a function in a child and return how it ended."""
        questions, answers = cast("IO[str]", self._process.stdin), cast("IO[str]", self._process.stdout)
        questions.write(json.dumps(asdict(request)) + "\n")
        questions.flush()
        outcome = json.loads(answers.readline())
        return Outcome(**{**outcome, "error": tuple(outcome["error"])})

    def close(self) -> None:
        """Let the process end."""
        self._process.communicate(timeout=60)


class Harness:
    """Runs trials, as many at a time as there are cores.

    Args:
        shim: The library.
        folder: Where trials take place; best in memory, for they are many and fsync nothing that matters.
        full: Whether each state is gone on from in every way, instead of in one.
    """

    def __init__(self, shim: Path, folder: Path, *, full: bool = False, servers: int = 2) -> None:
        self._full = full
        self._folder = folder.resolve()
        self._numbers = itertools.count()
        self._lock = threading.Lock()
        self._servers = [Server(shim) for _ in range(servers)]
        self._free: SimpleQueue[Server] = SimpleQueue()
        for server in self._servers:
            self._free.put(server)
        self._threads = ThreadPoolExecutor(servers)
        self._recordings: dict[str, Recording] = {}

    def close(self) -> None:
        """Let the servers end."""
        self._threads.shutdown()
        for server in self._servers:
            server.close()

    def call(self, module: str, step: Step, root: Path, **plan: object) -> Outcome:
        """Call a function in a child under the shim, whose environment `plan` is, without RK_SHIM_."""
        environment = {f"RK_SHIM_{name.upper()}": str(value) for name, value in {"root": root, **plan}.items()}
        request = Request(module, step.function, str(root), step.options, environment)
        server = self._free.get()
        try:
            return server.call(request)
        finally:
            self._free.put(server)

    def every(self, trial: Callable[..., list[str]], cases: Iterable[Any]) -> list[str]:
        """Return the violations of all cases."""
        return [violation for found in self._threads.map(trial, cases) for violation in found]

    @contextmanager
    def place(self, tree: Tree) -> Iterator[Path]:
        """A folder with `tree` in it, for the time of the block."""
        with self._lock:
            root = self._folder / f"trial-{next(self._numbers)}"
        materialise(tree, root)
        try:
            yield root
        finally:
            shutil.rmtree(root)

    @contextmanager
    def _log(self) -> Iterator[Path]:
        with self._lock:
            log = self._folder / f"log-{next(self._numbers)}"
        yield log
        log.unlink(missing_ok=True)

    def _run(self, scenario: Scenario, step: Step, root: Path, **plan: object) -> Outcome:
        return self.call(scenario.module, step, root, old_renames=int(scenario.old_renames), **plan)

    # Recording

    def record(self, scenario: Scenario) -> Recording:
        """Return the uninterrupted run, which is recorded once."""
        if scenario.name not in self._recordings:
            self._recordings[scenario.name] = self._record(scenario)
        return self._recordings[scenario.name]

    def _record(self, scenario: Scenario) -> Recording:
        with self.place({}) as root:
            if scenario.prepare is not None:
                succeed(self._run(scenario, scenario.prepare, root))
            before = snapshot(root)
        with self.place(before) as root, self._log() as log:
            start = Disk(root)
            succeed(self._run(scenario, scenario.write, root, log=log))
            operations, after = tuple(read_log(log, root)), snapshot(root)
        old, new = scenario.seen(before), scenario.seen(after)
        views = tuple(self._view(scenario, tree) for tree in (before, after)) if scenario.look or scenario.read else ()
        recording = Recording(scenario, before, after, old, new, operations, start, scenario.write, views=views)
        assert not views or views[0] != views[1], "a reader sees no change"
        assert operations, "the shim saw nothing"
        assert recording.disk(operations).tree() == after, "the shim did not see all that was done: see its first lines"
        return recording

    def _view(self, scenario: Scenario, tree: Tree) -> Any:
        look = scenario.look or scenario.read
        assert look is not None
        with self.place(tree) as root:
            outcome = self._run(scenario, look, root)
        succeed(outcome)
        return outcome.value

    # Judging

    def judge(
        self, recording: Recording, tree: Tree, case: int, *, must_be_new: bool = False, finished: int = 0
    ) -> list[str]:
        """Return what is wrong with a folder after a crash, and after ways of going on from there.

        Args:
            recording: The run.
            tree: The folder.
            case: Says by which way, unless all are tried: they take turns.
            must_be_new: Whether the old dataset will not do.
            finished: How many rows may not be redone.
        """
        scenario = recording.scenario
        if not scenario.needs_recover and (found := self._check(recording, tree, "after the crash")):
            return found
        if (scenario.look or scenario.read) is not None and (found := self._looked(recording, tree)):
            return found
        ways = [self._recovered, self._resumed]
        if scenario.discard is not None:
            ways.append(self._begun_anew)
        if must_be_new:
            ways = ways[:1]
        found = []
        for way in ways if self._full else [ways[case % len(ways)]]:
            with self.place(tree) as root:
                found += way(recording, root, must_be_new, finished)
        return list(dict.fromkeys(found))

    @staticmethod
    def _check(recording: Recording, tree: Tree, when: str) -> list[str]:
        if recording.scenario.only_look:
            wrong = ""
        elif recording.scenario.look is not None:
            wrong = check_visible(tree, recording.old, recording.new)
        else:
            wrong = check_state(tree, recording.scenario.target, recording.old, recording.new)
        return [f"{when}: {wrong}"] if wrong else []

    def _looked(self, recording: Recording, tree: Tree) -> list[str]:
        """Let a reader look, who changes nothing."""
        scenario = recording.scenario
        look = scenario.look or scenario.read
        assert look is not None
        with self.place(tree) as root:
            outcome = self._run(scenario, look, root)
            changes = differences(snapshot(root), tree)
        if outcome.error or outcome.signal:
            return [f"{look} after the crash: {ending(outcome)}"]
        if changes:
            return [f"{look} after the crash: a reader changed this: {line}" for line in changes]
        wanted = recording.views
        if scenario.look is None:
            is_there = any(name == scenario.target for name in tree)
            if scenario.needs_recover or not is_there:
                wanted = (*wanted, "to be recovered")
        elif not scenario.only_look:
            wanted = (wanted[scenario.seen(tree) == recording.new],)
        return [] if outcome.value in wanted else [f"a reader sees {outcome.value}\n    and not {wanted}"]

    def _is_new(self, recording: Recording, root: Path) -> bool:
        if recording.scenario.only_look:
            return bool(self._view(recording.scenario, snapshot(root)) == recording.views[1])
        return recording.scenario.seen(snapshot(root)) == recording.new

    def _is_published(self, recording: Recording, root: Path) -> bool:
        if recording.scenario.look is not None:
            return self._is_new(recording, root)
        return is_published(snapshot(root), recording.scenario.target, recording.old, recording.new)

    def _differences(self, recording: Recording, root: Path, when: str, *, visible: bool = False) -> list[str]:
        if visible and recording.scenario.only_look:
            return [] if self._is_new(recording, root) else [f"{when}: a reader does not see the new state"]
        found, expected = snapshot(root), recording.after
        if visible:
            found, expected = visible_in(found), recording.new
        return [f"{when}: {line}" for line in differences(found, expected)]

    def _step(self, recording: Recording, step: Step, root: Path, finished: int = 0) -> list[str]:
        outcome = self._run(recording.scenario, step, root)
        if outcome.error or outcome.signal:
            return [f"{step} after the crash: {ending(outcome)}"]
        if outcome.value is not None and outcome.value < finished:
            return [f"{step} after the crash: {finished} rows were finished, and only {outcome.value} not redone"]
        return []

    def _recovered(self, recording: Recording, root: Path, must_be_new: bool, finished: int) -> list[str]:
        """Recover, look, and go on."""
        scenario = recording.scenario
        if scenario.recover is not None:
            found = self._step(recording, scenario.recover, root)
            found = found or self._check(recording, snapshot(root), f"after {scenario.recover}")
            if found:
                return found
        if self._is_published(recording, root):
            tidy = scenario.recover is not None and recording.ends_tidy
            return self._differences(recording, root, "after recover") if tidy else []
        if must_be_new:
            return ["the run ended well, and the target is the old one"]
        return self._resumed(recording, root, must_be_new, finished)

    def _resumed(self, recording: Recording, root: Path, must_be_new: bool, finished: int) -> list[str]:
        """Go on without looking."""
        scenario = recording.scenario
        if self._is_new(recording, root) and not scenario.is_safe_to_repeat:
            return []
        # Once the old dataset is gone, all is finished; what is called then may do it once more.
        is_old = scenario.seen(snapshot(root)) == recording.old
        found = self._step(recording, scenario.resume, root, finished if is_old else 0)
        visible = scenario.look is not None and not is_old
        return found or self._differences(recording, root, f"after {scenario.resume}", visible=visible)

    def _begun_anew(self, recording: Recording, root: Path, must_be_new: bool, finished: int) -> list[str]:
        """Throw away what is left, unless it is the new dataset, and begin again."""
        scenario = recording.scenario
        assert scenario.discard is not None
        found = self._step(recording, scenario.discard, root)
        found = found or self._check(recording, snapshot(root), f"after {scenario.discard}")
        if found:
            return found
        left = [name for name in snapshot(root) if name.startswith(".") and "/" not in name]
        found = [f"after {scenario.discard}: {name} should not be there" for name in left]
        if found:
            return found
        if self._is_published(recording, root):
            return self._differences(recording, root, f"after {scenario.discard}")
        found = self._step(recording, scenario.write, root)
        return found or self._differences(recording, root, f"after {scenario.discard} and {scenario.write}")

    # Breaking

    def lose_power(self, recording: Recording, chosen: Callable[[int], bool] = lambda _: True) -> list[str]:
        """Judge what a loss of power may leave behind: after each operation that is chosen, and after the run.

        After the others, the target is looked at all the same, since that costs nothing.
        """
        count = len(recording.operations)
        needs_recover = recording.scenario.needs_recover

        def trial(numbered: tuple[int, Crash]) -> list[str]:
            case, crash = numbered
            ended = crash.number > count
            if ended or chosen(crash.number):
                found = self.judge(recording, crash.tree, case, must_be_new=ended and recording.ends_new)
            else:
                found = [] if needs_recover else self._check(recording, crash.tree, "after the crash")
            return tell(recording, f"power lost after {crash.number}, {crash.label}", crash.number, found)

        states = list(crashes(recording.disk(), recording.operations))
        ended = recording.disk(recording.operations).trees()
        states += [Crash(count + 1, f"when the run had ended, {label}", tree) for label, tree in ended]
        return self.every(trial, enumerate(states))

    def kill(
        self, recording: Recording, numbers: Iterable[int], *, after: bool = False, torn: bool = False
    ) -> list[str]:
        """Kill the run just before each operation, or just `after` it, or when half of a write is done (`torn`)."""

        def trial(number: int) -> list[str]:
            plan = {"kill_after" if after or torn else "kill_at": number, "short_at": number if torn else 0}
            with self.place(recording.before) as root:
                outcome = self._run(recording.scenario, recording.step, root, **plan)
                tree = snapshot(root)
            must_be_new = recording.ends_new and not outcome.signal
            finished = recording.scenario.finished(recording.operations[: number - 1])
            found = self.judge(recording, tree, number, must_be_new=must_be_new, finished=finished)
            if outcome.signal not in (0, signal.SIGKILL) or outcome.error:
                found.append(f"expected to be killed: {ending(outcome)}")
            return tell(recording, f"killed, {plan}", number, found)

        return self.every(trial, numbers)

    def crash_again(self, recording: Recording, numbers: Iterable[int]) -> list[str]:
        """Kill the run at each operation, and then break what is called next, at all of its operations."""
        scenario = recording.scenario
        found = []
        for number in numbers:
            with self.place(recording.before) as root:
                self._run(scenario, scenario.write, root, kill_at=number)
                tree = snapshot(root)
            for step in filter(None, [scenario.recover, scenario.resume]):
                if step is scenario.resume and not scenario.is_safe_to_repeat and scenario.needs_recover:
                    continue
                with self.place(tree) as root, self._log() as log:
                    start = Disk(root)
                    succeed(self._run(scenario, step, root, log=log))
                    operations = tuple(read_log(log, root))
                named = replace(scenario, name=f"{scenario}, killed at {number}, then {step}")
                second = Recording(
                    named,
                    before=tree,
                    after=recording.after,
                    old=recording.old,
                    new=recording.new,
                    operations=operations,
                    start=start,
                    step=step,
                    ends_new=step is scenario.resume,
                    ends_tidy=step is scenario.recover,
                    views=recording.views,
                )
                some = range(1, len(operations) + 1) if self._full else range(1 + number % 5, len(operations) + 1, 5)
                found += self.kill(second, some)
                found += self.lose_power(second, set(some).__contains__)
        return found

    def fail(
        self, recording: Recording, numbers: Iterable[int], error: int, *, rest: bool = False, half: bool = False
    ) -> list[str]:
        """Let each operation fail, by `rest` all later ones too, by `half` after the write before it took half."""

        def trial(number: int) -> list[str]:
            plan = {"fail_at": number, "errno": error, "fail_rest": int(rest), "short_at": number - 1 if half else 0}
            with self.place(recording.before) as root, self._log() as log:
                outcome = self._run(recording.scenario, recording.step, root, log=log, **plan)
                done, tree = read_log(log, root), snapshot(root)
                found = check_error(outcome, error, root, done)
            finished = recording.scenario.finished(done[: number - 1])
            found += self.judge(recording, tree, number, must_be_new=not outcome.error, finished=finished)
            return tell(recording, f"{errno.errorcode[error]}, {plan}", number, found, done)

        return self.every(trial, numbers)

    def fail_then_lose_power(self, recording: Recording, numbers: Iterable[int]) -> list[str]:
        """Let each fsync fail, go on, and judge what a loss of power then leaves: it has to be the new dataset."""
        scenario = recording.scenario

        def trial(number: int) -> list[str]:
            with self.place(recording.before) as root, self._log() as log:
                disk = Disk(root)
                outcome = self._run(scenario, scenario.write, root, log=log, fail_at=number)
                if outcome.error and (scenario.is_safe_to_repeat or not self._is_new(recording, root)):
                    outcome = self._run(scenario, scenario.resume, root, log=log)
                elif outcome.error and scenario.recover is not None:
                    outcome = self._run(scenario, scenario.recover, root, log=log)
                done = read_log(log, root)
            for operation in done:
                disk.apply(operation)
            found = [ending(outcome)] if outcome.error or outcome.signal else []
            labels: dict[str, list[str]] = {}
            for label, tree in disk.trees():
                for line in self.judge(recording, tree, number, must_be_new=True):
                    labels.setdefault(line, []).append(label)
            found += [f"{known[0]} ({len(known)} such states): {line}" for line, known in labels.items()]
            return tell(recording, f"power lost after fsync {number} had failed", number, found, done)

        return self.every(trial, numbers)

    def shorten(self, recording: Recording, numbers: Iterable[int]) -> list[str]:
        """Let each write take half; the run has to end well and give the same."""

        def trial(number: int) -> list[str]:
            with self.place(recording.before) as root:
                outcome = self._run(recording.scenario, recording.step, root, short_at=number)
                found = [ending(outcome)] if outcome.error or outcome.signal else []
                found += differences(snapshot(root), recording.after)
            return tell(recording, f"short write at {number}", number, found)

        return self.every(trial, numbers)


def tell(
    recording: Recording, what: str, number: int, found: list[str], operations: Iterable[Operation] = ()
) -> list[str]:
    """Return one text for what was found, with the operations around the place; none if nothing was."""
    near = [operation for operation in operations or recording.operations if abs(operation.number - number) <= 5]
    lines = [f"    {'>' if operation.number == number else ' '} {operation}" for operation in near]
    return ["\n".join([f"{recording.scenario}: {what}:", *(f"  {line}" for line in found), *lines])] if found else []


def succeed(outcome: Outcome) -> None:
    """Fail the test if a child did not end well."""
    assert not outcome.error, ending(outcome)
    assert not outcome.signal, ending(outcome)
