#include "core/pictures/jpeg_huffman.h"

#include <algorithm>

namespace recordkit {

bool HuffmanTable::define(Bytes counts, Bytes symbols, bool is_first) {
  // Most pictures have the same tables.
  if (definition_.size() == counts.size() + symbols.size() &&
      std::equal(counts.begin(), counts.end(), definition_.begin()) &&
      std::equal(symbols.begin(), symbols.end(), definition_.begin() + 16))
    return true;
  definition_.clear();
  codes_.fill({});
  uint32_t code = 0;
  size_t place = 0;
  for (uint32_t length = 1; length <= 16; ++length, code *= 2) {
    offsets_[length] = 16 + static_cast<int32_t>(place) - static_cast<int32_t>(code);
    for (size_t count = counts[length - 1]; count > 0; --count, ++code, ++place) {
      const uint8_t symbol = symbols[place];
      const bool has_value = symbol % 16 != 0 || symbol == kEndOfBlock || symbol == kSixteenZeros;
      if (code >> length || !(is_first ? symbol < 16 : has_value)) return false;
      if (length <= kQuick)
        std::fill_n(codes_.begin() + (code << (kQuick - length)), size_t{1} << (kQuick - length),
                    Code{static_cast<uint8_t>(length), symbol});
    }
    if (code >> length) return false;  // the code of all ones is reserved
    limits_[length] = code << (16 - length);
  }
  if (!is_first) pair_up();
  definition_.assign(counts.begin(), counts.end());
  definition_.insert(definition_.end(), symbols.begin(), symbols.end());
  return true;
}

void HuffmanTable::pair_up() {
  // The first code, if these bits contain its value, too.
  const auto single = [&](uint32_t bits, uint32_t count) -> Pair {
    const Code code = codes_[bits];
    const uint32_t size = code.symbol % 16u, length = code.length + size, zeros = code.symbol / 16u;
    if (code.length == 0 || length > count) return {};
    const uint32_t value = (bits >> (kQuick - length)) & ((1u << size) - 1);
    return {static_cast<uint8_t>(length),
            static_cast<uint8_t>(code.symbol == kEndOfBlock ? kToEnd : zeros + 1),
            static_cast<uint8_t>(zeros),
            0,
            static_cast<int16_t>(value_of(value, size)),
            0};
  };
  for (uint32_t i = 0; i < pairs_.size(); ++i) {
    Pair pair = single(i, kQuick);
    if (pair.length != 0 && pair.advance < kToEnd) {
      const Pair next = single((i << pair.length) % (1u << kQuick), kQuick - pair.length);
      pair.length = static_cast<uint8_t>(pair.length + next.length);
      pair.advance = static_cast<uint8_t>(pair.advance + next.advance);
      pair.second = next.first;
    }
    pair.second_at = (pair.advance - 1) & 31;  // the end of a block has no coefficient
    pairs_[i] = pair;
  }
}

HuffmanTable::Code HuffmanTable::long_code(uint32_t bits) const {
  uint32_t length = kQuick + 1;
  while (bits >= limits_[length])
    if (++length > 16) return {0, 0};
  const int32_t place = offsets_[length] + static_cast<int32_t>(bits >> (16 - length));
  return {static_cast<uint8_t>(length), definition_[static_cast<size_t>(place)]};
}

}  // namespace recordkit
