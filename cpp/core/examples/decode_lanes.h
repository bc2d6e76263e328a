// Records decoded eight abreast.
//
// Where the next entry starts is told by a length in this one, and waiting for it is most of what stepping
// takes: so eight records are gone through side by side, and single numbers are taken eight of a column at
// once. Nothing is decided on the way, only added up: at the end either all eight were as expected, or
// nothing is known of them, and what was stored of them counts for nothing.
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
  LaneDecoder(const LaneDecoder&) = delete;  // it points into itself
  LaneDecoder& operator=(const LaneDecoder&) = delete;

  // To be called before a run: chooses the code that this processor runs best. `follow`: behind the last
  // message of eight come those of the next eight, so that they can be called for.
  void begin(bool follow);

  // Takes the entries of this Features message for those of the next. False, with nothing to go by, if one of
  // them is not short and plain.
  //
  // REQUIRES: kLoaded bytes behind the message may be loaded
  bool learn(Bytes message, FieldNames& names);

  bool knows() const { return !steps_.empty(); }

  // How many bytes from the start of a message on take_alike may load, whatever the message has.
  ptrdiff_t reach() const { return static_cast<ptrdiff_t>(steps_.size() * kLongestEntry + kLoaded); }

  // Takes the numbers of these messages, from `row` on, to where the slots of `names` say. False unless all
  // of them have the entries that were learned, in that order, and nothing else.
  //
  // REQUIRES: knows(), and reach() bytes from the start of each message on may be loaded
  bool take_alike(const Messages& messages, const FieldNames& names, size_t row);

  // The same for messages with entries in any order. False unless all of them have every field that was asked
  // for once, and whatever else they have is plain.
  //
  // REQUIRES: kLoaded bytes behind each message may be loaded
  bool take_named(const Messages& messages, const FieldNames& names, size_t row);

  // The fields whose numbers are taken.
  const std::vector<size_t>& fields() const { return plan_->fields; }

  // How many other entries of each message were asked for, and where number `n` of them is in message `m`.
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
  static constexpr size_t kLongestNamed = 16;  // of names in any order two words are compared

  enum class Asked : uint8_t { nothing, number, other };

  struct Number {
    size_t slot;      // of the names
    size_t value_at;  // in its entry
    bool is_int;      // else a float
  };

  //     0a L  0a k name  12 v  ...                        v = L - k - 4
  //     0a L  0a k name  12 v  kind v-2  0a v-4  value    where it is a number that was asked for
  struct alignas(kLoaded) Step {
    Lane bytes = {};    // what is expected; of lengths, less L
    Lane lengths = {};  // which bits of lengths are taken off: all where one stands that goes by L
    Lane from = {};     // where the lengths stand that are taken off
    Lane mask = {};     // which bits have to be as expected; of L, that it is below 128
    size_t v_at = 0;
    Asked asked = Asked::nothing;
    Number taken = {};
  };

  // What was asked for.
  struct Plan {
    std::vector<size_t> fields = {};  // those of one number
    std::vector<size_t> others = {};  // places of other entries
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
  std::vector<std::pair<size_t, Number>> named_numbers_;  // with the places of their slots
  size_t named_places_;
  bool any_order_ = true;  // no field that was asked for has a longer name than is compared there
  Plan alike_, named_;
  const Plan* plan_ = &alike_;
  std::vector<const uint8_t*> places_;  // of entries, of eight messages each
};

}  // namespace recordkit
