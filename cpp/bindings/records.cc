// Records: checksums, chunks, the reader, verify, salvage.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <optional>

#include "bindings/bindings.h"
#include "core/records/file_snapshot.h"
#include "core/records/reader.h"
#include "core/records/salvage.h"
#include "core/records/verify.h"

namespace recordkit {
namespace {

using namespace nb::literals;

int chunk_getbuffer(PyObject* self, Py_buffer* view, int flags) {
  const Chunk& chunk = *nb::inst_ptr<Chunk>(nb::handle(self));
  return PyBuffer_FillInfo(view, self, const_cast<uint8_t*>(chunk.data), static_cast<Py_ssize_t>(chunk.size),
                           1, flags);
}

PyType_Slot chunk_slots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(chunk_getbuffer)}, {0, nullptr}};

nb::bytes chunk_item(const Chunk& chunk, Py_ssize_t i) {
  const Py_ssize_t size = static_cast<Py_ssize_t>(chunk.records.size());
  if (i < 0) i += size;
  if (i < 0 || i >= size) throw nb::index_error("the chunk has no such record");
  return to_bytes(chunk.payload(static_cast<size_t>(i)));
}

// Records [start, stop), over the same memory.
Chunk chunk_slice(const Chunk& chunk, size_t start, size_t stop) {
  stop = std::min(stop, chunk.records.size());
  start = std::min(start, stop);
  Chunk part;
  part.owner = chunk.owner;
  part.records.assign(chunk.records.begin() + start, chunk.records.begin() + stop);
  const uint64_t begin = start == stop ? 0 : part.records.front().start - kHeaderSize;
  const uint64_t end =
      start == stop ? 0 : part.records.back().start + part.records.back().length + kFooterSize;
  for (Chunk::Span& span : part.records) span.start -= begin;
  part.data = chunk.data + begin;
  part.size = end - begin;
  part.readable = chunk.readable - begin;
  part.first_record = chunk.first_record + start;
  part.file_offset = chunk.file_offset + begin;
  return part;
}

// Length (uint64) and payload CRC (uint32) of every record, the input of digests.
nb::bytes chunk_identity(const Chunk& chunk) {
  Buffer facts(12 * chunk.records.size());
  for (size_t i = 0; i < chunk.records.size(); ++i) {
    uint8_t* const to = facts.data() + 12 * i;
    store(to, chunk.records[i].length);
    store(to + 8, chunk.payload_crc(i));
  }
  return nb::bytes(facts.data(), 12 * chunk.records.size());
}

Chunk chunk_pick(const Chunk& chunk,
                 nb::ndarray<const uint64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu> indices) {
  const std::span<const uint64_t> wanted(indices.data(), indices.size());
  for (const uint64_t i : wanted)
    if (i >= chunk.records.size()) throw nb::index_error("the chunk has no such record");
  const nb::gil_scoped_release release;
  return pick(chunk, wanted);
}

nb::object chunk_column(const Chunk& chunk, bool offsets) {
  Array<uint64_t> values(chunk.records.size());
  for (size_t i = 0; i < chunk.records.size(); ++i)
    values.push(offsets ? chunk.offset_of(i) : chunk.records[i].length);
  return to_numpy(std::move(values));
}

// A chunk over a buffer, the fault that ended the scan, and where.
std::tuple<Chunk, int, uint64_t> scan_buffer(nb::object data, uint64_t max_record_bytes, uint64_t file_offset,
                                             uint64_t first_record) {
  auto view = std::make_shared<BufferView>(data);
  Chunk chunk;
  chunk.data = view->bytes().data();
  chunk.size = chunk.readable = view->bytes().size();
  ScanEnd end;
  {
    const nb::gil_scoped_release release;
    end = check_payloads(chunk, hop(chunk, 0, SIZE_MAX, UINT64_MAX, max_record_bytes));
  }
  chunk.size = end.offset;
  chunk.file_offset = file_offset;
  chunk.first_record = first_record;
  chunk.owner = std::move(view);
  return {std::move(chunk), static_cast<int>(end.fault), end.offset};
}

