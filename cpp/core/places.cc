#include "core/places.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <numeric>
#include <system_error>

namespace recordkit {
namespace {

constexpr uint64_t kBelieved = uint64_t{1} << 20;
constexpr uint64_t kLastOffset = INT64_MAX;  // that the system takes

uint64_t size_of(int descriptor) {
  struct stat facts;
  if (::fstat(descriptor, &facts) != 0) throw std::system_error(errno, std::generic_category());
  return static_cast<uint64_t>(facts.st_size);
}

// As many of `size` bytes at `offset` as there are.
size_t read_at(int descriptor, uint64_t offset, uint8_t* to, size_t size) {
  size_t done = 0;
  while (done < size) {
    const ssize_t got = ::pread(descriptor, to + done, size - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw std::system_error(errno, std::generic_category());
    if (got == 0) break;
    done += static_cast<size_t>(got);
  }
  return done;
}

// A view of the file that is moved on as the hops go.
class Window {
 public:
  explicit Window(int descriptor) : descriptor_(descriptor), bytes_(kLarge) {}

  // `size` bytes at `offset`, or null where the file ends before. Near neighbours are read along.
  const uint8_t* at(uint64_t offset, size_t size, uint64_t record_size) {
    if (offset < start_ || offset + size > start_ + bytes_.size()) {
      // Reading so much takes about as long as another call does.
      constexpr uint64_t kShort = 2048;
      start_ = offset;
      bytes_.set_size(read_at(descriptor_, offset, bytes_.data(), record_size > kShort ? size : kLarge));
    }
    return offset + size > start_ + bytes_.size() ? nullptr : bytes_.data() + (offset - start_);
  }

 private:
  static constexpr size_t kLarge = size_t{64} << 10;
  int descriptor_;
  Buffer bytes_;
  uint64_t start_ = 0;
};

}  // namespace

Hops hop_over(int descriptor, uint64_t offset, size_t max_records) {
  const uint64_t file_size = size_of(descriptor);
  Window window(descriptor);
  Hops hops;
  hops.offset = offset;
  uint64_t record_size = 0;
  const auto stopped = [&](Fault fault) {
    hops.fault = fault;
    return std::move(hops);
  };
  while (hops.offset < file_size && hops.lengths.size() < max_records) {
    const uint64_t left = file_size - hops.offset;
    if (left < kHeaderSize) return stopped(Fault::torn_header);
    const uint8_t* const header = window.at(hops.offset, kHeaderSize, record_size);
    if (header == nullptr) return stopped(Fault::torn_header);
    if (!header_is_sound(header)) return stopped(Fault::bad_length_crc);
    const uint64_t length = load<uint64_t>(header);
    // Subtract rather than add: `length` comes from the file and may be near 2^64.
    if (left < kFrameSize || length > left - kFrameSize) return stopped(Fault::torn_payload);
    record_size = length + kFrameSize;
    const uint64_t next = hops.offset + record_size;
    // The next header stands right behind the footer: both in one read.
    const size_t want = static_cast<size_t>(std::min<uint64_t>(kFrameSize, file_size - next + kFooterSize));
    const uint8_t* const footer = window.at(next - kFooterSize, want, record_size);
    if (footer == nullptr) return stopped(Fault::torn_payload);
    hops.lengths.push(length);
    hops.payload_crcs.push(unmask_crc(load<uint32_t>(footer)));
    hops.offset = next;
  }
  return hops;
}

Fetched fetch(int descriptor, std::span<const Place> places) {
  Fetched result;
  uint64_t total = 0;
  for (const Place& place : places) total += std::min(place.size, kBelieved + 1);
  // An index may say what it likes; room for much is made only where the file is as large.
  const uint64_t file_size = total > kBelieved ? size_of(descriptor) : kBelieved;
  std::vector<Chunk::Span> spans;
  spans.reserve(places.size());
  total = 0;
  for (const Place& place : places) {
    if (place.size < kFrameSize || place.size > file_size || place.offset > kLastOffset - place.size) {
      result.fault = Fault::torn_payload;
      break;
    }
    spans.push_back({total + kHeaderSize, place.size - kFrameSize});
    total += place.size;
  }
  Buffer framed(total);
  // In the order of the file, each to its place in the order asked for.
  std::vector<uint32_t> order(spans.size());
  std::iota(order.begin(), order.end(), 0);
  const auto before = [&](uint32_t a, uint32_t b) { return places[a].offset < places[b].offset; };
  if (!std::is_sorted(order.begin(), order.end(), before)) std::sort(order.begin(), order.end(), before);
  size_t sound = spans.size();
  for (size_t i = 0; i < order.size();) {
    const uint32_t first = order[i];
    uint64_t size = places[first].size;
    for (++i; i < order.size() && order[i] == order[i - 1] + 1 &&
              places[order[i]].offset == places[first].offset + size;
         ++i)
      size += places[order[i]].size;
    uint8_t* const to = framed.data() + spans[first].start - kHeaderSize;
    if (read_at(descriptor, places[first].offset, to, size) == size) continue;
    // Which of a run it was does not matter: those before it are looked at again when they are asked for
    // alone.
    sound = std::min<size_t>(sound, first);
    result.fault = Fault::torn_payload;
  }
  for (size_t i = 0; i < sound; ++i) {
    const uint8_t* const header = framed.data() + spans[i].start - kHeaderSize;
    if (header_is_sound(header) && load<uint64_t>(header) == spans[i].length) continue;
    result.fault = Fault::bad_length_crc;
    sound = i;
  }
  spans.resize(sound);
  framed.set_size(spans.empty() ? 0 : spans.back().start + spans.back().length + kFooterSize);
  result.chunk = chunk_of(std::move(framed), std::move(spans));
  const size_t size = result.chunk.size;
  const ScanEnd end = check_payloads(result.chunk, {result.fault, size});
  result.fault = end.fault;
  result.chunk.size = end.offset;
  return result;
}

Chunk join(std::span<const Chunk* const> chunks) {
  size_t size = 0, count = 0;
  for (const Chunk* chunk : chunks) {
    size += chunk->size;
    count += chunk->records.size();
  }
  Buffer framed(size);
  std::vector<Chunk::Span> spans;
  spans.reserve(count);
  for (const Chunk* chunk : chunks) {
    for (const Chunk::Span& span : chunk->records) spans.push_back({framed.size() + span.start, span.length});
    framed.append(chunk->data, chunk->size);
  }
  return chunk_of(std::move(framed), std::move(spans));
}

}  // namespace recordkit
