// A few records at a time, copied to memory that stays in the L1 cache.
#pragma once

#include <functional>

#include "core/records/framing.h"

namespace recordkit {

// Provides the next few records, in memory that the next call may reuse. False if there are none. `in_lanes`:
// kMost of them are decoded at once, if there are as many.
using NextRecords = std::function<bool(Chunk& few, bool in_lanes)>;

class HotCopy {
 public:
  static constexpr size_t kMost = 8;

  void clear() {
    copies_.set_size(0);
    records_.clear();
  }

  // Whether another record of `size` bytes fits. The first one always does. Eight records decoded in lanes
  // may fill the L1 cache; records decoded one by one leave most of it to the columns.
  static bool has_room(size_t count, uint64_t bytes, uint64_t size, bool in_lanes) {
    return count == 0 || (count < kMost && bytes + size <= (in_lanes ? 32 << 10 : 8 << 10));
  }
  bool has_room(uint64_t size, bool in_lanes) const {
    return has_room(records_.size(), copies_.size(), size, in_lanes);
  }

  // Copies a record whose header is sound. False if the copied payload does not match its checksum; the
  // source may change meanwhile.
  [[gnu::always_inline]] bool add(const Header& header, const uint8_t* payload, Prefetch prefetch) {
    copies_.reserve(copies_.size() + kLine + kFrameSize + header.length + kBehind);
    // Keep the alignment within a cache line, so that whole lines are copied.
    const uintptr_t end = reinterpret_cast<uintptr_t>(copies_.end()) + kHeaderSize;
    const size_t start = copies_.size() + (reinterpret_cast<uintptr_t>(payload) - end) % kLine + kHeaderSize;
    uint8_t* const to = copies_.data() + start;
    header.copy_to(to - kHeaderSize);
    if (!copy_payload(to, payload, header.length, prefetch)) return false;
    records_.push_back({start, header.length});
    copies_.set_size(start + header.length + kFooterSize);
    return true;
  }

  // Points `few` at the records added since clear().
  void hand_over(Chunk& few) {
    few.data = copies_.data();
    few.size = copies_.size();
    few.readable = copies_.capacity();
    few.records = records_;
  }

 private:
  static constexpr size_t kLine = 64;
  static constexpr size_t kBehind = 72 << 10;  // how far decoding in lanes may read past the end

  Buffer copies_;
  std::vector<Chunk::Span> records_;  // from the start of the buffer
};

}  // namespace recordkit
