#include "core/records/crc32c.h"

#include "support/check.h"
#include "support/choices.h"
#include "support/frames.h"

namespace recordkit {
namespace {

// The definition, a bit at a time.
uint32_t bitwise(uint32_t crc, std::string_view bytes) {
  crc = ~crc;
  for (const char byte : bytes) {
    crc ^= static_cast<uint8_t>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (crc & 1 ? 0x82f63b78 : 0);
  }
  return ~crc;
}

uint32_t crc_of(std::string_view text) { return crc32c(as_bytes(text)); }

// Runs `body` on each path this processor has, and goes back to the best.
template <typename F>
void on_every_path(F&& body) {
  for (const std::string_view path : crc32c_paths()) {
    CHECK(crc32c_use_path(path));
    CHECK_EQ(crc32c_path(), path);
    body();
  }
  crc32c_use_path(crc32c_paths().front());
}

TEST(crc32c_has_the_values_others_published) {
  on_every_path([] {
    CHECK_EQ(crc_of(""), 0u);
    CHECK_EQ(crc_of("123456789"), 0xe3069283u);
    CHECK_EQ(crc_of("a"), 0xc1d04330u);
    // RFC 3720, B.4
    CHECK_EQ(crc_of(std::string(32, '\0')), 0x8a9136aau);
    CHECK_EQ(crc_of(std::string(32, '\xff')), 0x62a8ab43u);
    std::string rising(32, '\0');
    for (size_t i = 0; i < 32; ++i) rising[i] = static_cast<char>(i);
    CHECK_EQ(crc_of(rising), 0x46dd794eu);
  });
}

TEST(crc32c_masks_as_tensorflow_does) {
  CHECK_EQ(mask_crc(crc_of("")), 0xa282ead8u);
  CHECK_EQ(mask_crc(crc_of(unhex("18 00 00 00 00 00 00 00"))), 0x224b7fa3u);
  CHECK_EQ(mask_crc(crc_of(unhex("09 00 00 80 38 99 d6 d7 41 1a 0d") + "brain.Event:2")), 0xab364b12u);
  for (const uint32_t crc : {0u, 1u, 0xe3069283u, 0xffffffffu}) CHECK_EQ(unmask_crc(mask_crc(crc)), crc);
}

TEST(crc32c_portable_is_always_there_and_an_unknown_path_is_refused) {
  CHECK_EQ(crc32c_paths().back(), "portable");
  CHECK(!crc32c_use_path("abacus"));
  CHECK_EQ(crc32c_path(), crc32c_paths().front());
}

TEST(crc32c_of_every_size_and_start_is_the_bitwise_one) {
  constexpr size_t kLargest = 5000;
  const std::string bytes = Random(1).bytes(kLargest + 16);
  for (const size_t start : {0, 1, 3, 8, 15}) {
    std::vector<uint32_t> expected{bitwise(0, "")};
    for (size_t i = 0; i < kLargest; ++i)
      expected.push_back(bitwise(expected.back(), bytes.substr(start + i, 1)));
    on_every_path([&] {
      for (size_t size = 0; size <= kLargest; ++size) {
        // The bytes end where their memory does, and start as far from a boundary as `start` says.
        const Exact memory(std::string_view(bytes).substr(0, start + size));
        CHECK_EQ(crc32c(Bytes(memory).subspan(start)), expected[size]);
      }
    });
  }
}

TEST(crc32c_of_large_sizes_is_the_bitwise_one) {
  Random random(2);
  for (int i = 0; i < 12; ++i) {
    const std::string bytes = random.bytes(5000 + random.below(100'000));
    const uint32_t before = static_cast<uint32_t>(random.next()), expected = bitwise(before, bytes);
    on_every_path([&] {
      const Exact memory(bytes);
      CHECK_EQ(crc32c_extend(before, Bytes(memory).data(), bytes.size()), expected);
    });
  }
}

TEST(crc32c_copy_copies_and_tells_the_crc_of_the_copy) {
  constexpr size_t kAround = 70;
  Random random(7);
  for (int i = 0; i < 4000; ++i) {
    const std::string bytes = random.bytes(random.below(i % 10 == 0 ? 20'000 : 700));
    const size_t from = random.below(70), to = random.below(70);
    const std::string source = std::string(from, 'x') + bytes;
    const uint32_t expected = crc_of(bytes);
    on_every_path([&] {
      const Exact memory(source);
      std::string copy(to + bytes.size() + kAround, '-');

      const uint32_t crc =
          crc32c_copy(reinterpret_cast<uint8_t*>(copy.data()) + to, Bytes(memory).data() + from, bytes.size(),
                      i % 2 == 0 ? Prefetch::ahead : Prefetch::none);

      CHECK_EQ(crc, expected);
      CHECK(copy == std::string(to, '-') + bytes + std::string(kAround, '-'));
    });
  }
}

TEST(crc32c_of_u64_is_that_of_its_bytes) {
  Random random(3);
  on_every_path([&] {
    for (int i = 0; i < 1000; ++i) {
      const uint64_t number = random.next() >> random.below(64);
      CHECK_EQ(crc32c_of_u64(number), bitwise(0, as_text({reinterpret_cast<const uint8_t*>(&number), 8})));
    }
  });
}

TEST(crc32c_extended_by_a_rest_is_that_of_the_whole) {
  Random random(4);
  for (int i = 0; i < 500; ++i) {
    const std::string a = random.bytes(random.below(700)), b = random.bytes(random.below(3000));
    const uint32_t whole = bitwise(0, a + b);
    on_every_path([&] { CHECK_EQ(crc32c_extend(crc_of(a), as_bytes(b).data(), b.size()), whole); });
  }
}

TEST(crc32c_combined_is_that_of_the_whole) {
  Random random(5);
  for (int i = 0; i < 1000; ++i) {
    const std::string a = random.bytes(random.below(300)), b = random.bytes(random.below(300));
    CHECK_EQ(crc32c_combine(crc_of(a), crc_of(b), b.size()), crc_of(a + b));
  }
}

TEST(crc32c_combines_lengths_that_no_memory_holds) {
  Random random(6);
  for (int i = 0; i < 200; ++i) {
    const uint32_t a = static_cast<uint32_t>(random.next()), b = static_cast<uint32_t>(random.next());
    const uint32_t c = static_cast<uint32_t>(random.next());
    const uint64_t size_b = random.next() >> 1, size_c = random.next() >> 1;
    // (a + b) + c == a + (b + c)
    CHECK_EQ(crc32c_combine(crc32c_combine(a, b, size_b), c, size_c),
             crc32c_combine(a, crc32c_combine(b, c, size_c), size_b + size_c));
  }
  CHECK_EQ(crc32c_combine(0x12345678, 0, 0), 0x12345678u);
}

}  // namespace
}  // namespace recordkit
