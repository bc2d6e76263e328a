// Edits features on the wire: whatever is not named is copied byte for byte and never decoded.
//
// Example.features and SequenceExample.context are both field 1, so one walk serves both; feature lists are
// field 2 of a SequenceExample.
#pragma once

#include <string>
#include <unordered_map>
#include <unordered_set>

#include "core/examples/example.h"
#include "core/records/framing.h"

namespace recordkit {

struct Edit {
  std::unordered_set<std::string> drop;
  std::unordered_map<std::string, std::string> rename;
  std::unordered_set<std::string> replace;  // features to remove, because new ones are appended
  std::unordered_set<std::string> absent;   // features that no record may have, because they are appended
  bool sequence = false;                    // feature lists may be named too
};

struct RewriteResult {
  enum class Why : uint8_t { none, malformed, name_taken, payload_too_large };
  Why fault = Why::none;
  WireFault wire = WireFault::none;
  size_t record = 0;  // within the chunk
  uint64_t byte = 0;  // within the payload
  std::string name;
  Chunk chunk;
};

// Applies the edit to every record, then appends `tail`'s payload of the same number: concatenated messages
// merge. If bytes are only appended, the CRC is extended from the stored one, so that damage to the payload
// in memory stays detectable.
//
// REQUIRES: tail is null or has as many records as `chunk`
RewriteResult rewrite(const Chunk& chunk, const Edit& edit, const Chunk* tail);

}  // namespace recordkit
