"""Examples: the wire format of tf.train.Example and tf.train.SequenceExample.

Payloads become columns and columns payloads; features are appended, dropped and renamed on the wire. Knows kinds and
counts, not dtypes and shapes: that is `recordkit.schema`. The format is written down in docs/format/examples.md.
"""

from ._decode import (
    EMPTY,
    MISSING,
    NO_KIND,
    PRESENT,
    Decoded,
    Decoder,
    Feature,
    FeatureFacts,
    Finding,
    Kind,
    Survey,
    Unread,
    Values,
    cut,
    edit,
    encode,
    lint,
    survey,
)
from ._messages import other_message
from ._tensorproto import TENSOR_DTYPES, parse_tensor, serialize_tensor

__all__ = [
    "EMPTY",
    "MISSING",
    "NO_KIND",
    "PRESENT",
    "TENSOR_DTYPES",
    "Decoded",
    "Decoder",
    "Feature",
    "FeatureFacts",
    "Finding",
    "Kind",
    "Survey",
    "Unread",
    "Values",
    "cut",
    "edit",
    "encode",
    "lint",
    "other_message",
    "parse_tensor",
    "serialize_tensor",
    "survey",
]
