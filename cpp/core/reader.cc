#include "core/reader.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

namespace recordkit {

size_t FileSource::read(uint8_t* to, size_t size) {
  for (;;) {
    const ssize_t got = ::pread(descriptor_, to, size, static_cast<off_t>(offset_));
    if (got >= 0) {
      offset_ += static_cast<uint64_t>(got);
      return static_cast<size_t>(got);
    }
    if (errno != EINTR) throw std::system_error(errno, std::generic_category());
  }
}

// Buffers come back here when the last chunk over them goes, so that reading a large file touches the same
// few megabytes again and again: fresh pages cost more than the checksums do.
class RecordReader::Pool : public std::enable_shared_from_this<Pool> {
 public:
  std::shared_ptr<Buffer> take() {
    std::unique_ptr<Buffer> buffer;
    {
      std::lock_guard lock(mutex_);
      if (!free_.empty()) {
        buffer = std::move(free_.back());
        free_.pop_back();
      }
    }
    if (!buffer) buffer = std::make_unique<Buffer>();
    buffer->set_size(0);
    return {buffer.release(), [pool = shared_from_this()](Buffer* used) { pool->give(used); }};
  }

 private:
  static constexpr size_t kKept = 4;
  static constexpr size_t kLargest = size_t{64} << 20;

  void give(Buffer* used) {
    std::unique_ptr<Buffer> buffer(used);
    std::lock_guard lock(mutex_);
    if (free_.size() < kKept && buffer->capacity() <= kLargest) free_.push_back(std::move(buffer));
  }

  std::mutex mutex_;
  std::vector<std::unique_ptr<Buffer>> free_;
};

namespace {

// Where the torn record at the end of what has arrived will end, going by a header that checks.
uint64_t record_end(const Chunk& chunk, ScanEnd end) {
  if (end.fault == Fault::torn_header) return end.offset + kHeaderSize;
  const uint64_t length = load<uint64_t>(chunk.data + end.offset);
  return length > UINT64_MAX - kFrameSize - end.offset ? UINT64_MAX : end.offset + kFrameSize + length;
}

// About how many bytes `max_records` records take, going by those there are.
uint64_t likely_size(const Chunk& chunk, uint64_t offset, size_t max_records) {
  const size_t have = chunk.records.size();
  return have == 0 ? UINT64_MAX : offset + (offset / have + 1) * (max_records - have);
}

}  // namespace

RecordReader::RecordReader(std::unique_ptr<ByteSource> source, Limits limits, uint64_t file_offset,
                           uint64_t first_record)
    : source_(std::move(source)),
      limits_(limits),
      pool_(std::make_shared<Pool>()),
      file_offset_(file_offset),
      next_record_(first_record) {}

RecordReader::~RecordReader() = default;

ReadResult RecordReader::next(size_t max_records, bool whole_count) {
  ReadResult result;
  ScanEnd end = take(result.chunk, max_records, whole_count);
  end = check_payloads(result.chunk, end);
  result.fault = end.fault;
  result.offset = result.chunk.file_offset + end.offset;
  if (end.fault != Fault::none) {
    result.chunk.size = end.offset;
    std::lock_guard lock(mutex_);
    if (fault_.fault == Fault::none || result.offset < fault_.offset) {
      fault_ = {end.fault, result.offset};
      fault_record_ = result.chunk.first_record + result.chunk.records.size();
    }
  }
  return result;
}

ScanEnd RecordReader::take(Chunk& chunk, size_t max_records, bool whole_count) {
  std::lock_guard lock(mutex_);
  chunk.first_record = next_record_;
  chunk.file_offset = file_offset_;
  if (fault_.fault != Fault::none) {
    chunk.file_offset = fault_.offset;
    chunk.first_record = fault_record_;
    return {fault_.fault, 0};
  }
  std::shared_ptr<Buffer> buffer = pool_->take();
  buffer->reserve(carry_.size());  // even of nothing: the padding behind it is written to
  buffer->append(carry_.data(), carry_.size());
  ScanEnd end;
  try {
    end = fill(*buffer, chunk, max_records, whole_count);
  } catch (...) {
    // Nothing was handed out, so nothing may be lost: the next call starts over with what had arrived.
    carry_.assign(buffer->data(), buffer->end());
    throw;
  }
  carry_.assign(buffer->data() + end.offset, buffer->end());
  std::memset(buffer->end(), 0, kPadding);
  chunk.data = buffer->data();
  chunk.size = end.offset;
  chunk.readable = buffer->size() + kPadding;
  chunk.owner = std::move(buffer);
  file_offset_ += end.offset;
  next_record_ += chunk.records.size();
  return end;
}

ScanEnd RecordReader::fill(Buffer& buffer, Chunk& chunk, size_t max_records, bool whole_count) {
  // Small enough to stay in the second-level cache between the kernel's copy and the checksum.
  constexpr size_t kPiece = size_t{256} << 10;
  constexpr size_t kLeastPiece = size_t{16} << 10;

  const uint64_t max_bytes = whole_count ? UINT64_MAX : std::max<uint64_t>(limits_.chunk_bytes, 1);
  for (ScanEnd end;;) {
    chunk.data = buffer.data();
    chunk.size = buffer.size();
    end = hop(chunk, end.offset, max_records, max_bytes, limits_.max_record_bytes);
    const bool torn = end.fault == Fault::torn_header || end.fault == Fault::torn_payload;
    if (end.fault != Fault::none && !torn) return end;
    if (chunk.records.size() >= max_records || end.offset >= max_bytes) return end;
    if (source_ended_) return end;

    // As much as the chunk still wants, for what is read beyond it has to be carried to the next call. A long
    // record is read in ever larger pieces, yet never far beyond what has already arrived.
    const uint64_t wanted = std::max(whole_count ? likely_size(chunk, end.offset, max_records) : max_bytes,
                                     torn ? record_end(chunk, end) : 0);
    const size_t most = std::max<size_t>(kPiece, (buffer.size() - end.offset) / 2);
    const uint64_t lacking = wanted > buffer.size() ? wanted - buffer.size() : 0;
    const size_t piece = std::clamp<uint64_t>(lacking, kLeastPiece, most);
    const size_t got = source_->read(buffer.grow(piece), piece);
    buffer.set_size(buffer.size() + got);
    source_ended_ = got == 0;
  }
}

}  // namespace recordkit
