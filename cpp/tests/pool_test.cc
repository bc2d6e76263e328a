#include "core/pool.h"

#include <atomic>
#include <thread>
#include <vector>

#include "check.h"

namespace recordkit {
namespace {

TEST(a_large_buffer_is_used_again_and_a_small_chunk_holds_none) {
  const size_t size = 9 << 20;
  const uint8_t* const first = pooled_buffer(size)->data();

  CHECK(pooled_buffer(1 << 20)->capacity() < size);
  const std::shared_ptr<Buffer> again = pooled_buffer(size - 5), other = pooled_buffer(size);

  CHECK_EQ(again->data(), first);
  CHECK_EQ(again->size(), 0u);
  CHECK(other->data() != first);
}

TEST(no_buffer_is_lent_twice) {
  std::vector<std::thread> threads;
  std::atomic<bool> mixed = false;
  for (uint8_t id = 0; id < 4; ++id)
    threads.emplace_back([id, &mixed] {
      for (int i = 0; i < 300; ++i) {
        const std::shared_ptr<Buffer> buffer = pooled_buffer(size_t{200} << 10);
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
