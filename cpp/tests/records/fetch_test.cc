#include "core/records/fetch.h"

#include <unistd.h>

#include <random>

#include "support/check.h"
#include "support/frames.h"
#include "support/temp_file.h"

namespace recordkit {
namespace {

Fetched fetch_one(int descriptor, std::span<const Place> places) { return fetch({&descriptor, 1}, places); }

// A file of records of many sizes, with the place and the payload of each.
struct Made {
  std::string bytes;
  std::vector<Place> places;
  std::vector<std::string> payloads;

  void add(const std::string& payload) {
    const std::string framed = frame(payload);
    places.push_back({bytes.size(), framed.size()});
    payloads.push_back(payload);
    bytes += framed;
  }
};

Made made_of(size_t count, size_t longest, uint32_t seed) {
  std::mt19937 random(seed);
  Made made;
  for (size_t i = 0; i < count; ++i)
    made.add(std::string(random() % longest, static_cast<char>('a' + random() % 26)));
  return made;
}

TEST(fetching_gives_records_in_the_order_asked_for) {
  const TempFile file(five_records());
  const std::vector<Place> places = {{108, 27}, {0, 27}, {27, 27}, {54, 27}, {0, 27}};

  const Fetched fetched = fetch_one(file, places);

  CHECK_EQ(fetched.fault, Fault::none);
  std::string payloads;
  for (size_t i = 0; i < fetched.chunk.records.size(); ++i)
    payloads += as_text(fetched.chunk.payload(i)).back();
  CHECK_EQ(payloads, "40120");
}

// Few and many, so that both ways of sorting are used; short and long, so that some are near each other.
TEST(fetching_from_many_files_gives_what_stands_there) {
  for (const size_t longest : {1, 30, 3000, 20000, 3000000}) {
    const size_t count = longest > 20000 ? 5 : 400;
    const Made made[] = {made_of(count, longest, 1), made_of(3, longest, 2), made_of(count, longest, 3)};
    const TempFile a(made[0].bytes), b(made[1].bytes), c(made[2].bytes);
    const std::vector<int> descriptors = {a, b, c};
    std::mt19937 random(5);
    for (const size_t wanted : {0, 1, 7, 40, 1500}) {
      if (longest > 20000 && wanted > 7) continue;
      std::vector<Place> places;
      std::vector<const std::string*> payloads;
      for (size_t i = 0; i < wanted; ++i) {
        const uint32_t file = random() % 3;
        const size_t record = random() % made[file].places.size();
        places.push_back(made[file].places[record]);
        places.back().file = file;
        payloads.push_back(&made[file].payloads[record]);
      }

      const Fetched fetched = fetch(descriptors, places);

      CHECK_EQ(fetched.fault, Fault::none);
      CHECK_EQ(fetched.chunk.records.size(), wanted);
      size_t size = 0;
      for (size_t i = 0; i < wanted; ++i) {
        CHECK_EQ(as_text(fetched.chunk.payload(i)), *payloads[i]);
        CHECK_EQ(fetched.chunk.records[i].start, size + kHeaderSize);
        size += places[i].size;
      }
      CHECK_EQ(fetched.chunk.size, size);
    }
  }
}

TEST(fetching_stops_at_the_first_place_that_holds_no_sound_record) {
  std::string bytes = five_records();
  bytes[54 + 13] ^= 1;
  const TempFile file(bytes);

  const std::vector<std::pair<Place, Fault>> bad = {
      {{54, 27}, Fault::bad_payload_crc},    {{55, 27}, Fault::bad_length_crc},
      {{81, 26}, Fault::bad_length_crc},     {{108, 28}, Fault::torn_payload},
      {{0, 15}, Fault::torn_payload},        {{UINT64_MAX, 27}, Fault::torn_payload},
      {{0, UINT64_MAX}, Fault::torn_payload}};
  for (const auto& [place, fault] : bad) {
    const std::vector<Place> places = {{0, 27}, place, {27, 27}};
    const Fetched fetched = fetch_one(file, places);

    CHECK_EQ(fetched.fault, fault);
    CHECK_EQ(fetched.chunk.records.size(), 1u);
    CHECK_EQ(fetched.chunk.size, 27u);
  }
}

TEST(the_first_fault_is_the_first_in_the_order_asked_for) {
  std::string bytes = five_records();
  bytes[0] ^= 1;        // a length
  bytes[81 + 14] ^= 1;  // a payload
  const TempFile file(bytes);

  const std::vector<Place> places = {{27, 27}, {81, 27}, {0, 27}, {108, 27}};
  const Fetched fetched = fetch_one(file, places);

  CHECK_EQ(fetched.fault, Fault::bad_payload_crc);
  CHECK_EQ(fetched.chunk.records.size(), 1u);
}

TEST(a_file_that_is_cut_short_tells_every_record_it_has_lost) {
  const Made made = made_of(300, 2000, 4);
  for (const size_t records : {0, 1, 150, 299}) {
    // Cut inside a record, after the places were noted.
    const TempFile file(made.bytes.substr(0, made.places[records].offset + 15));
    std::vector<Place> places;
    for (size_t i = 0; i < 300; ++i) places.push_back(made.places[i * 7 % 300]);

    const Fetched fetched = fetch_one(file, places);

    size_t sound = 0;
    while (places[sound].offset < made.places[records].offset) ++sound;
    CHECK_EQ(fetched.fault, Fault::torn_payload);
    CHECK_EQ(fetched.chunk.records.size(), sound);
  }
}

TEST(joined_chunks_hold_all_records) {
  const TempFile file(five_records());
  const std::vector<Place> some = {{27, 27}, {0, 27}}, more = {{108, 27}};
  const Chunk a = fetch_one(file, some).chunk, b = fetch_one(file, more).chunk;
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
