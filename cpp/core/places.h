// Records at known places of a file: found by their headers alone, and fetched from anywhere.
#pragma once

#include <span>
#include <vector>

#include "core/framing.h"

namespace recordkit {

// What headers and footers say, payloads unread.
struct Hops {
  Array<uint64_t> lengths;       // of the payloads
  Array<uint32_t> payload_crcs;  // as stored, unmasked
  // At the end of the file, or where the next record does not start: every record before `offset` is counted.
  // A payload's own fault is not seen here.
  Fault fault = Fault::none;
  uint64_t offset = 0;
};

// Hops over up to `max_records` records from `offset` on, reading little more than 16 bytes of each where
// they are long. Throws std::system_error.
Hops hop_over(int descriptor, uint64_t offset, size_t max_records);

// A frame's place, as an index says.
struct Place {
  uint64_t offset;
  uint64_t size;
};

// The records at these places, in their order, up to the first that is not a sound record of that size.
struct Fetched {
  Chunk chunk;
  Fault fault = Fault::none;  // of place number chunk.records.size()
};

// They are read in the order of the file, neighbours in one go. Memory grows with what the file holds,
// whatever the places say. Throws std::system_error.
Fetched fetch(int descriptor, std::span<const Place> places);

// Copies of all records, one chunk behind the other. It has no place in a file.
Chunk join(std::span<const Chunk* const> chunks);

}  // namespace recordkit
