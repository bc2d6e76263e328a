r"""File kind: recognises what a file is from its bytes, never from its name.

An intact record header decides over everything else. A file that matches nothing may be a damaged TFRecord file; the
reader finds out. Each signature is one line of a table. It is strict enough not to match the first bytes of a damaged
file: four-byte signatures must not be followed by zeros, as the length of a record is.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from recordkit import _core, examples, records
from recordkit.codecs import COMPRESSED
from recordkit.errors import WrongFileError
from recordkit.filesystems import UNKNOWN_SIZE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from recordkit.codecs import Codec, Compression
    from recordkit.filesystems import ByteFile

__all__ = ["compression_of"]

_HEAD: Final = 1 << 12
_HEADER: Final = 12
_PIECE: Final = 1 << 20
_MOST_EXAMPLE: Final = 1 << 26
_SURELY_ZLIB: Final = 8  # from this size on, a cut zlib stream is no longer the torn header of a plain file
_SURELY_TEXT: Final = 6  # six bytes of a torn header are never all letters: no record is 2**40 bytes long
_RAW: Final = 1 << 12

_CONVERT = "recordkit opens TFRecord files: read this with its own library, and write it with recordkit.write."
_UNPACK = "Unpack it, and open the files that are in it."
_EXPAND = "Decompress it first: recordkit reads plain, gzip and zlib files."
_FETCH = "The download failed and its answer was saved in place of the file: fetch the file again."
_LEAVE = "Open the record files next to it, and leave this one out."
_FRAME = "Every message has to be framed as a record: recordkit.records.pack does that."
_LOAD = "recordkit.write(path, np.load(...)) makes records of it."
_LOAD_ALL = "recordkit.write(path, dict(np.load(...))) makes records of it."
_AGAIN = "A crash or a broken copy destroyed its content: fetch the file again from its source."
_ONCE = "It was compressed twice: decompress it once, and open the result."
_LFS = "The data was not downloaded: git lfs pull"
_ANNEX = "The data was not downloaded: git annex get"


class _Signature(NamedTuple):
    """A kind of file: one word, what its bytes look like, what it is, what to do."""

    kind: str
    pattern: re.Pattern[bytes]
    what: str
    advice: str


def _is(kind: str, pattern: bytes, what: str, advice: str) -> _Signature:
    return _Signature(kind, re.compile(pattern, re.DOTALL), what, advice)


# Matched against the first bytes; the first match wins.
_STARTS: Final = (
    _is("npy", rb"\x93NUMPY[\x01-\x03]", "a NumPy array (.npy)", _LOAD),
    _is("npz", rb"PK\x03\x04(?!\0{4}).{26}[^\0]{0,200}?\.npy", "a zip of NumPy arrays (.npz)", _LOAD_ALL),
    _is("zip", rb"PK(\x03\x04(?!\0{4})|\x05\x06\0{16})", "a zip archive", _UNPACK),
    _is("parquet", rb"PAR[1E](?!\0{4})", "a Parquet file", _CONVERT),
    _is("tar", rb".{257}ustar[\0 ]", "a tar archive", _UNPACK),
    _is("bzip2", rb"BZh[1-9](1AY&SY|\x17rE8P\x90)", "compressed with bzip2", _EXPAND),
    _is("xz", rb"\xfd7zXZ\0", "compressed with xz", _EXPAND),
    _is("zstd", rb"\x28\xb5\x2f\xfd(?!\0{4})", "compressed with zstd", _EXPAND),
    _is("lz4", rb"\x04\x22\x4d\x18[\x40-\x7f]", "compressed with lz4", _EXPAND),
    _is("snappy", rb"\xff\x06\0\0sNaPpY", "compressed with snappy", _EXPAND),
    _is("riegeli", rb"\x83\xaf\x70\xd1\x0d\x88\x4a\x3f", "a Riegeli or ArrayRecord file", _CONVERT),
    _is("recordio", rb"(\x0a\x23\xd7\xce|\x3e\xd7\x23\x0a)(?!\0{4})", "a RecordIO file", _CONVERT),
    _is("ds_store", rb"\0\0\0\x01Bud1", "a .DS_Store, the notes of macOS about a folder", _LEAVE),
    _is("hadoop_crc", rb"crc\0\0", "a Hadoop checksum file (.crc)", _LEAVE),
    _is("hdf5", rb"\x89HDF\r\n\x1a\n", "an HDF5 file", _CONVERT),
    _is("avro", rb"Obj\x01(?!\0{4})", "an Avro file", _CONVERT),
    _is("arrow", rb"ARROW1\0\0|\xff{4}..\0\0\x10\0\0\0", "Arrow IPC", _CONVERT),
    _is("sqlite", rb"SQLite format 3\0", "an SQLite database", _CONVERT),
    _is("jpeg", rb"\xff\xd8\xff[\xc0-\xfe](?!\0{4})", "a JPEG picture", _CONVERT),
    _is("png", rb"\x89PNG\r\n\x1a\n", "a PNG picture", _CONVERT),
    _is("recordkit_index", rb"RKINDEX1", "an index of recordkit (.rki)", _LEAVE),
    _is("git_lfs", rb"version https://git-lfs\.github\.com/spec/", "a Git LFS pointer", _LFS),
    _is("git_annex", rb"(\.\./)*(\.git)?/?annex/objects/", "a git-annex pointer", _ANNEX),
)

# For text files; the last one matches any.
_TEXTS: Final = (
    _is("html", rb"(?i)\s*(<!--.*?-->\s*)?<(!doctype html|html|head|body|title|script)\b", "an HTML page", _FETCH),
    _is("xml_error", rb"\s*(<\?xml.*?\?>\s*)?<Error\b", "an XML error page of an object store", _FETCH),
    _is("xml", rb"\s*<\?xml\b", "an XML file", _CONVERT),
    _is("text_index", rb"(\d+ \d+\r?\n)+(\d+( \d*)?)?\Z", "a text index of DALI or vahidk/tfrecord", _LEAVE),
    _is("json", rb"\s*(\{\s*[\"}]|\[\s*([\[{\"\]\d-]|true|false|null))", "JSON text", _CONVERT),
    _is("text", rb"", "plain text", _CONVERT),
)

# Matched against the last bytes.
_ENDS: Final = (
    _is("checkpoint", rb"\x57\xfb\x80\x8b\x24\x75\x47\xdb\Z", "the index of a TensorFlow checkpoint", _LEAVE),
    _is("checkpoint", rb"/\.ATTRIBUTES/VARIABLE_VALUE", "the data of a TensorFlow checkpoint", _LEAVE),
)

# Found only by reading all bytes.
_ZEROS: Final = _is("zeros", rb"", "zeros and nothing else", _AGAIN)
_EXAMPLE: Final = _is("example", rb"", "a serialized Example without the frame of a record", _FRAME)
_SEQUENCE: Final = _is("sequence_example", rb"", "a serialized SequenceExample without the frame of a record", _FRAME)

_BOM: Final = b"\xef\xbb\xbf"
_NOT_TEXT: Final = re.compile(rb"[\x00-\x08\x0b\x0e-\x1f\x7f]")
_CODE: Final = re.compile(rb"<Code>([A-Za-z0-9._-]{1,64})</Code>")


def compression_of(file: ByteFile) -> Compression:
    """Return how a TFRecord file is compressed, from its bytes; None for a plain, an empty or a damaged one.

    Raises:
        WrongFileError: The file is certainly something else.

    >>> import gzip, io
    >>> from recordkit.filesystems import ObjectFile
    >>> compression_of(ObjectFile(io.BytesIO(gzip.compress(records.pack(b"one")))))
    'gzip'
    >>> compression_of(ObjectFile(io.BytesIO(b"<!DOCTYPE html><title>404</title>"), "a.tfrecord"))
    Traceback (most recent call last):
        ...
    recordkit.errors.WrongFileError: a.tfrecord: this is an HTML page, not a TFRecord file
      The download failed and its answer was saved in place of the file: fetch the file again.
    """
    head = file.read_at(0, _HEAD)
    size = file.size
    if not head or starts_record(head):
        return None
    for codec in COMPRESSED:
        if not codec.recognises(head):
            continue
        raw, state = codec.peek(file, _RAW)
        if codec.has_magic:
            is_it = bool(raw) or state != "error" or not _payload_is_sound(file, head)
        else:
            is_it = starts_record(raw) or (state != "error" and size >= _SURELY_ZLIB)
        if is_it:
            _refuse_inside(file, codec, raw, state)
            return codec.name
        if codec.has_magic:
            return None
    ends = size < UNKNOWN_SIZE  # and not a pipe, which may have none
    tail = file.read_at(max(0, size - _HEAD), _HEAD) if ends else b""
    if found := _known(head, tail, whole=size <= _HEAD) or (_known_as_a_whole(file, head) if ends else None):
        raise _wrong(file, found, head)
    return None


def starts_record(head: bytes) -> bool:
    """Whether the bytes start with the header of a record, with the right checksum."""
    stored = int.from_bytes(head[8:_HEADER], "little")
    return len(head) >= _HEADER and _core.mask_crc(_core.crc32c(head[:8])) == stored


def _payload_is_sound(file: ByteFile, head: bytes) -> bool:
    """Whether the payload's checksum confirms a length whose own checksum is damaged."""
    length = int.from_bytes(head[:8], "little")
    if length > file.size - _HEADER - 4 or file.size == UNKNOWN_SIZE:
        return False
    rest = file.read_at(_HEADER, length + 4)
    return _core.mask_crc(_core.crc32c(rest[:length])) == int.from_bytes(rest[length:], "little")


