"""Raw bytes, serialized tensors and whole files, as TensorFlow has them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from recordkit import tf as ours
from tests.tf.both import same, scripts

if TYPE_CHECKING:
    from pathlib import Path

SCRIPTS = scripts("bytes")


@pytest.mark.tensorflow
class TestAsTensorFlow:
    @pytest.mark.parametrize("name", SCRIPTS)
    def test_script(self, tf: Any, name: str, tmp_path: Path) -> None:
        same(SCRIPTS[name], tf, folder=str(tmp_path))


class TestFiles:
    def test_what_recordkit_keeps_beside_files_is_not_found(self, tmp_path: Path) -> None:
        with ours.io.TFRecordWriter(tmp_path / "a.tfrecord") as writer:
            writer.write(b"one")

        assert (tmp_path / "_recordkit").is_dir()
        assert ours.io.gfile.glob(f"{tmp_path}/*") == [str(tmp_path / "a.tfrecord")]

    def test_file_that_is_written_is_whole_or_as_before(self, tmp_path: Path) -> None:
        ours.io.write_file(tmp_path / "a", b"before")

        with pytest.raises(TypeError):
            ours.io.write_file(tmp_path / "a", 3)

        assert (tmp_path / "a").read_bytes() == b"before"
        assert [path.name for path in tmp_path.iterdir()] == ["a"]
