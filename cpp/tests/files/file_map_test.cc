#include "core/files/file_map.h"

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <random>
#include <thread>

#include "core/records/fetch.h"
#include "support/check.h"
#include "support/frames.h"
#include "support/temp_file.h"

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
  const TempFile file(bytes);

  const std::unique_ptr<FileMap> map = FileMap::of(file, kPlenty);

  CHECK_EQ(as_text({map->data(), map->size()}), bytes);
  CHECK(map->is_whole());
  CHECK(map->is_cached());
}

TEST(a_map_may_be_of_a_part_of_the_file) {
  const std::string bytes = many_records(200);
  const TempFile file(bytes);

  const std::unique_ptr<FileMap> middle = FileMap::of(file, kPlenty, kPage, 5'000);
  const std::unique_ptr<FileMap> rest = FileMap::of(file, kPlenty, 4 * kPage);

  CHECK_EQ(as_text({middle->data(), middle->size()}), bytes.substr(kPage, 5'000));
  CHECK_EQ(as_text({rest->data(), rest->size()}), bytes.substr(4 * kPage));
  CHECK(FileMap::of(file, kPlenty, 5 * kPage) == nullptr);
}

TEST(there_is_no_map_of_nothing_nor_of_more_than_is_allowed) {
  const TempFile empty(""), file(std::string(1000, 'x'));

  CHECK(FileMap::of(empty, kPlenty) == nullptr);
  CHECK(FileMap::of(file, 999) == nullptr);
  for (int i = 0; i < 3; ++i) {  // what is let go counts no more
    const std::unique_ptr<FileMap> one = FileMap::of(file, 2000), other = FileMap::of(file, 2000);
    CHECK(one != nullptr && other != nullptr);
    CHECK(FileMap::of(file, 2999) == nullptr);
  }
}

TEST(a_map_of_a_file_that_was_cut_short_becomes_zeros_and_tells) {
  const TempFile file(std::string(8 * kPage, 'x'));
  const std::unique_ptr<FileMap> map = FileMap::of(file, kPlenty), other = FileMap::of(file, kPlenty);
  CHECK_EQ(::ftruncate(file, 2 * kPage + 10), 0);

  CHECK_EQ(map->data()[2 * kPage + 9], 'x');
  CHECK(map->is_whole());
  CHECK_EQ(map->data()[5 * kPage + 1], 0);
  CHECK(!map->is_whole());

  CHECK_EQ(map->data()[8 * kPage - 1], 0);
  CHECK_EQ(map->data()[0], 0);
  CHECK_EQ(other->data()[0], 'x');
  CHECK(other->is_whole());
}

TEST(fetching_from_maps_and_files_gives_the_same) {
  const std::string bytes = many_records(500);
  const TempFile a(bytes), b(bytes);
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
  const TempFile file(bytes);
  const int descriptor = file;
  for (const size_t left : {499 * 100 + 99, 300 * 100, 200 * 100 + 5, 0}) {
    const std::unique_ptr<FileMap> map = FileMap::of(file, kPlenty);
    const std::vector<const FileMap*> maps = {map.get()};
    CHECK_EQ(::ftruncate(descriptor, static_cast<off_t>(left)), 0);
    std::vector<Place> places;
    for (uint64_t i = 0; i < 500; ++i) places.push_back({i * 100, 100});

    const Fetched fetched = fetch({&descriptor, 1}, places, maps);

    CHECK(fetched.fault != Fault::none);
    CHECK_EQ(fetched.chunk.records.size(), left / 100);
  }
}

TEST(a_place_behind_the_map_is_read_from_the_file) {
  const TempFile file(many_records(2));
  const int descriptor = file;
  const std::unique_ptr<FileMap> map = FileMap::of(file, kPlenty);
  const std::string more = many_records(1);
  CHECK_EQ(::pwrite(descriptor, more.data(), more.size(), 200), 100);
  const std::vector<const FileMap*> maps = {map.get()};
  const std::vector<Place> places = {{200, 100}, {100, 100}};

  CHECK_EQ(fetch({&descriptor, 1}, places, maps).chunk.records.size(), 2u);
}

TEST(a_bus_error_elsewhere_still_ends_the_process) {
  const TempFile file(std::string(2 * kPage, 'x'));
  const std::unique_ptr<FileMap> map = FileMap::of(file, kPlenty);
  const auto* const elsewhere =
      static_cast<const volatile char*>(::mmap(nullptr, 2 * kPage, PROT_READ, MAP_SHARED, file, 0));
  CHECK_EQ(::ftruncate(file, 10), 0);

  CHECK(!is_survived([&] { ::_exit(elsewhere[kPage]); }));
  CHECK(!is_survived([] { ::raise(SIGBUS); }));
  CHECK(is_survived([&] { ::_exit(elsewhere[kPage - 1] + map->data()[kPage]); }));
}

TEST(maps_are_left_alone_while_someone_else_takes_the_signal) {
  const TempFile file(many_records(500));
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

TEST(maps_are_left_alone_by_a_thread_that_has_blocked_the_signal) {
  const TempFile file(many_records(500));
  const int descriptor = file;
  const std::unique_ptr<FileMap> map = FileMap::of(file, kPlenty);
  const std::vector<const FileMap*> maps = {map.get()};
  const std::vector<Place> places = {{0, 100}, {49000, 100}};
  CHECK_EQ(::ftruncate(descriptor, 1000), 0);

  CHECK(is_survived([&] {
    sigset_t all;
    sigfillset(&all);
    ::pthread_sigmask(SIG_BLOCK, &all, nullptr);
    if (FileMap::is_guarded() || fetch({&descriptor, 1}, places, maps).fault != Fault::torn_payload)
      ::_exit(1);
  }));
}

TEST(a_guard_allows_nothing_more_once_someone_else_has_taken_the_signal_even_if_ours_comes_back) {
  const TempFile file(many_records(500));
  const std::unique_ptr<FileMap> map = FileMap::of(file, kPlenty);
  struct sigaction ours;
  CHECK_EQ(::sigaction(SIGBUS, nullptr, &ours), 0);
  MapGuard guard, later;
  CHECK(guard.allows(MapGuard::kBetween));
  const uint64_t touched = FileMap::touched();

  ::signal(SIGBUS, SIG_IGN);
  const bool while_taken = guard.allows(1) || copy_payload(guard, nullptr, nullptr, 0, Prefetch::ahead);
  ::sigaction(SIGBUS, &ours, nullptr);

  CHECK(!while_taken);
  CHECK(guard.was_refused() && !guard.allows(1));
  CHECK(later.allows(5));
  {
    MapGuard third;
    CHECK(third.allows(7));
  }
  CHECK_EQ(FileMap::touched(), touched + 7);
}

TEST(a_long_payload_is_copied_from_a_map_as_a_short_one_is) {
  std::mt19937 random(4);
  for (const size_t size : {size_t{0}, size_t{1}, size_t{MapGuard::kPiece}, size_t{MapGuard::kPiece + 1},
                            size_t{9 * MapGuard::kPiece + 77}}) {
    std::string payload(size, ' ');
    for (char& byte : payload) byte = static_cast<char>(random());
    std::string framed = frame(payload);
    const auto* const from = reinterpret_cast<const uint8_t*>(framed.data()) + kHeaderSize;
    std::vector<uint8_t> to(size + kFooterSize);
    const TempFile file(framed);
    const std::unique_ptr<FileMap> map = FileMap::of(file, kPlenty);
    MapGuard guard;

    CHECK(copy_payload(guard, to.data(), from, size, Prefetch::none));
    CHECK(std::equal(to.begin(), to.end(), from));
    framed[kHeaderSize + size] ^= 1;
    CHECK(!copy_payload(guard, to.data(), from, size, Prefetch::none));
    CHECK(!guard.was_refused());
  }
}

// --- What is not ours

constexpr unsigned kFacts = SA_SIGINFO, kNested = SA_NODEFER, kOnce = SA_RESETHAND;

struct Foreign {
  // As the handler that was there before saw it.
  static inline std::atomic<int> calls = 0;
  static inline std::atomic<const void*> address = nullptr;
  static inline std::atomic<bool> nested = false, other = false;
  static inline void* page = nullptr;

  static void note(void* from) {
    sigset_t blocked;
    ::pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
    nested = !sigismember(&blocked, SIGBUS);
    other = sigismember(&blocked, SIGUSR1);
    address = from;
    ++calls;
    ::mmap(page, kPage, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  }
  static void with_facts(int, siginfo_t* facts, void*) { note(facts->si_addr); }
  static void plain(int) { note(nullptr); }
};

// What becomes of a process that has this handler before ours, and then meets a fault of another's map and
// one of ours: 0 if the first went to it, and the second to us.
int passed_on(unsigned flags, bool sent) {
  struct sigaction before = {};
  sigemptyset(&before.sa_mask);
  sigaddset(&before.sa_mask, SIGUSR1);
  before.sa_flags = static_cast<int>(flags);
  if ((flags & kFacts) != 0)
    before.sa_sigaction = Foreign::with_facts;
  else
    before.sa_handler = Foreign::plain;
  ::sigaction(SIGBUS, &before, nullptr);
  const TempFile file(std::string(2 * kPage, 'x'));
  const std::unique_ptr<FileMap> map = FileMap::of(file, kPlenty);
  if (map == nullptr) return 2;
  auto* const elsewhere = static_cast<char*>(::mmap(nullptr, 2 * kPage, PROT_READ, MAP_SHARED, file, 0));
  Foreign::page = elsewhere + kPage;
  if (::ftruncate(file, 10) != 0) return 3;
  if (sent)
    ::raise(SIGBUS);
  else if (*static_cast<volatile char*>(Foreign::page) != 0)
    return 4;
  if (Foreign::calls != 1) return 5;
  if ((flags & kFacts) != 0 && !sent && Foreign::address != Foreign::page) return 6;
  if (Foreign::nested != ((flags & kNested) != 0) || !Foreign::other) return 7;
  sigset_t blocked;
  ::pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
  if (sigismember(&blocked, SIGBUS) || sigismember(&blocked, SIGUSR1)) return 8;
  if (!FileMap::is_guarded()) return 9;
  const uint8_t found = static_cast<const volatile uint8_t*>(map->data())[kPage];
  return found == 0 && !map->is_whole() && Foreign::calls == 1 ? 0 : 10;
}

constexpr const char* kFlags = "RECORDKIT_TEST_FLAGS";
constexpr const char* kHow = "RECORDKIT_TEST_HOW";  // 's' for one that is sent, then 't' for once more

// In another program, for this one has taken the signal already, and a child of it would not do so again.
int status_of(unsigned flags, bool sent, bool twice) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(STDOUT_FILENO);
    ::close(STDERR_FILENO);
    ::setenv(kFlags, std::to_string(flags).c_str(), 1);
    ::setenv(kHow, (std::string(sent ? "s" : "m") + (twice ? "t" : "")).c_str(), 1);
    ::execl("/proc/self/exe", "unit_tests", "a_bus_error_elsewhere_goes_to", nullptr);
    ::_exit(99);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return status;
}

TEST(a_bus_error_elsewhere_goes_to_the_handler_that_was_there_as_it_was_installed_and_ours_stays) {
  if (const char* const flags = ::getenv(kFlags)) {
    const std::string how = ::getenv(kHow);
    const int result = passed_on(static_cast<unsigned>(std::stoul(flags)), how[0] == 's');
    if (result == 0 && how.size() > 1) ::raise(SIGBUS);
    ::_exit(result);
  }
  for (const unsigned flags : {0u, kFacts, kNested, kFacts | kNested, kFacts | kOnce})
    for (const bool sent : {false, true}) CHECK_EQ(status_of(flags, sent, false), 0);
  CHECK(status_of(kOnce, true, true) != 0);  // it wanted to be called once
  CHECK_EQ(status_of(kFacts, true, true), 0);
}

TEST(maps_that_come_and_go_while_files_are_cut_are_mended_where_they_are_and_nowhere_else) {
  constexpr size_t kPages = 64;
  std::atomic<bool> wrong = false;
  const TempFile witness(std::string(kPages * kPage, 'w'));
  const std::unique_ptr<FileMap> seen = FileMap::of(witness, kPlenty);
  std::vector<std::thread> threads;
  for (int number = 0; number < 4; ++number) {
    threads.emplace_back([&, number] {
      std::mt19937 random(static_cast<unsigned>(number));
      for (int round = 0; round < 150; ++round) {
        const size_t pages = 2 + random() % (kPages - 2);
        const TempFile file(std::string(pages * kPage, 'x'));
        const std::unique_ptr<FileMap> map = FileMap::of(file, kPlenty), other = FileMap::of(file, kPlenty);
        const size_t left = random() % pages;
        if (::ftruncate(file, static_cast<off_t>(left * kPage)) != 0) wrong = true;
        const auto* const data = static_cast<const volatile uint8_t*>(map->data());
        if (data[left * kPage + random() % kPage] != 0 || map->is_whole() || !other->is_whole()) wrong = true;
        if (seen->data()[random() % (kPages * kPage)] != 'w') wrong = true;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(!wrong && seen->is_whole());
}

}  // namespace
}  // namespace recordkit
