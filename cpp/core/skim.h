// Stepping over the fields that nobody asked for, in several records at once.
//
// Where the next entry starts is told by a length in this one, and waiting for it is most of what stepping
// takes. Real files repeat themselves, so the same entry of eight records is looked at side by side: all
// of its first bytes but the lengths have to be those learned from an earlier record. Nothing is decided on
// the way, only added up; at the end either all eight were as expected, or nothing is known of them.
#pragma once

#include <array>
#include <vector>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "core/crc32c.h"
#include "core/names.h"

namespace recordkit {

class Skim {
 public:
  static constexpr size_t kAtOnce = 8;
  using Messages = std::array<Bytes, kAtOnce>;

  // Takes the entries of this Features message for those of the next. False, with nothing to go by, if one of
  // them is not short and plain.
  //
  // REQUIRES: kLoaded bytes behind the message may be loaded
  bool learn(Bytes message, Names& names) {
    steps_.clear();
    asked_ = 0;
    wide_ = has_wide();
    const uint8_t* p = message.data();
    const uint8_t* const end = p + message.size();
    for (; p < end; p += 2 + p[1]) {
      if (steps_.size() == kMostSteps || !learn_step(p, end, names)) return forget();
    }
    return p == end || forget();
  }

  bool knows() const { return !steps_.empty(); }

  // How many bytes from the start of a message on may be loaded, whatever it has.
  ptrdiff_t reach() const { return static_cast<ptrdiff_t>(steps_.size() * kLongestEntry + kLoaded); }

  // Entries asked for in each message.
  size_t asked() const { return asked_; }

  // Where entry number `a` of those asked for stands in message number `m`.
  Bytes entry(size_t a, size_t m) const {
    const uint8_t* const p = found_[a * kAtOnce + m];
    return {p, size_t{2} + p[1]};
  }

  // Whether all of these messages have the entries that were learned, and nothing else.
  //
  // REQUIRES: knows(), and reach() bytes from the start of each message on may be loaded
  bool find(const Messages& messages) {
#if defined(__x86_64__)
    if (wide_) return find_wide(messages);
#endif
    return find_half(messages, 0) && find_half(messages, kHalf);
  }

 private:
  using Lane [[gnu::vector_size(16)]] = uint64_t;
  static constexpr size_t kHalf = kAtOnce / 2;
  static constexpr size_t kLoaded = 32;
  static constexpr size_t kLongestEntry = 2 + 255;
  static constexpr size_t kLongestName = kLoaded - 6;
  static constexpr size_t kMostSteps = 256;

  //     0a L  0a k name  12 v        with v = L - k - 4
  struct Step {
    Lane first = {}, first_mask = {};    // of the bytes up to v; of L and v, only that they are below 128
    Lane second = {}, second_mask = {};  // where those are more than 16
    uint64_t value_length_at = 0;        // k + 5
    bool is_long = false;
    bool asked = false;
    // For find_wide, where none is long.
    Lane mask = {};   // of all bytes up to v
    Lane added = {};  // k + 4 where v stands, so that L and v become equal
    Lane swap = {};   // which byte comes to the place of which: v to L and L to v, and zeros
  };

  // The messages from number `first` on.
  bool find_half(const Messages& messages, size_t first) {
    std::array<const uint8_t*, kHalf> p;
    for (size_t m = 0; m < kHalf; ++m) p[m] = messages[first + m].data();
    Lane differs = {};
    uint64_t lengths_differ = 0;
    const uint8_t** found = found_.data() + first;
    for (const Step& step : steps_) {
      if (step.asked) {
        std::copy(p.begin(), p.end(), found);
        found += kAtOnce;
      }
      for (size_t m = 0; m < kHalf; ++m) differs |= (load<Lane>(p[m]) ^ step.first) & step.first_mask;
      if (step.is_long) {
        for (size_t m = 0; m < kHalf; ++m)
          differs |= (load<Lane>(p[m] + 16) ^ step.second) & step.second_mask;
      }
      for (size_t m = 0; m < kHalf; ++m) {
        const uint64_t length = p[m][1];
        lengths_differ |= length ^ (p[m][step.value_length_at] + step.value_length_at - 1);
        p[m] += 2 + length;
      }
    }
    bool whole = (differs[0] | differs[1] | lengths_differ) == 0;
    for (size_t m = 0; m < kHalf; ++m) whole &= is_end(p[m], messages[first + m]);
    return whole;
  }

