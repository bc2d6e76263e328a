// For verify: checks records in the page cache without copying them, and finds repeated ones.
//
// The identity of a record is 12 bytes: its length (uint64) and its payload's CRC (uint32).
#pragma once

#include "core/memory/array.h"

namespace recordkit {

struct Checked {
  Buffer identities;
  uint64_t size = 0;  // of the framed records
};

// Checks the next few megabytes of records from `offset` on, at least one. Returns none if the file has to be
// read instead: at its end, before a damaged record, or if it cannot be mapped within `most_bytes`. Throws
// std::system_error.
Checked check_mapped(int descriptor, uint64_t offset, uint64_t most_bytes);

// Whether a pair of neighbours may occur twice, going by their CRCs. Has false positives, no false negatives.
bool may_repeat(std::span<const Bytes> identities);

}  // namespace recordkit
