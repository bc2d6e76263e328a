#include "core/places.h"

#include <unistd.h>

#include <cstdio>
#include <random>

#include "check.h"
#include "frames.h"

namespace recordkit {
namespace {

// A file of these bytes that goes with the object.
class Held {
 public:
  explicit Held(const std::string& bytes) : file_(std::tmpfile()) {
    std::fwrite(bytes.data(), 1, bytes.size(), file_);
    std::fflush(file_);
  }
  ~Held() { std::fclose(file_); }
  operator int() const { return fileno(file_); }

 private:
  std::FILE* file_;
};

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

TEST(fetching_gives_records_in_the_order_asked_for) {
  const Held file(five_records());
  const std::vector<Place> places = {{108, 27}, {0, 27}, {27, 27}, {54, 27}, {0, 27}};

  const Fetched fetched = fetch(file, places);

  CHECK_EQ(fetched.fault, Fault::none);
  std::string payloads;
  for (size_t i = 0; i < fetched.chunk.records.size(); ++i)
    payloads += as_text(fetched.chunk.payload(i)).back();
  CHECK_EQ(payloads, "40120");
}

TEST(fetching_stops_at_the_first_place_that_holds_no_sound_record) {
  std::string bytes = five_records();
  bytes[54 + 13] ^= 1;
  const Held file(bytes);

  const std::vector<std::pair<Place, Fault>> bad = {
      {{54, 27}, Fault::bad_payload_crc},    {{55, 27}, Fault::bad_length_crc},
      {{81, 26}, Fault::bad_length_crc},     {{108, 28}, Fault::torn_payload},
      {{0, 15}, Fault::torn_payload},        {{UINT64_MAX, 27}, Fault::torn_payload},
      {{0, UINT64_MAX}, Fault::torn_payload}};
  for (const auto& [place, fault] : bad) {
    const std::vector<Place> places = {{0, 27}, place, {27, 27}};
    const Fetched fetched = fetch(file, places);

    CHECK_EQ(fetched.fault, fault);
    CHECK_EQ(fetched.chunk.records.size(), 1u);
    CHECK_EQ(fetched.chunk.size, 27u);
  }
}

TEST(joined_chunks_hold_all_records) {
  const Held file(five_records());
  const std::vector<Place> some = {{27, 27}, {0, 27}}, more = {{108, 27}};
  const Chunk a = fetch(file, some).chunk, b = fetch(file, more).chunk;
  const std::vector<const Chunk*> chunks = {&a, &b};

  const Chunk joined = join(chunks);

  CHECK_EQ(joined.records.size(), 3u);
  CHECK_EQ(joined.size, 81u);
  CHECK_EQ(as_text(joined.payload(0)), "payload-001");
  CHECK_EQ(as_text(joined.payload(2)), "payload-004");
  CHECK_EQ(join({}).records.size(), 0u);
}

}  // namespace
}  // namespace recordkit
