"""Staging: the hidden folder in which a dataset is made, its locks, and the journal of what is to be published."""

from ._change_lock import WAIT as WAIT
from ._change_lock import changing as changing
from ._change_lock import changing_target as changing_target
from ._journal import MANIFEST as MANIFEST
from ._journal import NAME as NAME
from ._journal import ContentChecksum as ContentChecksum
from ._journal import Journal as Journal
from ._journal import Kind as Kind
from ._journal import folder_facts as folder_facts
from ._journal import is_free as is_free
from ._journal import lacks_side_files as lacks_side_files
from ._journal import lone_manifest as lone_manifest
from ._journal import sampled_facts as sampled_facts
from ._journal import up_to as up_to
from ._parts import Lock as Lock
from ._parts import StagedPart as StagedPart
from ._parts import check_folder as check_folder
from ._parts import claim_parts as claim_parts
from ._parts import is_foreign as is_foreign
from ._parts import load_run as load_run
from ._parts import number_of as number_of
from ._parts import part_folder as part_folder
from ._parts import part_folders as part_folders
from ._parts import put_away as put_away
