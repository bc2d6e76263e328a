"""Commands: all names by group, each with its summary. A new command is a file in commands/ and a line here."""

from __future__ import annotations

from typing import Final

__all__ = ["GROUPS", "SUMMARIES"]

GROUPS: Final = {
    "Inspect": {
        "info": "What a file contains: fields, ranges, sizes, and advice.",
        "head": "Print the first records.",
        "view": "Browse the dataset in your browser.",
        "cat": "Print records as JSON lines, for jq and other programs.",
        "count": "Count the records.",
        "schema": "Print the schema as a table, Python, JSON or for TensorFlow.",
        "stats": "Summarize each field: range, median, distinct values, histogram.",
        "diff": "Compare two datasets.",
    },
    "Check": {
        "verify": "Check every byte against its checksums.",
        "repair": "Recover the intact records of a damaged file.",
    },
    "Change": {
        "add": "Add fields without rewriting the dataset.",
        "drop": "Drop fields.",
        "rename": "Rename fields.",
        "delete": "Delete records.",
        "filter": "Write the matching records to a new dataset.",
        "bake": "Write added, hidden and deleted changes into a new dataset.",
        "append": "Append records from JSON lines or another dataset.",
        "index": "Write indexes next to the files, for random access.",
    },
    "This machine": {
        "demo": "A five-second tour on a small image dataset.",
        "bench": "Measure how fast a dataset is read, compared with the raw disk.",
        "doctor": "Show what is installed, and which fast paths are used.",
        "completion": "Print the completion script for bash, zsh or fish.",
    },
}

SUMMARIES: Final = {name: line for group in GROUPS.values() for name, line in group.items()}
