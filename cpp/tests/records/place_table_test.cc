#include "core/records/place_table.h"

#include <algorithm>
#include <string>
#include <thread>
#include <vector>

#include "support/check.h"

namespace recordkit {
namespace {

// Frames of these sizes, one behind the other from `start` on.
struct Block {
  uint64_t start;
  std::vector<uint64_t> sizes;

  // As an index holds them; the result points into `above`.
  PlaceTable::Packed packed(uint32_t width, std::string& above) const {
    const uint64_t least = *std::min_element(sizes.begin(), sizes.end());
    for (const uint64_t size : sizes) {
      const uint64_t more = size - least;
      above.append(reinterpret_cast<const char*>(&more), width);
    }
    return {start, least, width, as_bytes(above)};
  }

  void put_into(PlaceTable& table, uint64_t block, uint32_t width) const {
    std::string above;
    const PlaceTable::Packed with = packed(width, above);
    CHECK(table.fits(block, with));
    table.put(block, with);
  }
};

void check_block(const PlaceTable& table, uint64_t first, const Block& block) {
  uint64_t start = block.start;
  for (size_t i = 0; i < block.sizes.size(); ++i) {
    Place place;
    CHECK(table.find(first + i, place));
    CHECK_EQ(place.offset, start);
    CHECK_EQ(place.size, block.sizes[i]);
    start += block.sizes[i];
  }
}

TEST(a_table_gives_what_was_put_in_and_lacks_the_rest) {
  PlaceTable table(7, 3);
  const Block second{uint64_t{1} << 40, {20, 16, 300}}, last{500, {17}};

  second.put_into(table, 1, 2);
  last.put_into(table, 2, 0);

  Place place;
  CHECK_EQ(table.blocks(), 3u);
  CHECK(!table.find(0, place));
  check_block(table, 3, second);
  check_block(table, 6, last);
}

TEST(frames_beyond_four_gigabytes_are_found_too) {
  PlaceTable table(3, 3);
  const Block huge{99, {uint64_t{3} << 30, uint64_t{5} << 30, 16}};

  huge.put_into(table, 0, 8);

  check_block(table, 0, huge);
}

TEST(numbers_of_any_width_are_taken) {
  for (const uint32_t width : {1, 2, 4, 8}) {
    PlaceTable table(3, 3);
    const Block block{7, {16, 16 + 255, 30}};

    block.put_into(table, 0, width);

    check_block(table, 0, block);
  }
}

TEST(a_block_of_another_size_does_not_fit) {
  const PlaceTable table(5, 3);
  for (const uint32_t width : {0, 1, 2, 3, 4, 5, 8, 16}) {
    const std::string three(3 * width, ' ');
    CHECK_EQ(table.fits(0, {7, 16, width, as_bytes(three)}), width != 3 && width != 5 && width != 16);
    CHECK_EQ(table.fits(1, {7, 16, width, as_bytes(three)}), width == 0);
  }
}

TEST(no_records_are_no_blocks) {
  CHECK_EQ(PlaceTable(0, 1024).blocks(), 0u);
  CHECK_EQ(PlaceTable(1024, 1024).blocks(), 1u);
  CHECK_EQ(PlaceTable(1025, 1024).records_in(1), 1u);
}

TEST(threads_that_put_in_the_same_block_count_it_once) {
  PlaceTable table(3, 3);
  const Block block{0, {16, 17, 18}};
  std::vector<std::thread> threads;

  for (int i = 0; i < 4; ++i) threads.emplace_back([&] { block.put_into(table, 0, 1); });
  for (std::thread& thread : threads) thread.join();

  PlaceTable alone(3, 3);
  block.put_into(alone, 0, 1);
  CHECK_EQ(table.nbytes(), alone.nbytes());
  check_block(table, 0, block);
}

}  // namespace
}  // namespace recordkit
