#include "core/examples/rewrite.h"

#include "laws/laws.h"
#include "support/check.h"
#include "support/examples.h"
#include "support/frames.h"
#include "support/reference.h"

namespace recordkit {
namespace {

using Why = RewriteResult::Why;

const std::string kSeven = unhex("1a 03 0a 01 07");
const std::string kHalf = unhex("12 06 0a 04 00 00 00 3f");

std::string rewritten(const std::string& payload, const Edit& edit) {
  const RewriteResult result = rewrite(framed_chunk({payload}), edit, nullptr);
  CHECK_EQ(result.fault, Why::none);
  CHECK_EQ(result.chunk.payload_crc(0), crc32c(result.chunk.payload(0)));
  return std::string(as_text(result.chunk.payload(0)));
}

TEST(rewrite_without_an_edit_copies_every_byte) {
  const std::string odd = unhex("1d 01 02 03 04") + example_of("a", kSeven + kHalf) + unhex("20 07");
  CHECK_EQ(rewritten(odd, {}), odd);
  CHECK_EQ(rewritten(odd, {.drop = {"not there"}}), odd);
  // Nothing was looked into, so not even a payload of another kind is refused.
  CHECK_EQ(rewritten("no protobuf at all", {}), "no protobuf at all");
}

TEST(rewrite_drops_every_entry_of_the_name_and_keeps_unknown_fields) {
  const std::string unknown = unhex("1d 01 02 03 04");
  const std::string payload =
      example_of("a", kSeven) + unknown + example_of("b", kHalf) + example_of("a", kHalf);
  CHECK_EQ(rewritten(payload, {.drop = {"a"}}),
           unhex("0a 00") + unknown + example_of("b", kHalf) + unhex("0a 00"));
}

TEST(rewrite_renames_and_leaves_the_value_as_it_was) {
  const std::string odd_value = unhex("1a 04 08 07 08 08");  // not packed, and to stay so
  CHECK_EQ(rewritten(example_of("a", odd_value), {.rename = {{"a", "longer"}}}),
           example_of("longer", odd_value));
}

TEST(rewrite_exchanges_two_names) {
  const std::string payload = example_of("a", kSeven) + example_of("b", kHalf);
  CHECK_EQ(rewritten(payload, {.rename = {{"a", "b"}, {"b", "a"}}}),
           example_of("b", kSeven) + example_of("a", kHalf));
}

TEST(rewrite_refuses_a_name_that_is_taken) {
  const std::string payload = example_of("a", kSeven) + example_of("b", kHalf);
  const Chunk chunk = framed_chunk({example_of("a", kSeven), payload});
  for (const Edit& edit : {Edit{.rename = {{"a", "b"}}}, Edit{.absent = {"b"}}}) {
    const RewriteResult result = rewrite(chunk, edit, nullptr);
    CHECK_EQ(result.fault, Why::name_taken);
    CHECK_EQ(result.name, "b");
    CHECK_EQ(result.record, 1u);
    CHECK_EQ(result.byte, example_of("a", kSeven).size() + 2);
  }
  CHECK_EQ(rewritten(payload, {.drop = {"b"}, .rename = {{"a", "b"}}}),
           example_of("b", kSeven) + unhex("0a 00"));
}

TEST(rewrite_takes_out_what_is_replaced_and_lists_are_in_nobodys_way) {
  const std::string list =
      bytes_field(2, bytes_field(1, bytes_field(1, "a") + bytes_field(2, bytes_field(1, kSeven))));
  CHECK_EQ(rewritten(example_of("a", kSeven) + list, {.replace = {"a"}, .sequence = true}),
           unhex("0a 00") + list);
  CHECK_EQ(rewritten(list, {.absent = {"a"}, .sequence = true}), list);
}

TEST(rewrite_names_feature_lists_only_in_a_sequence) {
  const std::string list =
      bytes_field(2, bytes_field(1, bytes_field(1, "s") + bytes_field(2, bytes_field(1, kSeven))));
  CHECK_EQ(rewritten(list, {.drop = {"s"}}), list);
  CHECK_EQ(rewritten(list, {.drop = {"s"}, .sequence = true}), unhex("12 00"));
}

TEST(rewrite_says_where_a_payload_is_malformed) {
  const Chunk chunk = framed_chunk({"", unhex("0a 04 0a 7f 0a 01")});
  const RewriteResult result = rewrite(chunk, {.drop = {"a"}}, nullptr);
  CHECK_EQ(result.fault, Why::malformed);
  CHECK_EQ(result.wire, WireFault::past_end);
  CHECK_EQ(result.record, 1u);
  CHECK_EQ(result.byte, 3u);
}

TEST(rewrite_appends_and_the_checksum_is_that_of_the_whole) {
  Random random(1);
  for (int i = 0; i < 200; ++i) {
    const std::string payload = random.bytes(random.below(400)), tail = random.bytes(random.below(400));
    const Chunk tails = framed_chunk({tail});
    const RewriteResult result = rewrite(framed_chunk({payload}), {}, &tails);
    CHECK_EQ(as_text({result.chunk.data, result.chunk.size}), frame(payload + tail));
  }
}

TEST(rewrite_that_appends_keeps_damage_detectable) {
  // A bit that turns over in memory, behind the check of the reader.
  Chunk chunk = framed_chunk({example_of("a", kSeven)});
  const Chunk tail = framed_chunk({example_of("b", kHalf)});
  const_cast<uint8_t*>(chunk.data)[kHeaderSize + 10] ^= 1;

  for (const Edit& edit : {Edit{}, Edit{.absent = {"b"}}}) {
    const RewriteResult result = rewrite(chunk, edit, &tail);
    CHECK(result.chunk.payload_crc(0) != crc32c(result.chunk.payload(0)));
  }
}

TEST(rewrite_of_random_payloads_is_the_edit_of_the_parsed_maps) {
  Random random(2);
  for (int i = 0; i < 5000; ++i) {
    const std::string plan = random.bytes(random.below(200)), edit = random.bytes(12);
    Choices choices(as_bytes(plan));
    rewrite_law(as_bytes(hostile_example(choices)), as_bytes(edit));
  }
}

}  // namespace
}  // namespace recordkit
