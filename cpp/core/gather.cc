#include "core/gather.h"

#include <algorithm>

#include "core/abreast.h"

namespace recordkit {
namespace {

class Gathering {
 public:
  Gathering(std::span<const Place> places, std::span<const FileMap* const> maps)
      : places_(places), maps_(maps) {}

  bool are_mapped() const {
    return FileMap::is_guarded() && std::all_of(places_.begin(), places_.end(), [&](const Place& place) {
             const FileMap* const map = maps_[place.file];
             return map != nullptr && place.size >= kFrameSize && place.size <= map->size() &&
                    place.offset <= map->size() - place.size;
           });
  }

  uint64_t bytes() const {
    uint64_t sum = 0;
    for (const Place& place : places_) sum += place.size;
    return sum;
  }

  // The next few, while those behind them are called for: finding out where a page is takes as long as
  // fetching it from memory does, and decoding takes longer than either.
  bool bring(Chunk& few, bool abreast) {
    if (next_ == 0) call_for(0, few_from(0, abreast));
    const size_t end = few_from(next_, abreast);
    few.records.clear();
    uint64_t size = 0;
    for (size_t i = next_; i < end; ++i) {
      // Where it lies within a cache line stays as it is, so that lines are copied as a whole.
      const uint64_t lead = (reinterpret_cast<uintptr_t>(at(i)) - size) % kLine;
      few.records.push_back({size + lead + kHeaderSize, places_[i].size - kFrameSize});
      size += lead + places_[i].size;
    }
    copies_.reserve(size + kBehind + kLine);
    const uintptr_t start = reinterpret_cast<uintptr_t>(copies_.data());
    const uint64_t first = (kLine - start % kLine) % kLine;
    few.data = copies_.data() + first;
    few.size = size;
    few.readable = copies_.capacity() - first;
    for (const Chunk::Span& span : few.records) {
      if (!copy(copies_.data() + first + span.start, at(next_++) + kHeaderSize, span.length)) return false;
    }
    call_for(end, few_from(end, abreast));
    return true;
  }

 private:
  static constexpr size_t kLine = 64;
  static constexpr size_t kBehind = 72 << 10;  // what decoding abreast may look at, whatever is there
  // So many bytes are a few; one record may be larger. Eight are decoded at once from the nearest cache, and
  // where records are decoded one by one most of it is left to what they are decoded to.
  static constexpr uint64_t kAbreastBytes = 32 << 10, kMostBytes = 8 << 10;
  static constexpr uint64_t kCalledFor = 1024;  // of each: the processor sees itself what comes next

  const uint8_t* at(size_t i) const { return maps_[places_[i].file]->data() + places_[i].offset; }

  // The place behind the few that begin with this one.
  size_t few_from(size_t first, bool abreast) const {
    const uint64_t most = abreast ? kAbreastBytes : kMostBytes;
    uint64_t size = 0;
    size_t end = first;
    for (; end < places_.size() && end < first + Abreast::kAtOnce; ++end) {
      size += places_[end].size;
      if (end > first && size > most) break;
    }
    return end;
  }

  void call_for(size_t first, size_t end) const {
    for (size_t i = first; i < end; ++i) {
      const uint8_t* const from = at(i);
      for (uint64_t offset = 0; offset < std::min(places_[i].size, kCalledFor); offset += kLine)
        __builtin_prefetch(from + offset, 0, 2);
    }
  }

  // Whether the record at `payload` is sound, and as long as its place says, going by the copy alone.
  static bool copy(uint8_t* to, const uint8_t* payload, uint64_t length) {
    std::memcpy(to - kHeaderSize, payload - kHeaderSize, kHeaderSize);
    return header_is_sound(to - kHeaderSize) && load<uint64_t>(to - kHeaderSize) == length &&
           copy_payload(to, payload, length);
  }

  std::span<const Place> places_;
  std::span<const FileMap* const> maps_;
  size_t next_ = 0;
  Buffer copies_;
};

}  // namespace

bool gather(const Decoder& decoder, std::span<const Place> places, std::span<const FileMap* const> maps,
            std::vector<Column>& columns) {
  Gathering gathering(places, maps);
  if (!gathering.are_mapped()) return false;
  return decoder.decode_few([&](Chunk& few, bool abreast) { return gathering.bring(few, abreast); },
                            places.size(), gathering.bytes(), columns);
}

}  // namespace recordkit
