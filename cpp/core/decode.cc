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

// How a field takes a value that stands in canonical form.
enum class Take : uint8_t { nothing, one_int, one_float, floats, one_bytes, any_ints, any_floats, any_bytes };

static Take take_of(const FieldSpec& spec) {
  switch (spec.kind) {
    case Kind::int64s:
      return spec.count < 0 ? Take::any_ints : spec.count == 1 ? Take::one_int : Take::nothing;
    case Kind::floats:
      return spec.count < 0 ? Take::any_floats : spec.count == 1 ? Take::one_float : Take::floats;
    default:
      return spec.count < 0 ? Take::any_bytes : spec.count == 1 ? Take::one_bytes : Take::nothing;
  }
}

// The names met so far, and the order they came in.
struct Decoder::Names {
  struct Name {
    uint64_t first = 0;  // the first eight bytes, as far as the name goes
    uint64_t mask = 0;
    uint64_t last = 0;   // the last eight, of names longer than that
    uint64_t head = 0;   // canonical_head of the field's kind
    uint32_t size = 0;
    int32_t field = -1;  // of the specs; -1: not asked for
    Take take = Take::nothing;
    std::string text;

    // Eight bytes from `found` on may be loaded whatever its size.
    bool is(const uint8_t* found, size_t found_size) const {
      if (size != found_size || ((load<uint64_t>(found) ^ first) & mask) != 0) return false;
      if (size <= 8) return true;
      if (load<uint64_t>(found + size - 8) != last) return false;
      return size <= 16 || std::memcmp(text.data() + 8, found + 8, size - 16) == 0;
    }
  };

  std::vector<Name> names;
  std::vector<uint32_t> buckets;  // open addressing; name + 1, 0 is free
  std::vector<uint32_t> order;    // entry -> name, as in the record before
  size_t others = 0;

  explicit Names(const std::vector<FieldSpec>& fields) : buckets(64) {
    // So that every guess is a name there is; no feature of a real file has it.
    add("", -1);
    for (size_t f = 0; f < fields.size(); ++f) {
      if (fields[f].steps) continue;
      const uint32_t n = fields[f].name.empty() ? 0 : add(fields[f].name, 0);
      names[n].field = static_cast<int32_t>(f);
      names[n].head = canonical_head(fields[f].kind);
      names[n].take = take_of(fields[f]);
    }
  }

  static uint64_t hash(uint64_t first, uint64_t last, size_t size) {
    // Names often differ only near their end ("image/width", "image/height"), so both ends are mixed in.
    const uint64_t mixed = (first ^ std::rotl(last, 23) ^ size) * 0x9e3779b97f4a7c15;
    return mixed ^ (mixed >> 29);
  }

