#include "core/decode.h"

#include <algorithm>
#include <unordered_map>

namespace recordkit {
namespace {

// Of names that were not asked for, so many are remembered; the rest are looked up anew in each record.
constexpr size_t kMaxOthers = 1024;

uint64_t word_mask(size_t size) { return size >= 8 ? ~uint64_t{0} : (uint64_t{1} << (8 * size)) - 1; }

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
constexpr uint64_t kHeadSteps = 0x010001000100;
constexpr uint64_t kHeadMask = 0xffffffffffff;
constexpr size_t kHeadSize = 6;

}  // namespace

// The names met so far, and the order they came in.
struct Decoder::Names {
  // All that the common case needs, in one cache line.
  struct Slot {
    uint64_t first = 0;     // the first eight bytes of the name, as far as it goes
    uint64_t mask = 0;      // which of them count
    uint64_t last = 0;      // the last eight, of names longer than that
    uint64_t head = 0;      // canonical_head of the field's kind
    uint8_t* to = nullptr;  // where the values of one-number fields go
    uint64_t is_int = 0;    // all ones for a varint, zero for a float
    uint32_t size = 0;      // of the name
    int32_t field = -1;     // of the specs; -1: not asked for
    uint32_t sizes = 0;     // bit n is set if a value of n bytes may be the field's one number
  };

  std::vector<Slot> slots;
  std::vector<std::string> texts;  // the names, slot by slot
  std::vector<uint32_t> buckets;   // open addressing; slot + 1, 0 is free
  std::vector<uint32_t> order;     // entry -> slot, as in the record before
  size_t others = 0;
  // Bit `trait` is set for every name that was asked for. Where few were, most others are told by it alone.
  uint64_t asked = 0;
  bool few_asked = false;

  // Of the length and the last letter, in which names of one record differ most.
  static unsigned trait(size_t size, uint64_t last_letter) { return (size * 7 + last_letter) & 63; }

  explicit Names(const std::vector<FieldSpec>& fields) : buckets(64), order(16) {
    // So that every guess is a slot there is; no feature of a real file has this name.
    add("", -1);
    for (size_t f = 0; f < fields.size(); ++f) {
      if (fields[f].steps) continue;
      Slot& slot = slots[fields[f].name.empty() ? 0 : add(fields[f].name, -1)];
      slot.field = static_cast<int32_t>(f);
      slot.head = canonical_head(fields[f].kind);
      slot.is_int = fields[f].kind == Kind::int64s ? ~uint64_t{0} : 0;
      if (fields[f].count == 1 && fields[f].kind == Kind::int64s) slot.sizes = 0x1fe;
      if (fields[f].count == 1 && fields[f].kind == Kind::floats) slot.sizes = 0x010;
      if (slot.size > 0) asked |= uint64_t{1} << trait(slot.size, as_bytes(fields[f].name).back());
    }
    few_asked = std::popcount(asked) <= 16 && slots[0].field < 0;
  }

  // Eight bytes from `text` on may be loaded whatever its size.
  bool is(const Slot& slot, uint32_t n, const uint8_t* text, size_t size) const {
    // One branch for both: names of differing lengths in changing order would make two of them guesswork.
    if ((((load<uint64_t>(text) ^ slot.first) & slot.mask) | (size ^ slot.size)) != 0) return false;
    return size <= 8 || (load<uint64_t>(text + size - 8) == slot.last &&
                         (size <= 16 || std::memcmp(texts[n].data() + 8, text + 8, size - 16) == 0));
  }

  static uint64_t hash(uint64_t first, uint64_t last, size_t size) {
    // Names often differ only near their end ("image/width", "image/height"), so both ends are mixed in.
    const uint64_t both = first ^ std::rotl(last, 23) ^ size;
    const auto product = static_cast<unsigned __int128>(both) * 0x9e3779b97f4a7c15;
    return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
  }

