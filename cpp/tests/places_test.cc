#include "core/places.h"

#include <random>

#include "check.h"
#include "frames.h"
#include "held.h"

namespace recordkit {
namespace {

std::string many_records(size_t count, size_t longest) {
  std::mt19937 random(7);
  std::string file;
  for (size_t i = 0; i < count; ++i)
    file += frame(std::string(random() % longest, static_cast<char>('a' + i % 26)));
  return file;
}

TEST(hopping_over_a_file_finds_what_a_scan_finds) {
  for (const size_t longest : {1, 30, 3000, 200000}) {
    const std::string bytes = many_records(300, longest);
    Chunk chunk;
    chunk.data = reinterpret_cast<const uint8_t*>(bytes.data());
    chunk.size = chunk.readable = bytes.size();
    hop(chunk, 0, SIZE_MAX, UINT64_MAX, UINT64_MAX);

    const Hops hops = hop_over(Held(bytes), 0, SIZE_MAX);

    CHECK_EQ(hops.fault, Fault::none);
    CHECK_EQ(hops.offset, bytes.size());
    CHECK_EQ(hops.lengths.size(), chunk.records.size());
    for (size_t i = 0; i < chunk.records.size(); ++i) {
      CHECK_EQ(hops.lengths.data()[i], chunk.records[i].length);
      CHECK_EQ(hops.payload_crcs.data()[i], chunk.payload_crc(i));
    }
  }
}

TEST(hopping_stops_at_a_torn_tail_of_any_length) {
  const std::string whole = five_records();
  for (size_t size = 0; size <= whole.size(); ++size) {
    const Hops hops = hop_over(Held(whole.substr(0, size)), 0, SIZE_MAX);

    CHECK_EQ(hops.lengths.size(), size / 27);
    CHECK_EQ(hops.offset, size / 27 * 27);
    const size_t rest = size % 27;
    CHECK_EQ(hops.fault, rest == 0 ? Fault::none : rest < 12 ? Fault::torn_header : Fault::torn_payload);
  }
}

TEST(hopping_goes_on_where_it_is_told_and_stops_at_a_count) {
  const Held file(five_records());

  const Hops hops = hop_over(file, 27, 2);

  CHECK_EQ(hops.lengths.size(), 2u);
  CHECK_EQ(hops.offset, 81u);
  CHECK_EQ(hops.fault, Fault::none);
}

TEST(hopping_does_not_believe_a_length_whose_checksum_is_wrong) {
  std::string bytes = five_records();
  bytes[54] ^= 1;

  const Hops hops = hop_over(Held(bytes), 0, SIZE_MAX);

  CHECK_EQ(hops.lengths.size(), 2u);
  CHECK_EQ(hops.fault, Fault::bad_length_crc);
}

}  // namespace
}  // namespace recordkit
