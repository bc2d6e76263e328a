#include "core/records/reader.h"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <climits>
#include <cstdio>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <system_error>
#include <thread>

#include "support/check.h"
#include "support/frames.h"
#include "support/sources.h"
#include "support/temp_file.h"

// Every sanitizer of both compilers has it, but not every installation its header.
extern "C" size_t __sanitizer_get_current_allocated_bytes();

namespace recordkit {
namespace {

std::string numbered_file(size_t records, Random& random) {
  std::string file;
  for (size_t i = 0; i < records; ++i)
    file += frame(std::to_string(i) + ":" + random.bytes(random.below(300)));
  return file;
}

std::vector<std::string> payloads_of(const Chunk& chunk) {
  std::vector<std::string> payloads;
  for (size_t i = 0; i < chunk.records.size(); ++i) payloads.emplace_back(as_text(chunk.payload(i)));
  return payloads;
}

std::vector<std::string> read_all(RecordReader& reader) {
  std::vector<std::string> all;
  for (;;) {
    const ReadResult result = reader.next();
    CHECK_EQ(result.fault, Fault::none);
    if (result.chunk.records.empty()) return all;
    for (std::string& payload : payloads_of(result.chunk)) all.push_back(std::move(payload));
  }
}

TEST(reader_gives_the_same_records_however_the_bytes_arrive) {
  Random random(1);
  const std::string file = numbered_file(60, random);
  RecordReader at_once(std::make_unique<PieceSource>(file, SIZE_MAX), {});
  const std::vector<std::string> expected = read_all(at_once);

  CHECK_EQ(expected.size(), 60u);
  for (size_t piece = 1; piece < 400; piece += 1 + piece / 4) {
    RecordReader reader(std::make_unique<PieceSource>(file, piece), {.chunk_bytes = 1 + 10 * piece});
    CHECK(read_all(reader) == expected);
  }
}

TEST(reader_numbers_records_and_bytes_from_where_it_was_told_to_start) {
  const std::string five = five_records();
  const std::string rest = five.substr(54);
  RecordReader reader(std::make_unique<PieceSource>(rest, 10), {.chunk_bytes = 1}, 54, 2);

  CHECK_EQ(reader.next().chunk.first_record, 2u);
  const ReadResult second = reader.next();

  CHECK_EQ(second.chunk.first_record, 3u);
  CHECK_EQ(second.chunk.file_offset, 81u);
  CHECK_EQ(second.chunk.offset_of(0), 81u);
}

TEST(reader_gives_exactly_as_many_as_asked_for_until_the_file_ends) {
  Random random(2);
  const std::string file = numbered_file(50, random);
  for (const size_t piece : {1, 100, 1'000'000}) {
    RecordReader reader(std::make_unique<PieceSource>(file, piece), {.chunk_bytes = 1});
    for (int i = 0; i < 7; ++i) CHECK_EQ(reader.next(7, true).chunk.records.size(), 7u);
    CHECK_EQ(reader.next(7, true).chunk.records.size(), 1u);
    CHECK_EQ(reader.next(7, true).chunk.records.size(), 0u);
  }
}

TEST(reader_chunks_outlive_the_reader_and_each_other) {
  Random random(3);
  const std::string file = numbered_file(40, random);
  std::vector<Chunk> chunks;
  {
    RecordReader reader(std::make_unique<PieceSource>(file, 512), {.chunk_bytes = 512});
    for (ReadResult result = reader.next(); !result.chunk.records.empty(); result = reader.next())
      chunks.push_back(std::move(result.chunk));
  }
  std::string joined;
  for (const Chunk& chunk : chunks) {
    joined += as_text({chunk.data, chunk.size});
    for (size_t i = 0; i < kPadding; ++i) CHECK(chunk.data[chunk.readable - 1 - i] == 0);
  }
  CHECK(joined == file);
}

TEST(reader_gives_what_is_sound_and_then_the_same_fault_for_ever) {
  const std::string damaged = flipped(five_records(), 54 + 12);
  RecordReader reader(std::make_unique<PieceSource>(damaged, SIZE_MAX), {});

  const ReadResult first = reader.next();
  CHECK_EQ(first.chunk.records.size(), 2u);
  CHECK_EQ(first.chunk.size, 54u);
  CHECK_EQ(first.fault, Fault::bad_payload_crc);
  CHECK_EQ(first.offset, 54u);
  for (int i = 0; i < 3; ++i) {
    const ReadResult again = reader.next();
    CHECK_EQ(again.chunk.records.size(), 0u);
    CHECK_EQ(again.fault, Fault::bad_payload_crc);
    CHECK_EQ(again.offset, 54u);
    // The number of the record at fault: a message made from a later call has to name the same one.
    CHECK_EQ(again.chunk.first_record, 2u);
  }
}

TEST(reader_calls_a_record_torn_only_when_the_source_has_ended) {
  const std::string cut = five_records().substr(0, 120);
  RecordReader reader(std::make_unique<PieceSource>(cut, 1), {});

  const ReadResult result = reader.next();

  CHECK_EQ(result.chunk.records.size(), 4u);
  CHECK_EQ(result.fault, Fault::torn_payload);
  CHECK_EQ(result.offset, 108u);
}

TEST(reader_loses_nothing_when_the_source_fails_in_between) {
  Random random(4);
  const std::string file = numbered_file(60, random);
  for (const size_t piece : {1, 33, 1000, 100'000}) {
    RecordReader reader(std::make_unique<ShakySource>(file, piece), {.chunk_bytes = 2000});
    std::string joined;
    for (bool ended = false; !ended;) {
      try {
        const ReadResult result = reader.next();
        CHECK_EQ(result.fault, Fault::none);
        CHECK_EQ(result.chunk.file_offset, joined.size());
        joined += as_text({result.chunk.data, result.chunk.size});
        ended = result.chunk.records.empty();
      } catch (const std::runtime_error&) {
      }
    }
    CHECK(joined == file);
  }
}

// Sends a header and then the same bytes for as long as it is asked, and notes how much memory is in use.
class Endless : public ByteSource {
 public:
  Endless(std::string start, size_t total) : start_(std::move(start)), left_(total) {}

  size_t read(uint64_t /*offset*/, uint8_t* to, size_t size) override {
    CHECK(__sanitizer_get_current_allocated_bytes() <= before_ + (size_t{2} << 20) + 3 * sent_);
    size_t got = start_.copy(reinterpret_cast<char*>(to), size);
    start_.erase(0, got);
    if (got == 0) {
      got = std::min({size, left_, size_t{100'000}});
      left_ -= got;
      std::memset(to, 'x', got);
    }
    sent_ += got;
    return got;
  }

 private:
  std::string start_;
  size_t left_, sent_ = 0;
  size_t before_ = __sanitizer_get_current_allocated_bytes();
};

TEST(reader_memory_grows_with_what_arrives_not_with_what_a_length_claims) {
  for (const uint64_t length :
       {UINT64_MAX, UINT64_MAX - 16, uint64_t{1} << 63, uint64_t{1} << 40, uint64_t{1} << 31}) {
    for (const size_t total : {size_t{0}, size_t{1000}, size_t{20} << 20}) {
      RecordReader reader(std::make_unique<Endless>(header(length), total), {});
      const ReadResult result = reader.next();
      CHECK_EQ(result.fault, Fault::torn_payload);
      CHECK_EQ(result.offset, 0u);
    }
  }
}

TEST(reader_refuses_a_record_larger_than_allowed_before_reading_it) {
  RecordReader reader(std::make_unique<Endless>(header(1'000'001), size_t{100} << 20),
                      {.max_record_bytes = 1'000'000});
  CHECK_EQ(reader.next().fault, Fault::too_large);
}

// How many records each of several threads got from one reader, all together.
std::multiset<std::string> read_by_threads(RecordReader& reader, size_t threads,
                                           std::multiset<uint64_t>& faults) {
  std::multiset<std::string> all;
  std::mutex mutex;
  std::vector<std::thread> running;
  for (size_t t = 0; t < threads; ++t) {
    running.emplace_back([&] {
      for (;;) {
        const ReadResult result = reader.next();
        std::lock_guard lock(mutex);
        for (std::string& payload : payloads_of(result.chunk)) all.insert(std::move(payload));
        if (result.fault != Fault::none) faults.insert(result.offset);
        if (result.chunk.records.empty() || result.fault != Fault::none) return;
      }
    });
  }
  for (std::thread& thread : running) thread.join();
  return all;
}

TEST(reader_gives_every_record_once_to_many_threads) {
  Random random(5);
  const std::string file = numbered_file(3000, random);
  RecordReader alone(std::make_unique<PieceSource>(file, SIZE_MAX), {});
  const std::vector<std::string> expected = read_all(alone);
  for (int i = 0; i < 5; ++i) {
    RecordReader reader(std::make_unique<PieceSource>(file, 4000), {.chunk_bytes = 5000});
    std::multiset<uint64_t> faults;
    const std::multiset<std::string> all = read_by_threads(reader, 4, faults);
    CHECK(faults.empty());
    CHECK(all == std::multiset<std::string>(expected.begin(), expected.end()));
  }
}

TEST(reader_gives_many_threads_every_record_before_the_damage) {
  Random random(6);
  const std::string before = numbered_file(500, random);
  const std::string file = before + flipped(frame("damaged"), 12) + numbered_file(500, random);
  RecordReader alone(std::make_unique<PieceSource>(before, SIZE_MAX), {});
  const std::vector<std::string> expected = read_all(alone);
  for (int i = 0; i < 5; ++i) {
    RecordReader reader(std::make_unique<PieceSource>(file, 4000), {.chunk_bytes = 3000});
    std::multiset<uint64_t> faults;
    const std::multiset<std::string> all = read_by_threads(reader, 4, faults);
    CHECK(!faults.empty() && *faults.begin() == before.size());
    for (const std::string& payload : expected) CHECK_EQ(all.count(payload), 1u);
    CHECK_EQ(all.count("damaged"), 0u);
  }
}

TEST(file_source_reads_from_its_offset_and_leaves_the_files_position_alone) {
  std::FILE* const file = std::tmpfile();
  const std::string five = five_records();
  CHECK_EQ(std::fwrite(five.data(), 1, five.size(), file), five.size());
  std::rewind(file);
  RecordReader reader(std::make_unique<FileSource>(fileno(file), 0), {}, 54, 2);

  const ReadResult result = reader.next();

  CHECK(payloads_of(result.chunk) == (std::vector<std::string>{"payload-002", "payload-003", "payload-004"}));
  CHECK_EQ(::lseek(fileno(file), 0, SEEK_CUR), 0);
  std::fclose(file);
}

TEST(file_source_throws_what_the_system_says) {
  int code = 0;
  try {
    FileSource(-1, 0);
  } catch (const std::system_error& error) {
    code = error.code().value();
  }
  CHECK_EQ(code, EBADF);
}

// --- Files that are in memory

constexpr size_t kMiB = size_t{1} << 20;

// Many sizes, and one larger than what is mapped at a time.
std::string large_file() {
  std::string file;
  Random random(8);
  for (uint64_t number = 0; file.size() < 36 * kMiB; ++number) {
    const size_t longest = number % 2000 < 1500 ? 300 : 60'000;
    file += frame(std::string(random.below(longest), static_cast<char>(number)));
    if (number == 2500) file += frame(std::string(9 * kMiB, 'L')) + frame("");
  }
  return file;
}

struct Everything {
  std::string framed;  // all chunks, one behind the other
  uint64_t records = 0;
  Fault fault = Fault::none;
  uint64_t offset = 0;
};

Everything read_framed(RecordReader& reader, size_t records, bool whole_count) {
  Everything all;
  for (;;) {
    const ReadResult result = reader.next(records, whole_count);
    const Chunk& chunk = result.chunk;
    CHECK_EQ(chunk.file_offset, all.framed.size());
    CHECK_EQ(chunk.first_record, all.records);
    for (size_t i = 0; i < chunk.records.size(); ++i)
      CHECK_EQ(crc32c(chunk.payload(i)), chunk.payload_crc(i));
    all.framed.append(as_text({chunk.data, chunk.size}));
    all.records += chunk.records.size();
    all.fault = result.fault;
    all.offset = result.offset;
    if (chunk.records.empty() || result.fault != Fault::none) return all;
  }
}

TEST(reader_copies_from_maps_what_it_would_read) {
  const std::string file = large_file();
  RecordReader plain(std::make_unique<PieceSource>(file, SIZE_MAX), {});
  const uint64_t records = read_framed(plain, SIZE_MAX, false).records;
  for (const auto& [count, whole_count] : {std::pair{SIZE_MAX, false}, {100, true}, {500, true}}) {
    const TempFile held(file);
    std::atomic<size_t> read = 0;
    RecordReader reader(std::make_unique<SlowFile>(held, read), {});

    const Everything all = read_framed(reader, count, whole_count);

    CHECK(all.framed == file);
    CHECK_EQ(all.records, records);
    CHECK_EQ(all.fault, Fault::none);
    CHECK(read < 25 * kMiB);
  }
}

// Bits that were flipped and cuts are told as they are of plain bytes, with the same records before them.
void check_damage(const std::string& file, std::initializer_list<size_t> places,
                  const std::function<Everything(int descriptor)>& read) {
  for (const size_t at : places) {
    for (const std::string& damaged : {flipped(file, at), file.substr(0, at)}) {
      RecordReader plain(std::make_unique<PieceSource>(damaged, SIZE_MAX), {});
      const Everything expected = read_framed(plain, SIZE_MAX, false);
      const TempFile held(damaged);

      const Everything all = read(held);

      CHECK(all.fault != Fault::none && all.fault == expected.fault);
      CHECK_EQ(all.offset, expected.offset);
      CHECK(all.framed == expected.framed);
    }
  }
}

TEST(reader_tells_what_is_wrong_with_what_it_would_copy) {
  const std::string file = large_file();
  check_damage(file, {10 * kMiB, 14 * kMiB + 5, 21 * kMiB + 77, 30 * kMiB + 3, file.size() - 1},
               [](int descriptor) {
                 std::atomic<size_t> read = 0;
                 RecordReader reader(std::make_unique<SlowFile>(descriptor, read), {});
                 return read_framed(reader, SIZE_MAX, false);
               });
}

TEST(reader_keeps_to_its_limit_when_it_copies) {
  const TempFile held(large_file());
  std::atomic<size_t> read = 0;
  RecordReader reader(std::make_unique<SlowFile>(held, read), {.max_record_bytes = 9 * kMiB - 1});

  CHECK_EQ(read_framed(reader, SIZE_MAX, false).fault, Fault::too_large);
}

TEST(a_file_may_be_cut_short_while_it_is_copied) {
  const std::string file = large_file();
  for (int round = 0; round < 12; ++round) {
    const TempFile held(file);
    std::atomic<size_t> read = 0;
    RecordReader reader(std::make_unique<SlowFile>(held, read), {});
    const size_t left = (9 + 2 * round) * kMiB + 11;

    std::thread cut([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(38 + round));
      CHECK_EQ(::ftruncate(held, static_cast<off_t>(left)), 0);
    });
    const Everything all = read_framed(reader, SIZE_MAX, false);
    cut.join();

    CHECK(all.fault == Fault::cut_short || (all.fault == Fault::none && all.framed == file));
    CHECK(file.starts_with(all.framed));
    if (all.fault != Fault::none)
      CHECK(all.framed.size() >= all.offset && all.framed.size() + 10 * kMiB > left);
  }
}

// --- Several threads read at once

// Notes how many read at the same time, which takes them long enough to meet, and how much; fails now and
// then.
class BusyFile : public FileSource {
 public:
  struct Seen {
    std::atomic<int> reading = 0, most = 0, calls = 0;
    std::atomic<size_t> bytes = 0;
  };

  BusyFile(int descriptor, Seen& seen, int fails_every = INT_MAX)
      : FileSource(descriptor, 0), seen_(seen), fails_every_(fails_every) {}

  size_t read(uint64_t offset, uint8_t* to, size_t size) override {
    const int reading = ++seen_.reading;
    for (int most = seen_.most; most < reading && !seen_.most.compare_exchange_weak(most, reading);) {
    }
    std::this_thread::sleep_for(std::chrono::nanoseconds(2 * size));
    const size_t got = FileSource::read(offset, to, size);
    --seen_.reading;
    if (++seen_.calls % fails_every_ == 0) throw std::runtime_error("connection reset");
    seen_.bytes += got;
    return got;
  }

 private:
  Seen& seen_;
  int fails_every_;
};

// All chunks that several threads got, put one behind the other; each thread goes on after errors.
Everything framed_by_threads(RecordReader& reader, size_t threads, size_t records, bool whole_count) {
  std::map<uint64_t, Chunk> chunks;
  Everything all;
  std::mutex mutex;
  const auto pull = [&] {
    for (bool ended = false; !ended;) {
      try {
        ReadResult result = reader.next(records, whole_count);
        ended = result.chunk.records.empty() || result.fault != Fault::none;
        std::lock_guard lock(mutex);
        if (result.fault != Fault::none && (all.fault == Fault::none || result.offset < all.offset)) {
          all.fault = result.fault;
          all.offset = result.offset;
        }
        if (!result.chunk.records.empty()) chunks.emplace(result.chunk.file_offset, std::move(result.chunk));
      } catch (const std::runtime_error&) {
      }
    }
  };
  std::vector<std::thread> running;
  for (size_t t = 0; t < threads; ++t) running.emplace_back(pull);
  for (std::thread& thread : running) thread.join();
  for (const auto& [offset, chunk] : chunks) {
    if (all.fault != Fault::none && offset >= all.offset) break;
    CHECK_EQ(offset, all.framed.size());
    CHECK_EQ(chunk.first_record, all.records);
    for (size_t i = 0; i < chunk.records.size(); ++i)
      CHECK_EQ(crc32c(chunk.payload(i)), chunk.payload_crc(i));
    all.framed.append(as_text({chunk.data, chunk.size}));
    all.records += chunk.records.size();
  }
  return all;
}

TEST(threads_read_at_the_same_time_and_hardly_anything_twice) {
  Random random(9);
  const std::string file = numbered_file(60'000, random);
  const TempFile held(file);
  BusyFile::Seen seen;
  RecordReader reader(std::make_unique<BusyFile>(held, seen), {});

  const Everything all = framed_by_threads(reader, 2, 1000, true);

  CHECK(all.framed == file);
  CHECK_EQ(all.records, 60'000u);
  CHECK_EQ(all.fault, Fault::none);
  CHECK_EQ(seen.most, 2);
  CHECK(seen.bytes < file.size() + file.size() / 4);
}

TEST(threads_get_every_record_in_order_however_wrong_their_guesses_are) {
  const std::string file = large_file();
  const TempFile held(file);
  for (const auto& [count, whole_count] : {std::pair{SIZE_MAX, false}, {100, true}, {700, true}}) {
    for (const size_t threads : {2, 3, 9}) {
      BusyFile::Seen seen;
      RecordReader reader(std::make_unique<BusyFile>(held, seen), {.chunk_bytes = 300'000});
      const Everything all = framed_by_threads(reader, threads, count, whole_count);
      CHECK(all.framed == file);
      CHECK_EQ(all.fault, Fault::none);
    }
  }
}

TEST(threads_lose_nothing_when_reading_fails_before_their_turn_or_in_it) {
  Random random(10);
  const std::string file = numbered_file(40'000, random);
  const TempFile held(file);
  for (const int fails_every : {2, 3, 7}) {
    BusyFile::Seen seen;
    RecordReader reader(std::make_unique<BusyFile>(held, seen, fails_every), {});
    CHECK(framed_by_threads(reader, 3, 500, true).framed == file);
  }
}

TEST(threads_find_the_same_damage_as_one) {
  Random random(11);
  const std::string file = numbered_file(30'000, random);
  check_damage(file, {1000, file.size() / 3, file.size() / 2 + 7, file.size() - 1}, [](int descriptor) {
    BusyFile::Seen seen;
    RecordReader reader(std::make_unique<BusyFile>(descriptor, seen), {});
    return framed_by_threads(reader, 3, 400, true);
  });
}

// --- Several threads copy from maps at once

// Records that have whole records in them: what looks like a header need not be one.
std::string nested_file() {
  std::string file;
  Random random(12);
  for (uint64_t number = 0; file.size() < 24 * kMiB; ++number) {
    std::string inside;
    for (size_t i = 0; i < 1 + number % 7; ++i)
      inside += frame(std::string(random.below(300), static_cast<char>(number)));
    file += frame(inside);
  }
  return file;
}

TEST(threads_copy_from_maps_what_they_would_read) {
  for (const std::string& file : {large_file(), nested_file()}) {
    RecordReader plain(std::make_unique<PieceSource>(file, SIZE_MAX), {});
    const uint64_t records = read_framed(plain, SIZE_MAX, false).records;
    const TempFile held(file);
    for (const auto& [count, whole_count] : {std::pair{SIZE_MAX, false}, {100, true}, {700, true}}) {
      for (const size_t threads : {2, 3, 9}) {
        std::atomic<size_t> read = 0;
        RecordReader reader(std::make_unique<SlowFile>(held, read), {.chunk_bytes = 300'000});

        const Everything all = framed_by_threads(reader, threads, count, whole_count);

        CHECK(all.framed == file);
        CHECK_EQ(all.records, records);
        CHECK_EQ(all.fault, Fault::none);
      }
    }
  }
}

// Beside the records another row of sound ones, each of which begins within one of them and ends in the next.
std::string twofold_file() {
  constexpr size_t kLength = 800, kFalse = 650;  // where a false record ends, and the next begins
  const std::string header = frame(std::string(kLength, '-')).substr(0, kHeaderSize);
  std::string file, rest(kLength - kFalse - kHeaderSize, '-');
  Random random(13);
  while (file.size() < 40 * kMiB) {
    std::string payload = random.bytes(kFalse);
    const std::string within = frame(rest + header + payload);
    CHECK(within.starts_with(header));
    payload += within.substr(within.size() - kFooterSize) + header;
    payload += random.bytes(kLength - payload.size());
    file += frame(payload);
    rest = file.substr(file.size() - rest.size());
  }
  return file;
}

TEST(threads_take_no_record_that_begins_within_another) {
  const std::string file = twofold_file();
  const TempFile held(file);
  std::atomic<size_t> read = 0;
  RecordReader reader(std::make_unique<SlowFile>(held, read), {});

  CHECK(framed_by_threads(reader, 3, 700, true).framed == file);
}

// Notes how much was mapped at once.
class NotedMaps : public SlowFile {
 public:
  NotedMaps(int descriptor, std::atomic<size_t>& read, std::atomic<size_t>& most)
      : SlowFile(descriptor, read), most_(most) {}

  std::unique_ptr<const FileMap> map(uint64_t offset, uint64_t size) override {
    most_ = std::max<size_t>(most_, size);
    return SlowFile::map(offset, size);
  }

 private:
  std::atomic<size_t>& most_;
};

TEST(threads_look_at_no_more_than_they_will_likely_take_whatever_a_record_in_a_record_claims) {
  Random random(15);
  std::string file;
  while (file.size() < 72 * kMiB) file += frame(random.bytes(400) + frame("") + header(32 * kMiB) + "rest");
  const TempFile held(file);
  std::atomic<size_t> read = 0, most = 0;
  RecordReader reader(std::make_unique<NotedMaps>(held, read, most), {});

  CHECK(framed_by_threads(reader, 3, 1000, true).framed == file);
  CHECK(most > 0 && most < 32 * kMiB);
}

TEST(threads_that_know_where_they_are_read_little_of_what_they_copy) {
  Random random(14);
  const std::string file = numbered_file(240'000, random);
  const TempFile held(file);
  std::atomic<size_t> read = 0;
  RecordReader reader(std::make_unique<SlowFile>(held, read), {});

  CHECK(framed_by_threads(reader, 2, 1000, true).framed == file);
  CHECK(read < file.size() * 3 / 4);
}

TEST(threads_tell_what_is_wrong_with_what_they_would_copy) {
  const std::string file = nested_file();
  check_damage(file, {11 * kMiB, 14 * kMiB + 5, 21 * kMiB + 77, file.size() - 1}, [](int descriptor) {
    std::atomic<size_t> read = 0;
    RecordReader reader(std::make_unique<SlowFile>(descriptor, read), {});
    return framed_by_threads(reader, 3, 400, true);
  });
}

TEST(a_file_may_be_cut_short_while_threads_copy_it) {
  const std::string file = nested_file();
  for (int round = 0; round < 12; ++round) {
    const TempFile held(file);
    std::atomic<size_t> read = 0;
    RecordReader reader(std::make_unique<SlowFile>(held, read), {});
    const size_t left = (8 + round) * kMiB + 11;

    std::thread cut([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(20 + round));
      CHECK_EQ(::ftruncate(held, static_cast<off_t>(left)), 0);
    });
    const Everything all = framed_by_threads(reader, 3, 300, true);
    cut.join();

    CHECK(all.fault == Fault::cut_short || (all.fault == Fault::none && all.framed == file));
    CHECK(file.starts_with(all.framed));
  }
}

// --- Files that become others while they are read

std::unique_ptr<ByteSource> source_of(int descriptor) {
  return std::make_unique<FileSource>(descriptor, UINT64_MAX);
}

void overwrite(int descriptor, const std::string& bytes, uint64_t offset = 0) {
  CHECK_EQ(::pwrite(descriptor, bytes.data(), bytes.size(), static_cast<off_t>(offset)),
           static_cast<ssize_t>(bytes.size()));
}

Fault fault_at_the_end(RecordReader& reader) {
  for (;;) {
    const ReadResult read = reader.next();
    if (read.chunk.records.empty()) return read.fault;
  }
}

TEST(a_file_that_was_cut_is_named_wherever_it_ends_now) {
  Random random(16);
  const std::string file = numbered_file(3000, random);
  RecordReader all(std::make_unique<PieceSource>(file, SIZE_MAX), {});
  const size_t between = all.next(700, true).chunk.size;
  for (const size_t left : {size_t{0}, size_t{1}, between, between + 5, file.size() - 1}) {
    const TempFile held(file);
    RecordReader reader(source_of(held), {.chunk_bytes = 10'000});
    CHECK_EQ(reader.next().fault, Fault::none);

    CHECK_EQ(::ftruncate(held, static_cast<off_t>(left)), 0);
    const Fault fault = fault_at_the_end(reader);

    CHECK_EQ(fault, Fault::cut_short);
    CHECK_EQ(reader.next().fault, Fault::cut_short);
    CHECK_EQ(reader.snapshot()->size(), file.size());
    CHECK_EQ(reader.snapshot()->current_size(), left);
  }
}

TEST(a_file_that_is_shorter_than_it_was_before_the_reader_is_named) {
  const TempFile held(frame("one") + frame("two"));
  std::unique_ptr<ByteSource> source = source_of(held);
  source->snapshot()->had(39);
  RecordReader reader(std::move(source), {});

  CHECK_EQ(reader.next().chunk.records.size(), 2u);
  CHECK_EQ(reader.next().fault, Fault::cut_short);
}

TEST(a_file_that_grows_ends_where_it_ends) {
  const TempFile held(frame("one"));
  RecordReader reader(source_of(held), {});
  CHECK_EQ(reader.next().chunk.records.size(), 1u);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));

  overwrite(held, frame("two"), frame("one").size());
  const ReadResult more = reader.next();

  CHECK_EQ(more.fault, Fault::none);
}

TEST(a_file_that_is_written_over_with_records_of_the_same_sizes_is_named) {
  std::string file, other;
  for (int i = 0; i < 4000; ++i) {
    file += frame(std::string(100, static_cast<char>(i)));
    other += frame(std::string(100, static_cast<char>(i + 1)));
  }
  for (const size_t threads : {1, 3}) {
    const TempFile held(file);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // as far as the system's clock tells
    RecordReader reader(source_of(held), {.chunk_bytes = 10'000});
    CHECK_EQ(reader.next().fault, Fault::none);

    overwrite(held, other);
    std::vector<std::thread> running;
    for (size_t i = 1; i < threads; ++i) running.emplace_back([&] { fault_at_the_end(reader); });
    const Fault fault = fault_at_the_end(reader);
    for (std::thread& thread : running) thread.join();

    CHECK_EQ(fault, Fault::written_over);
  }
}

TEST(a_file_whose_time_alone_has_changed_is_the_same) {
  Random random(17);
  const std::string file = numbered_file(2000, random);
  const TempFile held(file);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  RecordReader reader(source_of(held), {});

  overwrite(held, file);

  CHECK(read_framed(reader, SIZE_MAX, false).framed == file);
  CHECK_EQ(reader.next().fault, Fault::none);
}

}  // namespace
}  // namespace recordkit
