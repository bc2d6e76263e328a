#include "core/examples/survey.h"

#include <set>
#include <string_view>

namespace recordkit {
namespace {

// Calls on_field(field, body) for each length-delimited field and skips everything else.
template <typename F>
bool each_bytes_field(Cursor& cursor, F&& on_field) {
  uint32_t field;
  WireType type;
  Bytes body;
  while (!cursor.done()) {
    if (!cursor.tag(field, type)) return false;
    if (type == WireType::bytes) {
      if (!cursor.bytes(body) || !on_field(field, body)) return false;
    } else if (!cursor.skip(field, type)) {
      return false;
    }
  }
  return true;
}

class Surveyor {
 public:
  Survey survey;

  bool record(Bytes payload) {
    features_.met.clear();
    lists_.met.clear();
    ++now_;
    Cursor cursor(payload);
    failed_ = cursor;
    const bool ok = each_bytes_field(cursor, [&](uint32_t field, Bytes body) {
      if (field == 1)
        return entries(body, features_, [&](const Pieces& value) { return feature(value, unused_); });
      if (field == 2)
        return entries(body, lists_, [&](const Pieces& value) { return steps(value, unused_); });
      return true;
    });
    if (!ok) {
      if (failed_.fault == WireFault::none) failed_ = cursor;
      return stop(payload);
    }
    // The last entry of a name counts, so facts are collected only now.
    ++survey.records;
    survey.with_lists += !lists_.met.empty();
    for (Named* each : features_.met) {
      FeatureFacts& facts = facts_of(*each, survey.features);
      ++facts.records;
      if (!feature(each->second.value, facts)) return stop(payload);
    }
    for (Named* each : lists_.met) {
      FeatureFacts& facts = facts_of(*each, survey.lists);
      ++facts.records;
      if (!steps(each->second.value, facts)) return stop(payload);
    }
    return true;
  }

 private:
  // What the current record has under a name. Kept from record to record, because most have the same names.
  struct Slot {
    Pieces value;
    uint64_t met_in = 0;
    FeatureFacts* facts = nullptr;
  };
  using Names = std::map<std::string, Slot, std::less<>>;
  using Named = Names::value_type;
  struct Entries {
    Names names;
    std::vector<Named*> met;  // names in this record
  };

  static FeatureFacts& facts_of(Named& named, std::map<std::string, FeatureFacts>& all) {
    if (named.second.facts == nullptr) named.second.facts = &all[named.first];
    return *named.second.facts;
  }

  bool stop(Bytes payload) {
    survey.malformed = true;
    survey.wire = failed_.fault;
    survey.byte = static_cast<uint64_t>(failed_.at - payload.data());
    return false;
  }

  // A value that a later one replaces is ignored, but must be well formed.
  template <typename F>
  bool entries(Bytes message, Entries& to, F&& check) {
    Cursor cursor(message, kMapDepth);
    const bool ok = each_bytes_field(cursor, [&](uint32_t field, Bytes body) {
      if (field != 1) return true;
      Cursor inner(body, kEntryDepth);
      if (!read_entry(inner, entry_)) {
        failed_ = inner;
        return false;
      }
      const std::string_view name = as_text(entry_.name);
      auto found = to.names.find(name);
      if (found == to.names.end()) found = to.names.emplace(std::string(name), Slot()).first;
      Slot& slot = found->second;
      if (slot.met_in != now_) {
        slot.met_in = now_;
        to.met.push_back(&*found);
      } else if (!slot.value.empty() && !check(slot.value)) {
        return false;
      }
      slot.value.swap(entry_.value);
      return true;
    });
    if (!ok && failed_.fault == WireFault::none) failed_ = cursor;
    return ok;
  }

  bool steps(const Pieces& pieces, FeatureFacts& facts) {
    uint64_t count = 0;
    for (const Bytes piece : pieces) {
      Cursor cursor(piece, kFeatureDepth);
      const bool ok = each_bytes_field(cursor, [&](uint32_t field, Bytes body) {
        count += field == 1;
        return field != 1 || feature({body}, facts, kStepDepth);
      });
      if (!ok) {
        if (failed_.fault == WireFault::none) failed_ = cursor;
        return false;
      }
    }
    facts.min_steps = std::min(facts.min_steps, count);
    facts.max_steps = std::max(facts.max_steps, count);
    return true;
  }

