"""Overlays: added fields, hidden fields and deletions, kept next to the records they change."""

from ._lone_file import file_to_change as file_to_change
from ._lone_file import file_with_overlays as file_with_overlays
from ._lone_file import merge_shared as merge_shared
from ._overlay import AFTER as AFTER
from ._overlay import Base as Base
from ._overlay import Overlay as Overlay
from ._overlay import overlays_of as overlays_of
from ._overlay import overlays_over as overlays_over
from ._overlay import schema_through as schema_through
from ._overlay import schema_with as schema_with
from ._write import forget as forget
from ._write import is_other as is_other
from ._write import new_overlay as new_overlay
from ._write import overlay_facts as overlay_facts
from ._write import remove_overlay as remove_overlay
from ._write import settle as settle
from ._write import write_overlay as write_overlay