def _refuse_inside(file: ByteFile, codec: Codec, raw: bytes, state: str) -> None:
    """Check that the uncompressed bytes may be records.

    Raises:
        WrongFileError: They are certainly something else.
    """
    if not raw or starts_record(raw):
        return
    whole = state == "end"
    found = _compressed_again(raw) or _known(raw, raw if whole else b"", whole=whole)
    if found is None and raw[0] == 0x0A and file.size < _MOST_EXAMPLE:
        found = _as_example(*codec.peek(file, _MOST_EXAMPLE))
    if found:
        message = (
            f"{file.name}: this is {codec.name} around something other than records: {found.what}\n  {found.advice}"
        )
        raise WrongFileError(message, path=file.name, kind=f"{found.kind}_in_{codec.name}")


def _compressed_again(raw: bytes) -> _Signature | None:
    """Return a signature if the bytes are surely compressed themselves."""
    again = (codec.name for codec in COMPRESSED if codec.name and codec.has_magic and codec.recognises(raw))
    return next((_is(name, rb"", f"{name} again", _ONCE) for name in again), None)


def _known(head: bytes, tail: bytes, *, whole: bool) -> _Signature | None:
    """Recognise a file by its first and last bytes; None if no signature matches."""
    for signature in _STARTS:
        if signature.pattern.match(head):
            return signature
    if len(head) >= _SURELY_TEXT and _is_text(head, whole=whole) and not _NOT_TEXT.search(tail):
        text = head.removeprefix(_BOM)
        return next(signature for signature in _TEXTS if signature.pattern.match(text))
    return next((signature for signature in _ENDS if signature.pattern.search(tail)), None)


