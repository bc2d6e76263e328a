#include "core/records/salvage.h"

#include <algorithm>
#include <optional>

namespace recordkit {
namespace {

// The CRC of any range in constant time: hostile headers that all claim the rest of the file would otherwise
// make salvage quadratic.
class RangeCrc {
 public:
  explicit RangeCrc(const ByteWindow& window) : blocks_(window), ends_(window), prefixes_(1, 0) {}

  // REQUIRES: start + size <= window.size()
  uint32_t of(uint64_t start, uint64_t size) {
    if (size <= 4 * kBlock) return crc32c_extend(0, ends_.at(start, size), size);
    const uint64_t first = (start + kBlock - 1) / kBlock, last = (start + size) / kBlock;
    while (prefixes_.size() <= last) {
      const uint64_t block = prefixes_.size() - 1;
      prefixes_.push_back(crc32c_extend(prefixes_.back(), blocks_.at(block * kBlock, kBlock), kBlock));
    }
    // crc(a + b) is known for a = [0, first) and a + b = [0, last): taking a out leaves crc(b).
    const uint32_t middle = crc32c_combine(prefixes_[first], prefixes_[last], (last - first) * kBlock);
    const uint64_t before = first * kBlock - start, behind = start + size - last * kBlock;
    const uint32_t head = crc32c_extend(0, ends_.at(start, before), before);
    const uint32_t whole = crc32c_combine(head, middle, (last - first) * kBlock);
    return crc32c_extend(whole, ends_.at(last * kBlock, behind), behind);
  }

 private:
  static constexpr uint64_t kBlock = 4096;
  ByteWindow blocks_, ends_;        // two views, so that each reads forward
  std::vector<uint32_t> prefixes_;  // prefixes_[i] is the CRC of the first i blocks
};

class Salvager {
 public:
  Salvager(const ByteWindow& window, uint64_t beyond, uint64_t nested_reach)
      : window_(window),
        far_(window),
        size_(window.size() + beyond),
        nested_reach_(nested_reach),
        crc_(window) {}

  Salvage run() {
    uint64_t at = 0;
    while (at < window_.size()) {
      const size_t before = result_.found.size();
      const auto length = sound_at(at);
      const uint64_t next = length ? keep({at, *length}) : out_of_sight_ ? at : step_over(at);
      if (out_of_sight_) {
        result_.found.resize(before);
        break;
      }
      at = next;
    }
    result_.decided = at;
    result_.searched = std::max(at, searched_);
    leave_unsettled();
    return std::move(result_);
  }

 private:
  uint64_t left(uint64_t at) const { return size_ - at; }

  // REQUIRES: at + size <= size_
  bool in_sight(uint64_t at, uint64_t size) {
    if (at + size <= window_.size()) return true;
    out_of_sight_ = true;
    return false;
  }

  bool payload_fits(uint64_t at, uint64_t length) const {
    return left(at) >= kFrameSize && length <= left(at) - kFrameSize;
  }

  bool payload_is_sound(uint64_t at, uint64_t length) {
    return mask_crc(crc_.of(at + kHeaderSize, length)) ==
           load<uint32_t>(far_.at(at + kHeaderSize + length, kFooterSize));
  }

  // The payload's length, if an intact record starts here.
  std::optional<uint64_t> sound_at(uint64_t at) { return record_at(at, true); }

  // The same for a record whose length checksum is damaged, but whose payload checksum confirms the length.
  std::optional<uint64_t> confirmed_at(uint64_t at) { return record_at(at, false); }

  std::optional<uint64_t> record_at(uint64_t at, bool header_sound) {
    if (left(at) < kFrameSize || !in_sight(at, kHeaderSize)) return {};
    const Header header(window_.at(at, kHeaderSize));
    const uint64_t length = header.length;
    // Check first whether it fits: that is cheap, and noise hardly ever does.
    if (!payload_fits(at, length) || header.is_sound() != header_sound) return {};
    if (!in_sight(at, kFrameSize + length) || !payload_is_sound(at, length)) return {};
    return length;
  }

  static uint64_t end_of(const Found& record) { return record.offset + kFrameSize + record.length; }

