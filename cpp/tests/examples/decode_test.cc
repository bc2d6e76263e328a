#include "core/examples/decode.h"

#include <thread>

#include "laws/laws.h"
#include "support/check.h"
#include "support/examples.h"
#include "support/frames.h"
#include "support/table.h"

namespace recordkit {
namespace {

using DecodeWhat = DecodeFault::What;

const FieldSpec kAnyInts{"a", Kind::int64s, -1, false, false};

Cell ints(std::vector<int64_t> values) { return {State::present, {{Kind::none, std::move(values), {}, {}}}}; }

Decoded decoded(const std::string& payload, const FieldSpec& spec, bool sequence = false) {
  decode_law(as_bytes(payload));
  return decode_table(Decoder({spec}, sequence), bare_chunk({payload}, Behind::padding));
}

Cell cell(const std::string& payload, const FieldSpec& spec = kAnyInts, bool sequence = false) {
  const Decoded result = decoded(payload, spec, sequence);
  CHECK_EQ(result.fault.what, DecodeWhat::none);
  return result.columns[0][0];
}

std::string list_of(std::string_view steps) {
  return bytes_field(2, bytes_field(1, bytes_field(1, "a") + bytes_field(2, steps)));
}

TEST(decode_reads_packed_and_unpacked_alike) {
  CHECK(cell(unhex("0a0c0a0a0a016112051a030a0101")) == ints({1}));
  CHECK(cell(unhex("0a0b0a090a016112041a020801")) == ints({1}));
  CHECK(cell(example_of("a", unhex("1a 09 0a 02 01 02 08 03 0a 01 04"))) == ints({1, 2, 3, 4}));
}

TEST(decode_tells_missing_no_kind_and_empty_apart) {
  CHECK_EQ(cell("").state, State::missing);
  CHECK_EQ(cell(unhex("0a070a050a01611200")).state, State::no_kind);
  CHECK_EQ(cell(unhex("0a090a070a016112021a00")).state, State::empty);
}

TEST(decode_takes_the_last_of_two_entries_and_of_two_kinds) {
  const std::string seven = unhex("1a 03 0a 01 07"), eight = unhex("1a 03 0a 01 08"),
                    half = unhex("12 06 0a 04 00 00 00 3f");
  CHECK(cell(example_of("a", seven) + example_of("a", eight)) == ints({8}));
  CHECK(cell(example_of("a", half + eight)) == ints({8}));
  CHECK(cell(example_of("a", seven + half + eight)) == ints({8}));
  CHECK(cell(example_of("a", seven + eight)) == ints({7, 8}));
  CHECK_EQ(cell(example_of("a", seven) + example_of("a", "")).state, State::no_kind);
}

TEST(decode_judges_only_the_entry_that_counts) {
  const std::string seven = unhex("1a 03 0a 01 07"), half = unhex("12 06 0a 04 00 00 00 3f");
  const FieldSpec one{"a", Kind::int64s, 1, true, false};
  CHECK(cell(example_of("a", half) + example_of("a", seven)) == ints({7}));
  CHECK(cell(example_of("a", "") + example_of("a", seven), one) == ints({7}));
  CHECK(cell(example_of("a", unhex("1a 04 0a 02 01 02")) + example_of("a", seven), one) == ints({7}));
}

TEST(decode_keeps_the_bits_of_numbers_and_the_nuls_of_bytes) {
  const FieldSpec floats{"a", Kind::floats, -1, true, false}, texts{"a", Kind::bytes, -1, true, false};
  CHECK(cell(example_of("a", unhex("1a 0c 0a 0a ff ff ff ff ff ff ff ff ff 01"))) == ints({-1}));
  CHECK(cell(example_of("a", unhex("1a 0c 0a 0a 80 80 80 80 80 80 80 80 80 01"))) == ints({INT64_MIN}));
  const Cell nan = cell(example_of("a", unhex("12 06 0a 04 01 02 c0 7f")), floats);
  CHECK(nan.steps[0].floats == std::vector<uint32_t>{0x7fc00201});
  const Cell text = cell(example_of("a", unhex("0a 08 0a 03 61 00 00 0a 01 62")), texts);
  CHECK(text.steps[0].bytes == (std::vector<std::string>{std::string("a\0\0", 3), "b"}));
}

TEST(decode_names_the_field_and_what_was_found) {
  const std::string two = example_of("a", unhex("1a 04 0a 02 01 02"));
  const DecodeFault count = decoded(two, {"a", Kind::int64s, 1, true, false}).fault;
  CHECK_EQ(count.what, DecodeWhat::wrong_count);
  CHECK_EQ(count.found_count, 2);
  const DecodeFault kind = decoded(two, {"a", Kind::floats, -1, true, false}).fault;
  CHECK_EQ(kind.what, DecodeWhat::wrong_kind);
  CHECK_EQ(kind.found_kind, Kind::int64s);
  CHECK_EQ(decoded(two, {"b", Kind::floats, -1, true, false}).fault.what, DecodeWhat::missing);
  CHECK_EQ(decoded(example_of("a", ""), {"a", Kind::floats, -1, true, false}).fault.what,
           DecodeWhat::missing);
}

TEST(decode_says_which_byte_is_malformed) {
  const auto fault = [](std::string_view feature) {
    return decoded(example_of("a", feature), kAnyInts).fault;
  };
  CHECK_EQ(fault(unhex("1a 04 0a 02 01 80")).wire, WireFault::bad_varint);
  CHECK_EQ(fault(unhex("1a 04 0a 02 01 80")).byte, 14u);
  CHECK_EQ(fault(unhex("1a 7f 0a 01 07")).wire, WireFault::past_end);
  CHECK_EQ(fault(unhex("12 05 0a 03 01 02 03")).wire, WireFault::partial_list);
  CHECK_EQ(decoded(example_of("\xff", unhex("1a 03 0a 01 07")), kAnyInts).fault.wire, WireFault::bad_name);
  CHECK_EQ(decoded(unhex("00"), kAnyInts).fault.wire, WireFault::bad_tag);
}

TEST(decode_reads_steps) {
  const FieldSpec any{"a", Kind::int64s, -1, true, true}, one{"a", Kind::int64s, 1, true, true};
  const std::string seven = bytes_field(1, unhex("1a 03 0a 01 07")), none = bytes_field(1, unhex("1a 00"));
  CHECK(cell(list_of(seven + none + seven), any, true).steps.size() == 3);
  CHECK(cell(list_of(seven + seven), one, true).steps[1].ints == std::vector<int64_t>{7});
  CHECK_EQ(cell(list_of(""), any, true).state, State::empty);
  CHECK_EQ(decoded(list_of(seven + none), one, true).fault.what, DecodeWhat::wrong_count);
  CHECK(cell(list_of(seven + seven) + list_of(seven), one, true).steps.size() == 1);
  // Not a SequenceExample: field 2 is unknown there.
  CHECK_EQ(cell(list_of(seven)).state, State::missing);
}

TEST(decode_reads_a_short_entry_behind_long_ones) {
  // Lengths of 128 and more leave the fast way, which has to keep its place in the order of names all the
  // same.
  const auto entry = [](std::string_view name, std::string_view feature) {
    return bytes_field(1, bytes_field(1, name) + bytes_field(2, feature));
  };
  const std::string image = bytes_field(1, bytes_field(1, std::string(200, 'i')));
  for (size_t longs = 1; longs < 40; longs += 6) {
    std::string entries;
    for (size_t i = 0; i < longs; ++i) entries += entry("image" + std::to_string(i), image);
    CHECK(cell(bytes_field(1, entries + entry("a", unhex("1a 03 0a 01 07")))) == ints({7}));
  }
}

TEST(decode_reads_and_steps_over_a_feature_whose_name_is_empty) {
  const std::string payload =
      example_of("", unhex("1a 03 0a 01 05")) + example_of("a", unhex("1a 03 0a 01 07"));
  CHECK(cell(payload) == ints({7}));
  CHECK(cell(payload, {"", Kind::int64s, 1, true, false}) == ints({5}));
}

TEST(decode_reads_ten_thousand_names) {
  std::string entries;
  std::vector<FieldSpec> specs;
  for (int i = 0; i < 10'000; ++i) {
    const std::string name = "feature-" + std::to_string(i);
    entries += bytes_field(1, bytes_field(1, name) + bytes_field(2, unhex("1a 03 0a 01 07")));
    if (i % 97 == 0) specs.push_back({name, Kind::int64s, 1, true, false});
  }
  const std::string payload = bytes_field(1, entries);
  const Decoder decoder(specs, false);
  for (int i = 0; i < 2; ++i) {
    const Decoded result = decode_table(decoder, bare_chunk({payload, payload}, Behind::padding));
    CHECK_EQ(result.fault.what, DecodeWhat::none);
    for (const CellColumn& column : result.columns) CHECK(column == CellColumn(2, ints({7})));
  }
}

TEST(decode_reads_names_in_another_order_in_every_record) {
  Random random(1);
  std::vector<FieldSpec> specs;
  for (const char* name :
       {"a", "ab", "image/width", "image/height", "image/widta", "a name of more than sixteen bytes",
        "a name of MORE than sixteen bytes", "exactly8", "exactly 16 bytes"})
    specs.push_back({name, Kind::int64s, 1, false, false});
  std::vector<std::string> payloads;
  std::vector<CellColumn> expected(specs.size());
  for (int row = 0; row < 300; ++row) {
    std::vector<size_t> order;
    for (size_t f = 0; f < specs.size(); ++f) order.insert(order.begin() + random.below(order.size() + 1), f);
    order.resize(random.below(order.size() + 1));
    std::string payload;
    for (CellColumn& column : expected) column.push_back({State::missing, {}});
    for (const size_t f : order) {
      const int64_t value = static_cast<int64_t>(random.below(128));
      payload += example_of(specs[f].name, unhex("1a 03 0a 01") + static_cast<char>(value));
      expected[f].back() = ints({value});
    }
    payloads.push_back(payload);
  }
  CHECK(decode_table(Decoder(specs, false), bare_chunk(payloads, Behind::padding)).columns == expected);
}

TEST(decode_tells_integers_from_floats_in_any_order) {
  Random random(2);
  std::vector<FieldSpec> specs;
  for (size_t f = 0; f < 24; ++f)
    specs.push_back({"field " + std::to_string(f), f % 3 ? Kind::int64s : Kind::floats, 1, true, false});
  std::vector<std::string> payloads;
  std::vector<CellColumn> expected(specs.size());
  for (int row = 0; row < 300; ++row) {
    std::vector<size_t> order;
    for (size_t f = 0; f < specs.size(); ++f) order.insert(order.begin() + random.below(order.size() + 1), f);
    std::string entries;
    for (CellColumn& column : expected) column.emplace_back();
    for (const size_t f : order) {
      const uint64_t bits = random.next() >> random.below(64);
      const uint32_t half = static_cast<uint32_t>(bits);
      std::string value;
      if (f % 3) {
        for (uint64_t left = bits; left > 127 || value.empty(); left >>= 7)
          value += static_cast<char>(left > 127 ? left | 128 : left);
        if (bits > 127) value += static_cast<char>(bits >> (7 * value.size()));
        expected[f].back() = ints({static_cast<int64_t>(bits)});
      } else {
        value.assign(reinterpret_cast<const char*>(&half), 4);
        expected[f].back() = {State::present, {{Kind::none, {}, {half}, {}}}};
      }
      const std::string list = bytes_field(f % 3 ? 3 : 2, bytes_field(1, value));
      entries += bytes_field(1, bytes_field(1, specs[f].name) + bytes_field(2, list));
    }
    payloads.push_back(bytes_field(1, entries));
  }
  const Decoded result = decode_table(Decoder(specs, false), bare_chunk(payloads, Behind::padding));
  CHECK_EQ(result.fault.what, DecodeWhat::none);
  CHECK(result.columns == expected);
}

// The fields of a record, of which some are asked for; one record in the middle is not like the others.
void notices_the_record_that_differs(const std::string& between) {
  constexpr size_t kRows = 20;
  const std::vector<std::string> names = {"before", "a", between, "b", "after"};
  const auto feature = [](int64_t value) { return unhex("1a 03 0a 01") + static_cast<char>(value); };
  const auto entries_of = [&](const std::vector<std::string>& some, int64_t value) {
    std::string entries;
    for (const std::string& name : some)
      entries += bytes_field(1, bytes_field(1, name) + bytes_field(2, feature(value)));
    return entries;
  };
  const auto payload_of = [&](const std::vector<std::string>& some, int64_t value) {
    return bytes_field(1, entries_of(some, value));
  };
  const auto one = [](const char* name, bool required) {
    return FieldSpec{name, Kind::int64s, 1, required, false};
  };
  std::vector<std::string> others = {
      payload_of({"a", "before", names[2], "after", "b"}, 9),              // another order
      payload_of({"a", "b"}, 9),                                           // fewer
      payload_of({"before", "a", names[2], "b", "after", "one more"}, 9),  // more
      bytes_field(1, entries_of(names, 3) + entries_of({"a", "b"}, 9)),    // the same names twice
      payload_of({"befor\xc3\xa9", "a", names[2], "b", "after"}, 9),       // another name
      payload_of(names, 9) + payload_of({"a"}, 9),                         // in two pieces
      payload_of(names, 9) + unhex("10 01"),                               // something else behind it
      // Entries of 128 bytes and more have a length of two bytes.
      bytes_field(
          1, entries_of({"before", "a", names[2], "b"}, 9) +
                 bytes_field(1, bytes_field(1, "after") +
                                    bytes_field(2, bytes_field(3, bytes_field(1, std::string(150, 1)))))),
      // An entry that names itself twice is the last of these, and a value may stand before the name.
      bytes_field(
          1, entries_of({"before", "a", names[2]}, 3) + entries_of({"b"}, 9) +
                 bytes_field(1, bytes_field(1, "after") + bytes_field(2, feature(9)) + bytes_field(1, "a"))),
      bytes_field(1,
                  bytes_field(1, bytes_field(2, feature(9)) + bytes_field(1, "a")) + entries_of({"b"}, 9))};
  for (const std::string& other : others) {
    for (size_t at = 0; at < kRows; ++at) {
      std::vector<std::string> payloads;
      CellColumn expected;
      for (size_t row = 0; row < kRows; ++row) {
        payloads.push_back(row == at ? other : payload_of(names, static_cast<int64_t>(row)));
        expected.push_back(ints({row == at ? 9 : static_cast<int64_t>(row)}));
      }
      const Decoder decoder({one("a", true), one("b", true)}, false);
      for (const Behind behind : {Behind::plenty, Behind::padding, Behind::nothing}) {
        const Decoded result = decode_table(decoder, bare_chunk(payloads, behind));
        CHECK_EQ(result.fault.what, DecodeWhat::none);
        CHECK(result.columns == std::vector<CellColumn>(2, expected));
      }
    }
  }
}

TEST(decode_of_few_fields_notices_the_record_that_differs) {
  // The longest name that is compared as a whole, the next, and the longest of all that are.
  for (const char* between : {"a name: 10", "a name: 11 ", "between, a name of 26 byte"}) {
    for (const std::string_view path : crc32c_paths()) {  // which tells what instructions may be used
      CHECK(crc32c_use_path(path));
      notices_the_record_that_differs(between);
    }
    crc32c_use_path(crc32c_paths().front());
  }
}

TEST(decode_of_few_fields_says_which_record_is_wrong) {
  const std::string asked = "a second name of 26 bytes", like_it = "a second name of 26 bytez";
  const auto entry = [](std::string_view name, std::string_view feature) {
    return bytes_field(1, bytes_field(1, name) + bytes_field(2, feature));
  };
  const std::string seven = unhex("1a 03 0a 01 07"), two = unhex("1a 04 0a 02 07 07"),
                    half = unhex("12 06 0a 04 00 00 00 3f"), bad = unhex("1a 03 0a 02 07");
  const std::string first = entry("first", seven);
  constexpr size_t kRows = 18;
  for (size_t at = 0; at < kRows; ++at) {
    const auto fault = [&](const std::string& other) {
      std::vector<std::string> payloads(kRows, bytes_field(1, first + entry(asked, seven)));
      payloads[at] = other;
      const Decoder decoder({{asked, Kind::int64s, 1, true, false}}, false);
      const Decoded result = decode_table(decoder, bare_chunk(payloads, Behind::plenty));
      CHECK_EQ(result.fault.record, at);
      return result.fault.what;
    };
    CHECK_EQ(fault(bytes_field(1, first + entry(asked, two))), DecodeWhat::wrong_count);
    CHECK_EQ(fault(bytes_field(1, first + entry(asked, half))), DecodeWhat::wrong_kind);
    CHECK_EQ(fault(bytes_field(1, first + entry(asked, bad))), DecodeWhat::malformed);
    CHECK_EQ(fault(bytes_field(1, first + entry(asked, ""))), DecodeWhat::missing);
    CHECK_EQ(fault(bytes_field(1, first + entry(like_it, seven))), DecodeWhat::missing);
    CHECK_EQ(fault(bytes_field(1, first + first.substr(0, 4))), DecodeWhat::malformed);
    CHECK_EQ(fault(bytes_field(1, first) + bytes_field(1, entry(asked, two))), DecodeWhat::wrong_count);
  }
}

// The length of the last entry goes on in the byte behind it, which looks like the tag of a name.
TEST(decode_of_few_fields_refuses_a_length_that_goes_on) {
  const std::string seven = unhex("1a 03 0a 01 07");
  const auto entry = [&](const char* name) {
    return bytes_field(1, bytes_field(1, name) + bytes_field(2, seven));
  };
  const std::string sound = bytes_field(1, entry("a") + entry("after"));
  const std::string wrong =
      bytes_field(1, entry("a") + unhex("0a 80 0a 05") + "after" + unhex("12 77") + std::string(0x80 - 9, 1));
  for (const std::string_view path : crc32c_paths()) {
    CHECK(crc32c_use_path(path));
    for (size_t at = 0; at < 20; ++at) {
      std::vector<std::string> payloads(20, sound);
      payloads[at] = wrong;
      const Decoder decoder({{"a", Kind::int64s, 1, true, false}}, false);
      const Decoded result = decode_table(decoder, bare_chunk(payloads, Behind::plenty));
      CHECK_EQ(result.fault.what, DecodeWhat::malformed);
      CHECK_EQ(result.fault.record, at);
    }
  }
  crc32c_use_path(crc32c_paths().front());
}

TEST(decode_of_few_fields_finds_one_that_is_named_almost_like_another) {
  constexpr size_t kRows = 20;
  for (const size_t size : {1, 9, 10, 11, 25, 26, 27, 100}) {
    const std::string seven = unhex("1a 03 0a 01 07"), asked = std::string(size - 1, 'n') + 'x';
    for (size_t letter = 0; letter < size; ++letter) {
      std::string other = asked;
      other[letter] = 'y';
      std::vector<std::string> payloads(kRows, example_of(other, seven));
      payloads[13] = example_of(asked, seven);
      const Decoder decoder({{asked, Kind::int64s, 1, false, false}}, false);

      const Decoded result = decode_table(decoder, bare_chunk(payloads, Behind::plenty));

      CellColumn expected(kRows, {State::missing, {}});
      expected[13] = ints({7});
      CHECK(result.columns[0] == expected);
    }
  }
}

TEST(decode_gives_the_rows_that_were_asked_for) {
  const Chunk chunk =
      framed_chunk({example_of("a", unhex("1a 03 0a 01 01")), example_of("a", unhex("1a 03 0a 01 02")),
                    example_of("a", unhex("1a 03 0a 01 03"))});
  const Decoder decoder({{"a", Kind::int64s, 1, true, false}}, false);
  int64_t values[2] = {};
  std::vector<Column> columns(1);
  columns[0].fixed_ints = values;
  CHECK_EQ(decoder.decode(chunk, 1, 3, columns).what, DecodeWhat::none);
  CHECK_EQ(values[0], 2);
  CHECK_EQ(values[1], 3);
}

TEST(decoder_serves_many_threads) {
  const Decoder decoder({kAnyInts}, false);
  std::vector<std::thread> threads;
  std::vector<int> right(4);
  for (size_t t = 0; t < right.size(); ++t) {
    threads.emplace_back([&, t] {
      const std::string other = example_of("other-" + std::to_string(t), unhex("1a 03 0a 01 01"));
      const Chunk chunk = framed_chunk({other + example_of("a", unhex("1a 03 0a 01 07")), other});
      for (int i = 0; i < 300; ++i) {
        const Decoded result = decode_table(decoder, chunk);
        right[t] += result.columns[0] == CellColumn{ints({7}), {State::missing, {}}};
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const int count : right) CHECK_EQ(count, 300);
}

TEST(decode_of_a_payload_cut_at_any_byte_is_the_same_every_way) {
  std::string payload = example_of("a", unhex("1a 0c 0a 0a ff ff ff ff ff ff ff ff ff 01"));
  payload += example_of("image/encoded", bytes_field(1, bytes_field(1, std::string(150, 'j'))));
  payload += list_of(bytes_field(1, unhex("12 0b 0a 04 00 00 80 3f 0d 00 00 00 40"))) + unhex("1b 08 01 1c");
  for (size_t size = 0; size <= payload.size(); ++size) decode_law(as_bytes(payload.substr(0, size)));
}

TEST(decode_of_random_payloads_is_what_the_reference_says) {
  Random random(2);
  for (int i = 0; i < 4000; ++i) {
    const std::string plan = random.bytes(random.below(200));
    Choices choices(as_bytes(plan));
    decode_law(as_bytes(hostile_example(choices)));
  }
}

}  // namespace
}  // namespace recordkit
