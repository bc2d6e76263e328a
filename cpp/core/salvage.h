// Salvage: every record of a damaged file that can be shown to be intact, and where the damage is.
//
// A header checks itself and a payload has a checksum of its own, so a record found by sliding over bytes is
// believed when both agree: 64 bits. See docs/format/records.md.
#pragma once

#include <vector>

#include "core/framing.h"

namespace recordkit {

struct Found {
  enum class How : uint8_t {
    sound,
    bad_length_crc,  // the length's checksum is damaged; the payload's confirms both
  };
  uint64_t offset;  // of the header
  uint64_t length;  // of the payload
  How how = How::sound;
  bool nested = false;  // stands inside the payload of a damaged record
};

// Bytes [offset, offset + length) that belong to no record found.
struct Lost {
  enum class What : uint8_t {
    bad_length,   // a header that does not check, and what follows up to the next record
    bad_payload,  // one whole frame whose payload or checksum is damaged
    torn,         // the file ends inside a record
    zeros,        // nothing but zero bytes
  };
  uint64_t offset;
  uint64_t length;
  What what;
  uint64_t before;  // how many records were found before it
};

struct Salvage {
  std::vector<Found> found;
  std::vector<Lost> lost;
};

// Time grows with the file's size whatever its bytes say; memory with what is found, and 0.1% of the file.
Salvage salvage(Bytes file);

}  // namespace recordkit
