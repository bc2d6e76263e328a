#include "core/pad.h"

#include <algorithm>
#include <cstring>

namespace recordkit {

void pad_rows(std::span<const uint8_t> values, std::span<const int64_t> starts, std::span<const uint8_t> fill,
              size_t width, std::span<uint8_t> rectangle) {
  const size_t item = fill.size();
  const bool one_byte = std::all_of(fill.begin(), fill.end(), [&](uint8_t byte) { return byte == fill[0]; });
  uint8_t* row = rectangle.data();
  for (size_t i = 0; i + 1 < starts.size(); ++i, row += width) {
    const size_t size = static_cast<size_t>(starts[i + 1] - starts[i]) * item;
    if (size) std::memcpy(row, values.data() + static_cast<size_t>(starts[i]) * item, size);
    if (size == width) continue;
    if (one_byte) {
      std::memset(row + size, fill[0], width - size);
    } else {
      for (size_t at = size; at < width; at += item) std::memcpy(row + at, fill.data(), item);
    }
  }
}

}  // namespace recordkit
