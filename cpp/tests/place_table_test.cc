#include "core/place_table.h"

#include <thread>
#include <vector>

#include "check.h"

namespace recordkit {
namespace {

// Frames of these sizes, one behind the other from `start` on.
struct Block {
  std::vector<uint64_t> starts, sizes;

  Block(uint64_t start, std::initializer_list<uint64_t> lengths) {
    for (const uint64_t length : lengths) {
      starts.push_back(start);
      sizes.push_back(length);
      start += length;
    }
  }
};

void check_block(const PlaceTable& table, uint64_t first, const Block& block) {
  for (size_t i = 0; i < block.starts.size(); ++i) {
    Place place;
    CHECK(table.find(first + i, place));
    CHECK_EQ(place.offset, block.starts[i]);
    CHECK_EQ(place.size, block.sizes[i]);
  }
}

TEST(a_table_gives_what_was_put_in_and_lacks_the_rest) {
  PlaceTable table(7, 3);
  const Block second(uint64_t{1} << 40, {20, 16, 300}), last(500, {17});

  table.put(1, second.starts.data(), second.sizes.data());
  table.put(2, last.starts.data(), last.sizes.data());

  Place place;
  CHECK_EQ(table.blocks(), 3u);
  CHECK(!table.find(0, place));
  check_block(table, 3, second);
  check_block(table, 6, last);
}

TEST(frames_beyond_four_gigabytes_are_found_too) {
  PlaceTable table(3, 3);
  const Block huge(99, {uint64_t{3} << 30, uint64_t{5} << 30, 16});

  table.put(0, huge.starts.data(), huge.sizes.data());

  check_block(table, 0, huge);
}

TEST(no_records_are_no_blocks) {
  CHECK_EQ(PlaceTable(0, 1024).blocks(), 0u);
  CHECK_EQ(PlaceTable(1024, 1024).blocks(), 1u);
  CHECK_EQ(PlaceTable(1025, 1024).records_in(1), 1u);
}

TEST(threads_that_put_in_the_same_block_count_it_once) {
  PlaceTable table(3, 3);
  const Block block(0, {16, 17, 18});
  std::vector<std::thread> threads;

  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] { table.put(0, block.starts.data(), block.sizes.data()); });
  for (std::thread& thread : threads) thread.join();

  PlaceTable alone(3, 3);
  alone.put(0, block.starts.data(), block.sizes.data());
  CHECK_EQ(table.nbytes(), alone.nbytes());
  check_block(table, 0, block);
}

}  // namespace
}  // namespace recordkit
