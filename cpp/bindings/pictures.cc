// Decoding and resizing pictures.
#include "bindings/bindings.h"
#include "core/pictures/jpeg.h"
#include "core/pictures/resize.h"

namespace recordkit {
namespace {

using namespace nb::literals;
using Source = nb::ndarray<nb::ro, nb::ndim<3>, nb::device::cpu>;
using Target = nb::ndarray<nb::ndim<3>, nb::c_contig, nb::device::cpu>;
using Factors = nb::ndarray<const float, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

template <typename To>
Pixels<To> pixels_of(const Target& target) {
  const size_t width = target.shape(1), channels = target.shape(2);
  return {static_cast<To*>(target.data()), target.shape(0), width, channels,
          static_cast<ptrdiff_t>(width * channels)};
}

template <typename From, typename To>
void resize_array(const Source& source, const Target& target, Resampling how, const Factors& scale,
                  const Factors& shift) {
  const size_t height = source.shape(0), width = source.shape(1), channels = source.shape(2);
  const auto* data = static_cast<const From*>(source.data());
  const bool mirrored = width > 1 && source.stride(1) < 0;
  if (mirrored) data += static_cast<ptrdiff_t>(width - 1) * source.stride(1);
  const Pixels<const From> from{data, height, width, channels, source.stride(0)};
  const nb::gil_scoped_release release;
  resize(from, pixels_of<To>(target), how, mirrored, scale.data(), shift.data());
}

// Whether the pixels of a row are adjacent, from left to right or from right to left.
bool has_whole_rows(const Source& source) {
  const auto channels = static_cast<int64_t>(source.shape(2));
  return (channels == 1 || source.stride(2) == 1) &&
         (source.shape(1) == 1 || source.stride(1) == channels || source.stride(1) == -channels);
}

bool has_size(const auto& pixels) {
  const auto fits = [](size_t side) { return side >= 1 && side <= kLongestSide; };
  return fits(pixels.shape(0)) && fits(pixels.shape(1)) && pixels.shape(2) >= 1;
}

bool is_method(int how) { return how >= 0 && how <= static_cast<int>(Resampling::area); }

void resize_pixels(Source source, Target target, int how, Factors scale, Factors shift) {
  const size_t channels = source.shape(2);
  if (!has_size(source) || !has_size(target) || target.shape(2) != channels || scale.size() != channels ||
      shift.size() != channels || !is_method(how) || !has_whole_rows(source))
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

bool decode_jpeg(JpegDecoder& decoder, nb::handle picture, Target target, int how, Factors scale,
                 Factors shift) {
  const size_t channels = target.shape(2);
  if (!has_size(target) || scale.size() != channels || shift.size() != channels || !is_method(how))
    throw nb::value_error("a picture of pixels, and a factor for each channel");
  const auto method = static_cast<Resampling>(how);
  const bool to_bytes = target.dtype() == nb::dtype<uint8_t>();
  if (!to_bytes && target.dtype() != nb::dtype<float>()) throw nb::type_error("uint8 or float32");
  const BufferView view(picture);
  const nb::gil_scoped_release release;
  if (to_bytes)
    return decoder.decode(view.bytes(), pixels_of<uint8_t>(target), method, scale.data(), shift.data());
  return decoder.decode(view.bytes(), pixels_of<float>(target), method, scale.data(), shift.data());
}

}  // namespace

void bind_pictures(nb::module_& m) {
  nb::class_<JpegDecoder>(
      m, "JpegDecoder",
      "Decodes JPEGs straight to a given size. Keeps memory between calls; for one thread at a time.")
      .def(nb::init<bool>(), "is_portable"_a = false)
      .def("decode", &decode_jpeg, "picture"_a, "target"_a.noconvert(), "how"_a, "scale"_a, "shift"_a,
           nb::sig("def decode(self, picture: typing_extensions.Buffer, "
                   "target: numpy.typing.NDArray[typing.Any], how: int, "
                   "scale: numpy.typing.NDArray[numpy.float32], "
                   "shift: numpy.typing.NDArray[numpy.float32]) -> bool"),
           "Decode a JPEG into a picture [h,w,c], resized as by `resize`. Return False if it is of an "
           "unusual kind, damaged, or would have to be enlarged.");
  m.def("resize", &resize_pixels, "source"_a, "target"_a.noconvert(), "how"_a, "scale"_a, "shift"_a,
        nb::sig(
            "def resize(source: numpy.typing.NDArray[typing.Any], target: numpy.typing.NDArray[typing.Any], "
            "how: int, scale: numpy.typing.NDArray[numpy.float32], "
            "shift: numpy.typing.NDArray[numpy.float32]) -> None"),
        "Resize one picture [h,w,c] into another (0 nearest, 1 bilinear, 2 area), then apply `scale` and "
        "`shift` per channel.");
}

}  // namespace recordkit
