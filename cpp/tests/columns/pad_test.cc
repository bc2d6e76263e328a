#include "core/columns/pad.h"

#include <vector>

#include "support/check.h"

namespace recordkit {
namespace {

std::vector<uint8_t> padded(const std::vector<uint8_t>& values, const std::vector<int64_t>& starts,
                            const std::vector<uint8_t>& fill) {
  const Buffer rectangle = pad_rows(values, starts, fill);
  return {rectangle.data(), rectangle.data() + rectangle.size()};
}

TEST(rows_are_filled_up_to_the_longest) {
  CHECK(padded({1, 2, 3}, {0, 2, 2, 3}, {9}) == std::vector<uint8_t>({1, 2, 9, 9, 3, 9}));
}

TEST(values_of_several_bytes_are_filled_up_with_whole_ones) {
  CHECK(padded({1, 2, 3, 4}, {0, 0, 2}, {7, 8}) == std::vector<uint8_t>({7, 8, 7, 8, 1, 2, 3, 4}));
  CHECK(padded({1, 2, 3, 4, 5, 6}, {0, 1, 3}, {0, 0}) == std::vector<uint8_t>({1, 2, 0, 0, 3, 4, 5, 6}));
}

TEST(rows_may_begin_anywhere) { CHECK(padded({5, 6, 7}, {1, 2, 3}, {0}) == std::vector<uint8_t>({6, 7})); }

TEST(no_rows_and_no_width_are_nothing) {
  CHECK(padded({}, {0}, {0}).empty());
  CHECK(padded({}, {0, 0, 0}, {0}).empty());
}

}  // namespace
}  // namespace recordkit
