#include "core/records/fetch.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <vector>

#include "core/files/descriptor.h"

namespace recordkit {
namespace {

constexpr uint64_t kBelieved = uint64_t{1} << 20;
constexpr uint64_t kLastOffset = INT64_MAX;  // the largest the system accepts
constexpr uint64_t kNear = 2048;             // reading this much takes about as long as another call
constexpr uint64_t kLongestRun = uint64_t{8} << 20;

// A place, for sorting in file order, and its number in the requested order.
struct Visit {
  uint64_t offset;
  uint32_t file;
  uint32_t number;
};

bool before(const Visit& a, const Visit& b) {
  return a.file != b.file ? a.file < b.file : a.offset < b.offset;
}

// A stable radix sort, lowest digits first.
template <typename Number>
void sort_by(std::vector<Visit>& visits, Number Visit::* number) {
  constexpr uint32_t kBits = 10, kDigits = 1 << kBits;
  uint64_t all = 0;
  for (const Visit& visit : visits) all |= visit.*number;
  std::vector<Visit> sorted(visits.size());
  for (uint32_t shift = 0; shift < 64 && all >> shift != 0; shift += kBits) {
    const auto digit = [&](const Visit& visit) { return uint64_t{visit.*number} >> shift & (kDigits - 1); };
    std::array<uint32_t, kDigits + 1> starts = {};
    for (const Visit& visit : visits) ++starts[digit(visit) + 1];
    std::partial_sum(starts.begin(), starts.end(), starts.begin());
    for (const Visit& visit : visits) sorted[starts[digit(visit)]++] = visit;
    visits.swap(sorted);
  }
}

void sort_visits(std::vector<Visit>& visits) {
  constexpr size_t kFew = 500;
  if (std::is_sorted(visits.begin(), visits.end(), before)) return;
  if (visits.size() < kFew) {
    std::sort(visits.begin(), visits.end(), before);
    return;
  }
  // For many places, four times as fast as a comparison sort.
  sort_by(visits, &Visit::offset);
  sort_by(visits, &Visit::file);
}

class Fetching {
 public:
  Fetching(std::span<const int> descriptors, std::span<const Place> places,
           std::span<const FileMap* const> maps)
      : descriptors_(descriptors), places_(places), maps_(maps) {}

  Fetched run() {
    lay_out();
    copy_mapped();
    const std::vector<Visit> visits = in_order();
    size_t reads = 0;
    for (size_t i = 0; i < visits.size(); ++reads) i += read_run(std::span(visits).subspan(i));
    spans_.resize(sound_);
    framed_->set_size(spans_.empty() ? 0 : spans_.back().start + spans_.back().length + kFooterSize);
    return {chunk_of(framed_, std::move(spans_)), fault_, reads};
  }

 private:
  // Reserves room for every record, up to the first place that cannot be a record.
  void lay_out() {
    const std::vector<uint64_t> limits = believed_sizes();
    spans_.reserve(places_.size());
    uint64_t total = 0;
    for (const Place& place : places_) {
      if (place.size < kFrameSize || place.size > limits[place.file] ||
          place.offset > kLastOffset - place.size) {
        fault_ = Fault::torn_payload;
        break;
      }
      spans_.push_back({total + kHeaderSize, place.size - kFrameSize});
      total += place.size;
    }
    sound_ = spans_.size();
    framed_ = std::make_shared<Buffer>(total);
  }

  // An index may be wrong: reserve much memory only if the file is that large.
  std::vector<uint64_t> believed_sizes() const {
    uint64_t total = 0;
    for (const Place& place : places_) total += std::min(place.size, kBelieved + 1);
    std::vector<uint64_t> sizes(descriptors_.size(), kBelieved);
    if (total > kBelieved) std::transform(descriptors_.begin(), descriptors_.end(), sizes.begin(), size_of);
    return sizes;
  }

  // Where a record is in memory; null if it has to be read.
  const uint8_t* mapped(const Place& place) const {
    if (maps_.empty()) return nullptr;
    const FileMap* const map = maps_[place.file];
    return map != nullptr && place.offset + place.size <= map->size() ? map->data() + place.offset : nullptr;
  }

  // A few at a time, and prefetch the next ones meanwhile: a TLB miss costs as much as fetching from memory,
  // and only prefetched addresses are looked up in parallel.
  void copy_mapped() {
    if (maps_.empty()) return;
    constexpr size_t kAtOnce = 8;
    for (size_t i = 0, next = 0; i < spans_.size(); ++i) {
      for (; next < spans_.size() && i % kAtOnce == 0 && next < i + 2 * kAtOnce; ++next)
        prefetch(mapped(places_[next]), places_[next].size);
      const uint8_t* const from = mapped(places_[i]);
      if (from == nullptr) continue;
      copy(static_cast<uint32_t>(i), from);
      if (guard_.was_refused()) {
        maps_ = {};  // read all of them instead
        return;
      }
    }
  }

