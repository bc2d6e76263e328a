// Stepping over the fields that nobody asked for, in several records at once.
//
// Where the next entry starts is told by a length in this one, and waiting for it is most of what stepping
// takes. Real files repeat themselves, so the same entry of four records is looked at side by side: all of
// its first bytes but the lengths have to be those learned from an earlier record. Nothing is decided on the
// way, only added up; at the end either all four were as expected, or nothing is known of them.
#pragma once

#include <array>
#include <vector>

#include "core/names.h"

namespace recordkit {

class Skim {
 public:
  static constexpr size_t kAtOnce = 4;
  using Messages = std::array<Bytes, kAtOnce>;

  // Takes the entries of this Features message for those of the next. False, with nothing to go by, if one of
  // them is not short and plain.
  //
  // REQUIRES: kLoaded bytes behind the message may be loaded
  bool learn(Bytes message, Names& names) {
    steps_.clear();
    asked_ = 0;
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
    std::array<const uint8_t*, kAtOnce> p;
    for (size_t m = 0; m < kAtOnce; ++m) p[m] = messages[m].data();
    Lane differs = {};
    uint64_t lengths_differ = 0;
    const uint8_t** found = found_.data();
    for (const Step& step : steps_) {
      if (step.asked) {
        std::copy(p.begin(), p.end(), found);
        found += kAtOnce;
      }
      for (size_t m = 0; m < kAtOnce; ++m) differs |= (load<Lane>(p[m]) ^ step.first) & step.first_mask;
      if (step.is_long) {
        for (size_t m = 0; m < kAtOnce; ++m)
          differs |= (load<Lane>(p[m] + 16) ^ step.second) & step.second_mask;
      }
      for (size_t m = 0; m < kAtOnce; ++m) {
        const uint64_t length = p[m][1];
        lengths_differ |= length ^ (p[m][step.value_length_at] + step.value_length_at - 1);
        p[m] += 2 + length;
      }
    }
    bool whole = (differs[0] | differs[1] | lengths_differ) == 0;
    for (size_t m = 0; m < kAtOnce; ++m) whole &= p[m] == messages[m].data() + messages[m].size();
    return whole;
  }

 private:
  using Lane [[gnu::vector_size(16)]] = uint64_t;
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
  };

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
    steps_.push_back(step);
    if (step.asked) found_.resize(++asked_ * kAtOnce);
    return true;
  }

  bool forget() {
    steps_.clear();
    return false;
  }

  std::vector<Step> steps_;
  size_t asked_ = 0;
  std::vector<const uint8_t*> found_;
};

// What a run of the decoder leaves for the next.
struct Learned {
  Names names;
  Skim skim = {};
};

}  // namespace recordkit
