#include "core/records/verify.h"

#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "core/files/file_map.h"
#include "support/check.h"
#include "support/frames.h"
#include "support/temp_file.h"

namespace recordkit {
namespace {

constexpr uint64_t kPlenty = uint64_t{1} << 40;
constexpr uint64_t kMiB = uint64_t{1} << 20;

std::string identity_of(std::string_view payload) {
  std::string identity(12, '\0');
  store(reinterpret_cast<uint8_t*>(identity.data()), uint64_t{payload.size()});
  store(reinterpret_cast<uint8_t*>(identity.data()) + 8, crc32c(as_bytes(payload)));
  return identity;
}

struct Written {
  std::string bytes, identities;

  void add(const std::string& payload) {
    bytes += frame(payload);
    identities += identity_of(payload);
  }
};

// Records of many sizes, some of them larger than what is mapped at a time.
Written many_sizes() {
  Random random(1);
  Written written;
  for (const size_t size : {100'000, 9'000'000, 0, 3'000'000, 20'000'000, 1}) {
    written.add(random.bytes(size));
    for (int i = 0; i < 50; ++i) written.add(random.bytes(random.below(60'000)));
  }
  return written;
}

// All that is checked, and where that ends.
std::pair<std::string, uint64_t> check_all(int descriptor, uint64_t most_bytes = kPlenty) {
  std::string identities;
  uint64_t offset = 0;
  for (;;) {
    const Checked checked = check_mapped(descriptor, offset, most_bytes);
    CHECK_EQ(checked.size == 0, checked.identities.empty());
    if (checked.size == 0) return {identities, offset};
    identities += as_text({checked.identities.data(), checked.identities.size()});
    offset += checked.size;
  }
}

TEST(mapped_records_are_checked_to_the_end_of_the_file) {
  const Written written = many_sizes();
  const TempFile file(written.bytes);

  const auto [identities, end] = check_all(file);

  CHECK_EQ(end, written.bytes.size());
  CHECK(identities == written.identities);
}

TEST(checking_mapped_records_ends_before_what_is_not_sound) {
  Written written;
  while (written.bytes.size() < 17 * kMiB) written.add(std::string(984, 'x'));
  for (const uint64_t at : {uint64_t{0}, uint64_t{9}, uint64_t{500}, 2 * kMiB, 8 * kMiB - 1, 8 * kMiB,
                            8 * kMiB + 1, written.bytes.size() - 1}) {
    const TempFile file(flipped(written.bytes, at));

    const auto [identities, end] = check_all(file);

    CHECK_EQ(end, at / 1000 * 1000);
    CHECK_EQ(identities.size(), end / 1000 * 12);
  }
}

TEST(checking_mapped_records_ends_before_a_torn_one) {
  const std::string sound = frame(std::string(1000, 'x')) + frame("y");
  for (const std::string& rest :
       {std::string(), std::string(3, '\0'), std::string(40, '\0'), header(5), header(100 * kMiB) + "abc",
        header(UINT64_MAX) + "abc", header(INT64_MAX), header(INT64_MAX - 1'100)}) {
    const TempFile file(sound + rest);

    CHECK_EQ(check_all(file).second, sound.size());
  }
}

TEST(nothing_is_checked_that_cannot_be_mapped) {
  const std::string sound = frame("x");
  const TempFile empty(""), file(sound);

  CHECK_EQ(check_all(empty).second, 0u);
  CHECK_EQ(check_all(file, sound.size() - 1).second, 0u);
  CHECK_EQ(check_all(file, sound.size()).second, sound.size());
  CHECK_EQ(check_mapped(file, sound.size() + 1, kPlenty).size, 0u);
}

TEST(what_is_still_on_the_disk_is_left_to_be_read) {
  const TempFile file(many_sizes().bytes);
  CHECK_EQ(::fsync(file), 0);
  CHECK_EQ(::posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED), 0);

  const bool is_cached = FileMap::of(file, kPlenty)->is_cached();  // there may be no disk

  CHECK_EQ(check_mapped(file, 0, kPlenty).size != 0, is_cached);
}

TEST(a_file_may_be_cut_short_while_it_is_checked) {
  Written written;
  for (uint64_t number = 0; number < 9'000; ++number)
    written.add(std::string(984, static_cast<char>(number)));
  for (int round = 0; round < 20; ++round) {
    const TempFile file(written.bytes);
    const off_t left = 100'000 * round + 50;

    std::thread cut([&] {
      std::this_thread::sleep_for(std::chrono::microseconds(100 * round));
      CHECK_EQ(::ftruncate(file, left), 0);
    });
    const auto [identities, end] = check_all(file);
    cut.join();

    CHECK_EQ(identities, written.identities.substr(0, end / 1000 * 12));
    CHECK_EQ(check_all(file).second, static_cast<uint64_t>(left) / 1000 * 1000);
  }
}

// As pieces of these CRCs, cut at `cut`.
bool may_repeat(const std::vector<uint32_t>& crcs, size_t cut) {
  Buffer identities;
  for (const uint32_t crc : crcs) {
    const uint64_t length = 100;
    identities.append(reinterpret_cast<const uint8_t*>(&length), sizeof length);
    identities.append(reinterpret_cast<const uint8_t*>(&crc), sizeof crc);
  }
  const Bytes all(identities.data(), identities.size());
  const Bytes pieces[] = {all.first(12 * cut), {}, all.subspan(12 * cut)};
  return recordkit::may_repeat(pieces);
}

TEST(neighbours_that_are_there_twice_are_found) {
  Random random(2);
  std::vector<uint32_t> crcs;
  for (int i = 0; i < 3'000; ++i) crcs.push_back(static_cast<uint32_t>(random.below(UINT32_MAX)));

  CHECK(!may_repeat({}, 0));
  CHECK(!may_repeat(crcs, 1'000));
  for (size_t i = 0; i + 1 < crcs.size(); i += 1 + i / 8) {
    std::vector<uint32_t> more = crcs;
    more.insert(more.end(), {crcs[i], crcs[i + 1]});
    CHECK(may_repeat(more, 1'000));
    CHECK(may_repeat(more, crcs.size() + 1));
  }
}

TEST(records_that_are_there_twice_are_no_neighbours) {
  for (size_t count = 0; count < 40; ++count) {
    std::vector<uint32_t> crcs;
    for (uint32_t i = 0; i < count; ++i) crcs.insert(crcs.end(), {i, 1'000, 2'000 + i});
    CHECK(!may_repeat(crcs, count));
  }
}

TEST(few_records_repeat_as_many_do) {
  CHECK(!may_repeat({7, 7}, 1));
  CHECK(may_repeat({7, 7, 7}, 1));
  CHECK(may_repeat({1, 2, 1, 2}, 2));
  CHECK(!may_repeat({1, 2, 2, 1}, 4));
}

}  // namespace
}  // namespace recordkit
