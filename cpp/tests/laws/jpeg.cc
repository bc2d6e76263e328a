#include "core/pictures/jpeg.h"

#include "laws/laws.h"
#include "support/check.h"

namespace recordkit {
namespace {

struct Answer {
  bool is_decoded;
  std::vector<float> pixels;

  bool operator==(const Answer&) const = default;
};

Answer answer(JpegDecoder& decoder, Bytes file, size_t height, size_t width, size_t channels,
              Resampling how) {
  const float scale[] = {1, 1, 1}, shift[] = {0, 0, 0};
  Answer made{false, std::vector<float>(height * width * channels)};
  const Pixels<float> to{made.pixels.data(), height, width, channels,
                         static_cast<ptrdiff_t>(width * channels)};
  made.is_decoded = decoder.decode(file, to, how, scale, shift);
  if (!made.is_decoded) made.pixels.clear();
  return made;
}

}  // namespace

void jpeg_law(Bytes file) {
  JpegDecoder decoder, portable(true);
  for (const size_t channels : {1, 3})
    for (const Resampling how : {Resampling::bilinear, Resampling::area, Resampling::nearest}) {
      const Answer small = answer(decoder, file, 1, 2, channels, how);
      const Answer large = answer(decoder, file, 7, 5, channels, how);
      CHECK(small == answer(portable, file, 1, 2, channels, how));
      CHECK(large == answer(portable, file, 7, 5, channels, how));
      CHECK(!large.is_decoded || small.is_decoded);
      for (const float value : large.pixels) CHECK(value >= 0 && value <= 255);
    }
}

}  // namespace recordkit
