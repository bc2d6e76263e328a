// Records that are decoded side by side are what they are one by one, whatever one of them holds.
#include <functional>

#include "core/examples/decode.h"
#include "core/records/crc32c.h"
#include "support/check.h"
#include "support/choices.h"
#include "support/examples.h"
#include "support/frames.h"
#include "support/table.h"

namespace recordkit {
namespace {

using DecodeWhat = DecodeFault::What;

struct Feature {
  std::string name;
  Kind kind;
  size_t count;
};

constexpr char kNoText = '\xff';

// Names share their first and last letters with others, and lengths lie on both sides of every limit.
std::string name_of(Random& random, size_t number) {
  constexpr size_t kSizes[] = {1, 2, 7, 8, 9, 15, 16, 17, 22, 23, 26, 27, 40};
  std::string name(kSizes[random.below(std::size(kSizes))], 'n');
  name[random.below(name.size())] = static_cast<char>('A' + number);
  if (random.below(50) == 0) name[0] = kNoText;
  if (random.below(25) == 0) name += "\xc3\xa9";
  return name;
}

std::vector<Feature> features_of(Random& random) {
  constexpr Kind kKinds[] = {Kind::int64s, Kind::int64s, Kind::floats, Kind::bytes};
  std::vector<Feature> features;
  const size_t kinds = random.below(2) ? 3 : 4, most = 1 + random.below(30);
  for (size_t f = 0; f < most; ++f)
    features.push_back(
        {name_of(random, f), kKinds[random.below(kinds)], random.below(12) ? size_t{1} : size_t{3}});
  return features;
}

std::string value_of(Random& random, const Feature& feature, uint64_t largest) {
  std::string values;
  for (size_t i = 0; i < feature.count; ++i) {
    const uint64_t bits = random.next() % largest;
    if (feature.kind == Kind::bytes) {
      values += bytes_field(1, random.bytes(random.below(9)));
    } else if (feature.kind == Kind::floats) {
      values.append(reinterpret_cast<const char*>(&bits), 4);
    } else {
      uint8_t varint[kMaxVarint];
      values.append(varint, store_varint(varint, bits));
    }
  }
  if (feature.kind != Kind::bytes) values = bytes_field(1, values);
  return bytes_field(static_cast<uint32_t>(feature.kind), values);
}

std::string entry_of(const std::string& name, const std::string& value) {
  return bytes_field(1, bytes_field(1, name) + bytes_field(2, value));
}

using Entries = std::vector<std::string>;

std::string payload_of(const Entries& entries) {
  std::string message;
  for (const std::string& entry : entries) message += entry;
  return bytes_field(1, message);
}

Entries entries_of(Random& random, const std::vector<Feature>& features, bool mixed, uint64_t largest) {
  Entries entries;
  for (const Feature& feature : features) {
    const size_t at = mixed ? random.below(entries.size() + 1) : entries.size();
    entries.insert(entries.begin() + static_cast<ptrdiff_t>(at),
                   entry_of(feature.name, value_of(random, feature, largest)));
  }
  return entries;
}

void change(Random& random, std::string& payload) {
  const size_t at = random.below(payload.size());
  switch (random.below(4)) {
    case 0:
      payload[at] = static_cast<char>(payload[at] ^ 1 << random.below(8));
      break;
    case 1:
      payload[at] = static_cast<char>(random.next());
      break;
    case 2:
      payload.erase(at, 1);
      break;
    default:
      payload.insert(at, 1, payload[random.below(payload.size())]);
  }
}

void is_as_one_by_one(const std::vector<FieldSpec>& specs, const Decoder& decoder,
                      const std::vector<std::string>& payloads) {
  const Chunk exact = bare_chunk(payloads, Behind::pretend_nothing_readable);
  const Decoded expected = decode_table(Decoder(specs, false), exact);
  for (const Behind behind : {Behind::plenty, Behind::padding, Behind::nothing}) {
    const Decoded decoded = decode_table(decoder, bare_chunk(payloads, behind));
    CHECK(decoded.fault == expected.fault);
    CHECK(decoded.columns == expected.columns);
  }
}

TEST(records_are_decoded_side_by_side_as_they_are_one_by_one) {
  constexpr int kCases = 300;
  constexpr size_t kRows = 33;
  for (const std::string_view path : crc32c_paths()) {  // which tells what instructions may be used
    CHECK(crc32c_use_path(path));
    Random random(5);
    for (int i = 0; i < kCases; ++i) {
      const std::vector<Feature> features = features_of(random);
      const bool mixed = random.below(2), all = random.below(2);
      const uint64_t largest = random.below(3) ? uint64_t{1} << (1 + random.below(40)) : ~uint64_t{0};
      std::vector<FieldSpec> specs;
      for (const Feature& feature : features) {
        if ((!all && random.below(4)) || feature.name[0] == kNoText) continue;
        const auto same = [&](const FieldSpec& spec) { return spec.name == feature.name; };
        if (std::any_of(specs.begin(), specs.end(), same)) continue;
        const int64_t count = random.below(20) ? static_cast<int64_t>(feature.count) : -1;
        specs.push_back({feature.name, feature.kind, count, random.below(8) > 0, false});
      }
      if (random.below(8) == 0) specs.push_back({"nowhere", Kind::int64s, 1, false, false});
      std::vector<std::string> payloads;
      for (size_t row = 0; row < kRows; ++row)
        payloads.push_back(payload_of(entries_of(random, features, mixed, largest)));
      const Decoder decoder(specs, false);
      is_as_one_by_one(specs, decoder, payloads);
      for (int changes = 0; changes < 3; ++changes) {
        std::vector<std::string> changed = payloads;
        change(random, changed[random.below(kRows)]);
        is_as_one_by_one(specs, decoder, changed);
      }
    }
  }
  crc32c_use_path(crc32c_paths().front());
}

// Each is wrong in a way of its own, in one record of many, of which the others are sound.
TEST(no_record_is_taken_side_by_side_that_is_wrong_alone) {
  constexpr size_t kRows = 41;
  const std::string one = unhex("1a 03 0a 01 07"), cut = unhex("1a 03 0a 01 87"),
                    floats = unhex("12 0a 0a 08 00 00 00 00 00 00 00 00"), no_bytes = unhex("0a 00");
  const auto named = [](Entries& entries, const std::string& name) -> std::string& {
    const auto is = [&](const std::string& entry) { return entry.find(name) != std::string::npos; };
    return *std::find_if(entries.begin(), entries.end(), is);
  };
  const std::pair<DecodeWhat, std::function<void(Entries&)>> wrongs[] = {
      {DecodeWhat::malformed, [&](Entries& all) { named(all, "int 3") = entry_of("int 3", cut); }},
      {DecodeWhat::malformed, [&](Entries& all) { all.insert(all.begin(), entry_of("int 3", cut)); }},
      {DecodeWhat::wrong_count, [&](Entries& all) { named(all, "float") = entry_of("float", floats); }},
      {DecodeWhat::wrong_kind, [&](Entries& all) { named(all, "float") = entry_of("float", one); }},
      {DecodeWhat::wrong_count, [&](Entries& all) { named(all, "bytes") = entry_of("bytes", no_bytes); }},
      {DecodeWhat::missing, [&](Entries& all) { named(all, "bytes") = entry_of("int 3", one); }},
      {DecodeWhat::missing, [&](Entries& all) { named(all, "int 5") = entry_of("int 3", one); }},
      {DecodeWhat::missing, [&](Entries& all) { named(all, "float") = entry_of("int 3", one); }},
      {DecodeWhat::missing, [&](Entries& all) { named(all, "int 5") = entry_of("int 50", one); }},
      {DecodeWhat::missing, [&](Entries& all) { named(all, "and-a-way") = entry_of("and-a-wax-on", one); }},
      {DecodeWhat::wrong_kind,
       [&](Entries& all) { named(all, "int 5") = entry_of("int 5", unhex("0a 03 0a 01 07")); }},
      // The length of the last entry goes on in the byte behind it, which looks like the tag of a name.
      {DecodeWhat::malformed,
       [](Entries& all) {
         all.back() = unhex("0a 80 0a 05") + "after" + unhex("12 77") + std::string(0x80 - 9, 1);
       }},
      // The last entry ends before its name does, which would go on far behind the record.
      {DecodeWhat::malformed, [](Entries& all) { all.back() = unhex("0a 02 0a ff"); }},
      {DecodeWhat::malformed, [](Entries& all) { all.back() = unhex("0a 02 0a 7f"); }},
      // The last entry is shorter than its name, which goes on where the next record starts.
      {DecodeWhat::malformed, [](Entries& all) { all.back() = unhex("0a 04 0a 05 61 66"); }},
  };
  const std::string goes_on = unhex("74 65 72 12 fb");
  std::vector<Feature> features;
  std::vector<FieldSpec> specs;
  for (size_t f = 0; f < 24; ++f) features.push_back({"int " + std::to_string(f), Kind::int64s, 1});
  features.push_back({"and-a-way-on", Kind::int64s, 1});
  features.push_back({"float", Kind::floats, 1});
  features.push_back({"bytes", Kind::bytes, 1});
  for (const Feature& feature : features) specs.push_back({feature.name, feature.kind, 1, true, false});

  for (const std::string_view path : crc32c_paths()) {
    CHECK(crc32c_use_path(path));
    Random random(6);
    for (const bool mixed : {false, true}) {
      const Decoder decoder(specs, false);
      for (size_t at = 0; at < kRows; ++at) {
        for (const auto& [what, make_wrong] : wrongs) {
          std::vector<std::string> payloads;
          for (size_t row = 0; row < kRows; ++row) {
            Entries entries = entries_of(random, features, mixed, 1000);
            entries.push_back(entry_of("after", one));
            if (row == at) make_wrong(entries);
            payloads.push_back(payload_of(entries));
          }
          if (at + 1 < kRows && payloads[at].ends_with("af")) payloads[at + 1] = goes_on;
          for (const Behind behind : {Behind::plenty, Behind::padding}) {
            const Decoded result = decode_table(decoder, bare_chunk(payloads, behind));
            CHECK_EQ(result.fault.what, what);
            CHECK_EQ(result.fault.record, at);
          }
        }
      }
    }
  }
  crc32c_use_path(crc32c_paths().front());
}

// A field with a name too long to be found in any order, which no record has; and another that is there
// twice.
TEST(field_that_is_there_twice_does_not_stand_for_one_with_a_long_name) {
  const std::string one = unhex("1a 03 0a 01 07"), cut = unhex("1a 03 0a 01 87");
  std::vector<Feature> features;
  std::vector<FieldSpec> specs = {{std::string(200, 'n'), Kind::int64s, 1, false, false}};
  for (size_t f = 0; f < 24; ++f) {
    features.push_back({"int " + std::to_string(f), Kind::int64s, 1});
    specs.push_back({features.back().name, Kind::int64s, 1, true, false});
  }
  for (const std::string_view path : crc32c_paths()) {
    CHECK(crc32c_use_path(path));
    Random random(7);
    const Decoder decoder(specs, false);
    for (const bool twice : {false, false, true}) {
      std::vector<std::string> payloads;
      for (size_t row = 0; row < 20; ++row) {
        Entries entries = entries_of(random, features, true, 1000);
        if (twice && row > 0) entries.insert(entries.begin(), entry_of("int 3", cut));
        payloads.push_back(payload_of(entries));
      }

      const Decoded result = decode_table(decoder, bare_chunk(payloads, Behind::plenty));

      CHECK_EQ(result.fault.what, twice ? DecodeWhat::malformed : DecodeWhat::none);
      CHECK_EQ(result.fault.record, twice ? 1u : 0u);
    }
  }
  crc32c_use_path(crc32c_paths().front());
}

TEST(field_that_every_record_has_twice_stands_for_no_other) {
  const std::string twice =
      payload_of({entry_of("a", unhex("1a 03 0a 01 07")), entry_of("a", unhex("1a 03 0a 01 08"))});
  const std::vector<std::string> payloads(20, twice);

  const Decoder decoder({{"a", Kind::int64s, 1, true, false}, {"b", Kind::int64s, 1, false, false}}, false);
  const Decoded result = decode_table(decoder, bare_chunk(payloads, Behind::plenty));

  CHECK(result.columns[0] == CellColumn(20, {State::present, {{Kind::none, {8}, {}, {}}}}));
  CHECK(result.columns[1] == CellColumn(20, {State::missing, {}}));
}

}  // namespace
}  // namespace recordkit
