// Record framing: where each record starts, and whether its bytes are intact.
//
// A file is records back to back with nothing between them:
//
//     at 0      uint64 LE    n, the length of the payload
//     at 8      uint32 LE    masked CRC-32C of those 8 bytes
//     at 12     bytes[n]     payload
//     at 12+n   uint32 LE    masked CRC-32C of the payload
//
// Nothing here knows what a payload holds. See docs/format/records.md.
#pragma once

#include <memory>
#include <vector>

#include "core/files/file_map.h"
#include "core/memory/array.h"
#include "core/records/crc32c.h"

namespace recordkit {

inline constexpr uint64_t kHeaderSize = 12;
inline constexpr uint64_t kFooterSize = 4;
inline constexpr uint64_t kFrameSize = kHeaderSize + kFooterSize;

// What can be wrong with a record. records/_framing.py has the text for each, in this order.
enum class Fault : uint8_t {
  none,
  torn_header,      // the file ends inside the 12-byte header
  bad_length_crc,   // the length cannot be trusted
  torn_payload,     // the length is right, but the file ends inside the payload or its checksum
  bad_payload_crc,  // the payload does not match its checksum; the length is right
  too_large,        // the length is right, but above the caller's limit
  cut_short,        // the file is shorter than it was when reading began
  written_over,     // records that were read have changed in the file
};

inline bool length_is_sound(uint64_t length, const uint8_t* header) {
  return mask_crc(crc32c_of_u64(length)) == load<uint32_t>(header + 8);
}
inline bool header_is_sound(const uint8_t* header) { return length_is_sound(load<uint64_t>(header), header); }

// A copy of the 12 bytes before a payload, for memory that may change.
struct Header {
  uint64_t length;
  uint32_t crc;

  explicit Header(const uint8_t* from) : length(load<uint64_t>(from)), crc(load<uint32_t>(from + 8)) {}
  bool is_sound() const { return unmask_crc(crc) == crc32c_of_u64(length); }
  void copy_to(uint8_t* to) const {
    store(to, length);
    store(to + 8, crc);
  }
};

// Writes the 12 bytes before a payload, and the 4 after it.
inline void store_header(uint8_t* to, uint64_t length) {
  store(to, length);
  store(to + 8, mask_crc(crc32c_of_u64(length)));
}
inline void store_footer(uint8_t* to, uint32_t payload_crc) { store(to, mask_crc(payload_crc)); }

// Copies payload and footer of a record and checks the copy, in one pass. The source may change meanwhile.
bool copy_payload(uint8_t* to, const uint8_t* from, uint64_t length, Prefetch prefetch);
bool copy_long_payload(MapGuard& guard, uint8_t* to, const uint8_t* from, uint64_t length);

// The same from a map, a long payload in pieces. Also false if the guard refuses.
[[gnu::always_inline]] inline bool copy_payload(MapGuard& guard, uint8_t* to, const uint8_t* from,
                                                uint64_t length, Prefetch prefetch) {
  if (length > MapGuard::kPiece) [[unlikely]]
    return copy_long_payload(guard, to, from, length);
  return guard.allows(length + kFooterSize) && copy_payload(to, from, length, prefetch);
}

// Consecutive framed records in memory, every checksum verified.
struct Chunk {
  struct Span {
    uint64_t start;   // of the payload, within the chunk
    uint64_t length;  // of the payload
  };

  std::shared_ptr<const void> owner;  // keeps `data` alive
  const uint8_t* data = nullptr;
  size_t size = 0;
  size_t readable = 0;  // bytes that may be loaded from `data`: size, plus kPadding in our own buffers
  std::vector<Span> records;
  uint64_t first_record = 0;  // the number of the first record in its file
  uint64_t file_offset = 0;   // where the chunk starts in its file

  Bytes payload(size_t i) const { return {data + records[i].start, records[i].length}; }
  // The stored CRC follows the payload.
  uint32_t payload_crc(size_t i) const {
    return unmask_crc(load<uint32_t>(data + records[i].start + records[i].length));
  }
  uint64_t offset_of(size_t i) const { return file_offset + records[i].start - kHeaderSize; }
};

Chunk chunk_of(std::shared_ptr<Buffer> framed, std::vector<Chunk::Span>&& records);
Chunk chunk_of(Buffer&& framed, std::vector<Chunk::Span>&& records);

// The CRC of all bytes of the chunk, frames included; combined from the payloads' CRCs where that is cheaper.
uint32_t crc32c_of(const Chunk& chunk);

// Copies these records, in this order. REQUIRES: every index is less than chunk.records.size()
Chunk pick(const Chunk& chunk, std::span<const uint64_t> indices);

// Copies the records of all chunks into one, which has no position in a file.
Chunk join(std::span<const Chunk* const> chunks);

// Where a scan stopped, and why: every record before `offset` is in the chunk. No fault at a clean end.
struct ScanEnd {
  Fault fault = Fault::none;
  uint64_t offset = 0;
};

// Adds the records of chunk.data[offset, chunk.size) to the chunk, up to `max_records` in all, going by their
// headers alone. The bytes may change meanwhile; spans stay within the chunk even so.
ScanEnd hop(Chunk& chunk, uint64_t offset, size_t max_records, uint64_t max_bytes, uint64_t max_record_bytes);

// Checks the payload of every record and cuts the chunk before the first bad one. `end` is where hop()
// stopped.
ScanEnd check_payloads(Chunk& chunk, ScanEnd end);

}  // namespace recordkit
