// The buffers of a reader, which are reused.
#pragma once

#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "core/memory/array.h"

namespace recordkit {

// Buffers return here when the last chunk over them is destroyed, so that reading a large file reuses the
// same few megabytes: fresh pages cost more than the checksums do. A thread gets a buffer of its own back,
// because one written by another thread would have to come from that core's caches; and its oldest one,
// because copying to memory still in the L2 cache takes a third longer than to memory that has left it.
class BufferPool : public std::enable_shared_from_this<BufferPool> {
 public:
  std::shared_ptr<Buffer> take() {
    const std::thread::id own = std::this_thread::get_id();
    std::unique_ptr<Buffer> buffer;
    {
      std::lock_guard lock(mutex_);
      size_t count = 0, bytes = 0;
      auto oldest = free_.end();
      for (auto free = free_.begin(); free != free_.end(); ++free) {
        if (free->user != own) continue;
        if (count++ == 0) oldest = free;
        bytes += free->buffer->capacity();
      }
      if (bytes >= kBytesInTurn || count >= kInTurn) buffer = remove(oldest);
    }
    if (!buffer) buffer = std::make_unique<Buffer>();
    buffer->set_size(0);
    return {buffer.release(), [pool = shared_from_this(), own](Buffer* used) { pool->give(used, own); }};
  }

  // Stops keeping buffers: no record is read after this.
  void end() {
    std::lock_guard lock(mutex_);
    ended_ = true;
    free_.clear();
  }

 private:
  // Per thread, not counting those in use.
  static constexpr size_t kInTurn = 3, kBytesInTurn = size_t{1} << 20;
  // For all threads.
  static constexpr size_t kKept = 16, kBytesKept = size_t{256} << 20;

  struct Free {
    std::unique_ptr<Buffer> buffer;
    std::thread::id user;
  };

  void give(Buffer* used, std::thread::id user) {
    std::unique_ptr<Buffer> buffer(used);
    std::lock_guard lock(mutex_);
    if (ended_) return;
    bytes_ += buffer->capacity();
    free_.push_back({std::move(buffer), user});
    while (free_.size() > kKept || bytes_ > kBytesKept) remove(free_.begin());
  }

  std::unique_ptr<Buffer> remove(std::vector<Free>::iterator free) {
    std::unique_ptr<Buffer> buffer = std::move(free->buffer);
    bytes_ -= buffer->capacity();
    free_.erase(free);
    return buffer;
  }

  std::mutex mutex_;
  std::vector<Free> free_;  // the oldest first
  size_t bytes_ = 0;
  bool ended_ = false;
};

}  // namespace recordkit
