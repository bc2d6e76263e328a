"""Examples: the wire format of tf.train.Example and tf.train.SequenceExample.

Payloads become columns and columns payloads; features are appended, dropped and renamed on the wire. Knows kinds and
counts, not dtypes and shapes: that is `recordkit.schema`. The format is written down in docs/format/examples.md.
"""

from ._decode import Decoded, Decoder, Feature, Unread
from ._encode import edit, encode
from ._messages import other_message
from ._survey import FeatureFacts, Finding, Survey, lint, survey
from ._tensorproto import TENSOR_DTYPES, parse_tensor, serialize_tensor
from ._values import EMPTY, MISSING, NO_KIND, PRESENT, Kind, Values, cut

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
