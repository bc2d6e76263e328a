// Random access: where records are, and fetching them from there.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <set>

#include "bindings/bindings.h"
#include "bindings/place_list.h"
#include "core/records/fetch.h"
#include "core/records/header_scan.h"
#include "core/records/place_table.h"

namespace recordkit {
namespace {

using namespace nb::literals;
template <typename T>
using Numbers = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

std::tuple<nb::object, nb::object, int, uint64_t> scan_file_headers(int descriptor, uint64_t offset,
                                                                    size_t max_records,
                                                                    uint64_t most_mapped) {
  HeaderScan scan = without_gil([&] { return scan_headers(descriptor, offset, max_records, most_mapped); });
  return {to_numpy(std::move(scan.lengths)), to_numpy(std::move(scan.payload_crcs)),
          static_cast<int>(scan.fault), scan.offset};
}

std::tuple<Chunk, int> fetch_places(int descriptor, Numbers<uint64_t> offsets, Numbers<uint64_t> sizes,
                                    uint64_t first_record) {
  if (offsets.size() != sizes.size()) throw nb::value_error("as many offsets as sizes");
  Fetched fetched = without_gil([&] {
    std::vector<Place> places(offsets.size());
    for (size_t i = 0; i < places.size(); ++i) places[i] = {offsets.data()[i], sizes.data()[i]};
    return fetch({&descriptor, 1}, places);
  });
  fetched.chunk.first_record = first_record;
  if (offsets.size() != 0) fetched.chunk.file_offset = offsets.data()[0];
  return {std::move(fetched.chunk), static_cast<int>(fetched.fault)};
}

// --- Several files

// For each number, which file it is in and its number there, given where the files end; and how many are in
// each file.
std::tuple<nb::object, nb::object, nb::object> split_numbers(Numbers<int64_t> ends,
                                                             Numbers<int64_t> numbers) {
  const std::span<const int64_t> all(ends.data(), ends.size());
  Array<int64_t> which(numbers.size()), inside(numbers.size()), counts(ends.size());
  std::fill_n(counts.data(), ends.size(), 0);
  counts.set_size(ends.size());
  {
    const ReleaseForMany release(numbers.size());
    for (size_t i = 0; i < numbers.size(); ++i) {
      const int64_t number = numbers.data()[i];
      const auto end = std::upper_bound(all.begin(), all.end(), number);
      if (number < 0 || end == all.end()) throw nb::index_error("there is no such record");
      const int64_t file = end - all.begin();
      which.push(file);
      inside.push(file == 0 ? number : number - end[-1]);
      ++counts.data()[file];
    }
  }
  return {to_numpy(std::move(which)), to_numpy(std::move(inside)), to_numpy(std::move(counts))};
}

using Tables = std::vector<const PlaceTable*>;
using Blocks = std::set<std::tuple<uint32_t, uint64_t>>;

Place checked_place(const Tables& tables, int64_t file, int64_t number) {
  if (static_cast<uint64_t>(file) >= tables.size()) throw nb::index_error("there is no such file");
  if (static_cast<uint64_t>(number) >= tables[file]->records())
    throw nb::index_error("the file has no such record");
  return {0, 0, static_cast<uint32_t>(file)};
}

// Fills in the places. Returns the blocks that the tables lack; if there are any, the places are incomplete.
Blocks look_up(const Tables& tables, const int64_t* numbers, std::span<Place> places) {
  Blocks lacking;
  for (size_t i = 0; i < places.size(); ++i) {
    const PlaceTable& table = *tables[places[i].file];
    const uint64_t number = static_cast<uint64_t>(numbers[i]);
    if (!table.find(number, places[i])) lacking.emplace(places[i].file, number / table.block_records());
  }
  return lacking;
}

std::tuple<PlaceList, std::vector<std::tuple<uint32_t, uint64_t>>> find_places(const Tables& tables,
                                                                               Numbers<int64_t> files,
                                                                               Numbers<int64_t> numbers) {
  if (files.size() != numbers.size()) throw nb::value_error("as many files as numbers");
  std::vector<Place> places(files.size());
  for (size_t i = 0; i < places.size(); ++i)
    places[i] = checked_place(tables, files.data()[i], numbers.data()[i]);
  Blocks lacking;
  {
    const ReleaseForMany release(places.size());
    lacking = look_up(tables, numbers.data(), places);
  }
  return {{tables.size(), std::move(places)}, {lacking.begin(), lacking.end()}};
}

std::tuple<Chunk, int, size_t> fetch_listed(const std::vector<int>& descriptors,
                                            const std::vector<const FileMap*>& maps, const PlaceList& list) {
  if (descriptors.size() != list.files || maps.size() != list.files)
    throw nb::value_error("as many descriptors and maps as files");
  Fetched fetched = without_gil([&] { return fetch(descriptors, list.places, maps); });
  return {std::move(fetched.chunk), static_cast<int>(fetched.fault), fetched.reads};
}

// --- One file

std::vector<uint64_t> lacking_blocks(const PlaceTable& table, Numbers<int64_t> numbers) {
  std::vector<Place> places(numbers.size());
  for (size_t i = 0; i < places.size(); ++i) places[i] = checked_place({&table}, 0, numbers.data()[i]);
  std::vector<uint64_t> blocks;
  for (const auto& [file, block] : look_up({&table}, numbers.data(), places)) blocks.push_back(block);
  return blocks;
}

std::tuple<nb::object, nb::object> places_of(const PlaceTable& table, Numbers<int64_t> numbers) {
  Array<uint64_t> offsets(numbers.size()), sizes(numbers.size());
  for (size_t i = 0; i < numbers.size(); ++i) {
    const uint64_t number = static_cast<uint64_t>(numbers.data()[i]);
    Place place;
    if (number >= table.records()) throw nb::index_error("the file has no such record");
    if (!table.find(number, place)) throw nb::value_error("the table lacks a block");
    offsets.push(place.offset);
    sizes.push(place.size);
  }
  return {to_numpy(std::move(offsets)), to_numpy(std::move(sizes))};
}

std::optional<Chunk> fetch_one(const PlaceTable& table, int descriptor, uint64_t number) {
  Place place;
  if (number >= table.records()) throw nb::index_error("the file has no such record");
  if (!table.find(number, place)) return {};
  Fetched fetched = without_gil([&] { return fetch({&descriptor, 1}, {&place, 1}); });
  if (fetched.fault != Fault::none) return {};
  fetched.chunk.first_record = number;
  fetched.chunk.file_offset = place.offset;
  return std::move(fetched.chunk);
}

void put_block(PlaceTable& table, uint64_t block, uint64_t start, uint64_t least, uint32_t width,
               nb::bytes above) {
  const PlaceTable::Packed packed{
      start, least, width, {static_cast<const uint8_t*>(above.data()), above.size()}};
  if (block >= table.blocks()) throw nb::index_error("there is no such block");
  if (!table.fits(block, packed)) throw nb::value_error("a number of 0, 1, 2, 4 or 8 bytes for each record");
  table.put(block, packed);
}

#define RECORDKIT_INTS "numpy.typing.NDArray[numpy.int64]"
#define RECORDKIT_UINTS "numpy.typing.NDArray[numpy.uint64]"

void bind_table(nb::module_& m) {
  nb::class_<PlaceTable>(m, "PlaceTable", "Where the records of a file are; filled in blocks on demand.")
      .def(
          "__init__",
          [](PlaceTable* self, uint64_t records, uint64_t block_records) {
            if (block_records == 0) throw nb::value_error("a block has records");
            new (self) PlaceTable(records, block_records);
          },
          "records"_a, "block_records"_a)
      .def("__len__", &PlaceTable::records)
      .def("put", &put_block, "block"_a, "start"_a, "least"_a, "width"_a, "above"_a,
           "Store a block as an index has it: where its first frame starts, the smallest frame, and how much "
           "larger each one is.")
      .def("lacking", &lacking_blocks, "numbers"_a,
           nb::sig("def lacking(self, numbers: " RECORDKIT_INTS ") -> list[int]"),
           "Return the blocks that must be stored before these records can be looked up.")
      .def("places", &places_of, "numbers"_a,
           nb::sig("def places(self, numbers: " RECORDKIT_INTS ") -> tuple[" RECORDKIT_UINTS
                   ", " RECORDKIT_UINTS "]"),
           "Return offsets and sizes of the frames of these records. Their blocks must be stored.")
      .def("fetch", &fetch_one, "descriptor"_a, "number"_a,
           "Return one record; None if its block is not stored, or if it is damaged.")
      .def_prop_ro("nbytes", &PlaceTable::nbytes, "The memory used, in bytes.");
  nb::class_<PlaceList>(m, "PlaceList", "Places of records in several files.")
      .def("__len__", [](const PlaceList& list) { return list.places.size(); });
  m.def("split_numbers", &split_numbers, "ends"_a, "numbers"_a,
        nb::sig("def split_numbers(ends: " RECORDKIT_INTS ", numbers: " RECORDKIT_INTS
                ") -> tuple[" RECORDKIT_INTS ", " RECORDKIT_INTS ", " RECORDKIT_INTS "]"),
        "Return for each number which file it is in and its number there, given where the files end, and how "
        "many are in each file.");
  m.def("find_places", &find_places, "tables"_a, "files"_a, "numbers"_a,
        nb::sig("def find_places(tables: collections.abc.Sequence[PlaceTable], files: " RECORDKIT_INTS
                ", numbers: " RECORDKIT_INTS ") -> tuple[PlaceList, list[tuple[int, int]]]"),
        "Return where these records are, given file and number of each, and which (file, block) pairs the "
        "tables lack. If any are lacking, the places are incomplete.");
  m.def("fetch_listed", &fetch_listed, "descriptors"_a, "maps"_a, "places"_a,
        nb::sig("def fetch_listed(descriptors: collections.abc.Sequence[int], maps: "
                "collections.abc.Sequence[FileMap | None], places: PlaceList) -> tuple[Chunk, int, int]"),
        "Return the records at these places, in order, up to the first damaged one, its fault (0: none), and "
        "the number of read calls.");
}

}  // namespace

void bind_places(nb::module_& m) {
  m.def("scan_headers", &scan_file_headers, "descriptor"_a, "offset"_a, "max_records"_a, "most_mapped"_a,
        nb::sig("def scan_headers(descriptor: int, offset: int, max_records: int, most_mapped: int) -> "
                "tuple[" RECORDKIT_UINTS ", numpy.typing.NDArray[numpy.uint32], int, int]"),
        "Return lengths and stored CRCs of payloads, from headers and footers alone, the fault that ended "
        "the scan (0: none) and its offset.");
  m.def("fetch", &fetch_places, "descriptor"_a, "offsets"_a, "sizes"_a, "first_record"_a = 0,
        nb::sig("def fetch(descriptor: int, offsets: " RECORDKIT_UINTS ", sizes: " RECORDKIT_UINTS
                ", first_record: int = 0) -> tuple[Chunk, int]"),
        "Return the records whose frames have these offsets and sizes, up to the first damaged one, and its "
        "fault (0: none).");
  bind_table(m);
}

}  // namespace recordkit
