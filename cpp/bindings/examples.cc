// Examples: decoding, encoding, edits on the wire, surveys.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unordered_map.h>
#include <nanobind/stl/unordered_set.h>
#include <nanobind/stl/vector.h>

#include <optional>

#include "bindings/bindings.h"
#include "bindings/place_list.h"
#include "core/examples/decode.h"
#include "core/examples/decode_mapped.h"
#include "core/examples/encode.h"
#include "core/examples/rewrite.h"
#include "core/examples/survey.h"

namespace recordkit {
namespace {

using namespace nb::literals;

using ConstInts = nb::ndarray<const int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using ConstFloats = nb::ndarray<const float, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using ConstBytes = nb::ndarray<const uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// (name, kind, count or -1, required, steps)
using Spec = std::tuple<std::string, int, int64_t, bool, bool>;

bool in_block(const FieldSpec& spec) { return spec.count >= 0 && !spec.steps && spec.kind != Kind::bytes; }

void init_decoder(Decoder* self, const std::vector<Spec>& specs, bool sequence) {
  std::vector<FieldSpec> fields;
  for (const auto& [name, kind, count, required, steps] : specs)
    fields.push_back({name, static_cast<Kind>(kind), count, required, steps});
  new (self) Decoder(std::move(fields), sequence);
}

template <typename T>
nb::object or_none(Array<T>&& array) {
  return array.empty() ? nb::none() : to_numpy(std::move(array));
}

nb::object column_to_python(const FieldSpec& spec, Column& column) {
  nb::object states = nb::none();
  if (!column.states.empty()) {
    Array<uint8_t> array(column.states.size());
    for (const State state : column.states) array.push(static_cast<uint8_t>(state));
    states = to_numpy(std::move(array));
  }
  if (in_block(spec)) return states.is_none() ? nb::none() : nb::object(nb::make_tuple(states));
  nb::object values = spec.kind == Kind::bytes    ? to_numpy(std::move(column.bytes))
                      : spec.kind == Kind::floats ? to_numpy(std::move(column.floats))
                                                  : to_numpy(std::move(column.ints));
  return nb::make_tuple(states, values, or_none(std::move(column.byte_offsets)),
                        or_none(std::move(column.value_offsets)), or_none(std::move(column.step_offsets)));
}

// The decoded columns. Numbers with a fixed count per record go to two blocks, one field after the other.
// Rows are written across columns, and batch sizes are powers of two: without a gap between fields, the
// values of a row would compete for the same few lines of the L1 cache, which costs a quarter of the time.
constexpr size_t kBlockGap = 16;

class Table {
 public:
  Table(const Decoder& decoder, size_t rows) : fields_(decoder.fields()), columns_(fields_.size()) {
    ints_.reserve(extent(Kind::int64s, rows));
    floats_.reserve(extent(Kind::floats, rows));
    for (size_t f = 0; f < fields_.size(); ++f) {
      if (!in_block(fields_[f])) continue;
      const size_t size = static_cast<size_t>(fields_[f].count) * rows + kBlockGap;
      if (fields_[f].kind == Kind::int64s) {
        columns_[f].fixed_ints = ints_.end();
        ints_.set_size(ints_.size() + size);
      } else {
        columns_[f].fixed_floats = floats_.end();
        floats_.set_size(floats_.size() + size);
      }
    }
  }

  std::vector<Column>& columns() { return columns_; }

  // Both blocks, and a list of everything not in them, with one element per field; or None if that is
  // nothing.
  nb::object to_python() {
    nb::object rest = nb::none();
    const auto is_all = [](const FieldSpec& spec, const Column& column) {
      return in_block(spec) && column.states.empty();
    };
    if (!std::equal(fields_.begin(), fields_.end(), columns_.begin(), is_all)) {
      nb::list parts;
      for (size_t f = 0; f < columns_.size(); ++f) parts.append(column_to_python(fields_[f], columns_[f]));
      rest = parts;
    }
    return nb::make_tuple(or_none(std::move(ints_)), or_none(std::move(floats_)), rest);
  }

