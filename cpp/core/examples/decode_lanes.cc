#include "core/examples/decode_lanes.h"

namespace recordkit {
namespace {

// An entry without a value, for fields that a message lacks; long enough to search for a number in it.
constexpr uint8_t kNowhere[kPadding] = {};

constexpr size_t kLine = 64;  // of the cache

// Numbers are stored to as many streams as there are columns, more than the hardware prefetcher tracks. If a
// batch exceeds the caches, waiting for them took as long as decoding, so they are prefetched two turns
// ahead.
template <typename T>
[[gnu::always_inline]] inline void call_for_room(const uint8_t* to) {
  __builtin_prefetch(to + 2 * LaneDecoder::kLanes * sizeof(T), 1);
}

bool has_quick() {
#if defined(__x86_64__)
  static const bool has = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi");
  return has && has_quick_pext() && crc32c_path() != "sse4.2";
#else
  return false;
#endif
}

// clang requires the registers of an instruction to exist in the template already, for any target.
#if defined(__x86_64__) && !defined(__clang__)
#define RECORDKIT_HAS_WIDE
#endif

bool has_wide() {
#if defined(RECORDKIT_HAS_WIDE)
  static const bool has = __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
                          __builtin_cpu_supports("avx512vbmi");
  return has && crc32c_path() == "avx512";
#else
  return false;
#endif
}

// The first bytes of a word, up to all eight.
template <bool quick>
[[gnu::always_inline]] inline uint64_t first_bytes(uint64_t word, uint64_t size) {
#if defined(__x86_64__)
  if constexpr (quick) {
    uint64_t first;
    asm("bzhi %2, %1, %0" : "=r"(first) : "r"(word), "r"(8 * size));
    return first;
  }
#endif
  return word & word_mask(size);
}

}  // namespace

// The same code three times: for any processor, for those with wide registers and fast bit instructions, and
// for those that also permute bytes in such registers.
#if defined(__x86_64__)
#define RECORDKIT_QUICK [[gnu::target("avx2,bmi,bmi2")]]
#define RECORDKIT_WIDE [[gnu::target("avx2,bmi,bmi2,avx512f,avx512bw,avx512vl,avx512vbmi")]]
#else
#define RECORDKIT_QUICK
#define RECORDKIT_WIDE
#endif

// Stores eight numbers of a column. `each` provides, for every message, its index, the entry and its length.
template <bool quick, typename Each>
[[gnu::always_inline]] inline void LaneDecoder::store_numbers(const Number& number,
                                                              const FieldNames::Slot* slots, size_t row,
                                                              uint64_t& wrong, const Each& each) {
  const size_t value_at = number.value_at;
  if (number.is_int) {
    uint8_t* const to = slots[number.slot].to + 8 * row;
    call_for_room<int64_t>(to);
    const uint64_t less = 8 * value_at - 15;
    each([&](size_t m, const uint8_t* p, uint64_t length) __attribute__((always_inline)) {
      const uint64_t word = load<uint64_t>(p + value_at), ends = ~word & kContinuation;
      // The only varint must end where the entry ends; otherwise it is longer, or there are several.
      wrong |= static_cast<uint64_t>(std::countr_zero(ends)) ^ (8 * length - less);
      store(to + 8 * m, join_varint<quick>(word & (ends ^ (ends - 1))));
    });
  } else {
    uint8_t* const to = slots[number.slot].to + 4 * row;
    call_for_room<float>(to);
    each([&](size_t m, const uint8_t* p, uint64_t length) __attribute__((always_inline)) {
      wrong |= length ^ (value_at + 2);
      store(to + 4 * m, load<uint32_t>(p + value_at));
    });
  }
}

// Advances over the entries of one step.
template <bool wide>
[[gnu::always_inline]] inline void LaneDecoder::pass(const Step& step, Places& at, Lane& unlike,
                                                     uint64_t& wrong) {
  Lane differs = {};
  uint64_t lengths = 0;
#pragma GCC unroll 8
  for (const uint8_t*& p : at) {
    const uint64_t length = p[1];
    Lane bytes, less = {};  // not from a function: some processors have no register of that size
    std::memcpy(&bytes, p, sizeof bytes);
    if constexpr (wide) {
#if defined(RECORDKIT_HAS_WIDE)
      asm("vpermb %2, %1, %0" : "=v"(less) : "v"(step.from), "v"(bytes));
#endif
    } else {
      less = Lane{} + p[1];
      lengths |= p[step.v_at];
    }
    differs |= (bytes - (less & step.lengths)) ^ step.bytes;
    p += 2 + length;
    asm("" : "+r"(p));  // in its own register, not packed into a wide one
  }
  unlike |= differs & step.mask;
  wrong |= lengths & 0x80;
}

template <bool quick, bool wide>
[[gnu::always_inline]] inline bool LaneDecoder::take_alike(const Messages& messages,
                                                           const FieldNames::Slot* slots, size_t row) {
  Places at;
  for (size_t m = 0; m < kLanes; ++m) at[m] = messages[m].data();
  Lane unlike = {};
  uint64_t wrong = 0;
  const uint8_t** places = places_.data();
  // Prefetch the next records little by little, to leave room for other loads.
  const Bytes last = messages.back();
  const uint8_t* ahead = last.data() + last.size();
  const size_t a_step = follow_ ? kLanes * last.size() / steps_.size() / kLine + 1 : 0;
  const auto call_for_more = [&]() __attribute__((always_inline)) {
    // A constant number each time, so that the end of the loop is predicted.
    for (size_t i = 0; i < a_step; ++i, ahead += kLine) __builtin_prefetch(ahead);
  };
  const Step* const end = steps_.data() + steps_.size();
  for (const Step* step = steps_.data(); step < end; ++step) {
    call_for_more();
    if (step->asked == Asked::number) {
      const auto each = [&](const auto& use) __attribute__((always_inline)) {
#pragma GCC unroll 2
        for (size_t m = 0; m < kLanes; ++m) {
          const uint8_t* const p = at[m];
          const uint64_t length = p[1];
          const Lane expected = step->bytes + ((Lane{} + p[1]) & step->lengths);
          Lane bytes;
          std::memcpy(&bytes, p, sizeof bytes);
          unlike |= (bytes ^ expected) & step->mask;
          use(m, p, length);
          at[m] = p + 2 + length;
        }
      };
      store_numbers<quick>(step->taken, slots, row, wrong, each);
      continue;
    }
    if (step->asked == Asked::other) places = std::copy(at.begin(), at.end(), places);
    Places passed = at;  // in registers, as long as nothing is requested
    pass<wide>(*step, passed, unlike, wrong);
    for (; step + 1 < end && step[1].asked == Asked::nothing; ++step) {
      call_for_more();
      pass<wide>(step[1], passed, unlike, wrong);
    }
    at = passed;
  }
  for (size_t i = 0; i < kLoaded; ++i) wrong |= unlike[i];
  for (size_t m = 0; m < kLanes; ++m)
    wrong |= static_cast<uint64_t>(at[m] - (messages[m].data() + messages[m].size()));
  return wrong == 0;
}

template <bool quick>
[[gnu::always_inline]] inline bool LaneDecoder::take_named(const Messages& messages, const FieldNames& names,
                                                           size_t row) {
  const FieldNames::Slot* const slots = names.slots.data();
  const uint32_t* const buckets = names.buckets.data();
  const int shift = names.bucket_shift;
  const uint64_t multiplier = names.multiplier;
  const size_t asked = named_.fields.size() + named_.others.size();
  const uint8_t** places = places_.data();
  std::fill(places_.begin(), places_.end(), kNowhere);
  for (const Bytes message : messages) {
    const uint8_t* p = message.data();
    const uint8_t* const end = p + message.size();
    size_t found = 0;
    uint64_t wrong = 0;
    while (p < end && wrong == 0) {
      const uint64_t length = p[1];
      const uint32_t start = load<uint32_t>(p), size = start >> 24;
      if (size > kLongestNamed) return false;
      const uint8_t* const text_end = p + 4 + size;
      const uint64_t first = first_bytes<quick>(load<uint64_t>(p + 4), size), head = load<uint64_t>(text_end);
      const uint64_t hash = (first ^ uint64_t{load<uint16_t>(text_end - 2)} << 29) * multiplier;
      const FieldNames::Slot& slot = slots[buckets[hash >> shift]];
      wrong = ((start ^ slot.start) & 0xffff80ff) | (first ^ slot.first) |
              ((load<uint64_t>(p + 4 + slot.last_at) & slot.mask) ^ slot.last) |
              (head ^ (slot.head + length * kHeadSteps)) << slot.head_shift | (head & 0x8000);
      places[slot.place * kLanes] = p;
      found += slot.place != 0;
      p += 2 + length;
    }
    if (wrong != 0 || p != end || found != asked) return false;
    ++places;
  }
  uint64_t wrong = 0;
  for (const auto& [place, number] : named_numbers_) {
    const uint8_t* const* const entries = places_.data() + place * kLanes;
    const auto each = [&](const auto& use) __attribute__((always_inline)) {
#pragma GCC unroll 2
      for (size_t m = 0; m < kLanes; ++m) use(m, entries[m], entries[m][1]);
    };
    store_numbers<quick>(number, slots, row, wrong, each);
  }
  for (const size_t place : named_.others) {
    for (size_t m = 0; m < kLanes; ++m) wrong |= places_[place * kLanes + m] == kNowhere;
  }
  return wrong == 0;
}

RECORDKIT_QUICK bool LaneDecoder::take_alike_quick(const Messages& messages, const FieldNames::Slot* slots,
                                                   size_t row) {
  return take_alike<true, false>(messages, slots, row);
}
RECORDKIT_WIDE bool LaneDecoder::take_alike_wide(const Messages& messages, const FieldNames::Slot* slots,
                                                 size_t row) {
  return take_alike<true, true>(messages, slots, row);
}
RECORDKIT_QUICK bool LaneDecoder::take_named_quick(const Messages& messages, const FieldNames& names,
                                                   size_t row) {
  return take_named<true>(messages, names, row);
}

bool LaneDecoder::take_alike(const Messages& messages, const FieldNames& names, size_t row) {
  plan_ = &alike_;
  places_.resize(alike_.others.size() * kLanes);
  const FieldNames::Slot* const slots = names.slots.data();
  if (wide_) return take_alike_wide(messages, slots, row);
  return quick_ ? take_alike_quick(messages, slots, row) : take_alike<false, false>(messages, slots, row);
}

bool LaneDecoder::take_named(const Messages& messages, const FieldNames& names, size_t row) {
  if (!any_order_) return false;
  plan_ = &named_;
  places_.resize(named_places_ * kLanes);
  return quick_ ? take_named_quick(messages, names, row) : take_named<false>(messages, names, row);
}

void LaneDecoder::begin(bool follow) {
  quick_ = has_quick();
  wide_ = quick_ && has_wide();
  follow_ = follow;
}

LaneDecoder::LaneDecoder(const FieldNames& names) : named_places_(names.slots.size() + 1) {
  for (size_t n = 0; n < names.slots.size(); ++n) {
    const FieldNames::Slot& slot = names.slots[n];
    if (slot.field < 0) continue;
    any_order_ = any_order_ && slot.size <= kLongestNamed;
    if (!slot.one_number) {
      named_.others.push_back(slot.place);
      continue;
    }
    named_.fields.push_back(static_cast<size_t>(slot.field));
    named_numbers_.emplace_back(slot.place, number_of(n, slot));
  }
}

bool LaneDecoder::learn(Bytes message, FieldNames& names) {
  steps_.clear();
  alike_ = {};
  const uint8_t* p = message.data();
  const uint8_t* const end = p + message.size();
  for (; p < end; p += 2 + p[1]) {
    if (steps_.size() == kMostSteps || !learn_step(p, end, names)) return forget();
  }
  return (p == end && knows()) || forget();
}

bool LaneDecoder::learn_step(const uint8_t* p, const uint8_t* end, FieldNames& names) {
  const size_t length = p[1], size = p[3];
  if ((load<uint32_t>(p) & 0x80ff80ff) != 0x000a000a || static_cast<size_t>(end - p) < 2 + length)
    return false;
  if (length < size + 4 || size + 6 > kLoaded) return false;
  if (load<uint16_t>(p + 4 + size) != (0x12 | (length - size - 4) << 8)) return false;
  if (std::any_of(p + 4, p + 4 + size, [](uint8_t letter) { return letter >= 0x80; })) return false;
  const int64_t found = names.look_up(p + 4, size);
  if (found < 0) return false;
  const size_t n = static_cast<size_t>(found);
  const FieldNames::Slot& slot = names.slots[n];

  uint8_t bytes[kLoaded] = {}, lengths[kLoaded] = {}, mask[kLoaded] = {}, from[kLoaded];
  std::fill_n(from, kLoaded, uint8_t{1});
  std::memcpy(bytes, p, size + 6);
  bytes[1] = 0;
  std::fill_n(mask, size + 5, uint8_t{0xff});
  mask[1] = 0x80;
  const auto goes_by_length = [&](size_t at, size_t less) {
    bytes[at] = static_cast<uint8_t>(0 - less);
    lengths[at] = mask[at] = 0xff;
  };
  Step step;
  step.v_at = size + 5;
  goes_by_length(step.v_at, size + 4);
  if (slot.field >= 0 && !slot.one_number) {
    step.asked = Asked::other;
    alike_.others.push_back(alike_.others.size());
  } else if (slot.field >= 0) {
    if (size + 10 > kLoaded) return false;
    // Of two entries of one field the last counts; leave that to the exact parser.
    const size_t field = static_cast<size_t>(slot.field);
    if (std::count(alike_.fields.begin(), alike_.fields.end(), field)) return false;
    alike_.fields.push_back(field);
    step.asked = Asked::number;
    step.taken = number_of(n, slot);
    bytes[size + 6] = slot.is_int ? 0x1a : 0x12;
    bytes[size + 8] = 0x0a;
    mask[size + 6] = mask[size + 8] = 0xff;
    goes_by_length(size + 7, size + 6);
    goes_by_length(size + 9, size + 8);
  }
  if (step.asked != Asked::number) {
    // v == L - k - 4 is only verified modulo 256, so v has to be below 128; otherwise L would be too short
    // for the name. k does not change when the highest bit of v is cleared.
    from[3] = static_cast<uint8_t>(step.v_at);
    lengths[3] = 0x80;
  }
  std::memcpy(&step.from, from, kLoaded);
  std::memcpy(&step.bytes, bytes, kLoaded);
  std::memcpy(&step.lengths, lengths, kLoaded);
  std::memcpy(&step.mask, mask, kLoaded);
  steps_.push_back(step);
  return true;
}

LaneDecoder::Number LaneDecoder::number_of(size_t n, const FieldNames::Slot& slot) {
  return {n, slot.size + size_t{10}, slot.is_int};
}

bool LaneDecoder::forget() {
  steps_.clear();
  return false;
}

}  // namespace recordkit