Chunk pack(nb::iterable payloads, uint64_t file_offset, uint64_t first_record) {
  Buffer out;
  std::vector<Chunk::Span> spans;
  for (nb::handle payload : payloads) {
    const BufferView view(payload);
    const Bytes bytes = view.bytes();
    uint8_t* frame = out.grow(bytes.size() + kFrameSize);
    store_header(frame, bytes.size());
    if (!bytes.empty()) std::memcpy(frame + kHeaderSize, bytes.data(), bytes.size());
    store_footer(frame + kHeaderSize + bytes.size(), crc32c(bytes));
    spans.push_back({out.size() + kHeaderSize, bytes.size()});
    out.set_size(out.size() + bytes.size() + kFrameSize);
  }
  Chunk chunk = chunk_of(std::move(out), std::move(spans));
  chunk.file_offset = file_offset;
  chunk.first_record = first_record;
  return chunk;
}

// A Python object with readinto(buffer), called with the GIL held.
class ObjectSource : public ByteSource {
 public:
  explicit ObjectSource(nb::object file) : readinto_(file.attr("readinto")) {}
  ~ObjectSource() override {
    const nb::gil_scoped_acquire gil;
    readinto_.reset();
  }

  size_t read(uint64_t /*offset*/, uint8_t* to, size_t size) override {
    const nb::gil_scoped_acquire gil;
    nb::object view = nb::steal(
        PyMemoryView_FromMemory(reinterpret_cast<char*>(to), static_cast<Py_ssize_t>(size), PyBUF_WRITE));
    if (!view.is_valid()) throw nb::python_error();
    nb::object got = readinto_(view);
    // The memory may move later: an object that kept the view must not access it.
    view.attr("release")();
    if (got.is_none()) throw nb::value_error("readinto() returned None: the file is not in blocking mode");
    const size_t count = nb::cast<size_t>(got);
    if (count > size) throw nb::value_error("readinto() says it read more than there was room for");
    return count;
  }

 private:
  nb::object readinto_;
};

std::unique_ptr<ByteSource> source_of(nb::object file, uint64_t most_mapped) {
  if (nb::isinstance<nb::int_>(file)) return std::make_unique<FileSource>(nb::cast<int>(file), most_mapped);
  return std::make_unique<ObjectSource>(file);
}

// Reads a window with a Python function. REQUIRES: `read_at` outlives the result
ByteWindow::Read reading(const nb::callable& read_at, uint64_t start) {
  return [&read_at, start](uint64_t offset, uint8_t* to, uint64_t size) {
    const nb::gil_scoped_acquire gil;
    const nb::object piece = read_at(start + offset, size);
    const BufferView view(piece);
    if (view.bytes().size() != size) throw nb::buffer_error("the file was cut while it was read");
    std::memcpy(to, view.bytes().data(), size);
  };
}

auto salvaged(const ByteWindow& window, uint64_t beyond) {
  Salvage result;
  {
    const nb::gil_scoped_release release;
    result = salvage(window, std::min(beyond, uint64_t{1} << 62));
  }
  std::vector<std::tuple<uint64_t, uint64_t, int, bool>> found;
  std::vector<std::tuple<uint64_t, uint64_t, int, uint64_t>> lost;
  for (const Found& f : result.found)
    found.emplace_back(f.offset, f.length, static_cast<int>(f.how), f.nested);
  for (const Lost& l : result.lost) lost.emplace_back(l.offset, l.length, static_cast<int>(l.what), l.before);
  return std::make_tuple(std::move(found), std::move(lost), result.decided, result.searched);
}

void bind_snapshot(nb::module_& m) {
  nb::class_<FileSnapshot>(m, "FileSnapshot",
                           "The state of an open file, to detect later whether it has changed.")
      .def(nb::init<int>(), "descriptor"_a)
      .def_prop_ro("size", &FileSnapshot::size, "The size of the file when the snapshot was made.")
      .def("had", &FileSnapshot::had, "size"_a, "Note that the file is known to have had this size earlier.")
      .def("note", &FileSnapshot::note, "offset"_a, "length"_a, "payload_crc"_a,
           "Note a record that was read. The first, second, fourth, and so on are kept.")
      .def(
          "now",
          [](const FileSnapshot& snapshot, uint64_t end) { return static_cast<int>(snapshot.now(end)); },
          "end"_a,
          "Return the fault if the file was truncated or overwritten since then, or 0 if no change is "
          "visible.");
}

