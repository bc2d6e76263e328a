"""recordkit: TFRecord as a dataset format that people can trust."""

from recordkit import columns, errors, examples, records

__all__ = ["columns", "errors", "examples", "records"]