  static bool is_end(const uint8_t* p, Bytes message) { return p == message.data() + message.size(); }

#if defined(__x86_64__)
  // All of them, two in a register. L and v are held against each other there, each at the place of the
  // other; that they are what they should be follows from L being below 128.
  [[gnu::target("avx2")]] bool find_wide(const Messages& messages) {
    static_assert(kAtOnce == 8);
    // One by one, for an array of them would not be kept in registers.
    const uint8_t *a = messages[0].data(), *b = messages[1].data(), *c = messages[2].data(),
                  *d = messages[3].data(), *e = messages[4].data(), *f = messages[5].data(),
                  *g = messages[6].data(), *h = messages[7].data();
    __m256i differs = _mm256_setzero_si256(), all = differs;
    const auto look = [&](const Step& step, const uint8_t* low,
                          const uint8_t* high) __attribute__((target("avx2"), always_inline)) {
      const __m256i bytes = _mm256_loadu2_m128i(reinterpret_cast<const __m128i_u*>(high),
                                                reinterpret_cast<const __m128i_u*>(low));
      const __m256i summed = _mm256_adds_epu8(bytes, twice(step.added));
      const __m256i swapped = _mm256_shuffle_epi8(summed, twice(step.swap));
      const __m256i unlike = _mm256_xor_si256(_mm256_xor_si256(summed, swapped), twice(step.first));
      all = _mm256_or_si256(all, bytes);
      differs = _mm256_or_si256(differs, _mm256_and_si256(unlike, twice(step.mask)));
    };
    const auto pass = [](const uint8_t*& p) __attribute__((always_inline)) { p += 2 + p[1]; };
    const uint8_t** found = found_.data();
    for (const Step& step : steps_) {
      if (step.asked) {
        for (const uint8_t* const p : {a, b, c, d, e, f, g, h}) *found++ = p;
      }
      look(step, a, b), look(step, c, d), look(step, e, f), look(step, g, h);
      pass(a), pass(b), pass(c), pass(d), pass(e), pass(f), pass(g), pass(h);
    }
    const __m256i too_long = _mm256_and_si256(all, _mm256_set_epi64x(0, 0x8000, 0, 0x8000));
    const __m256i wrong = _mm256_or_si256(differs, too_long);
    bool whole = _mm256_testz_si256(wrong, wrong);
    const Bytes* message = messages.data();
    for (const uint8_t* const p : {a, b, c, d, e, f, g, h}) whole &= is_end(p, *message++);
    return whole;
  }

  [[gnu::target("avx2"), gnu::always_inline]] static inline __m256i twice(const Lane& lane) {
    return _mm256_broadcastsi128_si256(reinterpret_cast<const __m128i&>(lane));
  }
#endif

  bool learn_step(const uint8_t* p, const uint8_t* end, Names& names) {
    const size_t size = p[3], head = size + 6;
    if ((load<uint32_t>(p) & 0x80ff80ff) != 0x000a000a || size > kLongestName || end - p < 2 + p[1])
      return false;
    if (p[1] < size + 4 || load<uint16_t>(p + 4 + size) != (0x12 | (p[1] - size - 4) << 8)) return false;
    const int64_t n = names.look_up(p + 4, size);
    if (n < 0) return false;
    uint8_t mask[kLoaded] = {};
    std::fill_n(mask, head, uint8_t{0xff});
    mask[1] = mask[head - 1] = 0x80;
    uint8_t bytes[kLoaded];
    std::memcpy(bytes, p, kLoaded);
    bytes[1] = bytes[head - 1] = 0;
    Step step{load<Lane>(bytes), load<Lane>(mask), load<Lane>(bytes + 16), load<Lane>(mask + 16)};
    step.value_length_at = size + 5;
    step.is_long = head > 16;
    step.asked = names.slots[static_cast<size_t>(n)].field >= 0;
    wide_ = wide_ && !step.is_long;
    if (!step.is_long) {
      uint8_t added[16] = {}, swap[16];
      added[head - 1] = static_cast<uint8_t>(size + 4);
      std::fill_n(swap, 16, uint8_t{0x80});
      swap[1] = static_cast<uint8_t>(head - 1);
      swap[head - 1] = 1;
      mask[1] = mask[head - 1] = 0xff;
      step.mask = load<Lane>(mask);
      step.added = load<Lane>(added);
      step.swap = load<Lane>(swap);
    }
    steps_.push_back(step);
    if (step.asked) found_.resize(++asked_ * kAtOnce);
    return true;
  }

  static bool has_wide() {
#if defined(__x86_64__)
    static const bool avx2 = __builtin_cpu_supports("avx2");
    return avx2 && crc32c_path() != "portable" && crc32c_path() != "sse4.2";
#else
    return false;
#endif
  }

  bool forget() {
    steps_.clear();
    return false;
  }

  std::vector<Step> steps_;
  size_t asked_ = 0;
  bool wide_ = false;
  std::vector<const uint8_t*> found_;
};

// What a run of the decoder leaves for the next.
struct Learned {
  Names names;
  Skim skim = {};
};

}  // namespace recordkit
