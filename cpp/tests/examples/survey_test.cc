#include "core/examples/survey.h"

#include "support/check.h"
#include "support/frames.h"
#include "support/reference.h"

namespace recordkit {
namespace {

Survey surveyed(const std::vector<std::string>& payloads) {
  return survey(framed_chunk(payloads), 0, payloads.size());
}

std::string entry(std::string_view name, std::string_view feature) {
  return bytes_field(1, bytes_field(1, name) + bytes_field(2, feature));
}

const std::string kSeven = unhex("1a 03 0a 01 07");
const std::string kHalf = unhex("12 06 0a 04 00 00 00 3f");

TEST(survey_counts_states_kinds_and_ranges) {
  const Survey facts = surveyed({
      example_of("a", unhex("1a 05 0a 03 05 06 07")),
      example_of("a", unhex("1a 0c 0a 0a ff ff ff ff ff ff ff ff ff 01")),
      example_of("a", unhex("1a 00")),
      example_of("a", ""),
      example_of("a", kHalf),
      example_of("b", kSeven),
  });
  const FeatureFacts& a = facts.features.at("a");
  CHECK_EQ(facts.records, 6u);
  CHECK_EQ(a.records, 5u);
  CHECK_EQ(a.no_kind, 1u);
  CHECK_EQ(a.empty, 1u);
  CHECK_EQ(a.of_kind[static_cast<int>(Kind::int64s)], 3u);
  CHECK_EQ(a.of_kind[static_cast<int>(Kind::floats)], 1u);
  CHECK_EQ(a.min_count, 0u);
  CHECK_EQ(a.max_count, 3u);
  CHECK_EQ(a.min_int, -1);
  CHECK_EQ(a.max_int, 7);
  CHECK_EQ(facts.with_lists, 0u);
}

TEST(survey_knows_pictures_and_text_by_their_bytes) {
  const auto facts_of = [](std::string_view value) {
    return surveyed({example_of("a", bytes_field(1, bytes_field(1, value)))}).features.at("a");
  };
  CHECK(facts_of("\xff\xd8\xff\xe0").jpeg && !facts_of("\xff\xd8\xff\xe0").utf8);
  CHECK(facts_of("\x89PNG\r\n\x1a\n").png && !facts_of("\x89PNG\r\n\x1a\n").jpeg);
  CHECK(facts_of("text").utf8 && !facts_of("text").png);
  CHECK_EQ(facts_of("text").max_bytes, 4u);
}

TEST(survey_takes_the_last_entry_of_a_name) {
  const Survey facts = surveyed({example_of("a", kSeven) + example_of("a", kHalf)});
  CHECK_EQ(facts.features.at("a").records, 1u);
  CHECK_EQ(facts.features.at("a").of_kind[static_cast<int>(Kind::floats)], 1u);
  CHECK_EQ(facts.features.at("a").of_kind[static_cast<int>(Kind::int64s)], 0u);
}

TEST(survey_counts_steps) {
  const std::string two = bytes_field(1, kSeven) + bytes_field(1, unhex("1a 00"));
  const Survey facts = surveyed({bytes_field(2, entry("s", two)), bytes_field(2, entry("s", "")), ""});
  CHECK_EQ(facts.with_lists, 2u);
  CHECK_EQ(facts.lists.at("s").records, 2u);
  CHECK_EQ(facts.lists.at("s").min_steps, 0u);
  CHECK_EQ(facts.lists.at("s").max_steps, 2u);
  CHECK_EQ(facts.lists.at("s").empty, 1u);
}

TEST(survey_stops_at_the_first_payload_that_is_no_example) {
  const Survey facts = surveyed({example_of("a", kSeven), example_of("a", unhex("1a 03 0a 01 80")), "junk"});
  CHECK(facts.malformed);
  CHECK_EQ(facts.record, 1u);
  CHECK_EQ(facts.wire, WireFault::bad_varint);
  CHECK_EQ(facts.byte, 13u);
}

TEST(survey_sees_a_malformed_value_that_a_later_one_replaces) {
  // Protobuf parses it all before the last entry counts, and refuses.
  CHECK(surveyed({example_of("a", unhex("1a 03 0a 01 80")) + example_of("a", kSeven)}).malformed);
}

std::vector<Lint> lints(const std::string& payload, bool sequence = false) {
  std::vector<Lint> all;
  for (const LintFinding& finding : lint(Exact(payload), sequence)) all.push_back(finding.lint);
  return all;
}

using Lints = std::vector<Lint>;

TEST(lint_finds_nothing_in_what_everyone_reads_alike) {
  CHECK(lints("").empty());
  CHECK(lints(bytes_field(
                  1, entry("a", kSeven) + entry("b", kHalf) + entry("c", unhex("1a 00")) + entry("d", "")))
            .empty());
  CHECK(lints(example_of("a", unhex("1a 04 08 07 08 08"))).empty());
  CHECK(lints(example_of("a", unhex("0a 06 0a 01 78 0a 01 79"))).empty());
  CHECK(lints(example_of("a", kSeven) + example_of("b", kSeven)).empty());
  CHECK(lints(example_of("a", kSeven) + unhex("1d 01 02 03 04")).empty());
}

TEST(lint_names_each_thing_tensorflow_reads_otherwise) {
  const std::string name = bytes_field(1, "a"), value = bytes_field(2, kSeven),
                    unknown = unhex("25 01 02 03 04");
  const auto in_entry = [](const std::string& body) { return bytes_field(1, bytes_field(1, body)); };
  CHECK(lints(example_of("a", kSeven) + example_of("a", kSeven)) == Lints{Lint::repeated_name});
  CHECK(lints(in_entry(name)) == Lints{Lint::no_name_or_value});
  CHECK(lints(in_entry(value)) == Lints{Lint::no_name_or_value});
  CHECK(lints(in_entry(name + value + value)) == Lints{Lint::no_name_or_value});
  CHECK(lints(in_entry(name + value + unknown)) == Lints{Lint::unknown_field});
  CHECK(lints(example_of("a", kSeven + unknown)) == Lints{Lint::unknown_field});
  CHECK(lints(example_of("a", bytes_field(3, unhex("0a 01 07") + unknown))) == Lints{Lint::unknown_field});
  CHECK(lints(bytes_field(1, entry("a", kSeven) + unknown)) == Lints{Lint::unknown_field});
  CHECK(lints(example_of("a", kSeven) + unhex("1b 1c")) == Lints{Lint::unknown_field});
  CHECK(lints(example_of("a", unhex("1a 06 0a 01 01 0a 01 02"))) == Lints{Lint::several_chunks});
  CHECK(lints(example_of("a", unhex("1a 05 0a 01 01 08 02"))) == Lints{Lint::several_chunks});
  CHECK(lints(example_of("a", unhex("1a 05 08 01 0a 01 02"))) == Lints{Lint::several_chunks});
  CHECK(lints(example_of("a", kSeven + kSeven)) == Lints{Lint::repeated_list});
  CHECK(lints(example_of("a", kSeven + kHalf)) == Lints{Lint::several_kinds});
  CHECK(lints(example_of("a", unhex("9a 00 03 0a 01 07"))) == Lints{Lint::long_tag});
  CHECK(lints(in_entry(value + name)).empty());
  CHECK(lints(in_entry(value + name), true) == Lints{Lint::value_before_name});
}

TEST(lint_says_where_and_of_what) {
  const std::string first = example_of("a", kSeven);
  const std::vector<LintFinding> findings = lint(as_bytes(first + example_of("a", kHalf)), false);
  CHECK_EQ(findings.size(), 1u);
  CHECK_EQ(findings[0].name, "a");
  CHECK_EQ(findings[0].byte, first.size() + 2);
}

TEST(lint_gives_what_came_before_the_trouble) {
  const std::string payload = example_of("a", kSeven) + example_of("a", kSeven) + unhex("0a 7f");
  CHECK(lints(payload) == Lints{Lint::repeated_name});
}

}  // namespace
}  // namespace recordkit
