// The order of shuffled records.
#include "bindings/bindings.h"
#include "core/order/permute.h"

namespace recordkit {
namespace {

using namespace nb::literals;

nb::object permute(nb::ndarray<const int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu> indices,
                   uint64_t count, uint64_t seed, uint64_t epoch, uint64_t salt) {
  if (count > Permutation::kLargest) throw nb::value_error("a count is at most 2**62");
  Array<int64_t> images(indices.size());
  for (size_t i = 0; i < indices.size(); ++i) {
    const int64_t index = indices.data()[i];
    if (index < 0 || static_cast<uint64_t>(index) >= count)
      throw nb::index_error("an index that is not less than the count");
    images.push(index);
  }
  {
    const ReleaseForMany release(images.size());
    Permutation(count, seed, epoch, salt).apply({images.data(), images.size()});
  }
  return to_numpy(std::move(images));
}

}  // namespace

void bind_order(nb::module_& m) {
  m.def("permute", &permute, "indices"_a, "count"_a, "seed"_a, "epoch"_a, "salt"_a,
        nb::sig("def permute(indices: numpy.typing.NDArray[numpy.int64], count: int, seed: int, epoch: int, "
                "salt: int) -> numpy.typing.NDArray[numpy.int64]"),
        "Return the images of the indices under a keyed permutation of [0, count). seed, epoch and salt are "
        "below 2**64.");
}

}  // namespace recordkit