  // The name's number, or -1. Eight bytes from `text` on may be loaded whatever its size.
  int64_t find(const uint8_t* text, size_t size) const {
    const uint64_t first = load<uint64_t>(text) & word_mask(size);
    const uint64_t last = size > 8 ? load<uint64_t>(text + size - 8) : 0;
    for (size_t b = hash(first, last, size);; ++b) {
      const uint32_t n = buckets[b & (buckets.size() - 1)];
      if (n == 0) return -1;
      if (names[n - 1].is(text, size)) return n - 1;
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
    Name name;
    name.size = static_cast<uint32_t>(text.size());
    name.mask = word_mask(text.size());
    std::memcpy(&name.first, text.data(), std::min<size_t>(8, text.size()));
    if (text.size() > 8) std::memcpy(&name.last, text.data() + text.size() - 8, 8);
    name.field = field;
    name.text = std::move(text);
    names.push_back(std::move(name));
    if (names.size() * 2 > buckets.size()) {
      buckets.assign(buckets.size() * 2, 0);
      for (uint32_t n = 0; n < names.size(); ++n) place(n);
    } else {
      place(static_cast<uint32_t>(names.size() - 1));
    }
    return static_cast<uint32_t>(names.size() - 1);
  }

 private:
  void place(uint32_t n) {
    size_t b = hash(names[n].first, names[n].last, names[n].size);
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
  }

  bool record(size_t row, Bytes payload, bool sequence) {
    row_ = row;
    payload_ = payload.data();
    fields_seen_ = 0;
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
      column.byte_offsets.reserve((fixed && !spec.steps ? rows_ * static_cast<size_t>(spec.count) : rows_) + 1);
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
    for (size_t j = 0; p != end; ++j) {
      // 0a L 0a k with L and k below 128, the name inside the entry, and room to load words past its end.
      if (end - p < 4 || (load<uint32_t>(p) & 0x80ff80ff) != 0x000a000a || end - p < 2 + p[1] ||
          p[1] < 4 + p[3] || readable_end_ - p < 2 + p[1] + 16) {
        if (!any_entry(p, end)) return false;
        continue;
      }
      const uint32_t length = p[1], size = p[3];
      const uint8_t* const text = p + 4;
      const uint64_t value_size = length - size - 4;
      const uint64_t head = load<uint64_t>(text + size) & kHeadMask;

      if (j >= names_.order.size()) names_.order.push_back(0);
      const Names::Name* name = &names_.names[names_.order[j]];
      if (!name->is(text, size)) {
        const int64_t n = look_up(text, size);
        if (n < 0) return malformed(p + 4, WireFault::bad_name);
        names_.order[j] = static_cast<uint32_t>(n);
        name = &names_.names[static_cast<size_t>(n)];
      }
      // Either way what follows the name must be the value and nothing else: an entry may name itself twice.
      const bool taken = name->field < 0 ? (head & 0xffff) == (0x12 | value_size << 8)
                                         : head == name->head + value_size * kHeadSteps &&
                                               take(*name, text + size + kHeadSize, value_size - 4);
      if (!taken && !entry({p + 2, length})) return false;
      p += 2 + length;
    }
    return true;
  }

  // The number of the name, learned if it is new. -1 if it is not UTF-8.
  int64_t look_up(const uint8_t* text, size_t size) {
    const int64_t n = names_.find(text, size);
    if (n >= 0) return n;
    if (!is_utf8({text, size})) return -1;
    // Past the limit the last one learned stands in: not asked for either, and never guessed right.
    if (names_.others == kMaxOthers) return static_cast<int64_t>(names_.names.size()) - 1;
    ++names_.others;
    return names_.add({reinterpret_cast<const char*>(text), size}, -1);
  }

  // Whatever stands next in a Features message, with lengths of any size.
  bool any_entry(const uint8_t*& p, const uint8_t* end) {
    Cursor cursor({p, static_cast<size_t>(end - p)});
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
    if (n < 0 || names_.names[static_cast<size_t>(n)].field < 0) return false;
    const Names::Name& name = names_.names[static_cast<size_t>(n)];
    const Kind kind = fields_[static_cast<size_t>(name.field)].kind;
    Cursor of_feature(feature);
    if (!only(of_feature, static_cast<uint8_t>(static_cast<int>(kind) << 3 | 2), list) || !of_feature.done())
      return false;
    Cursor of_list(list);
    if (!only(of_list, 0x0a, value) || !of_list.done()) return false;
    if (readable_end_ - value.data() < static_cast<ptrdiff_t>(value.size() + 8)) return false;
    return take(name, value.data(), value.size());
  }

  // Takes the bytes of a canonical value. False, with nothing changed, if they are not what the field wants.
  bool take(const Names::Name& name, const uint8_t* value, size_t size) {
    const size_t f = static_cast<size_t>(name.field);
    if (seen_[f] == row_) unsee(f);
    Column& column = columns_[f];
    switch (name.take) {
      case Take::one_int:
        if (!one_int(value, size, column.fixed_ints[row_])) return false;
        break;
      case Take::one_float:
        if (size != 4) return false;
        column.fixed_floats[row_] = load<float>(value);
        break;
      case Take::floats: {
        const size_t want = static_cast<size_t>(fields_[f].count) * 4;
        if (size != want || want == 0) return false;
        std::memcpy(column.fixed_floats + row_ * (want / 4), value, want);
        break;
      }
      case Take::any_ints: {
        const uint8_t* at;
        const size_t before = column.ints.size();
        if (size == 0) return false;
        if (!read_packed_int64s({value, size}, value + size + 8, column.ints, at)) {
          column.ints.set_size(before);
          return false;
        }
        column.value_offsets.push(static_cast<int64_t>(column.ints.size()));
        break;
      }
      case Take::any_floats:
        if (size == 0 || size % 4 != 0) return false;
        std::memcpy(column.floats.grow(size / 4), value, size);
        column.floats.set_size(column.floats.size() + size / 4);
        column.value_offsets.push(static_cast<int64_t>(column.floats.size()));
        break;
      case Take::one_bytes:
      case Take::any_bytes:
        column.bytes.append(value, size);
        column.byte_offsets.push(static_cast<int64_t>(column.bytes.size()));
        if (name.take == Take::any_bytes)
          column.value_offsets.push(static_cast<int64_t>(column.byte_offsets.size() - 1));
        break;
      case Take::nothing:
        return false;
    }
    see(f);
    return true;
  }

  static bool one_int(const uint8_t* value, size_t size, int64_t& to) {
    if (size - 1 < 8) {
      const uint64_t mask = ~uint64_t{0} >> (64 - 8 * size);
      const uint64_t word = load<uint64_t>(value) & mask;
      // All bytes but the last go on; otherwise these are several values.
      if ((word & kContinuation) != (kContinuation & (mask >> 8))) return false;
      to = static_cast<int64_t>(join_sevens(word));
      return true;
    }
    Cursor cursor({value, size});
    uint64_t number;
    if (!cursor.varint(number) || !cursor.done()) return false;
    to = static_cast<int64_t>(number);
    return true;
  }

  // One entry by the exact parser.
  bool entry(Bytes body) {
    Cursor cursor(body);
    if (!read_entry(cursor, entry_)) return malformed(cursor);
    const int64_t n = names_.find_anywhere(entry_.name);
    const int32_t f = n < 0 ? -1 : names_.names[static_cast<size_t>(n)].field;
    return f < 0 || put_feature(static_cast<size_t>(f), entry_.value);
  }

  bool put_feature(size_t f, const Pieces& pieces) {
    if (seen_[f] == row_) unsee(f);
    const FieldSpec& spec = fields_[f];
    Cursor failed({});
    if (!read_feature(pieces, feature_, failed)) return malformed(failed, f);
    if (feature_.kind == Kind::none) return spec.required ? missing(f) : mark(f, State::no_kind);
    if (feature_.kind != spec.kind) return wrong_kind(f);

    Column& column = columns_[f];
    const size_t found = values(spec, feature_, column);
    if (spec.count >= 0 && found != static_cast<size_t>(spec.count)) {
      if (found != 0 || spec.required) return wrong_count(f, found);
      return mark(f, State::empty);
    }
    if (found == 0 && spec.count != 0) return mark(f, State::empty);
    if (spec.count >= 0 && spec.kind == Kind::int64s)
      std::copy_n(column.ints.data(), found, column.fixed_ints + row_ * found);
    if (spec.count >= 0 && spec.kind == Kind::floats)
      std::copy_n(column.floats.data(), found, column.fixed_floats + row_ * found);
    if (spec.count >= 0 && spec.kind != Kind::bytes) column.ints.set_size(0), column.floats.set_size(0);
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
    Cursor cursor(message);
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
    Cursor cursor(body);
    if (!read_entry(cursor, entry_)) return malformed(cursor);
    const auto found = lists_.find(as_text(entry_.name));
    if (found == lists_.end()) return true;
    const size_t f = found->second;
    if (seen_[f] == row_) unsee(f);
    int64_t steps = 0;
    for (const Bytes piece : entry_.value) {
      Cursor list(piece);
      while (!list.done()) {
        uint32_t field;
        WireType type;
        Bytes step;
        bool ok = list.tag(field, type);
        if (ok && field == 1 && type == WireType::bytes) {
          ok = list.bytes(step);
          if (ok && !put_step(f, step)) return false;
          ++steps;
        } else if (ok) {
          ok = list.skip(field, type);
        }
        if (!ok) return malformed(list, f);
      }
    }
    columns_[f].step_offsets.push(columns_[f].step_offsets.back() + steps);
    if (steps == 0) set_state(f, State::empty);
    see(f);
    return true;
  }

  bool put_step(size_t f, Bytes step) {
    const FieldSpec& spec = fields_[f];
    Cursor failed({});
    step_.assign(1, step);
    if (!read_feature(step_, feature_, failed)) return malformed(failed, f);
    if (feature_.kind != spec.kind && !(feature_.kind == Kind::none && spec.count < 0)) return wrong_kind(f);
    const size_t found = values(spec, feature_, columns_[f]);
    if (spec.count >= 0 && found != static_cast<size_t>(spec.count)) return wrong_count(f, found);
    end_values(spec, columns_[f]);
    return true;
  }

  void see(size_t f) {
    seen_[f] = row_;
    ++fields_seen_;
  }

  // An earlier value of this record is replaced by a later one: the last entry of a name counts.
  void unsee(size_t f) {
    const FieldSpec& spec = fields_[f];
    Column& column = columns_[f];
    seen_[f] = SIZE_MAX;
    --fields_seen_;
    if (!column.states.empty()) column.states[row_] = State::present;
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
    } else if (spec.count < 0 || spec.steps) {
      if (spec.kind == Kind::floats) column.floats.set_size(count);
      if (spec.kind == Kind::int64s) column.ints.set_size(count);
    }
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

  bool missing_fields() {
    for (size_t f = 0; f < fields_.size(); ++f) {
      if (seen_[f] == row_) continue;
      if (fields_[f].required) return missing(f);
      mark(f, State::missing);
    }
    return true;
  }

  bool malformed(const uint8_t* at, WireFault wire, int64_t f = -1) {
    fault = {.what = DecodeFault::What::malformed, .wire = wire, .byte = static_cast<uint64_t>(at - payload_), .field = f};
    return false;
  }
  bool malformed(const Cursor& cursor, int64_t f = -1) { return malformed(cursor.at, cursor.fault, f); }
  bool malformed(const Cursor& cursor, size_t f) { return malformed(cursor, static_cast<int64_t>(f)); }
  bool missing(size_t f) {
    fault = {.what = DecodeFault::What::missing, .field = static_cast<int64_t>(f)};
    return false;
  }
  bool wrong_kind(size_t f) {
    fault = {.what = DecodeFault::What::wrong_kind, .field = static_cast<int64_t>(f), .found_kind = feature_.kind};
    return false;
  }
  bool wrong_count(size_t f, size_t found) {
    fault = {.what = DecodeFault::What::wrong_count,
             .field = static_cast<int64_t>(f),
             .found_count = static_cast<int64_t>(found)};
    return false;
  }

  const std::vector<FieldSpec>& fields_;
  Names& names_;
  std::vector<Column>& columns_;
  const uint8_t* readable_end_;
  size_t rows_;
  std::unordered_map<std::string_view, size_t> lists_;
  std::vector<size_t> seen_;  // field -> the last row it was met in
  size_t row_ = 0;
  size_t fields_seen_ = 0;
  const uint8_t* payload_ = nullptr;
  // Kept for their memory.
  Entry entry_;
  Feature feature_;
  Pieces step_;
};

Decoder::Decoder(std::vector<FieldSpec> fields, bool sequence) : fields_(std::move(fields)), sequence_(sequence) {}

Decoder::~Decoder() = default;

DecodeFault Decoder::decode(const Chunk& chunk, size_t start, size_t stop, std::vector<Column>& columns) const {
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
