#include "core/order/permute.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace recordkit {
namespace {

constexpr uint64_t kGolden = 0x9e3779b97f4a7c15;
// A network over a handful of values mixes poorly, and walking a larger one is cheap.
constexpr uint32_t kFewestBits = 10;

// The output function of SplitMix64.
uint64_t mixed(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

// `bits` bits that depend on all of `half` and `key`. The best ones of a product are the highest.
inline uint64_t scrambled(uint64_t half, uint64_t key, uint32_t bits) {
  uint64_t x = (half ^ key) * 0xff51afd7ed558ccd;
  x = (x ^ (x >> 32)) * 0xc4ceb9fe1a85ec53;
  return x >> (64 - bits);
}

}  // namespace

Permutation::Permutation(uint64_t count, uint64_t seed, uint64_t epoch, uint64_t salt) : count_(count) {
  const uint32_t needed = count > 1 ? static_cast<uint32_t>(std::bit_width(count - 1)) : 0;
  const uint32_t bits = std::max(kFewestBits, needed);
  low_bits_ = bits / 2;
  high_bits_ = bits - low_bits_;
  uint64_t state = 0;
  for (const uint64_t word : {seed, epoch, salt, count}) state = mixed((state ^ word) + kGolden);
  for (uint64_t& key : keys_) key = mixed(state += kGolden);
}

// Values are below 2^62 before and after, so that the sign does not matter.
inline int64_t Permutation::enciphered(int64_t plain) const {
  const uint64_t value = static_cast<uint64_t>(plain);
  uint64_t high = value >> low_bits_;
  uint64_t low = value & ((uint64_t{1} << low_bits_) - 1);
  for (size_t round = 0; round < kRounds; round += 2) {
    high ^= scrambled(low, keys_[round], high_bits_);
    low ^= scrambled(high, keys_[round + 1], low_bits_);
  }
  return static_cast<int64_t>(high << low_bits_ | low);
}

void Permutation::apply(std::span<int64_t> indices) const {
  // Once for all, then again for those still beyond the count: up to half of them each time, so that a branch
  // would be mispredicted as often.
  constexpr size_t kPiece = 1024;
  const int64_t count = static_cast<int64_t>(count_);
  std::array<uint16_t, kPiece> beyond;
  for (size_t start = 0; start < indices.size(); start += kPiece) {
    const std::span<int64_t> piece = indices.subspan(start, std::min(kPiece, indices.size() - start));
    size_t left = 0;
    for (size_t i = 0; i < piece.size(); ++i) {
      piece[i] = enciphered(piece[i]);
      beyond[left] = static_cast<uint16_t>(i);
      left += piece[i] >= count;
    }
    while (left != 0) {
      const size_t walking = std::exchange(left, 0);
      for (size_t j = 0; j < walking; ++j) {
        const uint16_t i = beyond[j];
        piece[i] = enciphered(piece[i]);
        beyond[left] = i;
        left += piece[i] >= count;
      }
    }
  }
}

}  // namespace recordkit
