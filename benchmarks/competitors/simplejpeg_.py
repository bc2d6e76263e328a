"""simplejpeg: libjpeg-turbo alone. JPEGs that are in memory are decoded, and nothing else is done."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from typing import TYPE_CHECKING

import simplejpeg
from competitors import photos
from worker import Request, Work, serve

if TYPE_CHECKING:
    from columns import Digest


def images(request: Request) -> Work:
    """Decode all pictures in threads, each of which takes the next one."""
    files = [jpeg for jpeg, _ in photos.encoded(request)]

    def decode(jpeg: bytes) -> None:
        simplejpeg.decode_jpeg(jpeg, "RGB")

    def work(digest: Digest | None) -> int:
        with ThreadPoolExecutor(request["threads"]) as pool:
            return sum(1 for _ in pool.map(decode, files))

    return work


if __name__ == "__main__":
    serve({"simplejpeg": version("simplejpeg")}, {"images": images})
