// JPEGs decoded straight to the size that is asked for: coefficients are read, and what they add to the
// pixels that are wanted is added up, a row of units at a time.
#pragma once

#include <memory>

#include "core/memory/bytes.h"
#include "core/pictures/resize.h"

namespace recordkit {

// Keeps tables and memory from one picture to the next, which is often like it. For one thread at a time.
class JpegDecoder {
 public:
  // `is_portable`: as where the processor has no AVX2, for tests.
  explicit JpegDecoder(bool is_portable = false);
  ~JpegDecoder();

  // Fills `to`, of 1 or 3 channels, with what decoding in full and `resize` make of a JPEG, but rounded only
  // once. False if it is another kind of JPEG than most, if it is not a sound one, or if it would have to be
  // made larger; `to` may have been written to then.
  template <typename To>
  bool decode(Bytes file, const Pixels<To>& to, Resampling how, const float* scale, const float* shift);

 private:
  class Work;
  std::unique_ptr<Work> work_;
};

}  // namespace recordkit
