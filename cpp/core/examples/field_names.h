// The names of features met while decoding: the requested ones, and others as they are learned.
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "core/examples/decode.h"

namespace recordkit {

// How many names that were not requested are remembered; the rest are parsed again in each record.
inline constexpr size_t kMaxOthers = 1024;

inline constexpr auto kWordMasks = [] {
  std::array<uint64_t, 9> masks{};
  for (size_t size = 0; size < 8; ++size) masks[size] = (uint64_t{1} << (8 * size)) - 1;
  masks[8] = ~uint64_t{0};
  return masks;
}();
inline uint64_t word_mask(size_t size) { return kWordMasks[std::min<size_t>(size, 8)]; }

// An entry shorter than 128 bytes with one packed chunk or one bytes value reads
//
//     0a L  0a k name  12 v  kind v-2  0a v-4  value          with v = L - k - 4
//
// so the six bytes before the value are this, plus v times 0x01_00_01_00_01_00.
constexpr uint64_t canonical_head(Kind kind) {
  constexpr uint64_t kTags[] = {0, 0x0a, 0x12, 0x1a};
  return 0x12 + (kTags[static_cast<size_t>(kind)] << 16) + (uint64_t{0x0a} << 32) - (uint64_t{2} << 24) -
         (uint64_t{4} << 40);
}
inline constexpr uint64_t kHeadSteps = 0x010001000100;
inline constexpr size_t kHeadSize = 6;

struct FieldNames {
  // Everything the common case needs, in one cache line.
  struct alignas(64) Slot {
    uint64_t first = 0;       // the first eight bytes of the name, zero-padded
    uint64_t mask = 0;        // which of them count
    uint64_t last = 0;        // the last eight, or the whole of a shorter name
    uint64_t head = 0;        // the six bytes before the value, less kHeadSteps times the length of the entry
    uint8_t* to = nullptr;    // where values of one-number fields are stored
    uint32_t start = 0;       // the four bytes before the name, without the second; 0: longer than two words
    uint32_t size = 0;        // of the name
    int32_t field = -1;       // of the specs; -1: not requested
    uint32_t next = 0;        // the slot of the name that followed this one last time
    bool is_int = false;      // else a float
    bool one_number = false;  // each record has one number of this field
    uint8_t last_at = 0;      // where `last` starts in names of up to 16 bytes
    uint8_t head_shift = 48;  // shifts out of a word what `head` does not cover
    uint32_t place = 0;       // its own, from 1 on, if it was requested
  };

  std::vector<Slot> slots;         // the first is for the empty name, and marks free buckets
  std::vector<std::string> texts;  // the names, slot by slot
  std::vector<uint32_t> buckets;   // open addressing
  int bucket_shift = 56;
  uint64_t multiplier = kFirstMultiplier;
  size_t others = 0;
  // Bit `trait` is set for every requested name. If there are few, it rules out most others.
  uint64_t asked = 0;
  bool few_asked = false;

  explicit FieldNames(const std::vector<FieldSpec>& fields) : buckets(256) {
    add("");
    for (size_t f = 0; f < fields.size(); ++f) {
      const FieldSpec& field = fields[f];
      if (field.steps) continue;
      const uint32_t n = field.name.empty() ? 0 : add(field.name);
      Slot& slot = slots[n];
      slot.field = static_cast<int32_t>(f);
      slot.place = n + 1;
      slot.head = canonical_head(field.kind) - (slot.size + 4) * kHeadSteps;
      slot.is_int = field.kind == Kind::int64s;
      slot.one_number = field.count == 1 && field.kind != Kind::bytes;
      if (slot.one_number) slot.head_shift = 16;
      asked |= uint64_t{1} << trait(last_two(as_bytes(field.name).data(), slot.size));
    }
    few_asked = std::popcount(asked) <= 16 && slots[0].field < 0;
  }

  // The last two letters, in which names of one record differ most. A single letter is combined with the
  // length that precedes it on the wire.
  static uint16_t last_two(const uint8_t* text, size_t size) {
    if (size >= 2) return load<uint16_t>(text + size - 2);
    return size == 0 ? 0x000a : static_cast<uint16_t>(1 | text[0] << 8);
  }
  static unsigned trait(uint32_t last_two) { return last_two * 0x9e3779b1u >> 26; }

