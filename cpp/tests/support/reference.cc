#include "support/reference.h"

#include <algorithm>

namespace recordkit {
namespace {

struct Malformed {};

struct Field {
  uint64_t number;
  uint64_t type;
  uint64_t value = 0;     // of a varint or a fixed32
  std::string_view body;  // of a length-delimited field
};

uint64_t varint(std::string_view& rest, size_t most = 10) {
  uint64_t value = 0;
  for (size_t i = 0; i < most && i < rest.size(); ++i) {
    const uint64_t byte = static_cast<uint8_t>(rest[i]);
    value |= (byte & 127) << (7 * i);  // what lies beyond the 64th bit is dropped
    if (byte < 128) {
      rest.remove_prefix(i + 1);
      return value;
    }
  }
  throw Malformed();
}

std::string_view cut(std::string_view& rest, uint64_t size) {
  if (size > rest.size()) throw Malformed();
  const std::string_view front = rest.substr(0, size);
  rest.remove_prefix(size);
  return front;
}

Field next_field(std::string_view& rest, int groups_left);

void skip_group(uint64_t number, std::string_view& rest, int groups_left) {
  if (groups_left == 0) throw Malformed();
  for (;;) {
    const Field field = next_field(rest, groups_left - 1);
    if (field.type != 4) continue;
    if (field.number != number) throw Malformed();
    return;
  }
}

Field next_field(std::string_view& rest, int groups_left) {
  const uint64_t tag = varint(rest, 5);
  Field field{tag >> 3, tag & 7, 0, {}};
  if (tag > UINT32_MAX) throw Malformed();
  switch (field.type) {
    case 0:
      field.value = varint(rest);
      break;
    case 1:
      cut(rest, 8);
      break;
    case 2:
      field.body = cut(rest, varint(rest, 5));
      break;
    case 3:
      skip_group(field.number, rest, groups_left);
      break;
    case 4:
      break;
    case 5:
      field.value = load<uint32_t>(as_bytes(cut(rest, 4)).data());
      break;
    default:
      throw Malformed();
  }
  return field;
}

// The fields of a message nested `level` deep in others: of protobuf's 100 levels the rest is left for
// groups.
std::vector<Field> fields_of(std::string_view message, int level) {
  std::vector<Field> fields;
  while (!message.empty()) {
    fields.push_back(next_field(message, 100 - level));
    // Field number 0, which upb minds only outside of groups; or the end of a group that was never opened.
    if (fields.back().number == 0 || fields.back().type == 4) throw Malformed();
  }
  return fields;
}

void add_values(Kind kind, std::string_view list, int level, Value& value) {
  for (const Field& field : fields_of(list, level)) {
    if (field.number != 1) continue;
    if (kind == Kind::bytes && field.type == 2) value.bytes.emplace_back(field.body);
    if (kind == Kind::floats && field.type == 5) value.floats.push_back(static_cast<uint32_t>(field.value));
    if (kind == Kind::int64s && field.type == 0) value.ints.push_back(static_cast<int64_t>(field.value));
    if (kind == Kind::bytes || field.type != 2) continue;
    for (std::string_view packed = field.body; !packed.empty();) {
      if (kind == Kind::int64s)
        value.ints.push_back(static_cast<int64_t>(varint(packed)));
      else
        value.floats.push_back(load<uint32_t>(as_bytes(cut(packed, 4)).data()));
    }
  }
}

void merge_feature(std::string_view message, int level, Value& value) {
  for (const Field& field : fields_of(message, level)) {
    if (field.type != 2 || field.number > 3) continue;
    const Kind kind = static_cast<Kind>(field.number);
    if (kind != value.kind) value = {};
    value.kind = kind;
    add_values(kind, field.body, level + 1, value);
  }
}

// Merges every piece of a map entry's value into a new T with merge(piece, level, value), and files it under
// its name.
template <typename T, typename Merge>
void add_entries(std::string_view message, std::map<std::string, T>& to, Merge&& merge) {
  for (const Field& entry : fields_of(message, 1)) {
    if (entry.type != 2 || entry.number != 1) continue;
    std::string name;
    T value{};
    for (const Field& field : fields_of(entry.body, 2)) {
      if (field.type != 2) continue;
      if (field.number == 1) name = field.body;
      if (field.number == 1 && !reference_is_utf8(name)) throw Malformed();
      if (field.number == 2) merge(field.body, 3, value);
    }
    to[name] = std::move(value);
  }
}

void merge_list(std::string_view message, int level, std::vector<Value>& steps) {
  for (const Field& step : fields_of(message, level))
    if (step.type == 2 && step.number == 1) merge_feature(step.body, level + 1, steps.emplace_back());
}

}  // namespace

Parsed parse(Bytes payload, bool sequence) {
  Parsed parsed;
  try {
    for (const Field& field : fields_of(as_text(payload), 0)) {
      if (field.type != 2) continue;
      if (field.number == 1) add_entries(field.body, parsed.features, merge_feature);
      if (field.number == 2 && sequence) add_entries(field.body, parsed.lists, merge_list);
    }
    parsed.ok = true;
  } catch (Malformed) {
  }
  return parsed;
}

std::string bytes_field(uint32_t field, std::string_view body) {
  std::string message;
  for (uint64_t number : {uint64_t{field} << 3 | 2, uint64_t{body.size()}}) {
    for (; number >= 128; number >>= 7) message.push_back(static_cast<char>(number | 128));
    message.push_back(static_cast<char>(number));
  }
  return message.append(body);
}

std::string example_of(std::string_view name, std::string_view feature) {
  return bytes_field(1, bytes_field(1, bytes_field(1, name) + bytes_field(2, feature)));
}

// Decodes each character and asks whether that many bytes were due: the definition, not a table of ranges.
bool reference_is_utf8(std::string_view text) {
  constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  while (!text.empty()) {
    const int ones = std::countl_one(static_cast<uint8_t>(text[0]));
    const size_t size = ones == 0 ? 1 : static_cast<size_t>(ones);
    if (ones == 1 || size > 4 || size > text.size()) return false;
    uint32_t point = static_cast<uint8_t>(text[0]) & (0xffu >> (ones + 1));
    for (size_t i = 1; i < size; ++i) {
      if ((text[i] & 0xc0) != 0x80) return false;
      point = point << 6 | (text[i] & 0x3f);
    }
    if (point < kLeast[size] || point > 0x10ffff || (point >= 0xd800 && point < 0xe000)) return false;
    text.remove_prefix(size);
  }
  return true;
}

}  // namespace recordkit
