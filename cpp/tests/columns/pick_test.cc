#include "core/columns/pick.h"

#include <vector>

#include "support/check.h"

namespace recordkit {
namespace {

TEST(rows_come_out_of_the_slots_that_others_go_into) {
  std::vector<uint8_t> buffer = {1, 2, 3}, rows = {7, 8, 9};
  const std::vector<int64_t> slots = {2, 0, 2};

  swap_rows(buffer, rows, 1, slots);

  CHECK(rows == std::vector<uint8_t>({3, 1, 7}));
  CHECK(buffer == std::vector<uint8_t>({8, 2, 9}));
}

TEST(rows_of_any_width_are_swapped_whole) {
  const std::vector<int64_t> slots = {1, 0, 1};
  for (const size_t width : {1, 2, 3, 4, 5, 8, 16, 20}) {
    std::vector<uint8_t> buffer(2 * width), rows(3 * width);
    for (size_t i = 0; i < width; ++i) {
      for (uint8_t row = 0; row < 2; ++row) buffer[row * width + i] = row;
      for (uint8_t row = 0; row < 3; ++row) rows[row * width + i] = static_cast<uint8_t>(10 + row);
    }

    swap_rows(buffer, rows, width, slots);

    for (size_t i = 0; i < width; ++i) {
      CHECK(rows[i] == 1 && rows[width + i] == 0 && rows[2 * width + i] == 10);
      CHECK(buffer[i] == 11 && buffer[width + i] == 12);
    }
  }
}

std::vector<uint8_t> picked(const std::vector<uint8_t>& values, const std::vector<int64_t>& starts,
                            const std::vector<int64_t>& offsets, size_t item) {
  std::vector<uint8_t> out(static_cast<size_t>(offsets.back()) * item, 0xee);
  pick_runs(values, starts, offsets, item, out);
  return out;
}

TEST(runs_are_copied_in_any_order_and_more_than_once) {
  CHECK(picked({1, 2, 3, 4}, {2, 0, 2}, {0, 2, 3, 5}, 1) == std::vector<uint8_t>({3, 4, 1, 3, 4}));
  CHECK(picked({1, 2, 3, 4}, {1, 0}, {0, 1, 2}, 2) == std::vector<uint8_t>({3, 4, 1, 2}));
}

TEST(runs_of_nothing_are_nothing) {
  CHECK(picked({1}, {}, {0}, 1).empty());
  CHECK(picked({1}, {1, 0}, {0, 0, 1}, 1) == std::vector<uint8_t>({1}));
}

}  // namespace
}  // namespace recordkit
