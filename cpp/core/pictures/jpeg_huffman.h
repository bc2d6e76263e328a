// Huffman decoding of JPEGs: reads the coefficients of a block, usually two with one table lookup.
//
// A code stands for a symbol, which says how many zeros precede a value and how many of the bits after the
// code are the value. The tables hold short codes with every value that may follow, and with the next code if
// both are short.
#pragma once

#include <array>
#include <vector>

#include "core/memory/bytes.h"

namespace recordkit {

// Code inlined into a function for a newer processor is compiled for that processor.
#define RECORDKIT_INLINE __attribute__((always_inline)) inline

inline constexpr size_t kBlockSize = 64;  // coefficients

// Where the coefficients of the stream go in a block. Damaged files may run past the last one; those land on
// it.
inline constexpr uint8_t kZigzag[] = {
    0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,  12, 19, 26, 33, 40, 48, 41, 34,
    27, 20, 13, 6,  7,  14, 21, 28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51,
    58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63, 63, 63, 63, 63, 63, 63, 63, 63,
    63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63};

// A stream of bits, without markers and stuffing. Bytes past the end are read, but not counted.
class BitStream {
 public:
  // REQUIRES: kBehind bytes past the last may be read.
  explicit BitStream(Bytes bytes) : next_(bytes.data()), end_(next_ + bytes.size()) {}

  // What a block can consume after the end of the stream: at most 64 symbols of 31 bits, and two words.
  static constexpr size_t kBehind = 64 * 4 + 16;

  // After refill(), this many bits can be peeked at and skipped.
  static constexpr uint32_t kSure = 56;
  RECORDKIT_INLINE void refill() {
    ready_ |= __builtin_bswap64(load<uint64_t>(next_)) >> count_;
    next_ += (63 - count_) >> 3;
    count_ |= kSure;
  }

  // REQUIRES: 0 < count <= 32
  RECORDKIT_INLINE uint32_t peek(uint32_t count) const {
    return static_cast<uint32_t>(ready_ >> (64 - count));
  }

  RECORDKIT_INLINE void skip(uint32_t count) {
    ready_ <<= count;
    count_ -= count;
  }

  // REQUIRES: count < 32
  RECORDKIT_INLINE uint32_t take(uint32_t count) {
    const auto taken = static_cast<uint32_t>(ready_ >> 32 >> (32 - count));
    skip(count);
    return taken;
  }

  // Negative if more were skipped than there are.
  RECORDKIT_INLINE ptrdiff_t bits_left() const { return 8 * (end_ - next_) + static_cast<ptrdiff_t>(count_); }

 private:
  const uint8_t *next_, *end_;
  uint64_t ready_ = 0;  // the highest bit is next
  uint32_t count_ = 0;  // how many bits are ready
};

class HuffmanTable {
 public:
  // `counts` of the codes of 1 to 16 bits, and their symbols; `is_first`: for the first coefficients of
  // blocks. False if such codes are impossible, or if no encoder writes them.
  bool define(Bytes counts, Bytes symbols, bool is_first);

  // Reads the first coefficient, less that of the block before. False if there is no such code.
  RECORDKIT_INLINE bool read_first(BitStream& bits, int32_t& difference) const {
    bits.refill();
    const Code code = next_code(bits);
    difference = value_of(bits.take(code.symbol), code.symbol);
    return code.length != 0;
  }

  // Writes the other non-zero coefficients to `block`. Returns the position of the last in the stream, or -1
  // if this is not a block.
  RECORDKIT_INLINE int read_others(BitStream& bits, int16_t* block) const {
    uint32_t at = 1;
    while (at < kBlockSize) {
      bits.refill();
      for (uint32_t i = 0; i < BitStream::kSure / kQuick && at < kBlockSize; ++i) {
        const Pair& pair = pairs_[bits.peek(kQuick)];
        const uint32_t length = pair.length, advance = pair.advance, first = at + pair.zeros;
        if (length == 0) [[unlikely]] {
          bits.refill();
          const Code code = next_code(bits);
          const uint32_t size = code.symbol % 16;
          if (code.length == 0) return -1;
          at += code.symbol / 16u;
          block[kZigzag[at]] = static_cast<int16_t>(value_of(bits.take(size), size));
          at += code.symbol == kEndOfBlock ? kToEnd : 1;
          break;
        }
        const int16_t first_value = pair.first, second_value = pair.second;
        // The second value first: if there is none, it goes to the place of the first and is overwritten.
        block[kZigzag[at + pair.second_at]] = second_value;
        block[kZigzag[first]] = first_value;
        if (first >= kBlockSize - 1) [[unlikely]] {  // the second code belongs to the next block
          bits.skip(next_code(bits).symbol % 16);
          at = first + 1;
          break;
        }
        bits.skip(length);
        at += advance;
      }
    }
    return at == kBlockSize || at >= kToEnd ? static_cast<int>(at % kToEnd) - 1 : -1;
  }

 private:
  // More bits are seldom needed, and larger tables would crowd the cache.
  static constexpr uint32_t kQuick = 11;
  static constexpr uint32_t kEndOfBlock = 0, kSixteenZeros = 0xf0;  // symbols that have no value
  static constexpr uint32_t kToEnd =
      128;  // added at the end of a block, to distinguish it from too many zeros

  struct Code {
    uint8_t length;  // 0: there is none
    uint8_t symbol;
  };

  // One code with its value, or two.
  struct Pair {
    uint8_t length;   // of both; 0: not even one fits the lookup
    uint8_t advance;  // over both, and the zeros before them
    uint8_t zeros, second_at;
    int16_t first, second;
  };

  RECORDKIT_INLINE Code next_code(BitStream& bits) const {
    Code code = codes_[bits.peek(kQuick)];
    if (code.length == 0) [[unlikely]]
      code = long_code(bits.peek(16));
    bits.skip(code.length);
    return code;
  }

  // Values that begin with a 0 bit are negative.
  RECORDKIT_INLINE static int32_t value_of(uint32_t bits, uint32_t size) {
    const auto value = static_cast<int32_t>(bits), most = (1 << size) - 1;
    return 2 * value > most ? value : value - most;
  }

  Code long_code(uint32_t bits) const;
  void pair_up();

  std::vector<uint8_t> definition_;  // counts and symbols
  std::array<uint32_t, 17> limits_;  // 16 bits below this limit begin with a code of at most this many bits
  std::array<int32_t, 17> offsets_;  // from a code to its symbol
  std::array<Code, 1 << kQuick> codes_;
  std::array<Pair, 1 << kQuick> pairs_;
};

}  // namespace recordkit
