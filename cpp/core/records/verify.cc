#include "core/records/verify.h"

#include "core/files/file_map.h"
#include "core/records/framing.h"

namespace recordkit {
namespace {

constexpr uint64_t kIdentity = 12;
constexpr uint64_t kWindow = uint64_t{8} << 20;  // mapped at a time, to bound memory
constexpr uint64_t kLargest = 4 * kWindow;       // the largest record checked in a map, for the same reason

// The CRC of a payload in place. False if the guard refuses.
bool crc_in_place(MapGuard& guard, const uint8_t* payload, uint64_t length, uint32_t& crc) {
  crc = 0;
  for (uint64_t at = 0; at < length; at += MapGuard::kPiece) {
    const uint64_t piece = std::min(MapGuard::kPiece, length - at);
    if (!guard.allows(piece)) return false;
    crc = crc32c_extend(crc, payload + at, piece);
  }
  return true;
}

// Checks the records of a window from `at` on. Returns how large the window must be for the record after
// them; 0 if that one is damaged, or if the guard refuses.
uint64_t check_window(Bytes window, uint64_t at, Checked& checked) {
  MapGuard guard;
  const uint64_t start = at;
  for (;; checked.size = at - start) {
    const uint64_t left = window.size() - at;
    if (left < kFrameSize) return at + kFrameSize;
    if (!guard.allows(kFrameSize)) return 0;
    const uint8_t* const header = window.data() + at;
    const uint64_t length = load_once<uint64_t>(header);
    if (!length_is_sound(length, header)) return 0;
    if (length > left - kFrameSize) return length > INT64_MAX ? 0 : at + kFrameSize + length;
    uint32_t crc;
    if (!crc_in_place(guard, header + kHeaderSize, length, crc) ||
        crc != unmask_crc(load_once<uint32_t>(header + kHeaderSize + length)))
      return 0;
    uint8_t* const identity = checked.identities.grow(kIdentity);
    store(identity, length);
    store(identity + 8, crc);
    checked.identities.set_size(checked.identities.size() + kIdentity);
    at += kFrameSize + length;
  }
}

// A set of hashes: stores one half of each, at or soon after the slot given by the other half.
class Hashes {
 public:
  explicit Hashes(uint64_t most)
      : bits_(static_cast<int>(std::bit_width(most)) + 1), halves_(uint64_t{1} << bits_) {
    std::memset(halves_.data(), 0, sizeof(uint32_t) << bits_);
  }

  void prefetch(uint64_t hash) const { __builtin_prefetch(halves_.data() + place(hash), 1); }

  // False if it was already there; now and then also if it was not.
  bool add(uint64_t hash) {
    constexpr int kMostSteps = 64;  // bounds the search for any input
    const uint32_t half = static_cast<uint32_t>(hash) | 1;
    uint64_t at = place(hash);
    for (int steps = 0; halves_.data()[at] != 0; ++steps, at = (at + 1) & (~uint64_t{0} >> (64 - bits_)))
      if (halves_.data()[at] == half || steps == kMostSteps) return false;
    halves_.data()[at] = half;
    return true;
  }

 private:
  uint64_t place(uint64_t hash) const { return hash >> (64 - bits_); }

  int bits_;
  Array<uint32_t> halves_;
};

}  // namespace

Checked check_mapped(int descriptor, uint64_t offset, uint64_t most_bytes) {
  const uint64_t from = offset / kLargePage * kLargePage;
  for (uint64_t size = kWindow;;) {
    const std::unique_ptr<FileMap> map = FileMap::of_cached(descriptor, most_bytes, from, size);
    if (map == nullptr || map->size() < offset - from) return {};
    Checked checked;
    const uint64_t needed = check_window({map->data(), map->size()}, offset - from, checked);
    if (!map->is_whole()) return {};
    if (checked.size != 0 || needed <= size || needed > kLargest) return checked;
    size = needed;
  }
}

bool may_repeat(std::span<const Bytes> identities) {
  constexpr uint64_t kMix = 0x9E3779B97F4A7C15;
  constexpr uint64_t kAhead = 16;  // how many prefetches are in flight
  uint64_t count = 0;
  for (const Bytes piece : identities) count += piece.size() / kIdentity;
  Hashes met(count);
  uint64_t pair = 0, number = 0, waiting[kAhead];
  for (const Bytes piece : identities) {
    for (uint64_t at = 0; at + kIdentity <= piece.size(); at += kIdentity, ++number) {
      pair = pair << 32 | load<uint32_t>(piece.data() + at + 8);
      uint64_t& hash = waiting[number % kAhead];
      if (number > kAhead && !met.add(hash)) return true;
      hash = pair * kMix;
      hash = (hash ^ hash >> 32) * kMix;  // so that both halves depend on both
      met.prefetch(hash);
    }
  }
  for (uint64_t i = number > kAhead ? number - kAhead : 1; i < number; ++i)
    if (!met.add(waiting[i % kAhead])) return true;
  return false;
}

}  // namespace recordkit
