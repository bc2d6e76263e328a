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

  bool operator==(const Found&) const = default;
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

  bool operator==(const Lost&) const = default;
};

struct Salvage {
  std::vector<Found> found;
  std::vector<Lost> lost;
  uint64_t decided = 0;   // what stands before this place is in `found` and `lost`
  uint64_t searched = 0;  // no sound record starts between `decided` and here
};

// A record whose length is damaged is told from those in its payload if its frame is no larger than this.
// Without a limit, nothing behind a damaged header could be decided before the end of the file is seen.
inline constexpr uint64_t kNestedReach = uint64_t{16} << 20;

// `window` is a file, or a part of it with `beyond` bytes of the file behind it. What is decided of a part is
// what would be decided of the whole; more bytes are needed for the rest. With no byte beyond, all is
// decided.
//
// Time grows with the window's size whatever its bytes say; memory with what is found, and 0.1% of the
// window.
//
// REQUIRES: window.size() + beyond < 2^64; a part starts where the file does, or where an earlier one was
// decided
Salvage salvage(Bytes window, uint64_t beyond = 0, uint64_t nested_reach = kNestedReach);

}  // namespace recordkit
