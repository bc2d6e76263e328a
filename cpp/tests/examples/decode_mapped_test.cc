// What is decoded from maps is what fetching and decoding gives, or it is left to them.
#include "core/examples/decode_mapped.h"

#include <unistd.h>

#include "core/records/fetch.h"
#include "support/check.h"
#include "support/choices.h"
#include "support/examples.h"
#include "support/frames.h"
#include "support/reference.h"
#include "support/sources.h"
#include "support/table.h"
#include "support/temp_file.h"

namespace recordkit {
namespace {

constexpr uint64_t kPlenty = uint64_t{1} << 40;

const std::vector<FieldSpec> kFields = {{"a", Kind::int64s, 1, false, false},
                                        {"b", Kind::floats, 1, false, false},
                                        {"list", Kind::int64s, -1, false, false},
                                        {"text", Kind::bytes, 1, false, false}};

std::string entry(const std::string& name, uint32_t kind, const std::string& value) {
  return bytes_field(1, bytes_field(1, name) + bytes_field(2, bytes_field(kind, bytes_field(1, value))));
}

// Similar records, as for decoding in lanes.
std::string alike(Random& random) {
  std::string value(1 + random.below(3), '\xff');
  value.back() = static_cast<char>(random.below(128));
  const std::string text = random.bytes(random.below(40) ? random.below(60) : 40'000);
  return bytes_field(1, entry("a", 3, value) + entry("b", 2, random.bytes(4)) +
                            entry("not asked for", 2, value + "!!") +
                            entry("list", 3, std::string(random.below(30), '\x05')) + entry("text", 1, text));
}

// Two files, with the places of all their records.
struct Files {
  std::string bytes[2];
  std::vector<Place> places;

  void add(Random& random, const std::string& payload) {
    const uint32_t file = static_cast<uint32_t>(random.below(2));
    const std::string framed = frame(payload);
    places.push_back({bytes[file].size(), framed.size(), file});
    bytes[file] += framed;
  }
};

void is_as_fetched(const Files& files, std::span<const Place> places, const Decoder& decoder) {
  const TempFile a(files.bytes[0]), b(files.bytes[1]);
  const std::vector<int> descriptors = {a, b};
  const std::unique_ptr<FileMap> map_a = FileMap::of(a, kPlenty), map_b = FileMap::of(b, kPlenty);
  const std::vector<const FileMap*> maps = {map_a.get(), map_b.get()};
  const Fetched fetched = fetch(descriptors, places);
  const Decoded expected = decode_table(Decoder(decoder.fields(), false), fetched.chunk);

  const std::optional<std::vector<CellColumn>> gathered = table_of(
      decoder, places.size(), [&](auto& columns) { return decode_mapped(decoder, places, maps, columns); });

  const bool sound = fetched.fault == Fault::none && expected.fault.what == DecodeFault::What::none;
  CHECK_EQ(gathered.has_value(), sound);
  if (sound) CHECK(*gathered == expected.columns);
}

std::vector<Place> some_of(Random& random, const Files& files, size_t count) {
  std::vector<Place> places;
  for (size_t i = 0; i < count; ++i) places.push_back(files.places[random.below(files.places.size())]);
  return places;
}

TEST(gathered_records_are_those_that_are_fetched_and_decoded) {
  Random random(11);
  const Decoder decoder(kFields, false);
  for (int i = 0; i < 60; ++i) {
    Files files;
    for (size_t r = 0; r < 50; ++r) files.add(random, random.below(30) ? alike(random) : "");
    for (const size_t count : {0, 1, 7, 8, 9, 100})
      is_as_fetched(files, some_of(random, files, count), decoder);
  }
}

TEST(whatever_records_hold_they_are_gathered_or_left_alone) {
  Random random(12);
  const Decoder decoder(kFields, false);
  for (int i = 0; i < 400; ++i) {
    Files files;
    for (size_t r = 0; r < 20; ++r) {
      const std::string noise = random.bytes(300);
      Choices choices(as_bytes(noise));
      files.add(random, random.below(10) ? alike(random) : hostile_example(choices));
    }
    is_as_fetched(files, some_of(random, files, 17), decoder);
  }
}

TEST(damaged_records_and_wrong_places_are_left_alone) {
  Random random(13);
  const Decoder decoder(kFields, false);
  for (int i = 0; i < 400; ++i) {
    Files files;
    for (size_t r = 0; r < 20; ++r) files.add(random, alike(random));
    std::vector<Place> places = some_of(random, files, 17);
    Place& place = places[random.below(places.size())];
    switch (random.below(4)) {
      case 0:
        files.bytes[place.file][place.offset + random.below(place.size)] ^=
            static_cast<char>(1 << random.below(8));
        break;
      case 1:
        place.size += random.below(2) ? 1 : -1;
        break;
      case 2:
        place.offset += random.below(2) ? 1 : random.next();
        break;
      default:
        place.size = random.below(2) ? random.below(17) : random.next();
    }
    is_as_fetched(files, places, decoder);
  }
}

TEST(records_without_a_map_are_left_alone) {
  Random random(14);
  Files files;
  for (size_t r = 0; r < 20; ++r) files.add(random, alike(random));
  const TempFile a(files.bytes[0]);
  const std::unique_ptr<FileMap> map = FileMap::of(a, kPlenty);
  const std::vector<const FileMap*> maps = {map.get(), nullptr};
  std::vector<Column> columns(kFields.size());

  CHECK(!decode_mapped(Decoder(kFields, false), files.places, maps, columns));
}

TEST(records_of_a_file_that_is_cut_short_under_its_map_are_left_alone) {
  Random random(15);
  Files files;
  for (size_t r = 0; r < 400; ++r) files.add(random, alike(random));
  const TempFile a(files.bytes[0]), b(files.bytes[1]);
  const std::unique_ptr<FileMap> map_a = FileMap::of(a, kPlenty), map_b = FileMap::of(b, kPlenty);
  const std::vector<const FileMap*> maps = {map_a.get(), map_b.get()};
  const Decoder decoder(kFields, false);
  const auto gathered = [&] {
    return table_of(decoder, files.places.size(),
                    [&](auto& columns) { return decode_mapped(decoder, files.places, maps, columns); });
  };
  CHECK(gathered().has_value());

  CHECK_EQ(::ftruncate(a, 4096), 0);

  CHECK(!gathered().has_value());
}

// --- The next records of a reader

struct AllRead {
  std::vector<CellColumn> columns = std::vector<CellColumn>(kFields.size());
  uint64_t records = 0;
  size_t brought = 0;  // how often a batch was decoded as its records were copied
  Fault fault = Fault::none;
  uint64_t offset = 0;

  void add(const std::vector<CellColumn>& more, size_t rows) {
    for (size_t f = 0; f < columns.size(); ++f)
      columns[f].insert(columns[f].end(), more[f].begin(), more[f].end());
    records += rows;
  }
};

// Everything, `rows` records at a time, each decoded on the way if that is possible and asked for.
AllRead read_all(RecordReader& reader, size_t rows, bool on_the_way) {
  const Decoder decoder(kFields, false);
  AllRead all;
  for (;;) {
    std::optional<uint64_t> first;
    const auto decoded = table_of(decoder, rows, [&](auto& columns) {
      if (on_the_way) first = decode_next(decoder, reader, rows, columns);
      return first.has_value();
    });
    if (decoded) {
      CHECK_EQ(*first, all.records);
      all.add(*decoded, rows);
      ++all.brought;
      continue;
    }
    const ReadResult result = reader.next(rows, true);
    CHECK_EQ(result.chunk.first_record, all.records);
    if (!result.chunk.records.empty())
      all.add(decode_table(decoder, result.chunk).columns, result.chunk.records.size());
    all.fault = result.fault;
    all.offset = result.offset;
    if (result.chunk.records.size() < rows) return all;
  }
}

std::string file_of_alike(size_t bytes) {
  Random random(16);
  std::string file;
  while (file.size() < bytes) file += frame(alike(random));
  return file;
}

void is_read_on_the_way(const std::string& file, size_t rows, size_t least) {
  RecordReader plain(std::make_unique<PieceSource>(file, SIZE_MAX), {});
  const AllRead expected = read_all(plain, rows, false);
  const TempFile held(file);
  std::atomic<size_t> read = 0;
  RecordReader reader(std::make_unique<SlowFile>(held, read), {});

  const AllRead all = read_all(reader, rows, true);

  CHECK(all.columns == expected.columns);
  CHECK_EQ(all.records, expected.records);
  CHECK_EQ(all.fault, expected.fault);
  CHECK_EQ(all.offset, expected.offset);
  CHECK(all.brought >= least);
}

TEST(next_records_decoded_on_the_way_are_those_that_are_read_and_decoded) {
  const std::string file = file_of_alike(size_t{60} << 20);
  is_read_on_the_way(file, 100, 30);
  is_read_on_the_way(file, 1001, 3);
}

TEST(damage_is_left_to_whoever_reads_and_told_as_ever) {
  const std::string file = file_of_alike(size_t{60} << 20);
  for (const size_t at : {(size_t{56} << 20) + 3, (size_t{59} << 20) + 17, file.size() - 1}) {
    is_read_on_the_way(flipped(file, at), 100, 20);
    is_read_on_the_way(file.substr(0, at), 100, 20);
  }
}

TEST(large_records_are_not_brought) {
  std::string file;
  Random random(17);
  for (size_t i = 0; i < 10'000; ++i)
    file += frame(bytes_field(1, entry("text", 1, random.bytes(6000)) + entry("a", 3, "\x05")));
  const TempFile held(file);
  std::atomic<size_t> read = 0;
  RecordReader reader(std::make_unique<SlowFile>(held, read), {});

  const AllRead all = read_all(reader, 100, true);

  CHECK_EQ(all.records, 10'000u);
  CHECK_EQ(all.brought, 0u);
  CHECK(read < file.size() / 2);  // they were copied
}

}  // namespace
}  // namespace recordkit
