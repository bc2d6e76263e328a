// The obvious parser of Examples: slow, field by field into maps, and without any code of the core.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/examples/example.h"

namespace recordkit {

// One Feature.
struct Value {
  Kind kind = Kind::none;
  std::vector<int64_t> ints;
  std::vector<uint32_t> floats;  // their bits, because NaNs must be preserved
  std::vector<std::string> bytes;

  size_t count() const { return ints.size() + floats.size() + bytes.size(); }
  bool operator==(const Value&) const = default;
};

struct Parsed {
  bool ok = false;  // if not, the maps hold what came before the error
  std::map<std::string, Value> features;
  std::map<std::string, std::vector<Value>> lists;

  bool operator==(const Parsed&) const = default;
};

// Reads an Example, or a SequenceExample if `sequence`.
Parsed parse(Bytes payload, bool sequence);

// The bytes of a message with this field.
std::string bytes_field(uint32_t field, std::string_view body);

// An Example with one feature, whose Feature message is `feature`.
std::string example_of(std::string_view name, std::string_view feature);

bool reference_is_utf8(std::string_view text);

}  // namespace recordkit
