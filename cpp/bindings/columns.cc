// Columns of rows that differ in length.
#include "bindings/bindings.h"
#include "core/pad.h"

namespace recordkit {
namespace {

using namespace nb::literals;
using Bytes = nb::ndarray<const uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Starts = nb::ndarray<const int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Rectangle = nb::ndarray<uint8_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

void pad(Bytes values, Starts starts, Bytes fill, Rectangle rectangle) {
  const size_t item = fill.size(), width = rectangle.shape(1);
  const std::span<const int64_t> places{starts.data(), starts.size()};
  bool fits = item > 0 && !places.empty() && places[0] >= 0 && width % item == 0 &&
              rectangle.shape(0) == places.size() - 1;
  for (size_t i = 0; fits && i + 1 < places.size(); ++i)
    fits = places[i] <= places[i + 1] && static_cast<uint64_t>(places[i + 1] - places[i]) <= width / item;
  if (!fits || static_cast<uint64_t>(places.back()) > values.size() / item)
    throw nb::value_error("rows that do not fit their values or the rectangle");
  const nb::gil_scoped_release release;
  pad_rows({values.data(), values.size()}, places, {fill.data(), item}, width,
           {rectangle.data(), rectangle.size()});
}

}  // namespace

void bind_columns(nb::module_& m) {
  m.def("pad", &pad, "values"_a, "starts"_a, "fill"_a, "rectangle"_a,
        nb::sig(
            "def pad(values: numpy.typing.NDArray[numpy.uint8], starts: numpy.typing.NDArray[numpy.int64], "
            "fill: numpy.typing.NDArray[numpy.uint8], rectangle: numpy.typing.NDArray[numpy.uint8]) -> None"),
        "Lay the bytes of rows, which begin at `starts` in values of as many bytes as `fill`, into a "
        "rectangle.");
}

}  // namespace recordkit
