// What verifying needs, and reading does not: records checked where they are in the page cache, and whether
// any stand in a file twice.
//
// An identity is what tells one record from another, 12 bytes: its length (uint64) and its payload's CRC
// (uint32).
#pragma once

#include "core/memory/array.h"

namespace recordkit {

struct Checked {
  Buffer identities;
  uint64_t size = 0;  // of the framed records
};

// The next few megabytes of records from `offset` on, at least one, all of them sound. None where the file
// has to be read instead, which tells why: at its end, before what is not sound, or where it cannot be mapped
// within `most_bytes`. Throws std::system_error.
Checked check_mapped(int descriptor, uint64_t offset, uint64_t most_bytes);

// Whether two neighbours have the CRCs that two others have. True now and then although they have not.
bool may_repeat(std::span<const Bytes> identities);

}  // namespace recordkit
