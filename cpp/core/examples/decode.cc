#include "core/examples/decode.h"

#include <algorithm>
#include <thread>
#include <unordered_map>

#include "core/examples/decode_lanes.h"
#include "core/examples/field_names.h"
#include "core/examples/varints.h"
#include "core/memory/nontemporal_copy.h"

namespace recordkit {
namespace {

// How many bytes past the end of a message the fast loops may load.
constexpr ptrdiff_t kRoom = 32;

static_assert(HotCopy::kMost == LaneDecoder::kLanes);

}  // namespace

// What one run passes on to the next.
struct Learned {
  explicit Learned(const std::vector<FieldSpec>& fields)
      : names(fields), lanes(names), a_record(fields.size()) {}

  FieldNames names;
  LaneDecoder lanes;
  bool mixed = false;
  std::thread::id user;          // the last one
  std::vector<double> a_record;  // of each field, values or bytes per record
};

// The state of one call of decode.
class Decoder::Run {
 public:
  // `follow`: the records are contiguous
  Run(const std::vector<FieldSpec>& fields, Learned& learned, std::vector<Column>& columns, size_t rows,
      size_t bytes, bool follow)
      : fields_(fields),
        names_(learned.names),
        lanes_(learned.lanes),
        mixed_(learned.mixed),
        columns_(columns),
        rows_(rows),
        seen_(fields.size(), SIZE_MAX) {
    lanes_.begin(follow);
    for (size_t f = 0; f < fields.size(); ++f) {
      if (fields[f].steps) lists_.emplace(fields[f].name, f);
      prepare(fields[f], columns[f]);
      reserve(fields[f], columns[f], learned.a_record[f], bytes);
    }
    for (FieldNames::Slot& slot : names_.slots) {
      if (!slot.one_number) continue;
      Column& column = columns[static_cast<size_t>(slot.field)];
      slot.to = slot.is_int ? reinterpret_cast<uint8_t*>(column.fixed_ints)
                            : reinterpret_cast<uint8_t*>(column.fixed_floats);
    }
  }

  // Ends the run, and notes for the next one how much each field took.
  void end(std::vector<double>& a_record) const {
    end_past_caches();
    for (size_t f = 0; f < fields_.size() && rows_ != 0; ++f)
      a_record[f] = static_cast<double>(gathered(fields_[f], columns_[f])) / static_cast<double>(rows_);
  }

  // Decodes records [start, stop) of a chunk to the rows from `row` on. Returns how many were sound.
  size_t chunk(size_t row, const Chunk& chunk, size_t start, size_t stop, bool sequence) {
    readable_end_ = chunk.data + chunk.readable;
    size_t i = start;
    while (i < stop && fault.what == DecodeFault::What::none)
      i += records(row + i - start, chunk, i, stop, sequence);
    return i - start;
  }

  // Whether records are still decoded in lanes.
  bool uses_lanes() const { return surprises_ < kMostSurprises; }

  DecodeFault fault;

 private:
  // Decodes the next records and returns how many: one, or a group in lanes. On a fault, the number of
  // records before it.
  size_t records(size_t row, const Chunk& chunk, size_t start, size_t stop, bool sequence) {
    if (stop - start >= LaneDecoder::kLanes && uses_lanes() && take_lanes(row, chunk, start)) {
      size_t done = 0;
      while (done < LaneDecoder::kLanes && finish(row + done, chunk.payload(start + done), done)) ++done;
      return done;
    }
    return record(row, chunk.payload(start), sequence) ? 1 : 0;
  }

  bool record(size_t row, Bytes payload, bool sequence) {
    begin(row, payload);
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
    return end();
  }

  void begin(size_t row, Bytes payload) {
    row_ = row;
    payload_ = payload.data();
    fields_seen_ = 0;
    if (!misfits_.empty()) misfits_.clear();
  }

  bool end() { return fields_seen_ == fields_.size() || missing_fields(); }

  // Takes the numbers of the next records in lanes, if they are similar to those before.
  bool take_lanes(size_t row, const Chunk& chunk, size_t start) {
    LaneDecoder::Messages messages;
    for (size_t m = 0; m < LaneDecoder::kLanes; ++m) {
      Bytes& message = messages[m];
      if (!only_features(chunk.payload(start + m), message)) return surprised();
      if (readable_end_ - (message.data() + message.size()) < kRoom) return false;
    }
    const Bytes last = messages.back();
    if (mixed_ && surprises_ > 0) return lanes_.take_named(messages, names_, row) || surprised();
    if (!lanes_.knows() && !lanes_.learn(last, names_)) return surprised();
    for (const Bytes message : messages) {
      if (readable_end_ - message.data() < lanes_.reach()) return false;
    }
    if (lanes_.take_alike(messages, names_, row)) return true;
    lanes_.learn(last, names_);
    return surprised();
  }

