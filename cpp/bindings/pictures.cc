// Pictures as arrays.
#include "bindings/bindings.h"
#include "core/resize.h"

namespace recordkit {
namespace {

using namespace nb::literals;
using Source = nb::ndarray<nb::ro, nb::ndim<3>, nb::device::cpu>;
using Target = nb::ndarray<nb::ndim<3>, nb::c_contig, nb::device::cpu>;
using Factors = nb::ndarray<const float, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

template <typename From, typename To>
void resize_array(const Source& source, const Target& target, Resampling how, const Factors& scale,
                  const Factors& shift) {
  const size_t height = source.shape(0), width = source.shape(1), channels = source.shape(2);
  const auto* data = static_cast<const From*>(source.data());
  const bool mirrored = width > 1 && source.stride(1) < 0;
  if (mirrored) data += static_cast<ptrdiff_t>(width - 1) * source.stride(1);
  const Pixels<const From> from{data, height, width, channels, source.stride(0)};
  const Pixels<To> to{static_cast<To*>(target.data()), target.shape(0), target.shape(1), channels,
                      static_cast<ptrdiff_t>(target.shape(1) * channels)};
  const nb::gil_scoped_release release;
  resize(from, to, how, mirrored, scale.data(), shift.data());
}

// Whether the pixels of a row stand side by side, from left to right or from right to left.
bool has_whole_rows(const Source& source) {
  const auto channels = static_cast<int64_t>(source.shape(2));
  return (channels == 1 || source.stride(2) == 1) &&
         (source.shape(1) == 1 || source.stride(1) == channels || source.stride(1) == -channels);
}

bool has_size(const auto& pixels) {
  const auto fits = [](size_t side) { return side >= 1 && side <= kLongestSide; };
  return fits(pixels.shape(0)) && fits(pixels.shape(1)) && pixels.shape(2) >= 1;
}

void resize_pixels(Source source, Target target, int how, Factors scale, Factors shift) {
  const size_t channels = source.shape(2);
  if (!has_size(source) || !has_size(target) || target.shape(2) != channels || scale.size() != channels ||
      shift.size() != channels || how < 0 || how > static_cast<int>(Resampling::area) ||
      !has_whole_rows(source))
    throw nb::value_error(
        "pictures of pixels, with as many channels each, a factor for each, and whole rows");
  const auto method = static_cast<Resampling>(how);
  const bool from_bytes = source.dtype() == nb::dtype<uint8_t>(),
             to_bytes = target.dtype() == nb::dtype<uint8_t>();
  if ((!from_bytes && source.dtype() != nb::dtype<float>()) ||
      (!to_bytes && target.dtype() != nb::dtype<float>()))
    throw nb::type_error("uint8 or float32");
  if (from_bytes && to_bytes) return resize_array<uint8_t, uint8_t>(source, target, method, scale, shift);
  if (from_bytes) return resize_array<uint8_t, float>(source, target, method, scale, shift);
  if (to_bytes) return resize_array<float, uint8_t>(source, target, method, scale, shift);
  return resize_array<float, float>(source, target, method, scale, shift);
}

}  // namespace

void bind_pictures(nb::module_& m) {
  m.def("resize", &resize_pixels, "source"_a, "target"_a.noconvert(), "how"_a, "scale"_a, "shift"_a,
        nb::sig(
            "def resize(source: numpy.typing.NDArray[typing.Any], target: numpy.typing.NDArray[typing.Any], "
            "how: int, scale: numpy.typing.NDArray[numpy.float32], "
            "shift: numpy.typing.NDArray[numpy.float32]) -> None"),
        "Fill one picture [h,w,c] with another, resized (0 nearest, 1 bilinear, 2 area), times `scale` plus "
        "`shift` of each channel.");
}

}  // namespace recordkit
