#include "core/records/framing.h"

#include "laws/laws.h"
#include "support/check.h"
#include "support/frames.h"

namespace recordkit {
namespace {

Chunk chunk_over(Bytes file) {
  Chunk chunk;
  chunk.data = file.data();
  chunk.size = chunk.readable = file.size();
  return chunk;
}

ScanEnd scan(Bytes file, uint64_t max_record_bytes = UINT64_MAX) {
  Chunk chunk = chunk_over(file);
  return check_payloads(chunk, hop(chunk, 0, SIZE_MAX, UINT64_MAX, max_record_bytes));
}

void check_scan(const std::string& file, Fault fault, uint64_t offset) {
  const ScanEnd end = scan(Exact(file));
  CHECK_EQ(end.fault, fault);
  CHECK_EQ(end.offset, offset);
}

TEST(frames_are_the_bytes_tensorflow_writes) {
  CHECK_EQ(frame(""), unhex("00 00 00 00 00 00 00 00 29 03 98 07 d8 ea 82 a2"));
  CHECK_EQ(frame("abc"), unhex("03 00 00 00 00 00 00 00 b0 99 49 0e 61 62 63 6e 57 f1 21"));
  CHECK_EQ(
      frame(unhex("0a 0c 0a 0a 0a 01 61 12 05 1a 03 0a 01 01")),
      unhex("0e 00 00 00 00 00 00 00 c5 e5 69 3f 0a 0c 0a 0a 0a 01 61 12 05 1a 03 0a 01 01 39 e8 78 50"));
  CHECK_EQ(five_records().size(), 135u);
  CHECK_EQ(five_records().substr(0, 12), unhex("0b 00 00 00 00 00 00 00 86 15 f5 04"));
  CHECK_EQ(five_records().substr(23, 4), unhex("39 e2 4f 53"));
}

TEST(hopping_finds_every_record_and_stops_where_it_is_told) {
  const Exact file(five_records());
  Chunk chunk = chunk_over(file);

  const ScanEnd two = hop(chunk, 0, 2, UINT64_MAX, UINT64_MAX);
  CHECK_EQ(chunk.records.size(), 2u);
  CHECK_EQ(two.offset, 54u);
  const ScanEnd all = hop(chunk, two.offset, SIZE_MAX, UINT64_MAX, UINT64_MAX);

  CHECK_EQ(all.fault, Fault::none);
  CHECK_EQ(all.offset, 135u);
  CHECK_EQ(chunk.records.size(), 5u);
  CHECK_EQ(as_text(chunk.payload(3)), "payload-003");
  CHECK_EQ(chunk.offset_of(3), 81u);
  CHECK_EQ(chunk.payload_crc(3), crc32c(chunk.payload(3)));
}

TEST(scan_of_an_empty_file_ends_cleanly) { check_scan("", Fault::none, 0); }

TEST(scan_returns_a_record_of_no_bytes) {
  const Exact file(frame("one") + frame("") + frame("three"));
  Chunk chunk = chunk_over(file);
  CHECK_EQ(hop(chunk, 0, SIZE_MAX, UINT64_MAX, UINT64_MAX).fault, Fault::none);
  CHECK_EQ(chunk.records.size(), 3u);
  CHECK_EQ(chunk.payload(1).size(), 0u);
}

TEST(scan_finds_damage_where_it_is) {
  const std::string five = five_records();
  check_scan(flipped(five, 54 + 12), Fault::bad_payload_crc, 54);
  check_scan(flipped(five, 54 + 24), Fault::bad_payload_crc, 54);
  check_scan(flipped(five, 54), Fault::bad_length_crc, 54);
  check_scan(flipped(five, 54 + 7, 7), Fault::bad_length_crc, 54);
  check_scan(flipped(five, 54 + 9), Fault::bad_length_crc, 54);
  // The payload's fault comes first in the file, though headers are looked at first.
  check_scan(flipped(flipped(five, 12), 54), Fault::bad_payload_crc, 0);
}

TEST(scan_of_a_file_cut_at_any_byte_says_what_is_torn) {
  const std::string five = five_records();
  for (size_t size = 0; size < five.size(); ++size) {
    const size_t left = size % 27;
    const Fault expected = left == 0 ? Fault::none : left < 12 ? Fault::torn_header : Fault::torn_payload;
    check_scan(five.substr(0, size), expected, size - left);
  }
}

TEST(scan_believes_no_length_that_reaches_beyond_the_file) {
  for (const uint64_t length : {uint64_t{12}, uint64_t{1} << 31, uint64_t{1} << 32, uint64_t{1} << 63,
                                UINT64_MAX - 16, UINT64_MAX - 15, UINT64_MAX})
    check_scan(frame("ok") + header(length) + "11 payload.", Fault::torn_payload, 18);
}

TEST(scan_takes_no_zeros_for_records) { check_scan(std::string(4096, '\0'), Fault::bad_length_crc, 0); }

TEST(scan_refuses_what_is_larger_than_allowed) {
  const Exact file(frame("1234") + frame("12345"));
  CHECK_EQ(scan(file, 5).fault, Fault::none);
  const ScanEnd end = scan(file, 4);
  CHECK_EQ(end.fault, Fault::too_large);
  CHECK_EQ(end.offset, 20u);
}

TEST(chunk_of_a_buffer_ends_in_readable_zeros) {
  const Chunk chunk = framed_chunk({"one", "two"});
  CHECK_EQ(chunk.readable, chunk.size + kPadding);
  for (size_t i = chunk.size; i < chunk.readable; ++i) CHECK_EQ(chunk.data[i], 0);
  CHECK_EQ(framed_chunk({}).readable, kPadding);
}

TEST(records_of_random_files_are_read_the_same_every_way) {
  Random random(1);
  for (int i = 0; i < 2000; ++i) {
    const std::string plan = random.bytes(random.below(150));
    Choices choices(as_bytes(plan));
    records_law(Exact(hostile_file(choices)));
  }
}

}  // namespace
}  // namespace recordkit
