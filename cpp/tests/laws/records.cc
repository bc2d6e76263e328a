#include "core/records/reader.h"
#include "laws/laws.h"
#include "support/check.h"
#include "support/frames.h"
#include "support/sources.h"

namespace recordkit {
namespace {

struct Walk {
  std::vector<std::string> payloads;
  Fault fault = Fault::none;
  uint64_t offset = 0;  // of what is not sound, or the end

  bool operator==(const Walk&) const = default;
};

// The format's definition, record by record. Hopping looks no further than the headers, so the faults of
// headers come first where both are wrong; reading stops at the first record that is wrong in any way.
Walk walk(std::string_view file, uint64_t max_record_bytes) {
  Walk walk;
  for (;;) {
    const std::string_view rest = file.substr(walk.offset);
    if (rest.empty()) return walk;
    const auto stop = [&](Fault fault) {
      walk.fault = fault;
      return walk;
    };
    if (rest.size() < 12) return stop(Fault::torn_header);
    const uint64_t length = load<uint64_t>(as_bytes(rest).data());
    if (rest.substr(0, 12) != header(length)) return stop(Fault::bad_length_crc);
    if (length > max_record_bytes) return stop(Fault::too_large);
    if (rest.size() < 16 || length > rest.size() - 16) return stop(Fault::torn_payload);
    const std::string_view payload = rest.substr(12, length);
    if (rest.substr(0, 16 + length) != frame(payload)) return stop(Fault::bad_payload_crc);
    walk.payloads.emplace_back(payload);
    walk.offset += 16 + length;
  }
}

void add_payloads(const Chunk& chunk, Walk& walk) {
  for (size_t i = 0; i < chunk.records.size(); ++i) walk.payloads.emplace_back(as_text(chunk.payload(i)));
}

Walk hop_and_check(Bytes file, uint64_t max_record_bytes) {
  Chunk chunk;
  chunk.data = file.data();
  chunk.size = chunk.readable = file.size();
  const ScanEnd end = check_payloads(chunk, hop(chunk, 0, SIZE_MAX, UINT64_MAX, max_record_bytes));
  Walk walk{{}, end.fault, end.offset};
  add_payloads(chunk, walk);
  return walk;
}

Walk read(std::string_view file, size_t piece, RecordReader::Limits limits, size_t records,
          bool whole_count) {
  RecordReader reader(std::make_unique<PieceSource>(file, piece), limits);
  Walk walk;
  for (;;) {
    const ReadResult result = reader.next(records, whole_count);
    CHECK_EQ(result.chunk.first_record, walk.payloads.size());
    CHECK_EQ(result.chunk.file_offset, walk.offset);
    CHECK(result.chunk.records.size() <= records);
    add_payloads(result.chunk, walk);
    walk.fault = result.fault;
    walk.offset = result.offset;
    if (result.fault != Fault::none || result.chunk.records.empty()) return walk;
  }
}

}  // namespace

void records_law(Bytes file) {
  const std::string_view text = as_text(file);
  for (const uint64_t max_record_bytes : {UINT64_MAX, uint64_t{20}})
    CHECK(hop_and_check(file, max_record_bytes) == walk(text, max_record_bytes));

  // A reader has a large buffer, which is what takes the time here: at most one a file, chosen by its bytes.
  const uint32_t choice = crc32c(file);
  const uint64_t limit = choice & 16 ? UINT64_MAX : 20;
  const Walk expected = walk(text, limit);
  switch (choice % 16) {
    case 0:
      CHECK(read(text, SIZE_MAX, {.max_record_bytes = limit}, SIZE_MAX, false) == expected);
      break;
    case 1:
      CHECK(read(text, 1, {.chunk_bytes = 1, .max_record_bytes = limit}, SIZE_MAX, false) == expected);
      break;
    case 2:
      CHECK(read(text, 7, {.max_record_bytes = limit}, 1, false) == expected);
      break;
    case 3:
      CHECK(read(text, 13, {.chunk_bytes = 1, .max_record_bytes = limit}, 2, true) == expected);
  }
}

}  // namespace recordkit
