#include "core/memory/pool.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "core/memory/array.h"
#include "support/check.h"

namespace recordkit {
namespace {

TEST(a_large_piece_is_used_again_and_a_small_one_is_none_of_it) {
  drop_kept_memory();  // other tests have left some
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
  constexpr size_t kSize = size_t{10} << 20, kAt = size_t{5} << 20;
  drop_kept_memory();  // other tests have left some
  std::vector<std::pair<uint8_t*, size_t>> pieces;
  const auto take_all = [&] {
    for (int i = 0; i < 40; ++i) {
      size_t size = kSize;
      auto* const piece = static_cast<uint8_t*>(take_memory(size));
      pieces.push_back({piece, size});
    }
  };
  take_all();
  for (const auto& [piece, size] : pieces) {
    std::memset(piece + kAt, 77, 100);
    give_memory_back(piece, size);
  }
  pieces.clear();

  take_all();
  size_t again = 0;
  for (const auto& [piece, size] : pieces)
    if (std::count(piece + kAt, piece + kAt + 100, 77) == 100) again += size;
  for (const auto& [piece, size] : pieces) give_memory_back(piece, size);
  drop_kept_memory();

  CHECK(again >= kSize);
  CHECK(again <= kMostKept);
}

// Two threads have a chunk and a column each of batches of a thousand pictures.
TEST(four_pieces_of_large_batches_are_used_again) {
  drop_kept_memory();  // other tests have left some
  const auto take_four = [] {
    std::vector<std::pair<void*, size_t>> pieces;
    for (const size_t wanted : {113, 113, 105, 105}) {
      size_t size = wanted << 20;
      void* const piece = take_memory(size);
      pieces.push_back({piece, size});
    }
    return pieces;
  };
  auto first = take_four();
  for (const auto& [piece, size] : first) give_memory_back(piece, size);
  auto again = take_four();
  for (const auto& [piece, size] : again) give_memory_back(piece, size);
  drop_kept_memory();

  CHECK(first == again);
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