  bool feature(const Pieces& pieces, FeatureFacts& facts, int depth = kFeatureDepth) {
    if (!read_feature(pieces, feature_, failed_, depth)) return false;
    ++facts.of_kind[static_cast<size_t>(feature_.kind)];
    if (feature_.kind == Kind::none) {
      ++facts.no_kind;
      return true;
    }
    uint64_t count = 0;
    ints_.set_size(0);
    floats_.set_size(0);
    for (const Bytes list : feature_.lists) {
      Cursor cursor(list);
      if (feature_.kind == Kind::bytes) {
        read_bytes(cursor, [&](Bytes value) {
          ++count;
          bytes_value(value, facts);
        });
      } else if (feature_.kind == Kind::floats) {
        read_floats(cursor, floats_);
      } else {
        read_int64s(cursor, ints_);
      }
    }
    for (size_t i = 0; i < ints_.size(); ++i) {
      facts.min_int = std::min(facts.min_int, ints_.data()[i]);
      facts.max_int = std::max(facts.max_int, ints_.data()[i]);
    }
    count += ints_.size() + floats_.size();
    facts.empty += count == 0;
    facts.min_count = std::min(facts.min_count, count);
    facts.max_count = std::max(facts.max_count, count);
    return true;
  }

  static void bytes_value(Bytes value, FeatureFacts& facts) {
    ++facts.bytes_values;
    facts.min_bytes = std::min<uint64_t>(facts.min_bytes, value.size());
    facts.max_bytes = std::max<uint64_t>(facts.max_bytes, value.size());
    const std::string_view text = as_text(value);
    facts.jpeg = facts.jpeg && text.starts_with("\xff\xd8\xff");
    facts.png = facts.png && text.starts_with("\x89PNG\r\n\x1a\n");
    facts.utf8 = facts.utf8 && is_utf8(value);
  }

  Entries features_, lists_;
  uint64_t now_ = 0;  // number of the current record
  Entry entry_;
  FeatureFacts unused_;
  Feature feature_;
  Array<int64_t> ints_;
  Array<float> floats_;
  Cursor failed_{{}};
};

// The known fields of each message, and what TensorFlow does with others.
class Linter {
 public:
  Linter(Bytes payload, bool sequence) : payload_(payload), sequence_(sequence) {}

  std::vector<LintFinding> run() {
    Cursor cursor(payload_);
    uint32_t field;
    WireType type;
    Bytes body;
    while (!cursor.done()) {
      const uint8_t* const start = cursor.at;
      if (!tag(cursor, field, type, "")) break;
      const bool map = type == WireType::bytes && (field == 1 || (field == 2 && sequence_));
      if (map) {
        if (!cursor.bytes(body) || !entries(body, field == 2)) break;
        continue;
      }
      // TensorFlow also skips unknown top-level fields, except groups.
      if (type == WireType::group || sequence_) note(Lint::unknown_field, start, "");
      if (!cursor.skip(field, type)) break;
    }
    return std::move(findings_);
  }

 private:
  void note(Lint lint, const uint8_t* at, std::string_view name) {
    findings_.push_back({lint, static_cast<uint64_t>(at - payload_.data()), std::string(name)});
  }

  // Reads a tag, which TensorFlow requires to be encoded in as few bytes as possible.
  bool tag(Cursor& cursor, uint32_t& field, WireType& type, std::string_view name) {
    const uint8_t* const start = cursor.at;
    if (!cursor.tag(field, type)) return false;
    const uint64_t raw = uint64_t{field} << 3 | static_cast<uint64_t>(type);
    if (static_cast<size_t>(cursor.at - start) > varint_size(raw)) note(Lint::long_tag, start, name);
    return true;
  }