  // The name's slot, or -1. Eight bytes from `text` on may be loaded whatever its size.
  int64_t find(const uint8_t* text, size_t size) const {
    const uint64_t first = load<uint64_t>(text) & word_mask(size);
    const uint64_t last = size > 8 ? load<uint64_t>(text + size - 8) : 0;
    for (size_t b = hash(first, last, size);; ++b) {
      const uint32_t n = buckets[b & (buckets.size() - 1)];
      if (n == 0) return -1;
      if (is(slots[n - 1], n - 1, text, size)) return n - 1;
    }
  }

  // As above, for text at the end of memory that cannot be read past.
  int64_t find_anywhere(Bytes text) const {
    if (text.size() >= 8) return find(text.data(), text.size());
    uint8_t padded[8] = {};
    if (!text.empty()) std::memcpy(padded, text.data(), text.size());
    return find(padded, text.size());
  }

  uint32_t add(std::string text, int32_t field) {
    Slot slot;
    slot.size = static_cast<uint32_t>(text.size());
    slot.mask = word_mask(text.size());
    std::memcpy(&slot.first, text.data(), std::min<size_t>(8, text.size()));
    if (text.size() > 8) std::memcpy(&slot.last, text.data() + text.size() - 8, 8);
    slot.field = field;
    slots.push_back(slot);
    texts.push_back(std::move(text));
    // Sparse, so that most names stand in the first bucket looked at.
    if (slots.size() * 4 > buckets.size()) {
      buckets.assign(buckets.size() * 2, 0);
      for (uint32_t n = 0; n < slots.size(); ++n) place(n);
    } else {
      place(static_cast<uint32_t>(slots.size() - 1));
    }
    return static_cast<uint32_t>(slots.size() - 1);
  }

 private:
  void place(uint32_t n) {
    size_t b = hash(slots[n].first, slots[n].last, slots[n].size);
    while (buckets[b & (buckets.size() - 1)] != 0) ++b;
    buckets[b & (buckets.size() - 1)] = n + 1;
  }
};

// One call of decode: where it is, and what it has met.
class Decoder::Run {
 public:
  Run(const std::vector<FieldSpec>& fields, Names& names, const Chunk& chunk, std::vector<Column>& columns,
      size_t rows)
      : fields_(fields),
        names_(names),
        columns_(columns),
        readable_end_(chunk.data + chunk.readable),
        rows_(rows),
        seen_(fields.size(), SIZE_MAX) {
    for (size_t f = 0; f < fields.size(); ++f) {
      if (fields[f].steps) lists_.emplace(fields[f].name, f);
      prepare(fields[f], columns[f]);
    }
    for (Names::Slot& slot : names.slots) {
      if (slot.sizes == 0) continue;
      Column& column = columns[static_cast<size_t>(slot.field)];
      slot.to = slot.is_int ? reinterpret_cast<uint8_t*>(column.fixed_ints)
                            : reinterpret_cast<uint8_t*>(column.fixed_floats);
    }
  }

  bool record(size_t row, Bytes payload, bool sequence) {
    row_ = row;
    payload_ = payload.data();
    fields_seen_ = 0;
    if (!misfits_.empty()) misfits_.clear();
    Cursor cursor(payload);
    while (!cursor.done()) {
      uint32_t field;
      WireType type;
      Bytes body;
      bool ok = cursor.tag(field, type);
      if (ok && type == WireType::bytes && (field == 1 || (field == 2 && sequence))) {
        ok = cursor.bytes(body);
        if (ok && !(field == 1 ? features(body) : feature_lists(body))) return false;
      } else if (ok) {
        ok = cursor.skip(field, type);
      }
      if (!ok) return malformed(cursor);
    }
    return fields_seen_ == fields_.size() || missing_fields();
  }

  DecodeFault fault;

 private:
  void prepare(const FieldSpec& spec, Column& column) const {
    const bool fixed = spec.count >= 0;
    if (spec.kind == Kind::bytes) {
      column.byte_offsets.reserve((fixed && !spec.steps ? rows_ * static_cast<size_t>(spec.count) : rows_) +
                                  1);
      column.byte_offsets.push(0);
    }
    if (!fixed) {
      column.value_offsets.reserve(rows_ + 1);
      column.value_offsets.push(0);
    }
    if (spec.steps) {
      column.step_offsets.reserve(rows_ + 1);
      column.step_offsets.push(0);
    }
  }