  size_t bucket(uint64_t first, uint64_t last_two) const {
    return (first ^ last_two << 29) * multiplier >> bucket_shift;
  }

  // The name's slot, or -1. Loads eight bytes from `text`, whatever its size.
  int64_t find(const uint8_t* text, size_t size) const {
    const uint64_t first = load<uint64_t>(text) & word_mask(size);
    for (size_t b = bucket(first, last_two(text, size));; ++b) {
      const uint32_t n = buckets[b & (buckets.size() - 1)];
      if (n == 0) return size == 0 ? 0 : -1;
      if (is(n, first, text, size)) return n;
    }
  }

  // As above, for text whose end may not be read past.
  int64_t find_anywhere(Bytes text) const {
    if (text.size() >= 8) return find(text.data(), text.size());
    uint8_t padded[8] = {};
    if (!text.empty()) std::memcpy(padded, text.data(), text.size());
    return find(padded, text.size());
  }

  // The slot of the name, learned if it is new. -1 if it is not UTF-8.
  int64_t look_up(const uint8_t* text, size_t size) {
    const int64_t n = find(text, size);
    if (n >= 0) return n;
    if (!is_utf8({text, size})) return -1;
    // Past the limit the last one learned is used instead: it is not requested either.
    if (others == kMaxOthers) return static_cast<int64_t>(slots.size()) - 1;
    ++others;
    return add({reinterpret_cast<const char*>(text), size});
  }

 private:
  bool is(uint32_t n, uint64_t first, const uint8_t* text, size_t size) const {
    const Slot& slot = slots[n];
    if (((first ^ slot.first) | (size ^ slot.size)) != 0) return false;
    return size <= 8 || (load<uint64_t>(text + size - 8) == slot.last &&
                         (size <= 16 || std::memcmp(texts[n].data() + 8, text + 8, size - 16) == 0));
  }

  uint32_t add(std::string text) {
    Slot slot;
    slot.size = static_cast<uint32_t>(text.size());
    if (text.size() <= 16) slot.start = 0x000a000a | slot.size << 24;
    slot.mask = word_mask(text.size());
    slot.head = 0x12 - (slot.size + 4) * kHeadSteps;
    std::memcpy(&slot.first, text.data(), std::min<size_t>(8, text.size()));
    const size_t last_at = std::max<size_t>(text.size(), 8) - 8;
    std::memcpy(&slot.last, text.data() + last_at, std::min<size_t>(8, text.size()));
    if (slot.start != 0) slot.last_at = static_cast<uint8_t>(last_at);
    slots.push_back(slot);
    texts.push_back(std::move(text));
    const uint32_t n = static_cast<uint32_t>(slots.size() - 1);
    // Sparse, so that most names are in the first bucket looked at.
    const bool full = slots.size() * 16 > buckets.size();
    if (full) {
      buckets.resize(buckets.size() * 2);
      --bucket_shift;
    }
    if (n == 0 || (!full && put(n))) return n;
    // With few names, some multiplier achieves that for all.
    constexpr size_t kFew = 128, kTries = 16;
    uint64_t best = multiplier;
    size_t fewest = put_all(), tries = slots.size() <= kFew ? kTries : 0;
    for (; fewest > 0 && tries > 0; --tries) {
      multiplier = multiplier * kFirstMultiplier | 1;
      const size_t now = put_all();
      if (now < fewest) best = multiplier;
      fewest = std::min(fewest, now);
    }
    if (multiplier != best) {
      multiplier = best;
      put_all();
    }
    return n;
  }

  // Fills the buckets. Returns how many names are not in their first bucket.
  size_t put_all() {
    std::fill(buckets.begin(), buckets.end(), 0);
    size_t elsewhere = 0;
    for (uint32_t n = 1; n < slots.size(); ++n) elsewhere += !put(n);
    return elsewhere;
  }

  bool put(uint32_t n) {
    const size_t first = bucket(slots[n].first, last_two(as_bytes(texts[n]).data(), slots[n].size));
    size_t b = first;
    while (buckets[b & (buckets.size() - 1)] != 0) ++b;
    buckets[b & (buckets.size() - 1)] = n;
    return b == first;
  }

  static constexpr uint64_t kFirstMultiplier = 0x9e3779b97f4a7c15;
};

}  // namespace recordkit
