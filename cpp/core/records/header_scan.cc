#include "core/records/header_scan.h"

#include <algorithm>
#include <chrono>

#include "core/files/descriptor.h"
#include "core/files/file_map.h"
#include "core/files/path_tuner.h"

namespace recordkit {
namespace {

// Reads the file; a read includes near neighbours.
class Read {
 public:
  explicit Read(int descriptor) : descriptor_(descriptor), bytes_(kLarge) {}

  // `size` bytes at `offset`, or null where the file ends before.
  const uint8_t* at(uint64_t offset, size_t size, uint64_t record_size) {
    if (offset < start_ || offset + size > start_ + bytes_.size()) {
      // Reading this much takes about as long as another call.
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

// Maps the file where it is in the page cache, a part at a time to bound memory.
class Mapped {
 public:
  Mapped(int descriptor, uint64_t most_bytes) : descriptor_(descriptor), most_bytes_(most_bytes) {}

  // A copy of `size` bytes at `offset`, or null if they must be read instead. REQUIRES: size <= kFrameSize
  const uint8_t* at(uint64_t offset, size_t size) {
    if (offset < start_ || offset + size > end_) {
      start_ = offset / kLargePage * kLargePage;
      end_ = start_ + kPart;
      map_.reset();
      map_ = FileMap::of_cached(descriptor_, most_bytes_, start_, kPart);
    }
    if (map_ == nullptr || offset + size > start_ + map_->size() || !guard_.allows(kPage)) return nullptr;
    std::memcpy(bytes_, map_->data() + (offset - start_), size);
    return map_->is_whole() ? bytes_ : nullptr;
  }

 private:
  static constexpr uint64_t kPart = uint64_t{32} << 20, kPage = 4096;
  int descriptor_;
  uint64_t most_bytes_;
  std::unique_ptr<FileMap> map_;
  MapGuard guard_;
  uint64_t start_ = 0, end_ = 0;
  uint8_t bytes_[kFrameSize];
};

// The faster of the two: maps take a quarter of the time with large pages, but twice as long with small ones.
// In many files pages grow from the start on, so maps are tried again now and then.
class Window {
 public:
  Window(int descriptor, uint64_t most_mapped) : read_(descriptor), mapped_(descriptor, most_mapped) {}

  // `size` bytes at `offset`, or null where the file ends before.
  const uint8_t* at(uint64_t offset, size_t size, uint64_t record_size) {
    const uint8_t* const found = tuner_.second() ? mapped_.at(offset, size) : nullptr;
    return found != nullptr ? found : read_.at(offset, size, record_size);
  }

  // Call for every record.
  void hopped(uint64_t record_size) {
    constexpr double kWhole = 8192;  // shorter records share a read with others
    if (set_up_) tuner_.add(std::min(1.0, static_cast<double>(record_size) / kWhole));
    if (set_up_ && !tuner_.ends()) return;
    const Clock::time_point now = Clock::now();
    // The first record after a switch is not timed.
    set_up_ = !set_up_ || !tuner_.choose(std::chrono::duration<double>(now - since_).count());
    since_ = now;
  }

 private:
  using Clock = std::chrono::steady_clock;
  Read read_;
  Mapped mapped_;
  PathTuner tuner_{0.7};
  bool set_up_ = false;
  Clock::time_point since_;
};

HeaderScan scan_headers(int descriptor, uint64_t file_size, uint64_t offset, size_t max_records,
                        uint64_t most_mapped) {
  Window window(descriptor, most_mapped);
  HeaderScan scan;
  scan.offset = offset;
  uint64_t record_size = 0;
  const auto stopped = [&](Fault fault) {
    scan.fault = fault;
    return std::move(scan);
  };
  while (scan.offset < file_size && scan.lengths.size() < max_records) {
    const uint64_t left = file_size - scan.offset;
    if (left < kHeaderSize) return stopped(Fault::torn_header);
    const uint8_t* const header = window.at(scan.offset, kHeaderSize, record_size);
    if (header == nullptr) return stopped(Fault::torn_header);
    if (!header_is_sound(header)) return stopped(Fault::bad_length_crc);
    const uint64_t length = load<uint64_t>(header);
    // Subtract rather than add: `length` comes from the file and may be near 2^64.
    if (left < kFrameSize || length > left - kFrameSize) return stopped(Fault::torn_payload);
    record_size = length + kFrameSize;
    const uint64_t next = scan.offset + record_size;
    // The next header follows the footer: read both at once.
    const size_t want = static_cast<size_t>(std::min<uint64_t>(kFrameSize, file_size - next + kFooterSize));
    const uint8_t* const footer = window.at(next - kFooterSize, want, record_size);
    if (footer == nullptr) return stopped(Fault::torn_payload);
    scan.lengths.push(length);
    scan.payload_crcs.push(unmask_crc(load<uint32_t>(footer)));
    scan.offset = next;
    window.hopped(record_size);
  }
  return scan;
}

}  // namespace

HeaderScan scan_headers(int descriptor, uint64_t offset, size_t max_records, uint64_t most_mapped) {
  const uint64_t file_size = size_of(descriptor);
  HeaderScan scan = scan_headers(descriptor, file_size, offset, max_records, most_mapped);
  // If the file was truncated meanwhile, its last page in a map continues with zeros, which would be taken
  // for a footer or a bad header.
  if (size_of(descriptor) >= file_size) return scan;
  return scan_headers(descriptor, file_size, offset, max_records, 0);
}

}  // namespace recordkit