def _is_text(head: bytes, *, whole: bool) -> bool:
    if _NOT_TEXT.search(head):
        return False
    try:
        head.decode()
    except UnicodeDecodeError as error:
        # The sample may end inside a character.
        return not whole and error.start >= len(head) - 3 and error.reason == "unexpected end of data"
    return True


def _known_as_a_whole(file: ByteFile, head: bytes) -> _Signature | None:
    """Recognise a file by reading all of its bytes."""
    size = file.size
    if size >= _HEADER and not any(head) and _all_zeros(file, size):
        return _ZEROS
    if head[0] == 0x0A and size < _MOST_EXAMPLE:
        return _as_example(file.read_at(0, size), "end")
    return None


def _all_zeros(file: ByteFile, size: int) -> bool:
    return not any(map(_has_more_than_zeros, _pieces(file, size)))


def _pieces(file: ByteFile, size: int) -> Iterator[bytes]:
    """Yield the end and some samples, which soon show that a file is not all zeros; then everything."""
    for part in (8, 4, 2, 6, 1, 7, 3, 5):
        yield file.read_at(max(0, size * part // 8 - _HEAD), _HEAD)
    for at in range(0, size, _PIECE):
        yield file.read_at(at, _PIECE)


def _has_more_than_zeros(piece: bytes) -> bool:
    return piece.count(0) != len(piece)


def _as_example(data: bytes, state: str) -> _Signature | None:
    """Return which message all the bytes are; a record's header is never one, since no tag is zero."""
    if state != "end":
        return None
    found = examples.survey(records.pack_many([data]))
    if found.message == "SequenceExample" and (found.features or found.lists):
        return _SEQUENCE
    return _EXAMPLE if found.message == "Example" and found.features else None


def _wrong(file: ByteFile, found: _Signature, head: bytes) -> WrongFileError:
    code = _CODE.search(head) if found.kind == "xml_error" else None
    what = f"{found.what} ({code[1].decode()})" if code else found.what
    message = f"{file.name}: this is {what}, not a TFRecord file\n  {found.advice}"
    return WrongFileError(message, path=file.name, kind=found.kind)
