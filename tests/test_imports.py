"""What importing recordkit brings along, and beside what it can be imported. Each in a process of its own."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

USE_IT = """
    import numpy as np
    from recordkit import records
    from recordkit.examples import Decoder, Feature, Values, edit, encode, lint, survey

    packed = encode({"x": Values("int64", np.array([3, 4]), count=1)}, 2)
    assert Decoder([Feature("x", "int64", count=1)]).decode(packed)["x"].values.tolist() == [3, 4]
"""
USE_TENSORFLOW = """
    import tensorflow as tf

    assert tf.io.parse_single_example(packed[1], {"x": tf.io.FixedLenFeature([], tf.int64)})["x"] == 4
    assert tf.train.Example.FromString(packed[0]).features.feature["x"].int64_list.value == [3]
"""


def run(*scripts: str, warnings: str = "error") -> subprocess.CompletedProcess[str]:
    """Runs the scripts as one program, which must end well."""
    program = "\n".join(map(textwrap.dedent, scripts))
    command = [sys.executable, "-X", "faulthandler", "-W", warnings, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stderr
    return done


class TestWhatComesAlong:
    def test_only_numpy(self) -> None:
        done = run(
            """
            import sys
            before = set(sys.modules)
            import recordkit
            from recordkit import columns, dataset, errors, examples, records, storage
            new = {name.partition(".")[0] for name in set(sys.modules) - before} - set(sys.stdlib_module_names)
            print(sorted(new))
            """
        )

        assert done.stdout == "['numpy', 'recordkit']\n"

    def test_nothing_but_the_errors_until_it_is_used(self) -> None:
        done = run(
            """
            import sys
            import recordkit
            print(sorted(name for name in sys.modules if name.startswith(("recordkit", "numpy"))))
            """
        )

        assert done.stdout == "['recordkit', 'recordkit.errors']\n"

    def test_no_descriptors_of_protobuf(self) -> None:
        run(
            USE_IT,
            """
            import sys
            assert not [name for name in sys.modules if "protobuf" in name or "tensorflow" in name]
            from google.protobuf import descriptor_pool
            try:
                descriptor_pool.Default().FindMessageTypeByName("tensorflow.Example")
            except KeyError:
                pass
            else:
                raise AssertionError("somebody registered tensorflow.Example")
            """,
        )


class TestAnyOrder:
    def test_errors_stay_ours_beside_others_that_are_built_as_the_core_is(self) -> None:
        # What two such modules share by default is how exceptions of C++ become Python's: DuckDB makes its own of them.
        run(
            "import duckdb",
            USE_IT,
            """
            try:
                Decoder([Feature("x", "int64", count=2**60)]).decode(packed)
            except MemoryError:
                pass
            else:
                raise AssertionError("there was room")
            """,
            warnings="default",
        )

    @pytest.mark.tensorflow
    @pytest.mark.slow
    def test_before_tensorflow(self) -> None:
        run(USE_IT, USE_TENSORFLOW, USE_IT, warnings="default")

    @pytest.mark.tensorflow
    @pytest.mark.slow
    def test_behind_tensorflow(self) -> None:
        run("import tensorflow", USE_IT, USE_TENSORFLOW, warnings="default")

    @pytest.mark.parametrize("other", ["google.protobuf.descriptor_pb2", "pyarrow", "polars"])
    def test_before_and_behind_others(self, other: str) -> None:
        run(f"import {other}", USE_IT)
        run(USE_IT, f"import {other}", USE_IT)


class TestExit:
    def test_says_nothing_of_leaks_whatever_is_still_alive(self) -> None:
        done = run(
            USE_IT,
            """
            import io
            reader = records.Reader(io.BytesIO(bytes(packed)))
            chunk = reader.read(1)
            decoder = Decoder([Feature("x", "int64", missing="mark")])
            decoded = decoder.decode(chunk)
            longer = edit(packed, append={"y": Values("int64", np.array([1, 2]), count=1)})
            found = lint(packed), survey(packed), records.salvage(packed)
            from recordkit.columns import Batch
            capsules = Batch({"x": decoded["x"].values}, 1).__arrow_c_array__()
            import recordkit as rk
            dataset = rk.open(io.BytesIO(bytes(packed)), workers=2)
            batches = iter(dataset.batch(1))
            stream = dataset.__arrow_c_stream__()
            kept = dataset[1], dataset[[1, 0]], next(batches), dataset.head()
            cycle = [packed, reader, decoder, capsules, dataset, batches, stream, kept]
            cycle.append(cycle)
            """,
        )

        assert (done.stdout, done.stderr) == ("", "")