  // Gives up soon if records differ.
  bool surprised() {
    ++surprises_;
    return false;
  }

  static bool only_features(Bytes payload, Bytes& message) {
    Cursor cursor(payload);
    return !payload.empty() && *cursor.at++ == 0x0a && cursor.bytes(message) && cursor.done();
  }

  // Takes what is not a number of a record that was decoded in lanes.
  bool finish(size_t row, Bytes payload, size_t number) {
    const std::vector<size_t>& numbers = lanes_.fields();
    if (numbers.size() == fields_.size()) return true;
    begin(row, payload);
    fields_seen_ = numbers.size();
    for (size_t n = 0; n < lanes_.others(); ++n) {
      if (!features(lanes_.other(n, number))) return false;
    }
    if (fields_seen_ == fields_.size()) return true;
    for (const size_t f : numbers) seen_[f] = row;
    return missing_fields();
  }

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
    const bool roomy = readable_end_ - end >= kRoom;
    while (p != end) {
      if (roomy) {
        if (names_.few_asked) p = skip_others(p, end, names_.asked);
        const uint8_t* const before = p;
        const size_t most = names_.few_asked ? 1 : SIZE_MAX;
        p = numbers(p, end, most);
        if (p == end || (names_.few_asked && p != before)) continue;
      }
      if (!(roomy && is_short_entry(p, end) ? short_entry(p) : any_entry(p, end))) return false;
    }
    return true;
  }

  // 0a L 0a k with L and k below 128, the entry inside the message and the name inside the entry.
  //
  // REQUIRES: four bytes from `p` on may be loaded
  static bool is_short_entry(const uint8_t* p, const uint8_t* end) {
    return (load<uint32_t>(p) & 0x80ff80ff) == 0x000a000a && end - p >= 2 + p[1] && p[1] >= 4 + p[3];
  }

  // REQUIRES: is_short_entry(p)
  bool short_entry(const uint8_t*& p) {
    const uint64_t length = p[1], size = p[3];
    const uint8_t* const text = p + 4;
    const uint64_t value_size = length - size - 4;
    p += 2 + length;
    const int64_t n = names_.look_up(text, size);
    if (n < 0) return malformed(text, WireFault::bad_name);
    const FieldNames::Slot& slot = names_.slots[static_cast<size_t>(n)];
    const uint64_t head = load<uint64_t>(text + size);
    // Only the value may follow the name: an entry may have two names.
    if (slot.field < 0) return (head & 0xffff) == (0x12 | value_size << 8) || entry({text - 2, length});
    const bool canonical = value_size >= 4 && (head ^ (slot.head + length * kHeadSteps)) << 16 == 0;
    return (canonical && take(slot, text + size + kHeadSize, value_size - 4)) || entry({text - 2, length});
  }

  // Takes up to `most` short entries that hold a single number or were not requested. Separate from the loop
  // in `features`, so that its variables stay in registers.
  //
  // REQUIRES: kRoom bytes past `end` may be loaded
  const uint8_t* numbers(const uint8_t* p, const uint8_t* end, size_t most) {
    return quick_pext_ ? numbers<true>(p, end, most) : numbers<false>(p, end, most);
  }

