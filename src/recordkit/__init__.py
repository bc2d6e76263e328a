"""recordkit: TFRecord as a dataset format that people can trust.

>>> import recordkit as rk
>>> schema = rk.Schema({"id": "int64", "tokens": "int64[?]"})
>>> packed = schema.encode({"id": [1, 2], "tokens": [[3, 4], [5]]})
>>> schema.decode(packed)["tokens"].to_list()
[[3, 4], [5]]
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from recordkit import errors
from recordkit.errors import (
    CorruptRecordError,
    MissingExtraError,
    RecordKitError,
    SchemaError,
    StateError,
    StorageError,
    TargetBusyError,
    TargetExistsError,
    WrongFileError,
)

if TYPE_CHECKING:
    from recordkit import (
        columns,
        dataset,
        examples,
        expressions,
        images,
        pipeline,
        progress,
        records,
        schema,
        storage,
        tf,
        tools,
        viewer,
    )
    from recordkit import engines as workers
    from recordkit.columns import Batch, BytesColumn, Ragged
    from recordkit.dataset import Dataset, follow, open  # noqa: A004 - the verb that a user would say
    from recordkit.engines import AUTO, Processes, Threads
    from recordkit.integrations import huggingface, jax, tensorflow, torch
    from recordkit.pipeline import Pipeline, from_generator
    from recordkit.schema import Array, Field, Schema, TensorProto
    from recordkit.storage import append, commit, create, discard, quarantined, recover
    from recordkit.storage.write import write
    from recordkit.tools import (
        Aligned,
        Computed,
        Joined,
        add_fields,
        bake,
        cast_fields,
        delete,
        drop_fields,
        filter,  # noqa: A004 - the verb that a user would say
        index,
        rename_fields,
        repair,
    )
    from recordkit.tools.diff import diff
    from recordkit.tools.stats import stats
    from recordkit.tools.verify import verify

__all__ = [
    "AUTO",
    "Aligned",
    "Array",
    "Batch",
    "BytesColumn",
    "Computed",
    "CorruptRecordError",
    "Dataset",
    "Field",
    "Joined",
    "MissingExtraError",
    "Pipeline",
    "Processes",
    "Ragged",
    "RecordKitError",
    "Schema",
    "SchemaError",
    "StateError",
    "StorageError",
    "TargetBusyError",
    "TargetExistsError",
    "TensorProto",
    "Threads",
    "WrongFileError",
    "add_fields",
    "append",
    "bake",
    "cast_fields",
    "columns",
    "commit",
    "create",
    "dataset",
    "delete",
    "diff",
    "discard",
    "drop_fields",
    "errors",
    "examples",
    "expressions",
    "filter",
    "follow",
    "from_generator",
    "huggingface",
    "images",
    "index",
    "jax",
    "open",
    "pipeline",
    "progress",
    "quarantined",
    "records",
    "recover",
    "rename_fields",
    "repair",
    "schema",
    "stats",
    "storage",
    "tensorflow",
    "tf",
    "tools",
    "torch",
    "verify",
    "viewer",
    "workers",
    "write",
]
__version__ = "0.1.0"

# Where the names live that are looked up when they are first used: importing is cheap, whatever there is to import.
_PLACES = {
    "AUTO": "engines",
    "Aligned": "tools",
    "Array": "schema",
    "Batch": "columns",
    "BytesColumn": "columns",
    "Computed": "tools",
    "Dataset": "dataset",
    "Field": "schema",
    "Joined": "tools",
    "Pipeline": "pipeline",
    "Processes": "engines",
    "Ragged": "columns",
    "Schema": "schema",
    "TensorProto": "schema",
    "Threads": "engines",
    "add_fields": "tools",
    "append": "storage",
    "bake": "tools",
    "cast_fields": "tools",
    "commit": "storage",
    "create": "storage",
    "delete": "tools",
    "diff": "tools",
    "discard": "storage",
    "drop_fields": "tools",
    "filter": "tools",
    "follow": "dataset",
    "from_generator": "pipeline",
    "index": "tools",
    "open": "dataset",
    "quarantined": "storage",
    "recover": "storage",
    "rename_fields": "tools",
    "repair": "tools",
    "stats": "tools",
    "verify": "tools",
    "write": "storage.write",
}

# Public modules that live under another name.
_MODULES = {"workers": "engines"}

# Each imports its framework, when it is first used.
_BRIDGES = ("huggingface", "jax", "tensorflow", "torch")


def __getattr__(name: str) -> Any:
    if name not in __all__:
        message = f"module 'recordkit' has no attribute {name!r}"
        raise AttributeError(message)
    if name in _BRIDGES:
        value = import_module(f"recordkit.integrations.{name}")
    else:
        module = import_module(f"recordkit.{_PLACES.get(name, _MODULES.get(name, name))}")
        value = getattr(module, name) if name in _PLACES else module
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