void bind_verify(nb::module_& m) {
  m.def(
      "check_mapped",
      [](int descriptor, uint64_t offset, uint64_t most_bytes) {
        const Checked checked = without_gil([&] { return check_mapped(descriptor, offset, most_bytes); });
        return std::make_tuple(checked.size,
                               to_bytes({checked.identities.data(), checked.identities.size()}));
      },
      "descriptor"_a, "offset"_a, "most_bytes"_a,
      "Check the next records in the page cache. Return their size and identities; nothing if the file has "
      "to be read instead.");
  m.def(
      "may_repeat",
      [](const std::vector<nb::bytes>& identities) {
        std::vector<Bytes> pieces;
        for (const nb::bytes& piece : identities)
          pieces.push_back({static_cast<const uint8_t*>(piece.data()), piece.size()});
        const nb::gil_scoped_release release;
        return may_repeat(pieces);
      },
      "identities"_a,
      "Return whether a pair of neighbours may occur twice, going by their CRCs. Has false positives.");
}

}  // namespace

void bind_records(nb::module_& m) {
  m.def(
      "crc32c",
      [](nb::object data, uint32_t crc) {
        const BufferView view(data);
        return crc32c_extend(crc, view.bytes().data(), view.bytes().size());
      },
      "data"_a, "crc"_a = 0, "Return the CRC-32C of `data`, continued from the CRC of the bytes before it.");
  m.def("crc32c_combine", &crc32c_combine, "crc_a"_a, "crc_b"_a, "size_b"_a,
        "Return the CRC of a + b from the CRCs of both and the length of b.");
  m.def("mask_crc", &mask_crc, "crc"_a, "Return a CRC as the format stores it.");
  m.def("crc32c_paths", &crc32c_paths,
        "Return the names of the CRC paths this processor can run, best first.");
  m.def("crc32c_path", &crc32c_path, "Return the name of the CRC path in use.");
  m.def("crc32c_use_path", &crc32c_use_path, "name"_a,
        "Choose the CRC path of the whole process; False if this processor cannot run it.");

  nb::class_<Chunk>(m, "Chunk", nb::type_slots(chunk_slots),
                    "Consecutive framed records in memory, every checksum verified.")
      .def("__len__", [](const Chunk& chunk) { return chunk.records.size(); })
      .def("__getitem__", &chunk_item, "index"_a)
      .def(
          "__iter__", [](nb::object self) { return nb::steal(PySeqIter_New(self.ptr())); },
          nb::sig("def __iter__(self) -> collections.abc.Iterator[bytes]"))
      .def("slice", &chunk_slice, "start"_a, "stop"_a, "Return records [start, stop), over the same memory.")
      .def_prop_ro(
          "offsets", [](const Chunk& c) { return chunk_column(c, true); },
          nb::sig("def offsets(self) -> numpy.typing.NDArray[numpy.uint64]"),
          "The byte offset of every record in its file.")
      .def_prop_ro(
          "lengths", [](const Chunk& c) { return chunk_column(c, false); },
          nb::sig("def lengths(self) -> numpy.typing.NDArray[numpy.uint64]"), "The length of every payload.")
      .def("identity", &chunk_identity,
           "Return the length (uint64) and the payload's CRC (uint32) of every record, little-endian.")
      .def("crc32c", &crc32c_of, nb::call_guard<nb::gil_scoped_release>(),
           "Return the CRC-32C of the framed records.")
      .def("pick", &chunk_pick, "indices"_a,
           nb::sig("def pick(self, indices: numpy.typing.NDArray[numpy.uint64]) -> Chunk"),
           "Return copies of these records, in this order.")
      .def_prop_ro(
          "nbytes", [](const Chunk& c) { return c.size; }, "The size of the framed records.")
      .def_ro("first_record", &Chunk::first_record, "The number of the first record in its file.")
      .def_ro("file_offset", &Chunk::file_offset, "Where the chunk starts in its file.");

  m.def("scan", &scan_buffer, "data"_a, "max_record_bytes"_a, "file_offset"_a = 0, "first_record"_a = 0,
        "Return the intact records at the start of a buffer, the fault after them (0: none) and its offset "
        "in the buffer.");
  m.def(
      "pack", &pack, "payloads"_a, "file_offset"_a = 0, "first_record"_a = 0,
      nb::sig("def pack(payloads: collections.abc.Iterable[typing_extensions.Buffer], file_offset: int = 0, "
              "first_record: int = 0) -> Chunk"),
      "Frame every payload.");

  m.def(
      "join",
      [](const std::vector<const Chunk*>& chunks) {
        const nb::gil_scoped_release release;
        return join(chunks);
      },
      "chunks"_a, nb::sig("def join(chunks: collections.abc.Sequence[Chunk]) -> Chunk"),
      "Copy the records of all chunks into one.");

  nb::class_<RecordReader>(m, "Reader",
                           "Reads framed records from a descriptor or an object with readinto().")
      .def(
          "__init__",
          [](RecordReader* self, nb::object file, size_t chunk_bytes, uint64_t max_record_bytes,
             uint64_t file_offset, uint64_t first_record, uint64_t most_mapped, uint64_t had) {
            std::unique_ptr<ByteSource> source = source_of(file, most_mapped);
            if (FileSnapshot* const snapshot = source->snapshot()) snapshot->had(had);
            new (self)
                RecordReader(std::move(source), {chunk_bytes, max_record_bytes}, file_offset, first_record);
          },
          "file"_a, "chunk_bytes"_a, "max_record_bytes"_a, "file_offset"_a = 0, "first_record"_a = 0,
          "most_mapped"_a = 0, "had"_a = 0)
      .def_prop_ro("next_record", &RecordReader::next_record, "The number of the next record.")
      .def_prop_ro(
          "sizes",
          [](const RecordReader& reader) {
            const FileSnapshot* const snapshot = reader.snapshot();
            return snapshot == nullptr ? std::make_tuple(uint64_t{0}, uint64_t{0})
                                       : std::make_tuple(snapshot->size(), snapshot->current_size());
          },
          "The size of the file when reading began, and its current size.")
      .def(
          "next",
          [](RecordReader& reader, std::optional<size_t> records) {
            ReadResult result =
                without_gil([&] { return reader.next(records.value_or(SIZE_MAX), records.has_value()); });
            return std::make_tuple(std::move(result.chunk), static_cast<int>(result.fault), result.offset);
          },
          "records"_a.none() = nb::none(),
          "Return (chunk, fault, offset): exactly `records` records unless the file ends, or about "
          "`chunk_bytes` of them.")
      .def(
          "pass_large",
          [](RecordReader& reader) {
            const RecordReader::Passed passed = without_gil([&] { return reader.pass_large(); });
            return std::make_tuple(static_cast<int>(passed.fault), passed.length, passed.crc);
          },
          "Check the record that `next` called too large, a piece at a time, and continue after it. Return "
          "(fault, length, crc).");

  m.def(
      "salvage",
      [](nb::object data, uint64_t beyond) {
        const BufferView view(data);
        return salvaged(ByteWindow(view.bytes()), beyond);
      },
      "data"_a, "beyond"_a = 0,
      "Return the intact records (offset, length, how, nested), the lost ranges (offset, length, what, "
      "records before), the offset up to which this is decided, and the one up to which no further intact "
      "record starts. `beyond` is how many bytes of the file follow `data`.");
  m.def(
      "salvage_at",
      [](nb::callable read_at, uint64_t offset, uint64_t size, uint64_t beyond) {
        return salvaged(ByteWindow(size, reading(read_at, offset)), beyond);
      },
      "read_at"_a, "offset"_a, "size"_a, "beyond"_a = 0,
      nb::sig("def salvage_at(read_at: collections.abc.Callable[[int, int], bytes], offset: int, size: int, "
              "beyond: int = 0) -> tuple[list[tuple[int, int, int, bool]], list[tuple[int, int, int, int]], "
              "int, int]"),
      "Like `salvage`, for bytes that `read_at(offset, size)` returns a small piece at a time.");
  bind_snapshot(m);
  bind_verify(m);
}

}  // namespace recordkit