  template <bool quick_pext>
  [[gnu::noinline]] const uint8_t* numbers(const uint8_t* p, const uint8_t* end, size_t most) {
    FieldNames::Slot* const slots = names_.slots.data();
    FieldNames::Slot* slot = slots;
    const size_t row = row_;
    size_t* const seen = seen_.data();
    size_t taken = 0, others = 0, unexpected = 0;
    for (; taken < most; ++taken) {
      // An entry is longer than its first byte says, so that at the end of the message `next` is past it too.
      const uint64_t length = p[1];
      const uint8_t* const next = p + 2 + length;
      const uint32_t start = load<uint32_t>(p), text_size = start >> 24;
      if (next > end || text_size > 16) break;
      const uint64_t text = load<uint64_t>(p + 4);
      const uint8_t* const head = p + 4 + text_size;
      // Usually the name is the one that followed the previous name last time.
      FieldNames::Slot* const before = slot;
      slot = slots + slot->next;
      if (((start ^ slot->start) & 0xffff80ff) | ((text ^ slot->first) & slot->mask)) {
        const uint64_t first = text & word_mask(text_size);
        const uint32_t n = names_.buckets[names_.bucket(first, load<uint16_t>(head - 2))];
        before->next = n;
        ++unexpected;
        slot = slots + n;
        if (((start ^ slot->start) & 0xffff80ff) | (first ^ slot->first)) break;
      }
      if (text_size > 8 && load<uint64_t>(head - 8) != slot->last) break;
      const uint8_t* const value = head + kHeadSize;
      const uint64_t size = static_cast<uint64_t>(next - value);
      if (slot->field < 0) {
        if (size + 4 > 127 || load<uint16_t>(head) != (0x12 | (size + 4) << 8)) break;
        ++others;
        p = next;
        continue;
      }
      if (!slot->one_number || size - 1 > 7) break;
      const uint64_t head_differs = (load<uint64_t>(head) ^ (slot->head + length * kHeadSteps)) << 16;
      size_t& seen_in = seen[static_cast<size_t>(slot->field)];
      if (head_differs != 0 || seen_in == row) break;
      if (slot->is_int) {
        const uint64_t mask = ~uint64_t{0} >> (64 - 8 * size);
        const uint64_t word = load<uint64_t>(value) & mask;
        // All bytes of a varint but the last have the continuation bit; otherwise these are several values.
        if ((word & kContinuation) != (kContinuation & mask >> 8)) break;
        store(slot->to + 8 * row, join_varint<quick_pext>(word));
      } else {
        if (size != 4) break;
        store(slot->to + 4 * row, load<uint32_t>(value));
      }
      seen_in = row;
      p = next;
    }
    fields_seen_ += taken - others;
    if (!names_.few_asked && taken > 1) mixed_ = unexpected > taken / 2;
    return p;
  }

  // Skips short entries that were certainly not requested.
  //
  // REQUIRES: kRoom bytes past `end` may be loaded
  [[gnu::noinline]] static const uint8_t* skip_others(const uint8_t* p, const uint8_t* end, uint64_t asked) {
    for (;;) {
      const uint8_t* const next = p + 2 + p[1];
      if (next > end) break;
      __builtin_prefetch(p + 768);
      const uint32_t word = load<uint32_t>(p), size = word >> 24;
      const uint8_t* const text_end = p + 4 + size;
      const int64_t value_size = next - text_end - 2;
      if ((word & 0x80ff80ff) != 0x000a000a || value_size < 0) break;
      // Only the value follows the name, and the name was not requested.
      if (load<uint16_t>(text_end) != (0x12 | value_size << 8)) break;
      if (asked >> FieldNames::trait(load<uint16_t>(text_end - 2)) & 1) break;
      // Names that may not be UTF-8 need a closer look. The eight bytes up to the last letter are the name,
      // preceded by the header if it is shorter; header bytes are below 128.
      uint64_t letters;
      if (size - 4 <= 4) [[likely]] {
        letters = load<uint64_t>(text_end - 8);
      } else {
        letters = load<uint64_t>(p + 4) & word_mask(size);
        if (size > 8) letters |= load<uint64_t>(text_end - 8);
        if (size > 16) break;
      }
      if (letters & kContinuation) break;
      p = next;
    }
    return p;
  }

  // Takes any next element of a Features message, with lengths of any size.
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

  // True if this was a canonical entry of a requested field, and its value has been taken.
  bool long_entry(Bytes body) {
    const auto only = [](Cursor& cursor, uint8_t tag, Bytes& value) {
      return cursor.left() > 0 && *cursor.at == tag && (++cursor.at, cursor.bytes(value));
    };
    Cursor entry(body);
    Bytes text, feature, list, value;
    if (!only(entry, 0x0a, text) || !only(entry, 0x12, feature) || !entry.done()) return false;
    const int64_t n = names_.find_anywhere(text);
    if (n < 0 || names_.slots[static_cast<size_t>(n)].field < 0) return false;
    const FieldNames::Slot& slot = names_.slots[static_cast<size_t>(n)];
    const Kind kind = fields_[static_cast<size_t>(slot.field)].kind;
    Cursor of_feature(feature);
    if (!only(of_feature, static_cast<uint8_t>(static_cast<int>(kind) << 3 | 2), list) || !of_feature.done())
      return false;
    Cursor of_list(list);
    if (!only(of_list, 0x0a, value) || !of_list.done()) return false;
    if (readable_end_ - value.data() < static_cast<ptrdiff_t>(value.size() + 8)) return false;
    return take(slot, value.data(), value.size());
  }