  // The entries of one Features message.
  bool features(Bytes message) {
    const uint8_t* p = message.data();
    const uint8_t* const end = p + message.size();
    // Locals, for the compiler cannot know that storing values leaves our members alone.
    const bool roomy = readable_end_ - end >= 16;  // so that words may be loaded past the end of any entry
    const size_t row = row_, last_row = rows_ - 1;
    const Names::Slot* slots = names_.slots.data();
    uint32_t* order = names_.order.data();
    size_t order_size = names_.order.size(), numbers = 0;
    size_t* const seen = seen_.data();
    const uint64_t asked = names_.asked;
    const bool few_asked = names_.few_asked;

    for (size_t j = 0; p != end; ++j) {
      if (few_asked && roomy) {
        p = skip_others(p, end, asked, j);
        if (p == end) break;
      }
      if (!roomy || !is_short_entry(p, end)) {
        if (!any_entry(p, end)) return false;
        continue;
      }
      const uint32_t length = p[1], size = p[3];
      const uint8_t* const text = p + 4;
      const uint64_t value_size = length - size - 4;
      const uint64_t head = load<uint64_t>(text + size) & kHeadMask;
      p += 2 + length;

      if (j >= order_size) {
        names_.order.resize(order_size = 2 * j);
        order = names_.order.data();
      }
      uint32_t n = order[j];
      if (!names_.is(slots[n], n, text, size)) {
        const int64_t found = look_up(text, size);
        if (found < 0) return malformed(text, WireFault::bad_name);
        n = order[j] = static_cast<uint32_t>(found);
        slots = names_.slots.data();
      }
      const Names::Slot& slot = slots[n];
      if (slot.field < 0) {
        // What follows the name must be the value and nothing else, for an entry may name itself twice.
        if ((head & 0xffff) != (0x12 | value_size << 8) && !entry({text - 2, length})) return false;
        continue;
      }
      const size_t f = static_cast<size_t>(slot.field);
      const uint8_t* const value = text + size + kHeadSize;
      const uint64_t bytes = value_size - 4;
      const bool canonical = value_size >= 4 && head == slot.head + value_size * kHeadSteps;
      uint64_t number;
      if (canonical && bytes <= 8 && (slot.sizes >> bytes & 1) && seen[f] != row &&
          one_number(slot, value, bytes, number)) {
        uint8_t* const to = slot.to + row * (4 + (slot.is_int & 4));
        // Eight bytes of a float's column reach into the next row, which is yet to come, except behind the
        // last.
        if (row != last_row || slot.is_int)
          store(to, number);
        else
          store(to, static_cast<uint32_t>(number));
        seen[f] = row;
        ++numbers;
        continue;
      }
      if (!(canonical && take(slot, value, bytes)) && !entry({text - 2, length})) return false;
    }
    fields_seen_ += numbers;
    return true;
  }

  // 0a L 0a k with L and k below 128, the entry inside the message and the name inside the entry.
  //
  // REQUIRES: four bytes from `p` on may be loaded
  static bool is_short_entry(const uint8_t* p, const uint8_t* end) {
    return (load<uint32_t>(p) & 0x80ff80ff) == 0x000a000a && end - p >= 2 + p[1] && p[1] >= 4 + p[3];
  }

  // Steps over short entries that were clearly not asked for, counting them in `j`. Apart from the loop in
  // `features` so that the place in the record stays in a register: these steps wait for nothing else.
  [[gnu::noinline]] static const uint8_t* skip_others(const uint8_t* p, const uint8_t* end, uint64_t asked,
                                                      size_t& j) {
    size_t skipped = 0;
    for (; p != end; ++skipped) {
      const uint32_t word = load<uint32_t>(p), size = word >> 24;
      const uint8_t* const next = p + 2 + p[1];
      const uint8_t* const text_end = p + 4 + size;
      if ((word & 0x80ff80ff) != 0x000a000a || next > end || text_end + 2 > next) break;
      // The name is followed by the value alone, and is none of those asked for.
      if (load<uint16_t>(text_end) != (0x12 | (next - text_end - 2) << 8)) break;
      if (asked >> Names::trait(size, text_end[-1]) & 1) break;
      // Names that may not be UTF-8 are looked at closely.
      const uint64_t letters = load<uint64_t>(p + 4) & word_mask(size);
      if (((letters | (size > 8 ? load<uint64_t>(text_end - 8) : 0)) & kContinuation) || size > 16) break;
      p = next;
    }
    j += skipped;
    return p;
  }

