from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    ("module", "package"),
    [("torch", "torch"), ("jax", "jax"), ("tensorflow", "tensorflow"), ("huggingface", "datasets")],
)
def test_a_framework_that_is_not_there_is_named_with_what_to_install(module: str, package: str) -> None:
    program = f"import sys; sys.modules[{package!r}] = None; import recordkit.integrations.{module}"

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)

    assert done.stderr.splitlines()[-1] == (
        "recordkit.errors.MissingExtraError: "
        f"recordkit.integrations.{module} needs {package}: pip install 'recordkit[{module}]'"
    )
