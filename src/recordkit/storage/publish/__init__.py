"""Publish: from finished shards to a dataset, all of it or nothing."""

from ._by_rename import finish as finish
from ._by_rename import moves_of as moves_of
from ._by_rename import pending as pending
from ._by_rename import publish as publish
from ._by_rename import publishing as publishing
from ._by_rename import recover as recover
from ._by_rename import take_back as take_back
from ._manifest_last import ManifestLast as ManifestLast
from ._manifest_last import StagedShards as StagedShards
from ._publisher import DatasetChange as DatasetChange
from ._publisher import PartNumber as PartNumber
from ._publisher import Publisher as Publisher
from ._publisher import Staged as Staged
from ._publisher import StagedPart as StagedPart
