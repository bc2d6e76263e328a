#include "core/pool.h"

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "check.h"
#include "core/array.h"

namespace recordkit {
namespace {

// Other tests have left some.
void empty_the_pool() {
  for (size_t wanted = kLargePiece; wanted <= kMostKept; wanted *= 2) {
    for (int i = 0; i < 30; ++i) {
      size_t size = wanted;
      std::free(take_memory(size));
    }
  }
}

TEST(a_large_piece_is_used_again_and_a_small_one_is_none_of_it) {
  empty_the_pool();
  const size_t size = size_t{9} << 20;
  size_t first_size = size, small = 1 << 20, again_size = size - 5, other_size = size;
  void* const first = take_memory(first_size);
  give_memory_back(first, first_size);

  void* const little = take_memory(small);
  CHECK(small < size);
  void* const again = take_memory(again_size);
  void* const other = take_memory(other_size);

  CHECK_EQ(again, first);
  CHECK_EQ(again_size, size);
  CHECK(other != first);
  give_memory_back(little, small);
  give_memory_back(again, again_size);
  give_memory_back(other, other_size);
}

TEST(no_more_is_kept_than_may_be) {
  empty_the_pool();
  constexpr size_t kSize = size_t{10} << 20;
  std::vector<std::pair<void*, size_t>> pieces, taken;
  for (int i = 0; i < 20; ++i) {
    size_t size = kSize;
    void* const piece = take_memory(size);
    pieces.push_back({piece, size});
  }
  for (const auto& [piece, size] : pieces) give_memory_back(piece, size);

  size_t again = 0;
  for (int i = 0; i < 20; ++i) {
    size_t size = kSize - 1;
    taken.push_back({take_memory(size), size});
    if (size != kSize - 1) again += size;  // a fresh one is not larger
  }
  for (const auto& [piece, size] : taken) std::free(piece);

  CHECK(again >= kSize);
  CHECK(again <= kMostKept);
}

TEST(arrays_grow_from_small_to_large_with_all_they_have) {
  for (int round = 0; round < 3; ++round) {  // later ones in memory of the first
    Array<uint64_t> array;
    for (uint64_t i = 0; i < 300'000; ++i) array.push(i * 3 + static_cast<uint64_t>(round));
    for (uint64_t i = 0; i < 300'000; ++i) CHECK_EQ(array.data()[i], i * 3 + static_cast<uint64_t>(round));
    CHECK(array.nbytes() >= array.size() * 8 + kPadding);
  }
}

TEST(no_buffer_is_lent_twice) {
  std::vector<std::thread> threads;
  std::atomic<bool> mixed = false;
  for (uint8_t id = 0; id < 4; ++id)
    threads.emplace_back([id, &mixed] {
      for (int i = 0; i < 300; ++i) {
        const auto buffer = std::make_shared<Buffer>(size_t{200} << 10);
        uint8_t* const data = buffer->data();
        for (size_t at = 0; at < buffer->capacity(); at += 4096) data[at] = id;
        for (size_t at = 0; at < buffer->capacity(); at += 4096)
          if (data[at] != id) mixed = true;
      }
    });
  for (std::thread& thread : threads) thread.join();

  CHECK(!mixed);
}

}  // namespace
}  // namespace recordkit
