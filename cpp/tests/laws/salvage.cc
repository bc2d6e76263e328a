#include "core/records/salvage.h"

#include <algorithm>

#include "laws/laws.h"
#include "support/check.h"

namespace recordkit {
namespace {

struct Range {
  uint64_t first, last;

  bool overlaps(const Range& other) const { return first < other.last && other.first < last; }
};

Range range_of(const Found& found) { return {found.offset, found.offset + kFrameSize + found.length}; }

bool payload_is_whole(Bytes file, uint64_t at, uint64_t length) {
  if (file.size() - at < kFrameSize || length > file.size() - at - kFrameSize) return false;
  const Bytes payload = file.subspan(at + kHeaderSize, length);
  return mask_crc(crc32c(payload)) == load<uint32_t>(payload.data() + length);
}

// Every offset of a sound frame, by trying them all.
std::vector<Range> sound_frames(Bytes file) {
  std::vector<Range> frames;
  for (uint64_t at = 0; at + kFrameSize <= file.size(); ++at) {
    const uint64_t length = load<uint64_t>(file.data() + at);
    if (header_is_sound(file.data() + at) && payload_is_whole(file, at, length))
      frames.push_back({at, at + kFrameSize + length});
  }
  return frames;
}

void check_found_are_sound(Bytes file, const std::vector<Found>& found) {
  for (size_t i = 0; i < found.size(); ++i) {
    const Found& record = found[i];
    CHECK(record.offset <= file.size() && payload_is_whole(file, record.offset, record.length));
    CHECK_EQ(load<uint64_t>(file.data() + record.offset), record.length);
    CHECK_EQ(header_is_sound(file.data() + record.offset), record.how == Found::How::sound);
    CHECK(i == 0 || range_of(found[i - 1]).last <= record.offset);
  }
}

// Records that are no part of another's content, and what is lost, follow upon each other from the first byte
// to the last.
void check_they_make_up_the_file(Bytes file, const Salvage& salvaged) {
  std::vector<Range> ranges;
  for (const Found& record : salvaged.found)
    if (!record.nested) ranges.push_back(range_of(record));
  for (const Lost& hole : salvaged.lost) ranges.push_back({hole.offset, hole.offset + hole.length});
  std::sort(ranges.begin(), ranges.end(), [](Range a, Range b) { return a.first < b.first; });
  uint64_t at = 0;
  for (const Range& range : ranges) {
    CHECK_EQ(range.first, at);
    CHECK(range.last > at);
    at = range.last;
  }
  CHECK_EQ(at, file.size());
}

void check_counts_before(const Salvage& salvaged) {
  for (const Lost& hole : salvaged.lost) {
    const auto stands_before = [&](const Found& record) { return record.offset < hole.offset; };
    CHECK_EQ(hole.before, static_cast<uint64_t>(
                              std::count_if(salvaged.found.begin(), salvaged.found.end(), stands_before)));
  }
}

void check_none_was_missed(Bytes file, const std::vector<Found>& found) {
  for (const Range& frame : sound_frames(file)) {
    bool met = false;
    for (const Found& record : found) met = met || range_of(record).overlaps(frame);
    if (!met)
      check_failed(__FILE__, __LINE__, "the sound frame at " + std::to_string(frame.first) + " was missed");
  }
}

void check_zeros_are_zeros(Bytes file, const std::vector<Lost>& lost) {
  for (const Lost& hole : lost) {
    if (hole.what != Lost::What::zeros) continue;
    for (const uint8_t byte : file.subspan(hole.offset, hole.length)) CHECK_EQ(byte, 0);
  }
}

// What is decided for consecutive parts of the file. A part that is too small to decide anything is doubled.
Salvage salvage_in_windows(Bytes file, size_t window, uint64_t reach) {
  Salvage joined;
  while (joined.decided < file.size()) {
    const uint64_t at = joined.decided, before = joined.found.size();
    Salvage part;
    for (size_t size = window; part.decided == 0; size *= 2) {
      const Bytes seen = file.subspan(at, std::min<uint64_t>(size, file.size() - at));
      part = salvage(seen, file.size() - at - seen.size(), reach);
      CHECK(part.decided <= part.searched && part.searched <= seen.size());
      CHECK(part.decided > 0 || size < file.size());
    }
    for (Found& found : part.found) found.offset += at;
    for (Lost& lost : part.lost) lost.offset += at, lost.before += before;
    joined.found.insert(joined.found.end(), part.found.begin(), part.found.end());
    joined.lost.insert(joined.lost.end(), part.lost.begin(), part.lost.end());
    joined.decided += part.decided;
  }
  return joined;
}

void check_windows_make_no_difference(Bytes file) {
  for (const uint64_t reach : {uint64_t{60}, kNestedReach}) {
    const Salvage whole = salvage(file, 0, reach);
    CHECK_EQ(whole.decided, file.size());
    for (const size_t window : {1, 23, 150}) {
      const Salvage joined = salvage_in_windows(file, window, reach);
      CHECK(joined.found == whole.found);
      CHECK(joined.lost == whole.lost);
    }
  }
}

// Nor does reading them a piece at a time.
void check_pieces_make_no_difference(Bytes file) {
  const auto read = [&](uint64_t offset, uint8_t* to, uint64_t size) {
    CHECK(offset + size <= file.size());
    std::copy_n(file.data() + offset, size, to);
  };
  const Salvage whole = salvage(file);
  for (const uint64_t piece : {1, 40}) {
    const Salvage read_in_pieces = salvage(ByteWindow(file.size(), read, piece));
    CHECK(read_in_pieces.found == whole.found);
    CHECK(read_in_pieces.lost == whole.lost);
  }
}

}  // namespace

void salvage_law(Bytes file) {
  const Salvage salvaged = salvage(file);

  check_found_are_sound(file, salvaged.found);
  check_none_was_missed(file, salvaged.found);
  check_they_make_up_the_file(file, salvaged);
  check_counts_before(salvaged);
  check_zeros_are_zeros(file, salvaged.lost);
  check_windows_make_no_difference(file);
  check_pieces_make_no_difference(file);
}

}  // namespace recordkit
