"""Viewer: a local page that shows what is in a dataset. Nothing here writes, and nothing here parses a record.

It needs `recordkit[viewer]`. The page in `static/` is served as it is, without a build step.
"""

from ._serve import Server, serve, start

__all__ = ["Server", "serve", "start"]