  // Takes the bytes of a canonical value. False, with nothing changed, if they do not match the field.
  bool take(const FieldNames::Slot& slot, const uint8_t* value, size_t size) {
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
        float* const to = column.fixed_floats + row_ * static_cast<size_t>(spec.count);
        if (size >= kLongValue && rows_ * size >= kPastCaches) {
          copy_past_caches(reinterpret_cast<uint8_t*>(to), value, size);
        } else {
          std::memcpy(to, value, size);
        }
      } else {
        std::memcpy(column.floats.grow(size / 4), value, size);
        column.floats.set_size(column.floats.size() + size / 4);
      }
    } else {
      // Integers with a fixed count go through here too, to be counted.
      const size_t before = column.ints.size();
      const uint8_t* at;
      const bool whole = read_packed_int64s({value, size}, readable_end_, column.ints, at);
      const size_t found = column.ints.size() - before;
      if (spec.count >= 0 || !whole) column.ints.set_size(before);
      if (!whole || (spec.count >= 0 && found != static_cast<size_t>(spec.count))) return false;
      if (spec.count >= 0) std::copy_n(column.ints.data() + before, found, column.fixed_ints + row_ * found);
    }
    end_values(spec, column);
    see(f);
    return true;
  }

  // Takes one entry with the exact parser.
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

  // Appends all values of a feature that read_feature has checked, and returns how many.
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

  static size_t gathered(const FieldSpec& spec, const Column& column) {
    if (spec.kind == Kind::bytes) return column.bytes.size();
    return spec.kind == Kind::floats ? column.floats.size() : column.ints.size();
  }

  // Reserves what the previous records suggest, plus a little, so that nothing has to grow; but no more than
  // this many bytes can hold.
  void reserve(const FieldSpec& spec, Column& column, double a_record, size_t bytes) const {
    if (a_record == 0) return;
    const double likely = 1.1 * a_record * static_cast<double>(rows_);
    const size_t room = static_cast<size_t>(std::min(likely, static_cast<double>(bytes)));
    if (spec.kind == Kind::bytes) column.bytes.reserve(room);
    if (spec.kind == Kind::floats) column.floats.reserve(room);
    if (spec.kind == Kind::int64s) column.ints.reserve(room);
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

  // Sets `fits` to false at the first step that does not match the field. Later ones are still checked.
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

  // Removes what this row, or a part of it, has appended to the column.
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
    // Numbers with a fixed count belong in the caller's memory; here they are only collected.
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

  // Fills in every field without an entry.
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

  // A well-formed entry that does not match the field: a fault, unless a later entry replaces it.
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
  FieldNames& names_;
  LaneDecoder& lanes_;
  bool& mixed_;  // whether the order of names has changed between records
  std::vector<Column>& columns_;
  const uint8_t* readable_end_ = nullptr;
  size_t rows_;
  std::unordered_map<std::string_view, size_t> lists_;
  std::vector<size_t> seen_;  // field -> the last row that had it
  static constexpr size_t kMostSurprises = 8;
  size_t surprises_ = 0;  // records that could not be decoded in lanes
  const bool quick_pext_ = has_quick_pext();
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

template <typename Use>
auto Decoder::with_learned(const Use& use) const {
  // Prefer what this thread used last: that is in the caches of its core.
  constexpr size_t kKept = 16;
  const std::thread::id own = std::this_thread::get_id();
  std::unique_ptr<Learned> learned;
  {
    std::lock_guard lock(mutex_);
    auto found =
        std::find_if(learned_.begin(), learned_.end(), [&](const auto& each) { return each->user == own; });
    if (found == learned_.end() && learned_.size() >= kKept) found = learned_.begin();
    if (found != learned_.end()) {
      learned = std::move(*found);
      learned_.erase(found);
    }
  }
  if (!learned) learned = std::make_unique<Learned>(fields_);
  learned->user = own;
  const auto result = use(*learned);
  std::lock_guard lock(mutex_);
  learned_.push_back(std::move(learned));
  return result;
}

DecodeFault Decoder::decode(const Chunk& chunk, size_t start, size_t stop,
                            std::vector<Column>& columns) const {
  return with_learned([&](Learned& learned) {
    Run run(fields_, learned, columns, stop - start, chunk.size, true);
    const size_t sound = run.chunk(0, chunk, start, stop, sequence_);
    if (run.fault.what != DecodeFault::What::none) run.fault.record = start + sound;
    run.end(learned.a_record);
    return run.fault;
  });
}

bool Decoder::decode_hot(const NextRecords& bring, size_t rows, size_t bytes,
                         std::vector<Column>& columns) const {
  return with_learned([&](Learned& learned) {
    Run run(fields_, learned, columns, rows, bytes, false);
    Chunk few;
    for (size_t row = 0; row < rows; row += few.records.size()) {
      if (!bring(few, run.uses_lanes())) return false;
      if (run.chunk(row, few, 0, few.records.size(), sequence_) < few.records.size()) return false;
    }
    run.end(learned.a_record);
    return true;
  });
}

}  // namespace recordkit
