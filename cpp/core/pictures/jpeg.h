// Decodes JPEGs straight to the requested size: reads the coefficients and accumulates what they contribute
// to the wanted pixels, a row of units at a time.
#pragma once

#include <memory>

#include "core/memory/bytes.h"
#include "core/pictures/resize.h"

namespace recordkit {

// Keeps tables and memory from one picture to the next, which is often similar. For one thread at a time.
class JpegDecoder {
 public:
  // `is_portable`: do without AVX2, for tests.
  explicit JpegDecoder(bool is_portable = false);
  ~JpegDecoder();

  // Fills `to`, of 1 or 3 channels, as full decoding and `resize` would, but rounds only once. False if the
  // JPEG is of an unusual kind, is damaged, or would have to be enlarged; `to` is unspecified then.
  template <typename To>
  bool decode(Bytes file, const Pixels<To>& to, Resampling how, const float* scale, const float* shift);

 private:
  class Work;
  std::unique_ptr<Work> work_;
};

}  // namespace recordkit
