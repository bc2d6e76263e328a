#include "core/reader.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <system_error>
#include <thread>

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

constexpr size_t kPiece = size_t{1} << 20;
constexpr size_t kLeastPiece = size_t{16} << 10;
constexpr size_t kFirstPiece = size_t{64} << 10;
constexpr size_t kLine = 64;

// How far into the buffer to start, so that bytes lie in memory as they lie in the page cache: the kernel
// copies between places that differ within a cache line at little more than half the speed.
size_t lead_for(const Buffer& buffer, uint64_t file_offset) {
  return static_cast<size_t>(file_offset - reinterpret_cast<uintptr_t>(buffer.data())) % kLine;
}

// Where the torn record at the end of what has arrived will end, going by a header that checks.
uint64_t record_end(const Chunk& chunk, ScanEnd end) {
  if (end.fault == Fault::torn_header) return end.offset + kHeaderSize;
  const uint64_t length = load<uint64_t>(chunk.data + end.offset);
  return length > UINT64_MAX - kFrameSize - end.offset ? UINT64_MAX : end.offset + kFrameSize + length;
}

// About how many bytes `max_records` records take, going by those there are. Where there are none yet, so
// much that the next look tells.
uint64_t likely_size(const Chunk& chunk, uint64_t offset, size_t max_records) {
  const size_t have = chunk.records.size();
  return have == 0 ? kFirstPiece : offset + (offset / have + 1) * (max_records - have);
}

// A turn takes about as long as waking a thread does, so that it pays to stay awake for one.
std::unique_lock<std::mutex> take_turn(std::mutex& mutex) {
  constexpr int kGlances = 200;
  std::unique_lock lock(mutex, std::try_to_lock);
  for (int glance = 0; !lock && glance < kGlances; ++glance) {
    std::this_thread::yield();
    lock.try_lock();
  }
  if (!lock) lock.lock();
  return lock;
}

}  // namespace

RecordReader::RecordReader(std::unique_ptr<ByteSource> source, Limits limits, uint64_t file_offset,
                           uint64_t first_record)
    : source_(std::move(source)),
      limits_(limits),
      pool_(std::make_shared<Pool>()),
      rest_(pool_->take()),
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

uint64_t RecordReader::next_record() {
  std::lock_guard lock(mutex_);
  return next_record_;
}

ScanEnd RecordReader::take(Chunk& chunk, size_t max_records, bool whole_count) {
  const std::unique_lock lock = take_turn(mutex_);
  chunk.first_record = next_record_;
  chunk.file_offset = file_offset_;
  if (fault_.fault != Fault::none) {
    chunk.file_offset = fault_.offset;
    chunk.first_record = fault_record_;
    return {fault_.fault, 0};
  }
  chunk.records.reserve(std::min(max_records, last_count_));
  const ScanEnd end = fill(chunk, max_records, whole_count);
  last_count_ = chunk.records.size();
  chunk.data = rest_->data() + rest_at_;
  chunk.size = end.offset;
  chunk.readable = rest_->size() - rest_at_ + kPadding;
  chunk.owner = rest_;
  rest_at_ += end.offset;
  file_offset_ += end.offset;
  next_record_ += chunk.records.size();
  return end;
}

ScanEnd RecordReader::fill(Chunk& chunk, size_t max_records, bool whole_count) {
  const uint64_t max_bytes = whole_count ? UINT64_MAX : std::max<uint64_t>(limits_.chunk_bytes, 1);
  for (bool shared = true;;) {
    chunk.data = rest_->data() + rest_at_;
    chunk.size = rest_->size() - rest_at_;
    const uint64_t known =
        chunk.records.empty() ? 0 : chunk.records.back().start + chunk.records.back().length + kFooterSize;
    const ScanEnd end = hop(chunk, known, max_records, max_bytes, limits_.max_record_bytes);
    const bool torn = end.fault == Fault::torn_header || end.fault == Fault::torn_payload;
    if (end.fault != Fault::none && !torn) return end;
    if (chunk.records.size() >= max_records || end.offset >= max_bytes) return {Fault::none, end.offset};
    if (source_ended_) return end;
    // A short start of a record is cheaper to carry to the next chunk than another read is.
    if (chunk.size >= max_bytes && end.offset > 0 && chunk.size - end.offset < kLeastPiece)
      return {Fault::none, end.offset};

    // As much as the chunk still wants, for what is read beyond it may have to be moved for the next call. A
    // long record is read in ever larger pieces, yet never far beyond what has already arrived.
    const uint64_t wanted = std::max(whole_count ? likely_size(chunk, end.offset, max_records) : max_bytes,
                                     torn ? record_end(chunk, end) : 0);
    const size_t most = std::max<size_t>(kPiece, (chunk.size - end.offset) / 2);
    const uint64_t lacking = wanted > chunk.size ? wanted - chunk.size : 0;
    const size_t piece = std::clamp<uint64_t>(lacking, kLeastPiece, most);
    // Chunks that were handed out may look at what has been read, so that it is moved and not added to.
    if (std::exchange(shared, false)) move_rest(piece);
    const size_t got = source_->read(rest_->grow(piece), piece);
    rest_->set_size(rest_->size() + got);
    std::memset(rest_->end(), 0, kPadding);
    source_ended_ = got == 0;
  }
}

void RecordReader::move_rest(size_t more) {
  const size_t size = rest_->size() - rest_at_;
  if (rest_.use_count() == 1) {
    // Nobody looks at it any more: what is still in the caches is written over.
    std::atomic_thread_fence(std::memory_order_acquire);
    if (rest_->capacity() >= size + more + 2 * kLine) {
      const size_t lead = lead_for(*rest_, file_offset_);
      std::memmove(rest_->data() + lead, rest_->data() + rest_at_, size);
      rest_->set_size(lead + size);
      rest_at_ = lead;
      return;
    }
  }
  std::shared_ptr<Buffer> moved = pool_->take();
  moved->reserve(size + more + 2 * kLine);
  const size_t lead = lead_for(*moved, file_offset_);
  moved->set_size(lead);
  moved->append(rest_->data() + rest_at_, size);
  rest_ = std::move(moved);
  rest_at_ = lead;
}

}  // namespace recordkit
