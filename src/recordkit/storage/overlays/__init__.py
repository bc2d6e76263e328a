"""Overlays: added fields, hidden fields and deletions, kept next to the records they change."""

from ._lone_file import file_to_change as file_to_change
from ._lone_file import file_with_overlays as file_with_overlays
from ._lone_file import merge_shared as merge_shared
from ._overlay import AFTER as AFTER
from ._overlay import Base as Base
from ._overlay import Layer as Layer
from ._overlay import layers_of as layers_of
from ._overlay import layers_over as layers_over
from ._overlay import schema_through as schema_through
from ._overlay import schema_with as schema_with
from ._write import forget as forget
from ._write import is_other as is_other
from ._write import layer_facts as layer_facts
from ._write import new_layer as new_layer
from ._write import remove_layer as remove_layer
from ._write import settle as settle
from ._write import write_layer as write_layer
