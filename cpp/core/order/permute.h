// The order of a shuffled epoch: a bijection of [0, count) that is computed, not stored.
//
// A Feistel network over the next power of two, walked until the result is less than `count`.
// It is frozen: the same key gives the same order in every release. See docs/format/order.md.
#pragma once

#include <array>
#include <span>

#include "core/memory/bytes.h"

namespace recordkit {

class Permutation {
 public:
  static constexpr uint64_t kLargest = uint64_t{1} << 62;

  // REQUIRES: count <= kLargest
  Permutation(uint64_t count, uint64_t seed, uint64_t epoch, uint64_t salt);

  uint64_t count() const { return count_; }

  // Replaces every index by its image. REQUIRES: each is less than count()
  void apply(std::span<int64_t> indices) const;

 private:
  static constexpr size_t kRounds = 8;

  int64_t enciphered(int64_t plain) const;

  uint64_t count_;
  uint32_t high_bits_;
  uint32_t low_bits_;
  std::array<uint64_t, kRounds> keys_;
};

}  // namespace recordkit
