// Where records are: found by their headers alone.
#pragma once

#include "core/records/framing.h"

namespace recordkit {

// What headers and footers say, payloads unread.
struct HeaderScan {
  Array<uint64_t> lengths;       // of the payloads
  Array<uint32_t> payload_crcs;  // as stored, unmasked
  // At the end of the file, or where the next record does not start: every record before `offset` is counted.
  // A payload's own fault is not seen here.
  Fault fault = Fault::none;
  uint64_t offset = 0;
};

// Hops over up to `max_records` records from `offset` on, reading little more than 16 bytes of each
// where they are long; of what is in the page cache no more than `most_mapped` bytes are mapped for that.
// Throws std::system_error.
HeaderScan scan_headers(int descriptor, uint64_t offset, size_t max_records, uint64_t most_mapped);

// A frame's place, as an index says.
struct Place {
  uint64_t offset;
  uint64_t size;
  uint32_t file = 0;  // which of those that are read together
};

}  // namespace recordkit
