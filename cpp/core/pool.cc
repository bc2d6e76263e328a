#include "core/pool.h"

#include <atomic>

namespace recordkit {
namespace {

constexpr size_t kKept = 4;
constexpr size_t kSmallest = size_t{128} << 10;  // what malloc itself keeps
constexpr size_t kLargest = size_t{32} << 20;
constexpr size_t kTooLarge = 4;  // times what is wanted: whoever keeps a small chunk keeps no large buffer

// No lock, for a child of a fork would inherit one that a thread of its parent holds.
std::atomic<Buffer*> kept[kKept];

Buffer* take(size_t size) {
  for (std::atomic<Buffer*>& slot : kept) {
    std::unique_ptr<Buffer> buffer(slot.exchange(nullptr));
    if (buffer == nullptr) continue;
    if (buffer->capacity() / kTooLarge <= size) return buffer.release();
    Buffer* none = nullptr;
    if (slot.compare_exchange_strong(none, buffer.get())) buffer.release();
  }
  return new Buffer();
}

void give_back(Buffer* used) {
  std::unique_ptr<Buffer> buffer(used);
  if (buffer->capacity() < kSmallest || buffer->capacity() > kLargest) return;
  for (std::atomic<Buffer*>& slot : kept) {
    Buffer* none = nullptr;
    if (slot.compare_exchange_strong(none, buffer.get())) {
      buffer.release();
      return;
    }
  }
}

}  // namespace

std::shared_ptr<Buffer> pooled_buffer(size_t size) {
  if (size < kSmallest || size > kLargest) return std::make_shared<Buffer>(size);
  std::shared_ptr<Buffer> buffer(take(size), give_back);
  buffer->set_size(0);
  buffer->reserve(size);
  return buffer;
}

}  // namespace recordkit
