// Looks at payloads without a schema: facts for inferring one, and what TensorFlow reads differently.
#pragma once

#include <limits>
#include <map>
#include <string>
#include <vector>

#include "core/examples/example.h"
#include "core/records/framing.h"

namespace recordkit {

// What many records say about one feature. For a feature list, counts are per step.
struct FeatureFacts {
  uint64_t records = 0;  // that have it, in any state
  uint64_t no_kind = 0;
  uint64_t empty = 0;
  uint64_t of_kind[4] = {};  // features by Kind
  uint64_t min_count = std::numeric_limits<uint64_t>::max(), max_count = 0;
  uint64_t bytes_values = 0;
  uint64_t min_bytes = std::numeric_limits<uint64_t>::max(), max_bytes = 0;
  uint64_t min_steps = std::numeric_limits<uint64_t>::max(), max_steps = 0;
  int64_t min_int = std::numeric_limits<int64_t>::max(), max_int = std::numeric_limits<int64_t>::min();
  bool utf8 = true, jpeg = true, png = true;  // true of every bytes value seen
};

struct Survey {
  uint64_t records = 0;
  uint64_t with_lists = 0;  // records that have feature lists
  std::map<std::string, FeatureFacts> features, lists;
  // The first payload that is neither an Example nor a SequenceExample.
  bool malformed = false;
  WireFault wire = WireFault::none;
  size_t record = 0;
  uint64_t byte = 0;
};

// Stops at the first malformed payload.
Survey survey(const Chunk& chunk, size_t start, size_t stop);

// What TensorFlow's parser does with payloads that protobuf reads differently. examples.py has the text for
// each.
enum class Lint : uint8_t {
  repeated_name,      // TensorFlow warns on every record, and may use the earlier value
  no_name_or_value,   // TensorFlow refuses the record
  unknown_field,      // TensorFlow refuses the record
  several_chunks,     // TensorFlow reads the first and drops the rest
  repeated_list,      // TensorFlow reads the first and drops the rest
  several_kinds,      // TensorFlow takes the first, protobuf the last
  value_before_name,  // TensorFlow refuses it in a SequenceExample
  long_tag,           // TensorFlow refuses the record
};

struct LintFinding {
  Lint lint;
  uint64_t byte;  // within the payload
  std::string name;
};

// For a malformed payload, returns what was found before the error.
std::vector<LintFinding> lint(Bytes payload, bool sequence);

}  // namespace recordkit
