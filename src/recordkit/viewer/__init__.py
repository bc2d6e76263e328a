"""Viewer: a local web page that shows what is in a dataset. It never writes, and has no parser of its own.

It needs `recordkit[viewer]`. The page in `static/` is served as it is, without a build step.
"""

from ._serve import Server, serve, start

__all__ = ["Server", "serve", "start"]