  void copy(uint32_t number, const uint8_t* from) {
    uint8_t* const to = frame(number);
    const uint64_t length = spans_[number].length;
    if (!guard_.allows(kHeaderSize)) return;
    std::memcpy(to, from, kHeaderSize);
    if (!header_is_sound(to) || load<uint64_t>(to) != length)
      found(number, Fault::bad_length_crc);
    else if (!copy_payload(guard_, to + kHeaderSize, from + kHeaderSize, length, Prefetch::none) &&
             !guard_.was_refused())
      found(number, Fault::bad_payload_crc);
  }

  // Only the start; the processor prefetches the rest itself.
  static void prefetch(const uint8_t* from, uint64_t size) {
    constexpr uint64_t kLine = 64, kMost = 1024;
    for (uint64_t at = 0; from != nullptr && at < std::min(size, kMost); at += kLine)
      __builtin_prefetch(from + at, 0, 2);
  }

  // Those that have to be read.
  std::vector<Visit> in_order() const {
    std::vector<Visit> visits;
    visits.reserve(spans_.size());
    for (size_t i = 0; i < spans_.size(); ++i) {
      if (mapped(places_[i]) == nullptr)
        visits.push_back({places_[i].offset, places_[i].file, static_cast<uint32_t>(i)});
    }
    sort_visits(visits);
    return visits;
  }

  // Reads the first of these and its near neighbours; returns how many.
  size_t read_run(std::span<const Visit> visits) {
    const Visit& first = visits[0];
    uint64_t end = first.offset + places_[first.number].size;
    bool as_asked = true;  // whether they are adjacent in the result too
    size_t count = 1;
    for (; count < visits.size(); ++count) {
      const Visit& next = visits[count];
      const uint64_t next_end = std::max(end, next.offset + places_[next.number].size);
      if (next.file != first.file || next.offset > end + kNear || next_end - first.offset > kLongestRun)
        break;
      as_asked = as_asked && next.offset == end && next.number == first.number + count;
      end = next_end;
    }
    const uint64_t size = end - first.offset;
    uint8_t* const to = as_asked ? frame(first.number) : scratch(size);
    const size_t got = read_at(descriptors_[first.file], first.offset, to, size);
    for (const Visit& visit : visits.first(count)) {
      const uint64_t at = visit.offset - first.offset, needed = places_[visit.number].size;
      if (got < at + needed) {
        found(visit.number, Fault::torn_payload);
        continue;
      }
      if (!as_asked) std::memcpy(frame(visit.number), to + at, needed);
      check(visit.number);
    }
    return count;
  }

  uint8_t* frame(uint32_t number) { return framed_->data() + spans_[number].start - kHeaderSize; }

  uint8_t* scratch(uint64_t size) {
    if (scratch_ == nullptr || scratch_->capacity() < size)
      scratch_ = std::make_shared<Buffer>(std::max(size, kLongestRun));
    return scratch_->data();
  }

  // While the bytes are in the L1 cache.
  void check(uint32_t number) {
    const uint8_t* const header = frame(number);
    const uint64_t length = spans_[number].length;
    if (!header_is_sound(header) || load<uint64_t>(header) != length)
      found(number, Fault::bad_length_crc);
    else if (crc32c({header + kHeaderSize, length}) !=
             unmask_crc(load<uint32_t>(header + kHeaderSize + length)))
      found(number, Fault::bad_payload_crc);
  }

  void found(uint32_t number, Fault fault) {
    if (number >= sound_) return;
    sound_ = number;
    fault_ = fault;
  }

  std::span<const int> descriptors_;
  std::span<const Place> places_;
  std::span<const FileMap* const> maps_;
  std::vector<Chunk::Span> spans_;
  std::shared_ptr<Buffer> framed_;
  std::shared_ptr<Buffer> scratch_;
  MapGuard guard_;
  size_t sound_ = 0;  // records before this one are sound, as far as is known
  Fault fault_ = Fault::none;
};

}  // namespace

Fetched fetch(std::span<const int> descriptors, std::span<const Place> places,
              std::span<const FileMap* const> maps) {
  return Fetching(descriptors, places, maps).run();
}

}  // namespace recordkit
