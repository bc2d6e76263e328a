#include "core/columns/pad.h"

#include <algorithm>
#include <cstring>

namespace recordkit {

Buffer pad_rows(std::span<const uint8_t> values, std::span<const int64_t> starts,
                std::span<const uint8_t> fill) {
  const size_t item = fill.size(), rows = starts.size() - 1;
  int64_t longest = 0;
  for (size_t i = 0; i < rows; ++i) longest = std::max(longest, starts[i + 1] - starts[i]);
  const size_t width = static_cast<size_t>(longest) * item;  // no more than values.size()
  if (width != 0 && rows > SIZE_MAX / width) throw std::bad_alloc();
  Buffer rectangle(rows * width);
  rectangle.set_size(rows * width);

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
  return rectangle;
}

}  // namespace recordkit
