from __future__ import annotations

import inspect
from importlib import import_module

import pytest

import recordkit

LAYERS = [
    "columns",
    "dataset",
    "engines",
    "errors",
    "examples",
    "images",
    "pipeline",
    "progress",
    "records",
    "schema",
    "storage",
    "tools",
]
MODULES = ["recordkit", *(f"recordkit.{name}" for name in LAYERS)]


def test_the_top_level_names_are_these() -> None:
    assert sorted(recordkit.__all__) == [
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
    assert dir(recordkit) == sorted(recordkit.__all__)


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match=r"^module 'recordkit' has no attribute 'open_sesame'$"):
        recordkit.open_sesame  # noqa: B018


@pytest.mark.parametrize("module", MODULES)
def test_every_public_name_is_there_and_has_a_docstring(module: str) -> None:
    place = import_module(module)
    # Frameworks are imported by their own tests only: some change how the whole process behaves.
    things = {name: getattr(place, name) for name in place.__all__ if name not in recordkit._BRIDGES}

    without = [name for name, thing in things.items() if describes_itself(thing) and not inspect.getdoc(thing)]

    assert without == []
    assert place.__doc__


@pytest.mark.parametrize("module", MODULES[1:])
def test_every_public_method_has_a_docstring(module: str) -> None:
    place = import_module(module)
    things = (getattr(place, name) for name in place.__all__)
    classes = [thing for thing in things if inspect.isclass(thing) and thing.__module__.startswith(module)]

    members = {
        f"{cls.__name__}.{name}": member for cls in classes for name, member in vars(cls).items() if name[0] != "_"
    }
    methods = {name: member for name, member in members.items() if callable(member) or isinstance(member, property)}

    assert [name for name, method in methods.items() if not inspect.getdoc(method)] == []


@pytest.mark.parametrize("module", MODULES)
def test_names_are_listed_in_order_and_once(module: str) -> None:
    names = import_module(module).__all__

    assert len(set(names)) == len(names)
    assert names == sorted(names, key=lambda name: (not name.isupper(), not name[0].isupper(), name))


def describes_itself(thing: object) -> bool:
    """Constants and type aliases are described where they stand."""
    return inspect.isclass(thing) or inspect.isroutine(thing) or inspect.ismodule(thing)
