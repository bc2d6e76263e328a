#include "core/places.h"

#include <algorithm>

#include "core/descriptor.h"

namespace recordkit {
namespace {

// A view of the file that is moved on as the hops go.
class Window {
 public:
  explicit Window(int descriptor) : descriptor_(descriptor), bytes_(kLarge) {}

  // `size` bytes at `offset`, or null where the file ends before. Near neighbours are read along.
  const uint8_t* at(uint64_t offset, size_t size, uint64_t record_size) {
    if (offset < start_ || offset + size > start_ + bytes_.size()) {
      // Reading so much takes about as long as another call does.
      constexpr uint64_t kShort = 2048;
      start_ = offset;
      bytes_.set_size(read_at(descriptor_, offset, bytes_.data(), record_size > kShort ? size : kLarge));
    }
    return offset + size > start_ + bytes_.size() ? nullptr : bytes_.data() + (offset - start_);
  }

 private:
  static constexpr size_t kLarge = size_t{64} << 10;
  int descriptor_;
  Buffer bytes_;
  uint64_t start_ = 0;
};

}  // namespace

Hops hop_over(int descriptor, uint64_t offset, size_t max_records) {
  const uint64_t file_size = size_of(descriptor);
  Window window(descriptor);
  Hops hops;
  hops.offset = offset;
  uint64_t record_size = 0;
  const auto stopped = [&](Fault fault) {
    hops.fault = fault;
    return std::move(hops);
  };
  while (hops.offset < file_size && hops.lengths.size() < max_records) {
    const uint64_t left = file_size - hops.offset;
    if (left < kHeaderSize) return stopped(Fault::torn_header);
    const uint8_t* const header = window.at(hops.offset, kHeaderSize, record_size);
    if (header == nullptr) return stopped(Fault::torn_header);
    if (!header_is_sound(header)) return stopped(Fault::bad_length_crc);
    const uint64_t length = load<uint64_t>(header);
    // Subtract rather than add: `length` comes from the file and may be near 2^64.
    if (left < kFrameSize || length > left - kFrameSize) return stopped(Fault::torn_payload);
    record_size = length + kFrameSize;
    const uint64_t next = hops.offset + record_size;
    // The next header stands right behind the footer: both in one read.
    const size_t want = static_cast<size_t>(std::min<uint64_t>(kFrameSize, file_size - next + kFooterSize));
    const uint8_t* const footer = window.at(next - kFooterSize, want, record_size);
    if (footer == nullptr) return stopped(Fault::torn_payload);
    hops.lengths.push(length);
    hops.payload_crcs.push(unmask_crc(load<uint32_t>(footer)));
    hops.offset = next;
  }
  return hops;
}

}  // namespace recordkit
