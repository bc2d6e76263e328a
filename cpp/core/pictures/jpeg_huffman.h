// Huffman codes of JPEGs: the coefficients of a block out of a stream of bits, most often two with one look.
//
// A code stands for a symbol, which says how many zeros come before a value and how many of the bits behind
// the code are the value. Codes of few bits stand in a table with every value that may follow, and with the
// code behind it where both are short.
#pragma once

#include <array>
#include <vector>

#include "core/memory/bytes.h"

namespace recordkit {

// What is inlined into a function for a newer processor is made for that processor.
#define RECORDKIT_INLINE __attribute__((always_inline)) inline

inline constexpr size_t kBlockSize = 64;  // coefficients

// Where those of the stream stand in a block of rows. What damage puts behind the last one goes to its place.
inline constexpr uint8_t kZigzag[] = {
    0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,  12, 19, 26, 33, 40, 48, 41, 34,
    27, 20, 13, 6,  7,  14, 21, 28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51,
    58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63, 63, 63, 63, 63, 63, 63, 63, 63,
    63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63};

// Bits of bytes that hold no marker and no stuffing. What stands behind them is read, but never counted as
// theirs.
class BitStream {
 public:
  // REQUIRES: kBehind bytes can be read behind the last.
  explicit BitStream(Bytes bytes) : next_(bytes.data()), end_(next_ + bytes.size()) {}

  // What a block can take where the stream has ended: 64 symbols of 31 bits at most, and two words.
  static constexpr size_t kBehind = 64 * 4 + 16;

  // After it, so many bits can be looked at and skipped.
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

  // Less than none if more were skipped than there are.
  RECORDKIT_INLINE ptrdiff_t bits_left() const { return 8 * (end_ - next_) + static_cast<ptrdiff_t>(count_); }

 private:
  const uint8_t *next_, *end_;
  uint64_t ready_ = 0;  // from the highest bit on
  uint32_t count_ = 0;  // of those that are ready
};

class HuffmanTable {
 public:
  // `counts` of the codes of 1 to 16 bits, and their symbols; `is_first`: for the first coefficients of
  // blocks. False if there cannot be such codes, or if nobody writes them.
  bool define(Bytes counts, Bytes symbols, bool is_first);

  // The first coefficient less that of the block before. False if there is no such code.
  RECORDKIT_INLINE bool read_first(BitStream& bits, int32_t& difference) const {
    bits.refill();
    const Code code = next_code(bits);
    difference = value_of(bits.take(code.symbol), code.symbol);
    return code.length != 0;
  }

  // Writes the others that are not zero to `block`. Returns the place of the last in the stream, or -1 if
  // this is no block.
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
        // The second one before the first, whose place it has where there is none.
        block[kZigzag[at + pair.second_at]] = second_value;
        block[kZigzag[first]] = first_value;
        if (first >= kBlockSize - 1) [[unlikely]] {  // the second is another block's
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
  // More are seldom needed, and larger tables leave no room in the cache.
  static constexpr uint32_t kQuick = 11;
  static constexpr uint32_t kEndOfBlock = 0, kSixteenZeros = 0xf0;  // symbols without a value
  static constexpr uint32_t kToEnd =
      128;  // what the end of a block adds to a place, to be told from too many zeros

  struct Code {
    uint8_t length;  // 0: there is none
    uint8_t symbol;
  };

  // Two codes with their values, or one.
  struct Pair {
    uint8_t length;   // of both; 0: not even one fits
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

  // Those that begin with a 0 are below zero.
  RECORDKIT_INLINE static int32_t value_of(uint32_t bits, uint32_t size) {
    const auto value = static_cast<int32_t>(bits), most = (1 << size) - 1;
    return 2 * value > most ? value : value - most;
  }

  Code long_code(uint32_t bits) const;
  void pair_up();

  std::vector<uint8_t> definition_;  // counts and symbols
  std::array<uint32_t, 17> limits_;  // 16 bits below it begin with a code of so many bits or fewer
  std::array<int32_t, 17> offsets_;  // from a code to its symbol
  std::array<Code, 1 << kQuick> codes_;
  std::array<Pair, 1 << kQuick> pairs_;
};

}  // namespace recordkit