  uint64_t keep(Found record) {
    result_.found.push_back(record);
    return end_of(record);
  }

  // A record should start here and does not. Notes what is lost and returns where to go on; meaningless if it
  // needed bytes beyond the window.
  uint64_t step_over(uint64_t at) {
    const uint64_t before = result_.found.size();
    if (!in_sight(at, std::min(left(at), kHeaderSize))) return at;
    if (const auto confirmed = confirmed_at(at)) return keep({at, *confirmed, Found::How::bad_length_crc});
    if (out_of_sight_) return at;

    const std::optional<uint64_t> told = sound_header(at);
    const bool header = told.has_value();
    const uint64_t length = told.value_or(0);
    if (header && payload_fits(at, length)) {
      // The length is right. If an intact record follows the frame, only this payload is lost. If not, bytes
      // were removed or inserted, and the next record is closer or further than the length says.
      const uint64_t next = at + kFrameSize + length;
      const bool goes_on = next == size_ || starts_record(next) || confirmed_at(next);
      if (out_of_sight_) return at;
      if (goes_on && keep_nested(at + 1, next)) {
        result_.lost.push_back({at, next - at, Lost::What::bad_payload, before});
        return next;
      }
    }
    if (out_of_sight_) return at;
    const uint64_t next = resync(at + 1, size_);
    if (out_of_sight_) {
      searched_ = tried_;
      return at;
    }
    // Only after a broken header can the search end up inside a payload.
    if (!header) headless_.push_back({at, before, result_.lost.size()});
    note_lost(at, next, header, before);
    settle_nested(next);
    return next;
  }

  // Records inside a damaged frame: either part of its content, or remains of a file whose blocks were mixed
  // up. False, and none kept, if one extends past the end of the frame: then there was no such frame.
  bool keep_nested(uint64_t at, uint64_t end) {
    const size_t before = result_.found.size();
    start_trying(at);
    try_up_to(end);
    if (out_of_sight_) return false;
    // The last one nearly always decides, without visiting all the others: a series of frames that claim much
    // of the file would otherwise make salvage quadratic.
    const auto behind = std::lower_bound(sound_.begin(), sound_.end(), end);
    if (behind != sound_.begin() && *(behind - 1) >= at &&
        end_of(sound_record(*(behind - 1))) > end - kFooterSize)
      return false;
    while ((at = resync(at, end)) < end) {
      at = keep(sound_record(at));
      if (at > end - kFooterSize) {
        result_.found.resize(before);
        return false;
      }
      result_.found.back().nested = true;
    }
    return true;
  }

  // The length from a sound header. REQUIRES: the part of the header that exists is in the window
  std::optional<uint64_t> sound_header(uint64_t at) {
    if (left(at) < kHeaderSize) return {};
    const Header header(far_.at(at, kHeaderSize));
    return header.is_sound() ? std::optional(header.length) : std::nullopt;
  }

  Found sound_record(uint64_t at) { return {at, load<uint64_t>(far_.at(at, kHeaderSize))}; }

  bool starts_record(uint64_t at) {
    if (left(at) < kHeaderSize || !in_sight(at, kHeaderSize)) return false;
    const std::optional<uint64_t> length = sound_header(at);
    return length && payload_fits(at, *length);
  }

  // The first intact record that starts in [at, end), or `end`.
  uint64_t resync(uint64_t at, uint64_t end) {
    start_trying(at);
    auto known = std::lower_bound(sound_.begin(), sound_.end(), at);
    if (known == sound_.end()) {
      const size_t count = sound_.size();
      while (tried_ < end && sound_.size() == count && !out_of_sight_) try_up_to(tried_ + 1);
      known = sound_.begin() + static_cast<ptrdiff_t>(count);
    }
    return known == sound_.end() ? end : std::min(*known, end);
  }

  // Earlier notes stay useful as long as the positions tried have no gap.
  void start_trying(uint64_t at) {
    if (at <= tried_) return;
    sound_.clear();
    tried_ = at;
  }