  // The one number of a field, in 1 to 8 bytes; int64 and float alike without a branch between them, which
  // would be a coin toss in files whose order changes from record to record.
  static bool one_number(const Names::Slot& slot, const uint8_t* value, size_t size, uint64_t& number) {
    const uint64_t mask = ~uint64_t{0} >> (64 - 8 * size);
    const uint64_t word = load<uint64_t>(value) & mask;
    number = (join_sevens(word) & slot.is_int) | (word & ~slot.is_int);
    // All bytes of a varint but the last go on; otherwise these are several values.
    return ((word ^ (kContinuation & (mask >> 8))) & kContinuation & slot.is_int) == 0;
  }

  // The slot of the name, learned if it is new. -1 if it is not UTF-8.
  int64_t look_up(const uint8_t* text, size_t size) {
    const int64_t n = names_.find(text, size);
    if (n >= 0) return n;
    if (!is_utf8({text, size})) return -1;
    // Past the limit the last one learned stands in: not asked for either, and never guessed right.
    if (names_.others == kMaxOthers) return static_cast<int64_t>(names_.slots.size()) - 1;
    ++names_.others;
    return names_.add({reinterpret_cast<const char*>(text), size}, -1);
  }

  // Whatever stands next in a Features message, with lengths of any size.
  bool any_entry(const uint8_t*& p, const uint8_t* end) {
    Cursor cursor({p, static_cast<size_t>(end - p)}, kMapDepth);
    uint32_t field;
    WireType type;
    Bytes body;
    bool ok = cursor.tag(field, type);
    if (ok && field == 1 && type == WireType::bytes) {
      ok = cursor.bytes(body);
      if (ok && !long_entry(body) && !entry(body)) return false;
    } else if (ok) {
      ok = cursor.skip(field, type);
    }
    if (!ok) return malformed(cursor);
    p = cursor.at;
    return true;
  }

  // True if this is a canonical entry of a field that was asked for, and its value has been taken.
  bool long_entry(Bytes body) {
    const auto only = [](Cursor& cursor, uint8_t tag, Bytes& value) {
      return cursor.left() > 0 && *cursor.at == tag && (++cursor.at, cursor.bytes(value));
    };
    Cursor entry(body);
    Bytes text, feature, list, value;
    if (!only(entry, 0x0a, text) || !only(entry, 0x12, feature) || !entry.done()) return false;
    const int64_t n = names_.find_anywhere(text);
    if (n < 0 || names_.slots[static_cast<size_t>(n)].field < 0) return false;
    const Names::Slot& slot = names_.slots[static_cast<size_t>(n)];
    const Kind kind = fields_[static_cast<size_t>(slot.field)].kind;
    Cursor of_feature(feature);
    if (!only(of_feature, static_cast<uint8_t>(static_cast<int>(kind) << 3 | 2), list) || !of_feature.done())
      return false;
    Cursor of_list(list);
    if (!only(of_list, 0x0a, value) || !of_list.done()) return false;
    if (readable_end_ - value.data() < static_cast<ptrdiff_t>(value.size() + 8)) return false;
    return take(slot, value.data(), value.size());
  }

