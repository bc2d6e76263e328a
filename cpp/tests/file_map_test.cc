#include "core/file_map.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "core/fetch.h"
#include "frames.h"
#include "held.h"

namespace recordkit {
namespace {

constexpr uint64_t kPlenty = uint64_t{1} << 40;
constexpr size_t kPage = 4096;

std::string many_records(size_t count) {
  std::string bytes;
  for (size_t i = 0; i < count; ++i) bytes += frame(std::string(84, static_cast<char>('a' + i % 26)));
  return bytes;
}

// Whether a process lives on that does this. What a sanitizer says of its end is not for our ears.
template <typename Deed>
bool is_survived(Deed deed) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(STDERR_FILENO);
    deed();
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return status == 0;
}

TEST(a_map_has_the_bytes_of_the_file) {
  const std::string bytes = many_records(200);
  const Held file(bytes);

  const std::unique_ptr<FileMap> map = FileMap::of(file, kPlenty);

  CHECK_EQ(as_text({map->data(), map->size()}), bytes);
  CHECK(map->is_whole());
  CHECK(map->is_cached());
}

TEST(a_map_may_be_of_a_part_of_the_file) {
  const std::string bytes = many_records(200);
  const Held file(bytes);

  const std::unique_ptr<FileMap> middle = FileMap::of(file, kPlenty, kPage, 5'000);
  const std::unique_ptr<FileMap> rest = FileMap::of(file, kPlenty, 4 * kPage);

  CHECK_EQ(as_text({middle->data(), middle->size()}), bytes.substr(kPage, 5'000));
  CHECK_EQ(as_text({rest->data(), rest->size()}), bytes.substr(4 * kPage));
  CHECK(FileMap::of(file, kPlenty, 5 * kPage) == nullptr);
}

TEST(there_is_no_map_of_nothing_nor_of_more_than_is_allowed) {
  const Held empty(""), file(std::string(1000, 'x'));

  CHECK(FileMap::of(empty, kPlenty) == nullptr);
  CHECK(FileMap::of(file, 999) == nullptr);
  for (int i = 0; i < 3; ++i) {  // what is let go counts no more
    const std::unique_ptr<FileMap> one = FileMap::of(file, 2000), other = FileMap::of(file, 2000);
    CHECK(one != nullptr && other != nullptr);
    CHECK(FileMap::of(file, 2999) == nullptr);
  }
}

TEST(pages_of_a_file_that_was_cut_short_become_zeros_and_the_map_tells) {
  const Held file(std::string(8 * kPage, 'x'));
  const std::unique_ptr<FileMap> map = FileMap::of(file, kPlenty), other = FileMap::of(file, kPlenty);
  CHECK_EQ(::ftruncate(file, 2 * kPage + 10), 0);

  CHECK_EQ(map->data()[2 * kPage + 9], 'x');
  CHECK(map->is_whole());
  CHECK_EQ(map->data()[5 * kPage + 1], 0);
  CHECK(!map->is_whole());

  CHECK_EQ(map->data()[8 * kPage - 1], 0);
  CHECK_EQ(map->data()[3 * kPage], 0);
  CHECK_EQ(map->data()[0], 'x');
  CHECK(other->is_whole());
}

TEST(fetching_from_maps_and_files_gives_the_same) {
  const std::string bytes = many_records(500);
  const Held a(bytes), b(bytes);
  const std::unique_ptr<FileMap> map = FileMap::of(a, kPlenty);
  const std::vector<int> descriptors = {a, b};
  const std::vector<const FileMap*> maps = {map.get(), nullptr};
  std::vector<Place> places;
  for (uint64_t i = 0; i < 500; ++i) places.push_back({i * 37 % 500 * 100, 100, i % 3 == 0 ? 1u : 0u});

  const Fetched read = fetch(descriptors, places), copied = fetch(descriptors, places, maps);

  CHECK_EQ(copied.fault, Fault::none);
  CHECK_EQ(copied.chunk.records.size(), 500u);
  for (size_t i = 0; i < 500; ++i) CHECK_EQ(as_text(copied.chunk.payload(i)), as_text(read.chunk.payload(i)));
}

TEST(records_that_a_mapped_file_has_lost_are_told_as_damaged) {
  const std::string bytes = many_records(500);
  const Held file(bytes);
  const int descriptor = file;
  const std::unique_ptr<FileMap> map = FileMap::of(file, kPlenty);
  const std::vector<const FileMap*> maps = {map.get()};
  for (const size_t left : {499 * 100 + 99, 300 * 100, 200 * 100 + 5, 0}) {
    CHECK_EQ(::ftruncate(descriptor, static_cast<off_t>(left)), 0);
    std::vector<Place> places;
    for (uint64_t i = 0; i < 500; ++i) places.push_back({i * 100, 100});

    const Fetched fetched = fetch({&descriptor, 1}, places, maps);

    CHECK(fetched.fault != Fault::none);
    CHECK_EQ(fetched.chunk.records.size(), left / 100);
  }
}

TEST(a_place_behind_the_map_is_read_from_the_file) {
  const Held file(many_records(2));
  const int descriptor = file;
  const std::unique_ptr<FileMap> map = FileMap::of(file, kPlenty);
  const std::string more = many_records(1);
  CHECK_EQ(::pwrite(descriptor, more.data(), more.size(), 200), 100);
  const std::vector<const FileMap*> maps = {map.get()};
  const std::vector<Place> places = {{200, 100}, {100, 100}};

  CHECK_EQ(fetch({&descriptor, 1}, places, maps).chunk.records.size(), 2u);
}

TEST(a_bus_error_elsewhere_still_ends_the_process) {
  const Held file(std::string(2 * kPage, 'x'));
  const std::unique_ptr<FileMap> map = FileMap::of(file, kPlenty);
  const auto* const elsewhere =
      static_cast<const volatile char*>(::mmap(nullptr, 2 * kPage, PROT_READ, MAP_SHARED, file, 0));
  CHECK_EQ(::ftruncate(file, 10), 0);

  CHECK(!is_survived([&] { ::_exit(elsewhere[kPage]); }));
  CHECK(!is_survived([] { ::raise(SIGBUS); }));
  CHECK(is_survived([&] { ::_exit(elsewhere[kPage - 1] + map->data()[kPage]); }));
}

TEST(maps_are_left_alone_while_someone_else_takes_the_signal) {
  const Held file(many_records(500));
  const int descriptor = file;
  const std::unique_ptr<FileMap> map = FileMap::of(file, kPlenty);
  const std::vector<const FileMap*> maps = {map.get()};
  const std::vector<Place> places = {{0, 100}, {49000, 100}};
  CHECK_EQ(::ftruncate(descriptor, 1000), 0);

  CHECK(is_survived([&] {
    ::signal(SIGBUS, SIG_DFL);
    if (FileMap::is_guarded() || FileMap::of(file, kPlenty) != nullptr) ::_exit(1);
    if (fetch({&descriptor, 1}, places, maps).fault != Fault::torn_payload) ::_exit(2);
  }));
}

}  // namespace
}  // namespace recordkit
