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

// What can be wrong with a record. The words for each are in records.py, in this order.
enum class Fault : uint8_t {
  none,
  torn_header,      // the file ends inside the 12-byte header
  bad_length_crc,   // the length cannot be trusted
  torn_payload,     // the length is right, and the file ends before the payload and its checksum do
  bad_payload_crc,  // payload or checksum differ; the length was right
  too_large,        // the length is right, and more than the caller allows
  cut_short,        // the file has fewer bytes than it had when its reading began
  written_over,     // the file has others than those that were read
};

inline bool length_is_sound(uint64_t length, const uint8_t* header) {
  return mask_crc(crc32c_of_u64(length)) == load<uint32_t>(header + 8);
}
inline bool header_is_sound(const uint8_t* header) { return length_is_sound(load<uint64_t>(header), header); }

// A copy of the 12 bytes before a payload, for where they may change.
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

// Writes the 12 bytes before a payload, or the 4 behind it.
inline void store_header(uint8_t* to, uint64_t length) {
  store(to, length);
  store(to + 8, mask_crc(crc32c_of_u64(length)));
}
inline void store_footer(uint8_t* to, uint32_t payload_crc) { store(to, mask_crc(payload_crc)); }

// Copies the frame of a record behind its header, and checks what it has copied, each byte in one go. What it
// is copied from may change meanwhile.
bool copy_payload(uint8_t* to, const uint8_t* from, uint64_t length, Prefetch prefetch);
bool copy_long_payload(MapGuard& guard, uint8_t* to, const uint8_t* from, uint64_t length);

// The same from a map: a long payload in pieces. False, too, where the guard refuses.
[[gnu::always_inline]] inline bool copy_payload(MapGuard& guard, uint8_t* to, const uint8_t* from,
                                                uint64_t length, Prefetch prefetch) {
  if (length > MapGuard::kPiece) [[unlikely]]
    return copy_long_payload(guard, to, from, length);
  return guard.allows(length + kFooterSize) && copy_payload(to, from, length, prefetch);
}

// Consecutive framed records in memory, every checksum known to be right.
struct Chunk {
  struct Span {
    uint64_t start;   // of the payload, within the chunk
    uint64_t length;  // of the payload
  };

  std::shared_ptr<const void> owner;  // keeps `data` alive
  const uint8_t* data = nullptr;
  size_t size = 0;
  size_t readable =
      0;  // bytes from `data` on that may be loaded: size, and kPadding more in a buffer of ours
  std::vector<Span> records;
  uint64_t first_record = 0;  // the number of the first record in its file
  uint64_t file_offset = 0;   // where the chunk starts in its file

  Bytes payload(size_t i) const { return {data + records[i].start, records[i].length}; }
  // The stored CRC stands right behind the payload.
  uint32_t payload_crc(size_t i) const {
    return unmask_crc(load<uint32_t>(data + records[i].start + records[i].length));
  }
  uint64_t offset_of(size_t i) const { return file_offset + records[i].start - kHeaderSize; }
};

Chunk chunk_of(std::shared_ptr<Buffer> framed, std::vector<Chunk::Span>&& records);
Chunk chunk_of(Buffer&& framed, std::vector<Chunk::Span>&& records);

// The CRC of all bytes of the chunk, frames included, made from the payloads' own where that is cheaper.
uint32_t crc32c_of(const Chunk& chunk);

// Copies of these records, in this order. REQUIRES: every index is less than chunk.records.size()
Chunk pick(const Chunk& chunk, std::span<const uint64_t> indices);

// Copies of all records, one chunk behind the other. It has no place in a file.
Chunk join(std::span<const Chunk* const> chunks);

// Where a walk over records stopped: every record before `offset` is in the chunk; `fault` says why, none at
// a clean end.
struct ScanEnd {
  Fault fault = Fault::none;
  uint64_t offset = 0;
};

// Adds the records of chunk.data[offset, chunk.size) to the chunk, up to `max_records` in all, by their
// headers alone. The bytes may change meanwhile: what is added lies within the chunk all the same.
ScanEnd hop(Chunk& chunk, uint64_t offset, size_t max_records, uint64_t max_bytes, uint64_t max_record_bytes);

// Checks the payload of every record; at the first that is not sound the chunk is cut. `end` is where the hop
// stopped.
ScanEnd check_payloads(Chunk& chunk, ScanEnd end);

}  // namespace recordkit
