#include "core/records/header_scan.h"

#include <unistd.h>

#include <chrono>
#include <random>
#include <thread>

#include "support/check.h"
#include "support/choices.h"
#include "support/frames.h"
#include "support/temp_file.h"

namespace recordkit {
namespace {

constexpr uint64_t kPlenty = UINT64_MAX / 2;

std::string many_records(size_t count, size_t longest) {
  std::mt19937 random(7);
  std::string file;
  for (size_t i = 0; i < count; ++i)
    file += frame(std::string(random() % longest, static_cast<char>('a' + i % 26)));
  return file;
}

Chunk scanned(const std::string& bytes) {
  Chunk chunk;
  chunk.data = reinterpret_cast<const uint8_t*>(bytes.data());
  chunk.size = chunk.readable = bytes.size();
  hop(chunk, 0, SIZE_MAX, UINT64_MAX, UINT64_MAX);
  return chunk;
}

// Large enough that maps are tried, and the last that one is left for another.
TEST(hopping_over_a_file_finds_what_a_scan_finds) {
  for (const auto& [count, longest] : {std::pair{80'000, 1}, {60'000, 30}, {3'000, 3'000}, {800, 200'000}}) {
    const std::string bytes = many_records(count, longest);
    const Chunk chunk = scanned(bytes);
    const TempFile file(bytes);
    for (const uint64_t most_mapped : {uint64_t{0}, uint64_t{1} << 20, kPlenty}) {
      const HeaderScan scan = scan_headers(file, 0, SIZE_MAX, most_mapped);

      CHECK_EQ(scan.fault, Fault::none);
      CHECK_EQ(scan.offset, bytes.size());
      CHECK_EQ(scan.lengths.size(), chunk.records.size());
      for (size_t i = 0; i < chunk.records.size(); ++i) {
        CHECK_EQ(scan.lengths.data()[i], chunk.records[i].length);
        CHECK_EQ(scan.payload_crcs.data()[i], chunk.payload_crc(i));
      }
    }
  }
}

TEST(hopping_finds_faults_anywhere) {
  const std::string sound = many_records(800, 20'000);
  const Chunk chunk = scanned(sound);
  for (size_t number = 0; number < chunk.records.size(); number += 13) {
    std::string bytes = sound;
    const uint64_t start = chunk.offset_of(number);
    bytes[start + number % kHeaderSize] ^= 4;

    const HeaderScan scan = scan_headers(TempFile(bytes), 0, SIZE_MAX, kPlenty);

    CHECK_EQ(scan.lengths.size(), number);
    CHECK_EQ(scan.offset, start);
    CHECK_EQ(scan.fault, Fault::bad_length_crc);
  }
}

TEST(a_file_may_be_cut_short_while_it_is_hopped_over) {
  const std::string bytes = many_records(3'000, 6'000);
  const Chunk chunk = scanned(bytes);
  Random random(9);
  for (int round = 0; round < 200; ++round) {
    const TempFile file(bytes);

    const uint64_t size = random.below(bytes.size()), wait = random.below(2'000);
    std::thread cut([&] {
      std::this_thread::sleep_for(std::chrono::microseconds(wait));
      CHECK_EQ(::ftruncate(file, static_cast<off_t>(size)), 0);
    });
    const HeaderScan scan = scan_headers(file, 0, SIZE_MAX, kPlenty);
    cut.join();

    for (size_t i = 0; i < scan.lengths.size(); ++i) {
      CHECK_EQ(scan.lengths.data()[i], chunk.records[i].length);
      CHECK_EQ(scan.payload_crcs.data()[i], chunk.payload_crc(i));
    }
    CHECK(scan.fault != Fault::bad_length_crc);  // it is torn
    if (scan.fault == Fault::none) CHECK_EQ(scan.lengths.size(), chunk.records.size());
  }
}

TEST(hopping_stops_at_a_torn_tail_of_any_length) {
  const std::string whole = five_records();
  for (size_t size = 0; size <= whole.size(); ++size) {
    const HeaderScan scan = scan_headers(TempFile(whole.substr(0, size)), 0, SIZE_MAX, kPlenty);

    CHECK_EQ(scan.lengths.size(), size / 27);
    CHECK_EQ(scan.offset, size / 27 * 27);
    const size_t rest = size % 27;
    CHECK_EQ(scan.fault, rest == 0 ? Fault::none : rest < 12 ? Fault::torn_header : Fault::torn_payload);
  }
}

TEST(hopping_goes_on_where_it_is_told_and_stops_at_a_count) {
  const TempFile file(five_records());

  const HeaderScan scan = scan_headers(file, 27, 2, kPlenty);

  CHECK_EQ(scan.lengths.size(), 2u);
  CHECK_EQ(scan.offset, 81u);
  CHECK_EQ(scan.fault, Fault::none);
}

TEST(hopping_does_not_believe_a_length_whose_checksum_is_wrong) {
  std::string bytes = five_records();
  bytes[54] ^= 1;

  const HeaderScan scan = scan_headers(TempFile(bytes), 0, SIZE_MAX, kPlenty);

  CHECK_EQ(scan.lengths.size(), 2u);
  CHECK_EQ(scan.fault, Fault::bad_length_crc);
}

}  // namespace
}  // namespace recordkit
