#include "core/examples/encode.h"

#include "core/examples/survey.h"
#include "laws/laws.h"
#include "support/check.h"
#include "support/frames.h"
#include "support/table.h"

namespace recordkit {
namespace {

const FieldSpec kInts{"a", Kind::int64s, -1, false, false};

Cell ints(std::vector<int64_t> values) { return {State::present, {{Kind::none, std::move(values), {}, {}}}}; }

std::string payload_of(const FieldSpec& spec, const Cell& cell) {
  const EncodeResult result = encode_table({spec}, {{cell}}, 1, spec.steps);
  return std::string(as_text(result.chunk.payload(0)));
}

TEST(encode_writes_the_bytes_protobuf_writes) {
  const FieldSpec one{"a", Kind::int64s, 1, true, false}, floats{"a", Kind::floats, 1, true, false};
  CHECK_EQ(payload_of(kInts, ints({1})), unhex("0a0c0a0a0a016112051a030a0101"));
  CHECK_EQ(payload_of(one, ints({1})), unhex("0a0c0a0a0a016112051a030a0101"));
  CHECK_EQ(payload_of(one, ints({-1})), example_of("a", unhex("1a 0c 0a 0a ff ff ff ff ff ff ff ff ff 01")));
  CHECK_EQ(payload_of(floats, {State::present, {{Kind::none, {}, {0x3f1ed1ec}, {}}}}),
           example_of("a", unhex("12 06 0a 04 ec d1 1e 3f")));
  CHECK_EQ(payload_of({"a", Kind::bytes, 2, true, false},
                      {State::present, {{Kind::none, {}, {}, {std::string("a\0\0", 3), "b"}}}}),
           example_of("a", unhex("0a 08 0a 03 61 00 00 0a 01 62")));
  CHECK_EQ(payload_of(kInts, {State::empty, {}}), unhex("0a090a070a016112021a00"));
}

TEST(encode_leaves_out_what_is_missing_or_has_no_kind) {
  CHECK_EQ(payload_of(kInts, {State::missing, {}}), unhex("0a 00"));
  CHECK_EQ(payload_of(kInts, {State::no_kind, {}}), unhex("0a 00"));
}

TEST(encode_writes_an_empty_list_where_a_fixed_count_is_empty) {
  // Not the zeros that hold its place in the column: the record would say something else than it did.
  for (const int64_t count : {1, 3})
    CHECK_EQ(payload_of({"a", Kind::int64s, count, false, false}, {State::empty, {}}),
             unhex("0a090a070a016112021a00"));
}

TEST(encode_of_one_number_of_every_width_comes_back) {
  for (const size_t name_size : {1, 12, 13, 90, 100, 101, 127, 128}) {
    const FieldSpec spec{std::string(name_size, 'n'), Kind::int64s, 1, true, false};
    CellColumn column;
    for (int width = 0; width <= 64; ++width) {
      const uint64_t most = width == 0 ? 0 : ~uint64_t{0} >> (64 - width);
      column.push_back(ints({static_cast<int64_t>(most)}));
      column.push_back(ints({static_cast<int64_t>(most ^ (most >> 1))}));
    }
    const EncodeResult result = encode_table({spec}, {column}, column.size(), false);
    const Decoded decoded = decode_table(Decoder({spec}, false), result.chunk);
    CHECK(decoded.columns == std::vector<CellColumn>{column});
  }
}

TEST(encode_of_no_columns_and_of_no_rows_is_what_it_should_be) {
  const EncodeResult no_columns = encode({}, 2, false);
  CHECK_EQ(as_text({no_columns.chunk.data, no_columns.chunk.size}),
           frame(unhex("0a 00")) + frame(unhex("0a 00")));
  CHECK_EQ(as_text(encode({}, 1, true).chunk.payload(0)), unhex("0a 00 12 00"));
  CHECK_EQ(encode_table({kInts}, {{}}, 0, false).chunk.size, 0u);
}

TEST(encode_of_messages_around_each_size_of_length_comes_back) {
  // A message's length is guessed from the one before, and moved where the guess was wrong.
  CellColumn column;
  for (const size_t size : {1, 100, 130, 1, 16'370, 16'390, 5, 2'097'140, 2'097'160, 3})
    column.push_back({State::present, {{Kind::none, {}, {}, {std::string(size, 'b')}}}});
  const FieldSpec spec{"a", Kind::bytes, 1, true, false};
  const EncodeResult result = encode_table({spec}, {column}, column.size(), false);
  CHECK(decode_table(Decoder({spec}, false), result.chunk).columns == std::vector<CellColumn>{column});
}

SourceColumn two_rows_of_three(const std::vector<int64_t>& values, const std::vector<int64_t>& offsets) {
  SourceColumn column{"a", Kind::int64s, false, -1};
  column.ints = values.data();
  column.value_total = values.size();
  column.value_offsets = offsets.data();
  column.value_offset_total = offsets.size();
  return column;
}

TEST(encode_refuses_offsets_that_lead_outside) {
  const std::vector<int64_t> values{1, 2, 3};
  const auto fault = [&](const std::vector<int64_t>& offsets) {
    const EncodeResult result =
        encode({two_rows_of_three(values, {0, 1, 3}), two_rows_of_three(values, offsets)}, 2, false);
    CHECK(result.fault == EncodeResult::Why::none || result.at == 1);
    return result.fault;
  };
  using enum EncodeResult::Why;
  CHECK_EQ(fault({0, 1, 3}), none);
  CHECK_EQ(fault({1, 1, 2}), none);
  CHECK_EQ(fault({0, 1, 4}), bad_offsets);
  CHECK_EQ(fault({0, 2, 1}), bad_offsets);
  CHECK_EQ(fault({-1, 1, 3}), bad_offsets);
  CHECK_EQ(fault({0, 3}), bad_offsets);
  CHECK_EQ(fault({0, 1, 2, 3}), bad_offsets);
  CHECK_EQ(fault({0, 1, INT64_MAX}), bad_offsets);
}

TEST(encode_refuses_fewer_values_than_a_fixed_count_needs) {
  const std::vector<int64_t> values{1, 2, 3};
  SourceColumn column{"a", Kind::int64s, false, 2};
  column.ints = values.data();
  column.value_total = values.size();
  CHECK_EQ(encode({column}, 2, false).fault, EncodeResult::Why::bad_offsets);
  column.count = INT64_MAX;
  CHECK_EQ(encode({column}, 2, false).fault, EncodeResult::Why::bad_offsets);
}

TEST(encode_refuses_steps_and_bytes_that_lead_outside) {
  const std::vector<int64_t> steps{0, 1, 3}, bad_steps{0, 3, 1}, values{0, 1, 2, 2}, text{0, 1, 2},
      bad_text{0, 3, 2};
  SourceColumn column{"a", Kind::bytes, true, -1};
  column.bytes = as_bytes("xy").data();
  column.byte_total = 2;
  column.value_total = 2;
  column.byte_offsets = text.data();
  column.value_offsets = values.data();
  column.value_offset_total = 4;
  column.step_offsets = steps.data();
  column.step_offset_total = 3;
  CHECK_EQ(encode({column}, 2, true).fault, EncodeResult::Why::none);

  SourceColumn bad = column;
  bad.step_offsets = bad_steps.data();
  CHECK_EQ(encode({bad}, 2, true).fault, EncodeResult::Why::bad_offsets);
  bad = column;
  bad.byte_offsets = bad_text.data();
  CHECK_EQ(encode({bad}, 2, true).fault, EncodeResult::Why::bad_offsets);
  bad = column;
  bad.value_offset_total = 3;
  CHECK_EQ(encode({bad}, 2, true).fault, EncodeResult::Why::bad_offsets);
  bad = column;
  bad.byte_total = 1;
  CHECK_EQ(encode({bad}, 2, true).fault, EncodeResult::Why::bad_offsets);
}

TEST(encode_then_decode_gives_random_tables_back) {
  Random random(1);
  for (int i = 0; i < 4000; ++i) encode_law(as_bytes(random.bytes(random.below(800))));
}

}  // namespace
}  // namespace recordkit
