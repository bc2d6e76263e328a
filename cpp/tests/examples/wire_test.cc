#include "core/examples/wire.h"

#include "core/examples/example.h"
#include "support/check.h"
#include "support/frames.h"
#include "support/reference.h"

namespace recordkit {
namespace {

// Numbers of every width: the smallest, the largest and some between.
std::vector<uint64_t> numbers_of_every_width() {
  Random random(1);
  std::vector<uint64_t> numbers{0};
  for (int width = 1; width <= 64; ++width) {
    const uint64_t least = uint64_t{1} << (width - 1), most = ~uint64_t{0} >> (64 - width);
    numbers.insert(numbers.end(), {least, most});
    for (int i = 0; i < 50; ++i) numbers.push_back(least | (random.next() & most));
  }
  return numbers;
}

std::string varint_of(uint64_t number) {
  uint8_t bytes[kMaxVarint];
  return std::string(as_text({bytes, static_cast<size_t>(store_varint(bytes, number) - bytes)}));
}

TEST(varint_of_every_width_comes_back) {
  for (const uint64_t number : numbers_of_every_width()) {
    const Exact bytes(varint_of(number));
    Cursor cursor(bytes);
    uint64_t read = 0;
    CHECK(cursor.varint(read) && cursor.done());
    CHECK_EQ(read, number);
    CHECK_EQ(varint_size(number), Bytes(bytes).size());
  }
}

TEST(varint_cut_short_is_bad_and_leaves_the_cursor_in_place) {
  for (const uint64_t number : numbers_of_every_width()) {
    const std::string whole = varint_of(number);
    for (size_t size = 0; size < whole.size(); ++size) {
      const Exact bytes(whole.substr(0, size));
      Cursor cursor(bytes);
      uint64_t read;
      CHECK(!cursor.varint(read));
      CHECK_EQ(cursor.fault, WireFault::bad_varint);
      CHECK(cursor.at == Bytes(bytes).data());
    }
  }
}

TEST(varint_of_ten_bytes_drops_what_is_beyond_64_bits_and_eleven_are_bad) {
  const auto read = [](const char* text) {
    const Exact bytes(unhex(text));
    Cursor cursor(bytes);
    uint64_t value = 12345;
    return cursor.varint(value) ? value : 12345;
  };
  CHECK_EQ(read("ff ff ff ff ff ff ff ff ff 01"), UINT64_MAX);
  CHECK_EQ(read("ff ff ff ff ff ff ff ff ff 7f"), UINT64_MAX);
  CHECK_EQ(read("ff ff ff ff ff ff ff ff ff 02"), UINT64_MAX >> 1);
  CHECK_EQ(read("ff ff ff ff ff ff ff ff ff 81 00"), 12345u);
  CHECK_EQ(read("80 80 80 80 80 80 80 80 80 80 00"), 12345u);
}

TEST(lengths_are_at_most_five_bytes) {
  const auto read = [](const char* text) {
    const Exact bytes(unhex(text));
    Cursor cursor(bytes);
    Bytes value;
    return cursor.bytes(value);
  };
  CHECK(read("81 80 80 80 00 78"));
  CHECK(!read("81 80 80 80 80 00 78"));
  CHECK(!read("02 78"));
}

TEST(sevens_split_and_join_for_every_width_up_to_56) {
  for (const uint64_t number : numbers_of_every_width()) {
    if (std::bit_width(number) > 56) continue;
    const uint64_t split = split_sevens(number);
    CHECK_EQ(split & kContinuation, 0u);
    CHECK_EQ(join_sevens(split), number);
    CHECK_EQ(join_sevens(split | kContinuation), number);
    for (size_t i = 0; i < 8; ++i) CHECK_EQ((split >> (8 * i)) & 0xff, (number >> (7 * i)) & 0x7f);
  }
}

TEST(packed_int64s_of_every_width_come_back_wherever_memory_ends) {
  Random random(2);
  const std::vector<uint64_t> numbers = numbers_of_every_width();
  for (int i = 0; i < 2000; ++i) {
    std::vector<int64_t> expected;
    std::string packed;
    // Runs of small numbers, eight of which are read at once, between those of any size.
    while (random.below(12) != 0) {
      const uint64_t number = random.below(3) ? random.below(128) : numbers[random.below(numbers.size())];
      expected.push_back(static_cast<int64_t>(number));
      packed += varint_of(number);
    }
    const size_t behind = random.below(12);
    const Exact memory(packed + random.bytes(behind));
    const Bytes bytes = Bytes(memory).first(packed.size());
    Array<int64_t> values;
    const uint8_t* at = nullptr;
    CHECK(read_packed_int64s(bytes, bytes.data() + packed.size() + behind, values, at));
    CHECK(std::equal(expected.begin(), expected.end(), values.data(), values.data() + values.size()));
  }
}

TEST(packed_int64s_cut_inside_the_last_are_refused_even_if_what_follows_would_end_it) {
  const Exact memory(unhex("01 02 80 01 01 01 01 01 01 01 01 01"));
  const Bytes bytes = Bytes(memory).first(3);
  Array<int64_t> values;
  const uint8_t* at = nullptr;
  CHECK(!read_packed_int64s(bytes, bytes.data() + 12, values, at));
  CHECK(at == bytes.data() + 2);
  CHECK_EQ(values.size(), 2u);
}

TEST(tags_are_at_most_five_bytes_and_name_a_field) {
  const auto fault_of = [](const char* text) {
    const Exact bytes(unhex(text));
    Cursor cursor(bytes);
    uint32_t field;
    WireType type;
    cursor.tag(field, type);
    return cursor.fault;
  };
  CHECK_EQ(fault_of("0a"), WireFault::none);
  CHECK_EQ(fault_of("8a 80 80 80 00"), WireFault::none);
  CHECK_EQ(fault_of("8a 80 80 80 80 00"), WireFault::bad_tag);
  CHECK_EQ(fault_of("ff ff ff ff 0f"), WireFault::none);
  CHECK_EQ(fault_of("ff ff ff ff 1f"), WireFault::bad_tag);
  CHECK_EQ(fault_of("02"), WireFault::bad_tag);
  CHECK_EQ(fault_of("80"), WireFault::bad_varint);
}

TEST(skipping_steps_over_every_wire_type_and_stops_at_the_end) {
  const auto skipped = [](std::string_view text) {
    const Exact bytes(unhex(text));
    Cursor cursor(bytes);
    uint32_t field;
    WireType type;
    return cursor.tag(field, type) && cursor.skip(field, type) ? Bytes(bytes).size() - cursor.left()
                                                               : SIZE_MAX;
  };
  CHECK_EQ(skipped("08 ff 01 aa"), 3u);
  CHECK_EQ(skipped("09 01 02 03 04 05 06 07 08 aa"), 9u);
  CHECK_EQ(skipped("0a 02 01 02 aa"), 4u);
  CHECK_EQ(skipped("0b 08 01 13 14 0c aa"), 6u);
  CHECK_EQ(skipped("0d 01 02 03 04 aa"), 5u);
  for (const char* text : {"09 01 02 03 04 05 06 07", "0a 02 01", "0b 08 01", "0b 14", "0c", "0d 01 02 03",
                           "0e", "0f", "0a ff ff ff ff ff ff ff ff ff 01"})
    CHECK_EQ(skipped(text), SIZE_MAX);
}

TEST(utf8_of_every_short_text_is_what_the_definition_says) {
  for (uint32_t i = 0; i < 0x10000; ++i) {
    const std::string two{static_cast<char>(i), static_cast<char>(i >> 8)};
    CHECK_EQ(is_utf8(as_bytes(two)), reference_is_utf8(two));
  }
  for (uint32_t lead = 0xe0; lead < 0x100; ++lead) {
    for (uint32_t i = 0; i < 0x10000; ++i) {
      // The edges of every range, in the third and fourth byte.
      for (const char last : {'\x00', '\x7f', '\x80', '\xbf', '\xc0'}) {
        const std::string four{static_cast<char>(lead), static_cast<char>(i), static_cast<char>(i >> 8),
                               last};
        if (is_utf8(as_bytes(four)) != reference_is_utf8(four)) CHECK_EQ(four, "as the reference says");
        if (i > 0xff) continue;
        const std::string three = four.substr(0, 2) + last;
        CHECK_EQ(is_utf8(as_bytes(three)), reference_is_utf8(three));
      }
    }
  }
}

TEST(utf8_is_judged_at_any_place_of_a_longer_text) {
  Random random(3);
  const std::vector<std::string> pieces{
      "plain ascii, ", "é", "€", "😀", "x", "\xed\xa0\x80", "\xc0\x80", "\xf4\x90\x80\x80", "\xe2\x82"};
  for (int i = 0; i < 5000; ++i) {
    std::string text;
    const uint64_t sort = random.below(2) ? 5 : pieces.size();
    for (uint64_t n = random.below(8); n > 0; --n) text += pieces[random.below(sort)];
    CHECK_EQ(is_utf8(Exact(text)), reference_is_utf8(text));
  }
}

}  // namespace
}  // namespace recordkit
