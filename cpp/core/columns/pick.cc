#include "core/columns/pick.h"

#include <algorithm>

namespace recordkit {
namespace {

template <typename Row>
void swap_words(uint8_t* buffer, uint8_t* rows, std::span<const int64_t> slots) {
  for (const int64_t slot : slots) {
    uint8_t* const held = buffer + static_cast<size_t>(slot) * sizeof(Row);
    const Row given = load<Row>(held);
    store(held, load<Row>(rows));
    store(rows, given);
    rows += sizeof(Row);
  }
}

}  // namespace

void swap_rows(std::span<uint8_t> buffer, std::span<uint8_t> rows, size_t width,
               std::span<const int64_t> slots) {
  uint8_t* row = rows.data();
  if (width == sizeof(uint64_t)) return swap_words<uint64_t>(buffer.data(), row, slots);
  if (width == sizeof(uint32_t)) return swap_words<uint32_t>(buffer.data(), row, slots);
  for (const int64_t slot : slots) {
    std::swap_ranges(row, row + width, buffer.data() + static_cast<size_t>(slot) * width);
    row += width;
  }
}

void pick_runs(Bytes values, std::span<const int64_t> starts, std::span<const int64_t> offsets, size_t item,
               std::span<uint8_t> out) {
  for (size_t i = 0; i < starts.size(); ++i) {
    const size_t size = static_cast<size_t>(offsets[i + 1] - offsets[i]) * item;
    if (size)
      std::memcpy(out.data() + static_cast<size_t>(offsets[i]) * item,
                  values.data() + static_cast<size_t>(starts[i]) * item, size);
  }
}

}  // namespace recordkit
