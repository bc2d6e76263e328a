// Records at known places of a file.
#include "core/places.h"

#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "bindings/bindings.h"

namespace recordkit {
namespace {

using namespace nb::literals;
using Numbers = nb::ndarray<const uint64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

std::tuple<nb::object, nb::object, int, uint64_t> hop_over_file(int descriptor, uint64_t offset,
                                                                size_t max_records) {
  Hops hops = without_gil([&] { return hop_over(descriptor, offset, max_records); });
  return {to_numpy(std::move(hops.lengths)), to_numpy(std::move(hops.payload_crcs)),
          static_cast<int>(hops.fault), hops.offset};
}

std::tuple<Chunk, int> fetch_places(int descriptor, Numbers offsets, Numbers sizes, uint64_t first_record) {
  if (offsets.size() != sizes.size()) throw nb::value_error("as many offsets as sizes");
  Fetched fetched = without_gil([&] {
    std::vector<Place> places(offsets.size());
    for (size_t i = 0; i < places.size(); ++i) places[i] = {offsets.data()[i], sizes.data()[i]};
    return fetch(descriptor, places);
  });
  fetched.chunk.first_record = first_record;
  if (offsets.size() != 0) fetched.chunk.file_offset = offsets.data()[0];
  return {std::move(fetched.chunk), static_cast<int>(fetched.fault)};
}

}  // namespace

void bind_places(nb::module_& m) {
  m.def("hop_over", &hop_over_file, "descriptor"_a, "offset"_a, "max_records"_a,
        nb::sig("def hop_over(descriptor: int, offset: int, max_records: int) -> "
                "tuple[numpy.typing.NDArray[numpy.uint64], numpy.typing.NDArray[numpy.uint32], int, int]"),
        "Return lengths and stored CRCs of payloads by headers and footers alone, the fault behind them (0: "
        "none) "
        "and its offset.");
  m.def("fetch", &fetch_places, "descriptor"_a, "offsets"_a, "sizes"_a, "first_record"_a = 0,
        nb::sig("def fetch(descriptor: int, offsets: numpy.typing.NDArray[numpy.uint64], "
                "sizes: numpy.typing.NDArray[numpy.uint64], first_record: int = 0) -> tuple[Chunk, int]"),
        "Return the records whose frames have these offsets and sizes, and the fault of the one behind the "
        "last "
        "(0: none).");
  m.def(
      "join",
      [](const std::vector<const Chunk*>& chunks) {
        const nb::gil_scoped_release release;
        return join(chunks);
      },
      "chunks"_a, nb::sig("def join(chunks: collections.abc.Sequence[Chunk]) -> Chunk"),
      "Return the records of all chunks in one, copied.");
}

}  // namespace recordkit
