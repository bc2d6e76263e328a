// Locating records by their headers alone.
#pragma once

#include "core/records/framing.h"

namespace recordkit {

// What headers and footers say; payloads are not read.
struct HeaderScan {
  Array<uint64_t> lengths;       // of the payloads
  Array<uint32_t> payload_crcs;  // as stored, unmasked
  // Why and where the scan stopped; every record before `offset` is counted. Damaged payloads go unnoticed.
  Fault fault = Fault::none;
  uint64_t offset = 0;
};

// Scans up to `max_records` records from `offset` on, reading little more than 16 bytes of each long one.
// Maps at most `most_mapped` bytes of the page cache. Throws std::system_error.
HeaderScan scan_headers(int descriptor, uint64_t offset, size_t max_records, uint64_t most_mapped);

// The place of a record's frame, as an index gives it.
struct Place {
  uint64_t offset;
  uint64_t size;
  uint32_t file = 0;  // the number of the file, among those read together
};

}  // namespace recordkit
