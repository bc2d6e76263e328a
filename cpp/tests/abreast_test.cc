// Records that are decoded side by side are what they are one by one, whatever one of them holds.
#include "check.h"
#include "choices.h"
#include "core/crc32c.h"
#include "core/decode.h"
#include "examples.h"
#include "frames.h"
#include "table.h"

namespace recordkit {
namespace {

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

std::string record_of(Random& random, const std::vector<Feature>& features, bool mixed, uint64_t largest) {
  std::vector<std::string> entries;
  for (const Feature& feature : features) {
    const size_t at = mixed ? random.below(entries.size() + 1) : entries.size();
    const std::string value = bytes_field(2, value_of(random, feature, largest));
    entries.insert(entries.begin() + static_cast<ptrdiff_t>(at),
                   bytes_field(1, bytes_field(1, feature.name) + value));
  }
  std::string message;
  for (const std::string& entry : entries) message += entry;
  return bytes_field(1, message);
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
  constexpr int kCases = 600;
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
        payloads.push_back(record_of(random, features, mixed, largest));
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

}  // namespace
}  // namespace recordkit