  // Takes the bytes of a canonical value. False, with nothing changed, if they are not what the field wants.
  bool take(const Names::Slot& slot, const uint8_t* value, size_t size) {
    const size_t f = static_cast<size_t>(slot.field);
    const FieldSpec& spec = fields_[f];
    Column& column = columns_[f];
    if (seen_[f] == row_) unsee(f);
    if (spec.kind == Kind::bytes) {
      if (spec.count > 1 || spec.count == 0) return false;
      column.bytes.append(value, size);
      column.byte_offsets.push(static_cast<int64_t>(column.bytes.size()));
    } else if (size == 0) {
      return false;
    } else if (spec.kind == Kind::floats) {
      if (spec.count < 0 ? size % 4 != 0 : size != static_cast<size_t>(spec.count) * 4) return false;
      if (spec.count >= 0) {
        std::memcpy(column.fixed_floats + row_ * static_cast<size_t>(spec.count), value, size);
      } else {
        std::memcpy(column.floats.grow(size / 4), value, size);
        column.floats.set_size(column.floats.size() + size / 4);
      }
    } else {
      // A fixed count of integers gathers them here too, to see how many they are.
      const size_t before = column.ints.size();
      const uint8_t* at;
      const bool whole = read_packed_int64s({value, size}, value + size + 8, column.ints, at);
      const size_t found = column.ints.size() - before;
      if (spec.count >= 0 || !whole) column.ints.set_size(before);
      if (!whole || (spec.count >= 0 && found != static_cast<size_t>(spec.count))) return false;
      if (spec.count >= 0) std::copy_n(column.ints.data() + before, found, column.fixed_ints + row_ * found);
    }
    end_values(spec, column);
    see(f);
    return true;
  }

  // One entry by the exact parser.
  bool entry(Bytes body) {
    Cursor cursor(body, kEntryDepth);
    if (!read_entry(cursor, entry_)) return malformed(cursor);
    const int64_t n = names_.find_anywhere(entry_.name);
    const int32_t f = n < 0 ? -1 : names_.slots[static_cast<size_t>(n)].field;
    return f < 0 || put_feature(static_cast<size_t>(f), entry_.value);
  }

  bool put_feature(size_t f, const Pieces& pieces) {
    if (seen_[f] == row_) unsee(f);
    const FieldSpec& spec = fields_[f];
    Cursor failed({});
    if (!read_feature(pieces, feature_, failed)) return malformed(failed, f);
    if (feature_.kind == Kind::none) return spec.required ? misfit(f, missing(f)) : mark(f, State::no_kind);
    if (feature_.kind != spec.kind) return misfit(f, wrong_kind(f));

    Column& column = columns_[f];
    const size_t found = values(spec, feature_, column);
    if (spec.count >= 0 && found != static_cast<size_t>(spec.count)) {
      rollback(f);
      if (found != 0 || spec.required) return misfit(f, wrong_count(f, found));
      return mark(f, State::empty);
    }
    if (found == 0 && spec.count != 0) return mark(f, State::empty);
    if (spec.count >= 0 && spec.kind == Kind::int64s)
      std::copy_n(column.ints.data(), found, column.fixed_ints + row_ * found);
    if (spec.count >= 0 && spec.kind == Kind::floats)
      std::copy_n(column.floats.data(), found, column.fixed_floats + row_ * found);
    if (spec.count >= 0 && spec.kind != Kind::bytes) rollback(f);
    end_values(spec, column);
    see(f);
    return true;
  }

  // Appends all values of a feature that read_feature has checked, and says how many they are.
  static size_t values(const FieldSpec& spec, const Feature& feature, Column& column) {
    size_t found = 0;
    for (const Bytes list : feature.lists) {
      Cursor cursor(list);
      if (spec.kind == Kind::bytes) {
        read_bytes(cursor, [&](Bytes value) {
          column.bytes.append(value.data(), value.size());
          column.byte_offsets.push(static_cast<int64_t>(column.bytes.size()));
          ++found;
        });
      } else if (spec.kind == Kind::floats) {
        const size_t before = column.floats.size();
        read_floats(cursor, column.floats);
        found += column.floats.size() - before;
      } else {
        const size_t before = column.ints.size();
        read_int64s(cursor, column.ints);
        found += column.ints.size() - before;
      }
    }
    return found;
  }

  static int64_t value_count(const FieldSpec& spec, const Column& column) {
    if (spec.kind == Kind::bytes) return static_cast<int64_t>(column.byte_offsets.size()) - 1;
    return static_cast<int64_t>(spec.kind == Kind::floats ? column.floats.size() : column.ints.size());
  }

  static void end_values(const FieldSpec& spec, Column& column) {
    if (spec.count < 0) column.value_offsets.push(value_count(spec, column));
  }

