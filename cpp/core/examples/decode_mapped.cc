#include "core/examples/decode_mapped.h"

#include <algorithm>

namespace recordkit {
namespace {

class MappedRecords {
 public:
  MappedRecords(std::span<const Place> places, std::span<const FileMap* const> maps)
      : places_(places), maps_(maps) {}

  bool are_mapped() const {
    return std::all_of(places_.begin(), places_.end(), [&](const Place& place) {
      const FileMap* const map = maps_[place.file];
      return map != nullptr && place.size >= kFrameSize && place.size <= std::min(map->size(), kLargest) &&
             place.offset <= map->size() - place.size;
    });
  }

  uint64_t bytes() const {
    uint64_t sum = 0;
    for (const Place& place : places_) sum += place.size;
    return sum;
  }

  // Provides the next few records and prefetches those after them: a TLB miss costs as much as fetching from
  // memory, and decoding takes longer than either.
  bool bring(Chunk& few, bool in_lanes) {
    if (next_ == 0) call_for(0, few_from(0, in_lanes));
    const size_t end = few_from(next_, in_lanes);
    hot_.clear();
    for (; next_ < end; ++next_) {
      if (!guard_.allows(places_[next_].size)) return false;
      const Header header(at(next_));
      if (!header.is_sound() || header.length != places_[next_].size - kFrameSize ||
          !hot_.add(header, at(next_) + kHeaderSize, Prefetch::none))
        return false;
    }
    hot_.hand_over(few);
    call_for(end, few_from(end, in_lanes));
    return true;
  }

 private:
  static constexpr size_t kLine = 64;
  static constexpr uint64_t kLargest = uint64_t{1} << 20;  // so that the guard checks often enough
  static constexpr uint64_t kCalledFor = 1024;  // of each record; the processor prefetches the rest itself

  const uint8_t* at(size_t i) const { return maps_[places_[i].file]->data() + places_[i].offset; }

  // The end of the group of records that starts with this one.
  size_t few_from(size_t first, bool in_lanes) const {
    size_t end = first;
    for (uint64_t bytes = 0;
         end < places_.size() && HotCopy::has_room(end - first, bytes, places_[end].size, in_lanes); ++end)
      bytes += places_[end].size;
    return end;
  }

  void call_for(size_t first, size_t end) const {
    for (size_t i = first; i < end; ++i) {
      const uint8_t* const from = at(i);
      for (uint64_t offset = 0; offset < std::min(places_[i].size, kCalledFor); offset += kLine)
        __builtin_prefetch(from + offset, 0, 2);
    }
  }

  std::span<const Place> places_;
  std::span<const FileMap* const> maps_;
  size_t next_ = 0;
  HotCopy hot_;
  MapGuard guard_;
};

}  // namespace

bool decode_mapped(const Decoder& decoder, std::span<const Place> places,
                   std::span<const FileMap* const> maps, std::vector<Column>& columns) {
  MappedRecords records(places, maps);
  if (!records.are_mapped()) return false;
  return decoder.decode_hot([&](Chunk& few, bool in_lanes) { return records.bring(few, in_lanes); },
                            places.size(), records.bytes(), columns);
}

std::optional<uint64_t> decode_next(const Decoder& decoder, RecordReader& reader, size_t rows,
                                    std::vector<Column>& columns) {
  return reader.visit_next(rows, [&](const NextRecords& bring, uint64_t bytes) {
    return decoder.decode_hot(bring, rows, bytes, columns);
  });
}

}  // namespace recordkit