  // Notes where intact records start. Tries no position twice: overlapping frames would otherwise make
  // salvage quadratic.
  void try_up_to(uint64_t end) {
    for (; tried_ < end; ++tried_) {
      if (!in_sight(tried_, 1)) return;
      if (sound_at(tried_)) sound_.push_back(tried_);
      if (out_of_sight_) return;
    }
  }

  // Reports runs of zeros separately: they are pages that never reached the disk. In the frame of a valid
  // header they may be part of the payload.
  void note_lost(uint64_t start, uint64_t end, bool header, uint64_t before) {
    constexpr uint64_t kRun = 32;
    const bool torn = end == size_ && (header || end - start < kHeaderSize);
    Lost::What what = torn ? Lost::What::torn : header ? Lost::What::bad_payload : Lost::What::bad_length;
    const uint64_t claimed = header ? sound_record(start).length : 0;
    const uint64_t frame_end = !header ? start : claimed < left(start) ? start + kFrameSize + claimed : size_;
    uint64_t at = start;
    for (uint64_t zero = start; zero < end; ++zero) {
      if (*window_.at(zero, 1) != 0) continue;
      uint64_t run_end = zero;
      while (run_end < end && *window_.at(run_end, 1) == 0) ++run_end;
      const bool whole = zero == start && run_end == end;
      if (whole || (run_end - zero >= kRun && run_end > frame_end)) {
        if (at < zero) result_.lost.push_back({at, zero - at, what, before});
        result_.lost.push_back({zero, run_end - zero, Lost::What::zeros, before});
        at = run_end;
        what = Lost::What::bad_length;
      }
      zero = run_end;
    }
    if (at < end) result_.lost.push_back({at, end - at, what, before});
  }

  // The payload of a record with a broken header may contain records, which resync then finds. If the bytes
  // from such a header to here end in their own checksum, they are its payload, and the records in between
  // are nested.
  void settle_nested(uint64_t next) {
    std::erase_if(headless_, [&](const Headless& outer) { return next - outer.offset > nested_reach_; });
    for (auto outer = headless_.begin(); outer != headless_.end(); ++outer) {
      const uint64_t start = outer->offset + kHeaderSize;
      if (next < start + kFooterSize) continue;
      const uint64_t size = next - kFooterSize - start;
      if (mask_crc(crc_.of(start, size)) != load<uint32_t>(far_.at(next - kFooterSize, kFooterSize)))
        continue;
      if (outer->found < result_.found.size()) {
        for (size_t i = outer->found; i < result_.found.size(); ++i) result_.found[i].nested = true;
        result_.lost.resize(outer->lost);
        result_.lost.push_back({outer->offset, next - outer->offset, Lost::What::bad_length, outer->found});
      }
      headless_.erase(outer, headless_.end());
      break;
    }
    // A few are enough: nested records come soon after the header.
    if (headless_.size() > 8) headless_.erase(headless_.begin());
  }

  // What follows a broken header is undecided as long as bytes beyond the window may show that it is nested.
  void leave_unsettled() {
    if (window_.size() == size_) return;
    for (const Headless& outer : headless_) {
      if (result_.decided - outer.offset >= nested_reach_) continue;
      result_.found.resize(outer.found);
      result_.lost.resize(outer.lost);
      result_.decided = result_.searched = outer.offset;
      return;
    }
  }

  struct Headless {
    uint64_t offset;
    uint64_t found;  // how many records had been found before it
    size_t lost;     // and how many ranges lost
  };

  ByteWindow window_;  // for the walk from front to back
  ByteWindow far_;     // for looking elsewhere
  uint64_t size_;      // of the window and everything beyond it
  uint64_t nested_reach_;
  RangeCrc crc_;
  Salvage result_;
  bool out_of_sight_ = false;  // needed bytes beyond the window: conclusions since then are invalid
  uint64_t searched_ = 0;
  std::vector<Headless> headless_;
  std::vector<uint64_t> sound_;  // where intact records start, among the positions tried since the last jump
  uint64_t tried_ = 0;
};

}  // namespace

Salvage salvage(const ByteWindow& window, uint64_t beyond, uint64_t nested_reach) {
  return Salvager(window, beyond, nested_reach).run();
}

}  // namespace recordkit
