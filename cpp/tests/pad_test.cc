#include "core/pad.h"

#include <vector>

#include "check.h"

namespace recordkit {
namespace {

std::vector<uint8_t> padded(const std::vector<uint8_t>& values, const std::vector<int64_t>& starts,
                            const std::vector<uint8_t>& fill, size_t width) {
  std::vector<uint8_t> rectangle((starts.size() - 1) * width, 0xee);
  pad_rows(values, starts, fill, width, rectangle);
  return rectangle;
}

TEST(rows_are_filled_up_to_the_longest) {
  CHECK(padded({1, 2, 3}, {0, 2, 2, 3}, {9}, 2) == std::vector<uint8_t>({1, 2, 9, 9, 3, 9}));
}

TEST(values_of_several_bytes_are_filled_up_with_whole_ones) {
  CHECK(padded({1, 2, 3, 4}, {0, 0, 2}, {7, 8}, 4) == std::vector<uint8_t>({7, 8, 7, 8, 1, 2, 3, 4}));
  CHECK(padded({1, 2, 3, 4}, {0, 1, 2}, {0, 0}, 4) == std::vector<uint8_t>({1, 2, 0, 0, 3, 4, 0, 0}));
}

TEST(rows_may_begin_anywhere) { CHECK(padded({5, 6, 7}, {1, 2, 3}, {0}, 1) == std::vector<uint8_t>({6, 7})); }

TEST(no_rows_and_no_width_are_nothing) {
  CHECK(padded({}, {0}, {0}, 4).empty());
  CHECK(padded({}, {0, 0, 0}, {0}, 0).empty());
}

}  // namespace
}  // namespace recordkit