  bool entries(Bytes message, bool lists) {
    Cursor cursor(message);
    uint32_t field;
    WireType type;
    Bytes body;
    while (!cursor.done()) {
      const uint8_t* const start = cursor.at;
      if (!tag(cursor, field, type, "")) return false;
      if (field == 1 && type == WireType::bytes) {
        if (!cursor.bytes(body) || !entry(body, start, lists)) return false;
      } else {
        note(Lint::unknown_field, start, "");
        if (!cursor.skip(field, type)) return false;
      }
    }
    return true;
  }

  bool entry(Bytes body, const uint8_t* start, bool lists) {
    Cursor whole(body);
    Entry parsed;
    if (!read_entry(whole, parsed)) return false;
    const std::string name(as_text(parsed.name));

    size_t names = 0, values = 0;
    bool reversed = false;
    Cursor cursor(body);
    while (!cursor.done()) {
      uint32_t field = 0;
      WireType type{};
      const uint8_t* const at = cursor.at;
      tag(cursor, field, type, name);
      cursor.skip(field, type);
      if (type == WireType::bytes && field == 1) {
        ++names;
        reversed = reversed || values > 0;
      } else if (type == WireType::bytes && field == 2) {
        ++values;
      } else {
        note(Lint::unknown_field, at, name);
      }
    }
    if (names != 1 || values != 1) note(Lint::no_name_or_value, start, name);
    if (reversed && sequence_) note(Lint::value_before_name, start, name);
    if (!(lists ? list_names_ : names_).insert(name).second) note(Lint::repeated_name, start, name);
    for (const Bytes piece : parsed.value)
      if (!(lists ? list(piece, name) : feature(piece, name))) return false;
    return true;
  }

  bool list(Bytes message, const std::string& name) {
    Cursor cursor(message);
    uint32_t field;
    WireType type;
    Bytes body;
    while (!cursor.done()) {
      const uint8_t* const start = cursor.at;
      if (!tag(cursor, field, type, name)) return false;
      if (field == 1 && type == WireType::bytes) {
        if (!cursor.bytes(body) || !feature(body, name)) return false;
      } else {
        note(Lint::unknown_field, start, name);
        if (!cursor.skip(field, type)) return false;
      }
    }
    return true;
  }

  bool feature(Bytes message, const std::string& name) {
    Cursor cursor(message);
    uint32_t field, first = 0;
    WireType type;
    Bytes body;
    while (!cursor.done()) {
      const uint8_t* const start = cursor.at;
      if (!tag(cursor, field, type, name)) return false;
      if (type == WireType::bytes && field >= 1 && field <= 3) {
        if (first != 0) note(field == first ? Lint::repeated_list : Lint::several_kinds, start, name);
        first = field;
        if (!cursor.bytes(body) || !values(body, static_cast<Kind>(field), name)) return false;
      } else {
        note(Lint::unknown_field, start, name);
        if (!cursor.skip(field, type)) return false;
      }
    }
    return true;
  }

  bool values(Bytes message, Kind kind, const std::string& name) {
    const WireType single = kind == Kind::floats ? WireType::fixed32 : WireType::varint;
    Cursor cursor(message);
    uint32_t field;
    WireType type;
    bool packed = false, any = false;
    while (!cursor.done()) {
      const uint8_t* const start = cursor.at;
      if (!tag(cursor, field, type, name)) return false;
      const bool is_packed = type == WireType::bytes;
      if (field != 1 || !(is_packed || (kind != Kind::bytes && type == single))) {
        note(Lint::unknown_field, start, name);
      } else {
        if (kind != Kind::bytes && any && (packed || is_packed)) note(Lint::several_chunks, start, name);
        packed = is_packed;
        any = true;
      }
      if (!cursor.skip(field, type)) return false;
    }
    return true;
  }

  Bytes payload_;
  bool sequence_;
  std::set<std::string> names_, list_names_;
  std::vector<LintFinding> findings_;
};

}  // namespace

Survey survey(const Chunk& chunk, size_t start, size_t stop) {
  Surveyor surveyor;
  for (size_t i = start; i < stop; ++i) {
    if (surveyor.record(chunk.payload(i))) continue;
    surveyor.survey.record = i;
    break;
  }
  return std::move(surveyor.survey);
}

std::vector<LintFinding> lint(Bytes payload, bool sequence) { return Linter(payload, sequence).run(); }

}  // namespace recordkit
