#include "core/records/framing.h"

namespace recordkit {

bool copy_payload(uint8_t* to, const uint8_t* from, uint64_t length, Prefetch prefetch) {
  const uint32_t crc = crc32c_copy(to, from, length, prefetch);
  std::memcpy(to + length, from + length, kFooterSize);
  return unmask_crc(load<uint32_t>(to + length)) == crc;
}

bool copy_long_payload(MapGuard& guard, uint8_t* to, const uint8_t* from, uint64_t length) {
  uint32_t crc = 0;
  for (uint64_t at = 0; at < length; at += MapGuard::kPiece) {
    const uint64_t piece = std::min(MapGuard::kPiece, length - at);
    if (!guard.allows(piece)) return false;
    std::memcpy(to + at, from + at, piece);
    crc = crc32c_extend(crc, to + at, piece);
  }
  if (!guard.allows(kFooterSize)) return false;
  std::memcpy(to + length, from + length, kFooterSize);
  return crc == unmask_crc(load<uint32_t>(to + length));
}

Chunk chunk_of(std::shared_ptr<Buffer> framed, std::vector<Chunk::Span>&& records) {
  framed->reserve(framed->size());
  std::memset(framed->end(), 0, kPadding);
  Chunk chunk;
  chunk.data = framed->data();
  chunk.size = framed->size();
  chunk.readable = chunk.size + kPadding;
  chunk.records = std::move(records);
  chunk.owner = std::move(framed);
  return chunk;
}

Chunk chunk_of(Buffer&& framed, std::vector<Chunk::Span>&& records) {
  return chunk_of(std::make_shared<Buffer>(std::move(framed)), std::move(records));
}

uint32_t crc32c_of(const Chunk& chunk) {
  // Combining costs about as much as a checksum of this many bytes.
  constexpr uint64_t kWorthCombining = 16 << 10;
  uint32_t crc = 0;
  uint64_t done = 0;  // bytes covered by `crc`
  for (size_t i = 0; i < chunk.records.size(); ++i) {
    const Chunk::Span& record = chunk.records[i];
    if (record.length < kWorthCombining) continue;
    crc = crc32c_extend(crc, chunk.data + done, record.start - done);
    crc = crc32c_combine(crc, chunk.payload_crc(i), record.length);
    done = record.start + record.length;
  }
  return crc32c_extend(crc, chunk.data + done, chunk.size - done);
}

Chunk pick(const Chunk& chunk, std::span<const uint64_t> indices) {
  size_t size = 0;
  for (const uint64_t i : indices) size += chunk.records[i].length + kFrameSize;
  const std::shared_ptr<Buffer> framed = std::make_shared<Buffer>(size);
  std::vector<Chunk::Span> records;
  records.reserve(indices.size());
  for (const uint64_t i : indices) {
    const Chunk::Span& record = chunk.records[i];
    records.push_back({framed->size() + kHeaderSize, record.length});
    framed->append(chunk.data + record.start - kHeaderSize, record.length + kFrameSize);
  }
  return chunk_of(framed, std::move(records));
}

Chunk join(std::span<const Chunk* const> chunks) {
  size_t size = 0, count = 0;
  for (const Chunk* chunk : chunks) {
    size += chunk->size;
    count += chunk->records.size();
  }
  const std::shared_ptr<Buffer> framed = std::make_shared<Buffer>(size);
  std::vector<Chunk::Span> spans;
  spans.reserve(count);
  for (const Chunk* chunk : chunks) {
    for (const Chunk::Span& span : chunk->records)
      spans.push_back({framed->size() + span.start, span.length});
    framed->append(chunk->data, chunk->size);
  }
  return chunk_of(framed, std::move(spans));
}

ScanEnd hop(Chunk& chunk, uint64_t offset, size_t max_records, uint64_t max_bytes,
            uint64_t max_record_bytes) {
  while (offset < chunk.size && offset < max_bytes && chunk.records.size() < max_records) {
    const uint8_t* const header = chunk.data + offset;
    const uint64_t left = chunk.size - offset;
    if (left < kHeaderSize) return {Fault::torn_header, offset};
    // Check the length first: no number from the file is used unverified.
    const uint64_t length = load_once<uint64_t>(header);
    if (!length_is_sound(length, header)) return {Fault::bad_length_crc, offset};
    if (length > max_record_bytes) return {Fault::too_large, offset};
    // Subtract rather than add: `length` comes from the file and may be near 2^64.
    if (left < kFrameSize || length > left - kFrameSize) return {Fault::torn_payload, offset};
    // Records often have similar sizes. Prefetching where the fourth from here likely starts hides the
    // latency of finding each header through the one before.
    __builtin_prefetch(header + 4 * (kFrameSize + length));
    chunk.records.push_back({offset + kHeaderSize, length});
    offset += kFrameSize + length;
  }
  return {Fault::none, offset};
}

ScanEnd check_payloads(Chunk& chunk, ScanEnd end) {
  for (size_t i = 0; i < chunk.records.size(); ++i) {
    if (crc32c(chunk.payload(i)) == chunk.payload_crc(i)) continue;
    end = {Fault::bad_payload_crc, chunk.records[i].start - kHeaderSize};
    chunk.records.resize(i);
  }
  return end;
}

}  // namespace recordkit
