"""Publish: from finished shards to a dataset, all of it or nothing."""

from ._by_rename import finish as finish
from ._by_rename import moves_of as moves_of
from ._by_rename import pending as pending
from ._by_rename import publish as publish
from ._by_rename import publishing as publishing
from ._by_rename import recover as recover
from ._by_rename import take_back as take_back
