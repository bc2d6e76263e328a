"""Commands: their names, in groups, each with a line. The modules are loaded one at a time."""

from __future__ import annotations

from typing import Final

__all__ = ["GROUPS", "SUMMARIES"]

GROUPS: Final = {
    "Look": {
        "info": "What is in this file? Fields, ranges, sizes, and advice.",
        "head": "The first records, for people.",
        "view": "A page to look at it with, in your browser.",
        "cat": "Records as JSON lines, for jq and others.",
        "count": "How many records there are.",
        "schema": "The fields and their types, as a table, Python, JSON or TensorFlow.",
        "stats": "What the values of every field are like.",
        "diff": "What is different between two datasets.",
    },
    "Check": {
        "verify": "Is every byte as it was written?",
        "repair": "Every sound record of a damaged file, in a new file.",
    },
    "Change": {
        "add": "New fields for records that are there.",
        "drop": "Fields taken away.",
        "rename": "Fields under other names.",
        "delete": "Records taken away.",
        "filter": "A new dataset of some of the records.",
        "bake": "A new dataset with all changes in the records themselves.",
        "append": "More records, from JSON lines or another dataset.",
        "index": "Indexes beside the files, for reading at any place.",
    },
    "This machine": {
        "demo": "All of it in some seconds, on a small dataset of pictures.",
        "bench": "How fast this dataset is read, beside the raw disk.",
        "doctor": "What is installed, and which fast paths are used.",
        "completion": "Completion for bash, zsh or fish.",
    },
}

SUMMARIES: Final = {name: line for group in GROUPS.values() for name, line in group.items()}