 private:
  size_t extent(Kind kind, size_t rows) const {
    constexpr size_t kMost = SIZE_MAX / 16;
    size_t size = 0;
    for (const FieldSpec& spec : fields_) {
      if (!in_block(spec) || spec.kind != kind) continue;
      const auto count = static_cast<size_t>(spec.count);
      if (size > kMost - kBlockGap) throw std::bad_alloc();
      if (rows != 0 && count > (kMost - kBlockGap - size) / rows) throw std::bad_alloc();
      size += count * rows + kBlockGap;
    }
    return size;
  }

  const std::vector<FieldSpec>& fields_;
  Array<int64_t> ints_;
  Array<float> floats_;
  std::vector<Column> columns_;
};

nb::object decode(const Decoder& decoder, const Chunk& chunk, size_t start, size_t stop) {
  if (start > stop || stop > chunk.records.size()) throw nb::index_error("no such records in the chunk");
  Table table(decoder, stop - start);
  const DecodeFault fault = without_gil([&] { return decoder.decode(chunk, start, stop, table.columns()); });
  if (fault.what != DecodeFault::What::none)
    return nb::make_tuple(static_cast<int>(fault.what), static_cast<int>(fault.wire), fault.record,
                          fault.byte, fault.field, static_cast<int>(fault.found_kind), fault.found_count);
  return table.to_python();
}

nb::object decode_listed(const Decoder& decoder, const std::vector<const FileMap*>& maps,
                         const PlaceList& list, size_t start, size_t stop) {
  if (maps.size() != list.files) throw nb::value_error("as many maps as files");
  if (start > stop || stop > list.places.size()) throw nb::index_error("there are no such places");
  Table table(decoder, stop - start);
  const bool all = without_gil([&] {
    return decode_mapped(decoder, std::span(list.places).subspan(start, stop - start), maps, table.columns());
  });
  return all ? table.to_python() : nb::none();
}

nb::object decode_next_records(const Decoder& decoder, RecordReader& reader, size_t records,
                               bool few_fields) {
  constexpr size_t kNotMany = 1 << 20;  // memory is reserved before the records are known to exist
  std::optional<Table> table;
  ReadResult read;
  const std::optional<uint64_t> first = without_gil([&]() -> std::optional<uint64_t> {
    if (few_fields && records <= kNotMany) {
      table.emplace(decoder, records);
      if (const auto found = decode_next(decoder, reader, records, table->columns())) return found;
    }
    read = reader.next(records, true);
    if (read.fault != Fault::none || read.chunk.records.size() < records) return std::nullopt;
    table.emplace(decoder, records);
    if (decoder.decode(read.chunk, 0, records, table->columns()).what != DecodeFault::What::none)
      return std::nullopt;
    return read.chunk.first_record;
  });
  if (first) return nb::make_tuple(*first, table->to_python());
  return nb::make_tuple(std::move(read.chunk), static_cast<int>(read.fault), read.offset);
}

// (name, kind, steps, count or -1, values, byte_offsets, value_offsets, step_offsets, states)
using Source =
    std::tuple<std::string, int, bool, int64_t, nb::object, nb::object, nb::object, nb::object, nb::object>;

// The array itself. Refuses one that would have to be converted: the copy would not outlive this call.
template <typename T>
T as_it_is(nb::handle object) {
  T array;
  if (!nb::try_cast(object, array, false))
    throw nb::type_error(
        "a column needs contiguous arrays of one dimension: int64, float32, or uint8 for bytes");
  return array;
}

const int64_t* offsets_of(nb::handle object, size_t& total) {
  if (object.is_none()) return nullptr;
  const auto offsets = as_it_is<ConstInts>(object);
  total = offsets.size();
  return offsets.data();
}

// The caller keeps the arrays and lists of `source` alive and unchanged.
SourceColumn source_column(const Source& source, size_t rows) {
  const auto& [name, kind, steps, count, values, byte_offsets, value_offsets, step_offsets, states] = source;
  SourceColumn column{.name = name, .kind = static_cast<Kind>(kind), .steps = steps, .count = count};
  if (column.kind == Kind::bytes && PyList_CheckExact(values.ptr())) {
    column.has_views = true;
    for (nb::handle value : nb::borrow<nb::list>(values)) {
      if (!PyBytes_CheckExact(value.ptr())) throw nb::type_error("a list of byte strings has bytes only");
      column.views.push_back({reinterpret_cast<const uint8_t*>(PyBytes_AS_STRING(value.ptr())),
                              static_cast<size_t>(PyBytes_GET_SIZE(value.ptr()))});
    }
    column.value_total = column.views.size();
  } else if (column.kind == Kind::bytes) {
    const auto bytes = as_it_is<ConstBytes>(values);
    size_t offsets = 0;
    column.bytes = bytes.data();
    column.byte_total = bytes.size();
    column.byte_offsets = offsets_of(byte_offsets, offsets);
    if (offsets == 0) throw nb::value_error("bytes need offsets");
    column.value_total = offsets - 1;
  } else if (column.kind == Kind::floats) {
    const auto floats = as_it_is<ConstFloats>(values);
    column.floats = floats.data();
    column.value_total = floats.size();
  } else {
    const auto ints = as_it_is<ConstInts>(values);
    column.ints = ints.data();
    column.value_total = ints.size();
  }
  column.value_offsets = offsets_of(value_offsets, column.value_offset_total);
  column.step_offsets = offsets_of(step_offsets, column.step_offset_total);
  if (!states.is_none()) {
    const auto array = as_it_is<ConstBytes>(states);
    if (array.size() != rows) throw nb::value_error("states need one entry a row");
    column.states = reinterpret_cast<const State*>(array.data());
  }
  return column;
}

std::tuple<int, size_t, Chunk> encode_columns(const std::vector<Source>& sources, size_t rows,
                                              bool sequence) {
  std::vector<SourceColumn> columns;
  for (const Source& source : sources) columns.push_back(source_column(source, rows));
  EncodeResult result;
  {
    const nb::gil_scoped_release release;
    result = encode(columns, rows, sequence);
  }
  return {static_cast<int>(result.fault), result.at, std::move(result.chunk)};
}

std::tuple<int, int, size_t, uint64_t, std::string, Chunk> rewrite_chunk(
    const Chunk& chunk, std::unordered_set<std::string> drop,
    std::unordered_map<std::string, std::string> rename, std::unordered_set<std::string> replace,
    std::unordered_set<std::string> absent, bool sequence, const Chunk* tail) {
  if (tail != nullptr && tail->records.size() != chunk.records.size())
    throw nb::value_error("the tail needs one record for each of the chunk");
  RewriteResult result;
  {
    const nb::gil_scoped_release release;
    result = rewrite(
        chunk, {std::move(drop), std::move(rename), std::move(replace), std::move(absent), sequence}, tail);
  }
  return {static_cast<int>(result.fault), static_cast<int>(result.wire), result.record, result.byte,
          std::move(result.name),         std::move(result.chunk)};
}

nb::dict facts_to_python(const std::map<std::string, FeatureFacts>& features) {
  nb::dict result;
  for (const auto& [name, facts] : features) {
    nb::dict d;
    d["records"] = facts.records;
    d["no_kind"] = facts.no_kind;
    d["empty"] = facts.empty;
    d["bytes"] = facts.of_kind[1];
    d["float"] = facts.of_kind[2];
    d["int64"] = facts.of_kind[3];
    d["min_count"] = facts.min_count;
    d["max_count"] = facts.max_count;
    d["bytes_values"] = facts.bytes_values;
    d["min_bytes"] = facts.min_bytes;
    d["max_bytes"] = facts.max_bytes;
    d["min_steps"] = facts.min_steps;
    d["max_steps"] = facts.max_steps;
    d["min_int"] = facts.min_int;
    d["max_int"] = facts.max_int;
    d["utf8"] = facts.utf8;
    d["jpeg"] = facts.jpeg;
    d["png"] = facts.png;
    result[nb::str(name.data(), name.size())] = d;
  }
  return result;
}

nb::dict survey_chunk(const Chunk& chunk, size_t start, size_t stop) {
  if (start > stop || stop > chunk.records.size()) throw nb::index_error("no such records in the chunk");
  Survey found;
  {
    const nb::gil_scoped_release release;
    found = survey(chunk, start, stop);
  }
  nb::dict result;
  result["records"] = found.records;
  result["with_lists"] = found.with_lists;
  result["features"] = facts_to_python(found.features);
  result["lists"] = facts_to_python(found.lists);
  if (found.malformed)
    result["malformed"] = nb::make_tuple(static_cast<int>(found.wire), found.record, found.byte);
  else
    result["malformed"] = nb::none();
  return result;
}

#define RECORDKIT_TABLE                                                                          \
  "tuple[numpy.typing.NDArray[numpy.int64] | None, numpy.typing.NDArray[numpy.float32] | None, " \
  "list[tuple[typing.Any, ...] | None] | None]"

}  // namespace

void bind_examples(nb::module_& m) {
  m.def(
      "block_gap", [] { return kBlockGap; },
      "Return how many values are left unused after each field of a block.");
  nb::class_<Decoder>(m, "Decoder", "Decodes payloads to columns. Thread-safe.")
      .def("__init__", &init_decoder, "specs"_a, "sequence"_a,
           "Specs are (name, kind, count or -1, required, steps).")
      .def("decode", &decode, "chunk"_a, "start"_a, "stop"_a,
           nb::sig("def decode(self, chunk: Chunk, start: int, stop: int) -> " RECORDKIT_TABLE
                   " | tuple[int, int, int, int, int, int, int]"),
           "Return a block of integers and one of floats, with the fixed-count numbers one field after the "
           "other, and a list of everything else, with one element per field. On a fault, return (what, "
           "wire, record, byte, field, found kind, found count).")
      .def("decode_next", &decode_next_records, "reader"_a, "records"_a, "few_fields"_a,
           nb::sig("def decode_next(self, reader: Reader, records: int, few_fields: bool) -> "
                   "tuple[int, " RECORDKIT_TABLE "] | tuple[Chunk, int, int]"),
           "Read and decode the next records. Return the number of the first and the result of `decode`; or "
           "that of `Reader.next` if there are fewer, or if one is damaged or does not match the fields.")
      .def("decode_mapped", &decode_listed, "maps"_a, "places"_a, "start"_a, "stop"_a,
           nb::sig(
               "def decode_mapped(self, maps: collections.abc.Sequence[FileMap | None], places: PlaceList, "
               "start: int, stop: int) -> " RECORDKIT_TABLE " | None"),
           "Return the result of `decode` for the records at places [start, stop), read from maps; None if "
           "one is in no map, is damaged or does not match the fields.");
  m.def("encode", &encode_columns, "columns"_a, "rows"_a, "sequence"_a,
        nb::sig("def encode(columns: list[tuple[typing.Any, ...]], rows: int, sequence: bool) -> "
                "tuple[int, int, Chunk]"),
        "Return (fault, where, chunk) of columns (name, kind, steps, count or -1, values, byte_offsets, "
        "value_offsets, step_offsets, states).");
  m.def("rewrite", &rewrite_chunk, "chunk"_a, "drop"_a, "rename"_a, "replace"_a, "absent"_a, "sequence"_a,
        "tail"_a.none(), "Return (fault, wire fault, record, byte, name, chunk) of an edit on the wire.");
  m.def("survey", &survey_chunk, "chunk"_a, "start"_a, "stop"_a,
        nb::sig("def survey(chunk: Chunk, start: int, stop: int) -> dict[str, typing.Any]"),
        "Return facts about every feature.");
  m.def(
      "lint",
      [](nb::object payload, bool sequence) {
        const BufferView view(payload);
        std::vector<std::tuple<int, uint64_t, std::string>> result;
        for (LintFinding& finding : lint(view.bytes(), sequence))
          result.emplace_back(static_cast<int>(finding.lint), finding.byte, std::move(finding.name));
        return result;
      },
      "payload"_a, "sequence"_a, "Return (lint, byte, name) of everything TensorFlow reads differently.");
}

}  // namespace recordkit