  // The entries of one FeatureLists message.
  bool feature_lists(Bytes message) {
    Cursor cursor(message, kMapDepth);
    while (!cursor.done()) {
      uint32_t field;
      WireType type;
      Bytes body;
      bool ok = cursor.tag(field, type);
      if (ok && field == 1 && type == WireType::bytes) {
        ok = cursor.bytes(body);
        if (ok && !list_entry(body)) return false;
      } else if (ok) {
        ok = cursor.skip(field, type);
      }
      if (!ok) return malformed(cursor);
    }
    return true;
  }

  bool list_entry(Bytes body) {
    Cursor cursor(body, kEntryDepth);
    if (!read_entry(cursor, entry_)) return malformed(cursor);
    const auto found = lists_.find(as_text(entry_.name));
    if (found == lists_.end()) return true;
    const size_t f = found->second;
    if (seen_[f] == row_) unsee(f);
    int64_t steps = 0;
    bool fits = true;
    for (const Bytes piece : entry_.value) {
      Cursor list(piece, kFeatureDepth);
      while (!list.done()) {
        uint32_t field;
        WireType type;
        Bytes step;
        bool ok = list.tag(field, type);
        if (ok && field == 1 && type == WireType::bytes) {
          ok = list.bytes(step);
          if (ok && !put_step(f, step, fits)) return false;
          ++steps;
        } else if (ok) {
          ok = list.skip(field, type);
        }
        if (!ok) return malformed(list, f);
      }
    }
    if (!fits) {
      rollback(f);
      return true;
    }
    columns_[f].step_offsets.push(columns_[f].step_offsets.back() + steps);
    if (steps == 0) set_state(f, State::empty);
    see(f);
    return true;
  }

  // `fits` turns false at the first step that is not what the field wants. Later ones are checked all the
  // same.
  bool put_step(size_t f, Bytes step, bool& fits) {
    const FieldSpec& spec = fields_[f];
    Cursor failed({});
    step_.assign(1, step);
    if (!read_feature(step_, feature_, failed, kStepDepth)) return malformed(failed, f);
    if (!fits) return true;
    if (feature_.kind != spec.kind && !(feature_.kind == Kind::none && spec.count < 0)) {
      fits = false;
      return misfit(f, wrong_kind(f));
    }
    const size_t found = values(spec, feature_, columns_[f]);
    if (spec.count >= 0 && found != static_cast<size_t>(spec.count)) {
      fits = false;
      return misfit(f, wrong_count(f, found));
    }
    end_values(spec, columns_[f]);
    return true;
  }

  void see(size_t f) {
    seen_[f] = row_;
    ++fields_seen_;
  }

  // An earlier value of this record is replaced by a later one: the last entry of a name counts.
  void unsee(size_t f) {
    seen_[f] = SIZE_MAX;
    --fields_seen_;
    if (!columns_[f].states.empty()) columns_[f].states[row_] = State::present;
    rollback(f);
  }

  // Takes out what this row, or a part of it, has appended to the column.
  void rollback(size_t f) {
    const FieldSpec& spec = fields_[f];
    Column& column = columns_[f];
    size_t rows = row_;  // or steps
    if (spec.steps) {
      column.step_offsets.set_size(row_ + 1);
      rows = static_cast<size_t>(column.step_offsets.back());
    }
    size_t count = rows * static_cast<size_t>(std::max<int64_t>(spec.count, 0));
    if (spec.count < 0) {
      column.value_offsets.set_size(rows + 1);
      count = static_cast<size_t>(column.value_offsets.back());
    }
    if (spec.kind == Kind::bytes) {
      column.byte_offsets.set_size(count + 1);
      column.bytes.set_size(static_cast<size_t>(column.byte_offsets.back()));
      return;
    }
    // Fixed numbers of a record stand in the caller's memory; here they are only gathered.
    if (spec.count >= 0 && !spec.steps) count = 0;
    (spec.kind == Kind::floats ? column.floats.set_size(count) : column.ints.set_size(count));
  }

  void set_state(size_t f, State state) {
    if (columns_[f].states.empty()) columns_[f].states.assign(rows_, State::present);
    columns_[f].states[row_] = state;
  }

