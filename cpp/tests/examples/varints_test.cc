#include "core/examples/varints.h"

#include "core/examples/example.h"
#include "support/check.h"
#include "support/choices.h"
#include "support/frames.h"

namespace recordkit {
namespace {

std::string varint(uint64_t value) {
  uint8_t bytes[kMaxVarint];
  return {reinterpret_cast<char*>(bytes), static_cast<size_t>(store_varint(bytes, value) - bytes)};
}

// Numbers of up to so many bits, most of them of fewer.
std::vector<int64_t> drawn(Random& random, size_t count, uint64_t bits) {
  std::vector<int64_t> values;
  for (size_t i = 0; i < count; ++i) {
    const uint64_t value = random.below(UINT64_MAX) >> (64 - (1 + random.below(bits)));
    values.push_back(static_cast<int64_t>(value));
  }
  return values;
}

std::vector<int64_t> read(const std::string& bytes, size_t readable, bool& ok, size_t& at) {
  const Exact memory(bytes + std::string(readable, '\x80'));
  Array<int64_t> values;
  const uint8_t* stopped = nullptr;
  const uint8_t* const start = Bytes(memory).data();
  ok = read_packed_int64s({start, bytes.size()}, start + bytes.size() + readable, values, stopped);
  at = ok ? bytes.size() : static_cast<size_t>(stopped - start);
  return {values.data(), values.data() + values.size()};
}

template <typename F>
void with_and_without_pext(F&& body) {
  for (const std::string_view path : {crc32c_paths().front(), crc32c_paths().back()}) {
    CHECK(crc32c_use_path(path));
    body();
  }
  crc32c_use_path(crc32c_paths().front());
}

TEST(the_ends_of_varints_are_the_bytes_that_do_not_go_on) {
  const std::string bytes = Random(1).bytes(64);
  uint64_t ends = 0;
  for (size_t i = 0; i < 64; ++i) ends |= static_cast<uint64_t>(static_cast<uint8_t>(bytes[i]) < 128) << i;
  CHECK_EQ(varint_ends(as_bytes(bytes).data()), ends);
}

TEST(packed_numbers_come_back_whatever_their_size_and_what_stands_behind_them) {
  Random random(2);
  for (int i = 0; i < 600; ++i) {
    const uint64_t bits[] = {7, 8, 16, 21, 28, 29, 35, 56, 57, 63, 64};
    const std::vector<int64_t> values = drawn(random, random.below(200), bits[random.below(11)]);
    std::string bytes;
    for (const int64_t value : values) bytes += varint(static_cast<uint64_t>(value));
    with_and_without_pext([&] {
      for (const size_t readable : {0, 7, 8, 63, 64, 71, 72, 200}) {
        bool ok;
        size_t at;
        CHECK(read(bytes, readable, ok, at) == values);
        CHECK(ok);
      }
    });
  }
}

TEST(packed_numbers_that_are_cut_or_too_long_are_told_by_their_place) {
  Random random(3);
  for (const size_t count : {0, 1, 20, 63, 64, 65, 150}) {
    std::string bytes;
    for (const int64_t value : drawn(random, count, 20)) bytes += varint(static_cast<uint64_t>(value));
    for (const std::string& last :
         {std::string(1, '\x80'), std::string(9, '\xff'), std::string(10, '\x80') + '\1'}) {
      with_and_without_pext([&] {
        for (const size_t readable : {0, 8, 72, 200}) {
          bool ok;
          size_t at;
          CHECK_EQ(read(bytes + last, readable, ok, at).size(), count);
          CHECK(!ok);
          CHECK_EQ(at, bytes.size());
        }
      });
    }
  }
}

TEST(zeros_may_take_several_bytes) {
  const std::string bytes = unhex("80 00 81 00 80 80 80 80 80 80 80 80 00 05") + std::string(100, '\x01');
  bool ok;
  size_t at;
  const std::vector<int64_t> values = read(bytes, 100, ok, at);
  CHECK(ok);
  CHECK(std::vector<int64_t>(values.begin(), values.begin() + 4) == (std::vector<int64_t>{0, 1, 0, 5}));
  CHECK_EQ(values.size(), 104u);
}

}  // namespace
}  // namespace recordkit
