// Rows of columns: padding, picking and swapping.
#include <algorithm>
#include <vector>

#include "bindings/bindings.h"
#include "core/columns/pad.h"
#include "core/columns/pick.h"
#include "core/memory/array.h"

namespace recordkit {
namespace {

using namespace nb::literals;
using Bytes = nb::ndarray<const uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Starts = nb::ndarray<const int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Room = nb::ndarray<uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Rectangle = nb::ndarray<uint8_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

nb::list pad(Bytes values, Starts starts, Bytes fill, size_t rows) {
  const std::span<const int64_t> places{starts.data(), starts.size()};
  const uint64_t there = fill.size() ? values.size() / fill.size() : 0;
  bool fits = rows > 0 && fill.size() > 0 && !places.empty() && places[0] >= 0;
  for (size_t i = 0; fits && i + 1 < places.size(); ++i) fits = places[i] <= places[i + 1];
  if (!fits || static_cast<uint64_t>(places.back()) > there)
    throw nb::value_error("rows that do not fit their values");
  std::vector<Buffer> padded;
  {
    const nb::gil_scoped_release release;
    for (size_t at = 0, count; at + 1 < places.size(); at += count) {
      count = std::min(rows, places.size() - 1 - at);
      padded.push_back(pad_rows({values.data(), values.size()}, places.subspan(at, count + 1),
                                {fill.data(), fill.size()}));
    }
  }
  nb::list result;
  for (Buffer& rectangle : padded) result.append(to_numpy(std::move(rectangle)));
  return result;
}

void swap(Rectangle buffers, Rectangle rows, size_t width, Starts slots) {
  const size_t count = width ? buffers.shape(1) / width : 0;
  const std::span<const int64_t> places{slots.data(), slots.size()};
  bool fits = buffers.shape(0) == rows.shape(0) && rows.shape(1) == places.size() * width;
  for (size_t i = 0; fits && i < places.size(); ++i) fits = static_cast<uint64_t>(places[i]) < count;
  if (!fits) throw nb::value_error("slots that do not fit the rows or the buffers");
  const nb::gil_scoped_release release;
  for (size_t i = 0; i < rows.shape(0); ++i) {
    swap_rows({buffers.data() + i * buffers.shape(1), buffers.shape(1)},
              {rows.data() + i * rows.shape(1), rows.shape(1)}, width, places);
  }
}

void pick(Bytes values, Starts starts, Starts offsets, size_t item, Room out) {
  const std::span<const int64_t> from{starts.data(), starts.size()}, to{offsets.data(), offsets.size()};
  const uint64_t there = item ? values.size() / item : 0;
  bool fits =
      to.size() == from.size() + 1 && to[0] == 0 && static_cast<uint64_t>(to.back()) * item == out.size();
  for (size_t i = 0; fits && i < from.size(); ++i) {
    fits = to[i] <= to[i + 1] && from[i] >= 0 && static_cast<uint64_t>(from[i]) <= there &&
           static_cast<uint64_t>(to[i + 1] - to[i]) <= there - static_cast<uint64_t>(from[i]);
  }
  if (!fits) throw nb::value_error("runs that do not fit the values or the room");
  const nb::gil_scoped_release release;
  pick_runs({values.data(), values.size()}, from, to, item, {out.data(), out.size()});
}

#define RECORDKIT_BYTES "numpy.typing.NDArray[numpy.uint8]"
#define RECORDKIT_INTS "numpy.typing.NDArray[numpy.int64]"

}  // namespace

void bind_columns(nb::module_& m) {
  m.def("pad", &pad, "values"_a, "starts"_a, "fill"_a, "rows"_a,
        nb::sig("def pad(values: " RECORDKIT_BYTES ", starts: " RECORDKIT_INTS ", fill: " RECORDKIT_BYTES
                ", rows: int) -> list[" RECORDKIT_BYTES "]"),
        "Pad ragged rows to rectangles of at most `rows` rows, each as wide as its longest row. `starts` "
        "counts values, whose size is that of `fill`.");
  m.def("swap_rows", &swap, "buffers"_a.noconvert(), "rows"_a.noconvert(), "width"_a, "slots"_a,
        nb::sig("def swap_rows(buffers: " RECORDKIT_BYTES ", rows: " RECORDKIT_BYTES
                ", width: int, slots: " RECORDKIT_INTS ") -> None"),
        "Swap rows of `width` bytes with their slots of a buffer, in order. `buffers` and `rows` have one "
        "line per column.");
  m.def("pick_runs", &pick, "values"_a, "starts"_a, "offsets"_a, "item"_a, "out"_a.noconvert(),
        nb::sig("def pick_runs(values: " RECORDKIT_BYTES ", starts: " RECORDKIT_INTS
                ", offsets: " RECORDKIT_INTS ", item: int, out: " RECORDKIT_BYTES ") -> None"),
        "Copy runs of values of `item` bytes that begin at `starts` to `out`, at `offsets`.");
}

}  // namespace recordkit