  // No value in this record: zeros where the count is fixed, none elsewhere.
  bool mark(size_t f, State state) {
    const FieldSpec& spec = fields_[f];
    Column& column = columns_[f];
    set_state(f, state);
    if (spec.steps) {
      column.step_offsets.push(column.step_offsets.back());
    } else if (spec.count < 0) {
      column.value_offsets.push(column.value_offsets.back());
    } else {
      const size_t count = static_cast<size_t>(spec.count);
      if (spec.kind == Kind::int64s) std::fill_n(column.fixed_ints + row_ * count, count, 0);
      if (spec.kind == Kind::floats) std::fill_n(column.fixed_floats + row_ * count, count, 0.0f);
      for (size_t i = 0; i < count && spec.kind == Kind::bytes; ++i)
        column.byte_offsets.push(static_cast<int64_t>(column.bytes.size()));
    }
    see(f);
    return true;
  }

  // Every field that no entry has filled.
  bool missing_fields() {
    for (size_t f = 0; f < fields_.size(); ++f) {
      if (seen_[f] == row_) continue;
      if (const auto found = misfits_.find(f); found != misfits_.end()) {
        fault = found->second;
        return false;
      }
      if (fields_[f].required) {
        fault = missing(f);
        return false;
      }
      mark(f, State::missing);
    }
    return true;
  }

  // An entry that is well formed and not what the field wants: a fault unless a later entry takes its place.
  bool misfit(size_t f, const DecodeFault& why) {
    misfits_[f] = why;
    return true;
  }

  DecodeFault missing(size_t f) const {
    return {.what = DecodeFault::What::missing, .field = static_cast<int64_t>(f)};
  }
  DecodeFault wrong_kind(size_t f) const {
    return {
        .what = DecodeFault::What::wrong_kind, .field = static_cast<int64_t>(f), .found_kind = feature_.kind};
  }
  DecodeFault wrong_count(size_t f, size_t found) const {
    return {.what = DecodeFault::What::wrong_count,
            .field = static_cast<int64_t>(f),
            .found_count = static_cast<int64_t>(found)};
  }

  bool malformed(const uint8_t* at, WireFault wire, int64_t f = -1) {
    fault = {.what = DecodeFault::What::malformed,
             .wire = wire,
             .byte = static_cast<uint64_t>(at - payload_),
             .field = f};
    return false;
  }
  bool malformed(const Cursor& cursor, int64_t f = -1) { return malformed(cursor.at, cursor.fault, f); }
  bool malformed(const Cursor& cursor, size_t f) { return malformed(cursor, static_cast<int64_t>(f)); }

  const std::vector<FieldSpec>& fields_;
  Names& names_;
  std::vector<Column>& columns_;
  const uint8_t* readable_end_;
  size_t rows_;
  std::unordered_map<std::string_view, size_t> lists_;
  std::vector<size_t> seen_;  // field -> the last row it was met in
  std::unordered_map<size_t, DecodeFault> misfits_;
  size_t row_ = 0;
  size_t fields_seen_ = 0;
  const uint8_t* payload_ = nullptr;
  // Kept for their memory.
  Entry entry_;
  Feature feature_;
  Pieces step_;
};

Decoder::Decoder(std::vector<FieldSpec> fields, bool sequence)
    : fields_(std::move(fields)), sequence_(sequence) {}

Decoder::~Decoder() = default;

DecodeFault Decoder::decode(const Chunk& chunk, size_t start, size_t stop,
                            std::vector<Column>& columns) const {
  std::unique_ptr<Names> names;
  {
    std::lock_guard lock(mutex_);
    if (!learned_.empty()) {
      names = std::move(learned_.back());
      learned_.pop_back();
    }
  }
  if (!names) names = std::make_unique<Names>(fields_);

  Run run(fields_, *names, chunk, columns, stop - start);
  for (size_t i = start; i < stop; ++i) {
    if (run.record(i - start, chunk.payload(i), sequence_)) continue;
    run.fault.record = i;
    break;
  }
  std::lock_guard lock(mutex_);
  learned_.push_back(std::move(names));
  return run.fault;
}

}  // namespace recordkit
