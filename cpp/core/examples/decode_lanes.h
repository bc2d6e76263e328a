// Decodes eight similar records at a time.
//
// The length in one entry says where the next one starts, and waiting for that load is most of the cost of a
// step. So eight records advance in lockstep, and single numbers are stored eight of a column at once.
// Mismatches are not branched on, only accumulated: at the end either all eight records were as expected, or
// nothing stored for them is valid.
#pragma once

#include <array>
#include <vector>

#include "core/examples/field_names.h"
#include "core/examples/varints.h"

namespace recordkit {

class LaneDecoder {
 public:
  static constexpr size_t kLanes = 8;
  using Messages = std::array<Bytes, kLanes>;

  explicit LaneDecoder(const FieldNames& names);
  LaneDecoder(const LaneDecoder&) = delete;  // has pointers into itself
  LaneDecoder& operator=(const LaneDecoder&) = delete;

  // Call before a run: picks the code for this processor. `follow`: the next eight messages lie right after
  // the last of these eight, so that they can be prefetched.
  void begin(bool follow);

  // Learns the entries of this Features message as what to expect of the next ones. False, and nothing is
  // learned, if one of them is not short and plain.
  //
  // REQUIRES: kLoaded bytes past the message may be loaded
  bool learn(Bytes message, FieldNames& names);

  bool knows() const { return !steps_.empty(); }

  // How many bytes from the start of a message take_alike may load, whatever the message holds.
  ptrdiff_t reach() const { return static_cast<ptrdiff_t>(steps_.size() * kLongestEntry + kLoaded); }

  // Stores the numbers of these messages as rows from `row` on, where the slots of `names` say. False unless
  // all messages have exactly the entries that were learned, in that order.
  //
  // REQUIRES: knows(), and reach() bytes from the start of each message on may be loaded
  bool take_alike(const Messages& messages, const FieldNames& names, size_t row);

  // The same for entries in any order. False unless every message has each requested field once, and all its
  // other entries are plain.
  //
  // REQUIRES: kLoaded bytes past each message may be loaded
  bool take_named(const Messages& messages, const FieldNames& names, size_t row);

  // The fields whose numbers are stored.
  const std::vector<size_t>& fields() const { return plan_->fields; }

  // How many other entries were requested, and where entry `n` of them is in message `m`.
  size_t others() const { return plan_->others.size(); }
  Bytes other(size_t n, size_t m) const {
    const uint8_t* const p = places_[plan_->others[n] * kLanes + m];
    return {p, size_t{2} + p[1]};
  }

 private:
  static constexpr size_t kLoaded = 32;
  using Places = std::array<const uint8_t*, kLanes>;
  using Lane [[gnu::vector_size(kLoaded)]] = uint8_t;
  static constexpr size_t kLongestEntry = 2 + 255;
  static constexpr size_t kMostSteps = 256;
  static constexpr size_t kLongestNamed = 16;  // with any order, two words of a name are compared

  enum class Asked : uint8_t { nothing, number, other };

  struct Number {
    size_t slot;      // index into the slots of the names
    size_t value_at;  // in its entry
    bool is_int;      // else a float
  };

  //     0a L  0a k name  12 v  ...                        v = L - k - 4
  //     0a L  0a k name  12 v  kind v-2  0a v-4  value    for a requested number
  struct alignas(kLoaded) Step {
    Lane bytes = {};    // expected bytes; lengths are stored less L
    Lane lengths = {};  // which bytes are lengths that depend on L
    Lane from = {};     // where the lengths to subtract are
    Lane mask = {};     // which bits must match; for L, that it is below 128
    size_t v_at = 0;
    Asked asked = Asked::nothing;
    Number taken = {};
  };

  // What was requested.
  struct Plan {
    std::vector<size_t> fields = {};  // fields with one number
    std::vector<size_t> others = {};  // positions of other entries
  };

  bool learn_step(const uint8_t* p, const uint8_t* end, FieldNames& names);
  bool forget();
  static Number number_of(size_t n, const FieldNames::Slot& slot);

  template <bool wide>
  static void pass(const Step& step, Places& at, Lane& unlike, uint64_t& wrong);
  template <bool quick, typename Each>
  static void store_numbers(const Number& number, const FieldNames::Slot* slots, size_t row, uint64_t& wrong,
                            const Each& each);
  template <bool quick, bool wide>
  bool take_alike(const Messages& messages, const FieldNames::Slot* slots, size_t row);
  template <bool quick>
  bool take_named(const Messages& messages, const FieldNames& names, size_t row);
  bool take_alike_quick(const Messages& messages, const FieldNames::Slot* slots, size_t row);
  bool take_alike_wide(const Messages& messages, const FieldNames::Slot* slots, size_t row);
  bool take_named_quick(const Messages& messages, const FieldNames& names, size_t row);

  bool quick_ = false;
  bool wide_ = false;
  bool follow_ = false;
  std::vector<Step> steps_;
  std::vector<std::pair<size_t, Number>> named_numbers_;  // with the positions of their slots
  size_t named_places_;
  bool any_order_ = true;  // every requested name is short enough for take_named
  Plan alike_, named_;
  const Plan* plan_ = &alike_;
  std::vector<const uint8_t*> places_;  // of entries, for each of the eight messages
};

}  // namespace recordkit
