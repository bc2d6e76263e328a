#include "core/reader.h"

#include <algorithm>
#include <atomic>
#include <thread>

#include "core/descriptor.h"

namespace recordkit {

size_t FileSource::read(uint64_t offset, uint8_t* to, size_t size) {
  for (;;) {
    const ssize_t got = read_some(descriptor_, offset, to, size);
    if (got >= 0) return static_cast<size_t>(got);
    if (errno != EINTR) throw std::system_error(errno, std::generic_category());
  }
}

std::unique_ptr<const FileMap> FileSource::map(uint64_t offset, uint64_t size) {
  return FileMap::of_cached(descriptor_, most_mapped_, offset, size);
}

// Buffers come back here when the last chunk over them goes, so that reading a large file touches the same
// few megabytes again and again: fresh pages cost more than the checksums do. A thread gets one of its own
// back, for what another has written has to come from the caches of that one's core; and the one that has
// been here for longest, if there are some: to copy to what is still in the second cache takes a third longer
// than to what has left it.
class RecordReader::Pool : public std::enable_shared_from_this<Pool> {
 public:
  std::shared_ptr<Buffer> take() {
    const std::thread::id own = std::this_thread::get_id();
    std::unique_ptr<Buffer> buffer;
    {
      std::lock_guard lock(mutex_);
      size_t count = 0, bytes = 0;
      auto oldest = free_.end();
      for (auto free = free_.begin(); free != free_.end(); ++free) {
        if (free->user != own) continue;
        if (count++ == 0) oldest = free;
        bytes += free->buffer->capacity();
      }
      if (bytes >= kBytesInTurn || count >= kInTurn) buffer = remove(oldest);
    }
    if (!buffer) buffer = std::make_unique<Buffer>();
    buffer->set_size(0);
    return {buffer.release(), [pool = shared_from_this(), own](Buffer* used) { pool->give(used, own); }};
  }

 private:
  // Of a thread, beside those in use.
  static constexpr size_t kInTurn = 3, kBytesInTurn = size_t{1} << 20;
  // Of all threads.
  static constexpr size_t kKept = 16, kBytesKept = size_t{256} << 20;

  struct Free {
    std::unique_ptr<Buffer> buffer;
    std::thread::id user;
  };

  void give(Buffer* used, std::thread::id user) {
    std::unique_ptr<Buffer> buffer(used);
    std::lock_guard lock(mutex_);
    bytes_ += buffer->capacity();
    free_.push_back({std::move(buffer), user});
    while (free_.size() > kKept || bytes_ > kBytesKept) remove(free_.begin());
  }

  std::unique_ptr<Buffer> remove(std::vector<Free>::iterator free) {
    std::unique_ptr<Buffer> buffer = std::move(free->buffer);
    bytes_ -= buffer->capacity();
    free_.erase(free);
    return buffer;
  }

  std::mutex mutex_;
  std::vector<Free> free_;  // the oldest first
  size_t bytes_ = 0;
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

// Where the records end that the chunk has.
uint64_t end_of(const Chunk& chunk) {
  if (chunk.records.empty()) return 0;
  return chunk.records.back().start + chunk.records.back().length + kFooterSize;
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

constexpr double kClearly = 0.85;

// What the reader before has found: files are often alike, and short. No lock, for a child of a fork would
// inherit one that a thread of its parent holds.
std::atomic<Faster::Found> last_found;
static_assert(std::atomic<Faster::Found>::is_always_lock_free);

}  // namespace

RecordReader::RecordReader(std::unique_ptr<ByteSource> source, Limits limits, uint64_t file_offset,
                           uint64_t first_record)
    : source_(std::move(source)),
      limits_(limits),
      pool_(std::make_shared<Pool>()),
      rest_(pool_->take()),
      file_offset_(file_offset),
      next_record_(first_record),
      faster_(kClearly, last_found) {}

RecordReader::~RecordReader() {
  if (was_mapped_) last_found = faster_.found();
}

// One call's place in the order of those that take records. Several threads read before their turn, around
// where their records will probably be: only that of the first byte has to be known from those before.
class RecordReader::Turn {
 public:
  Turn(RecordReader& reader, size_t max_records, bool whole_count) : reader_(reader) {
    std::unique_lock lock(reader.mutex_);
    number_ = reader.turns_given_++;
    const uint64_t each = reader.last_size_ / std::max<size_t>(reader.last_count_, 1) + 1;
    const uint64_t most =
        whole_count ? kMostAhead : std::min<uint64_t>(reader.limits_.chunk_bytes, kMostAhead);
    size_ = max_records == reader.last_count_ ? std::min<uint64_t>(reader.last_size_, most)
                                              : std::min<uint64_t>(max_records, most / each) * each;
    offset_ = reader.file_offset_ + reader.awaited_;
    const uint64_t doubt = std::max(reader.doubt_, size_ / 128);
    start_ = offset_ - std::min(doubt, reader.awaited_);
    reader.awaited_ += size_;
    alone_ = reader.is_alone();
    const bool ends = reader.source_ended_ || reader.fault_.fault != Fault::none;
    if (alone_ || ends || !reader.source_->has_any_offset() || size_ < kLeastPiece || doubt > size_ / 8)
      return;
    lock.unlock();
    read(offset_ - start_ + size_ + doubt);
  }

  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  ~Turn() {
    if (!lock_) wait();
    reader_.awaited_ -= size_;
    ++reader_.turns_;
    lock_.unlock();
    reader_.turn_ended_.notify_all();
  }

  bool alone() const { return alone_; }

  // A turn takes about as long as waking a thread does, so that it pays to stay awake for one.
  void wait() {
    constexpr int kGlances = 200;
    for (int glance = 0; reader_.turns_ != number_ && glance < kGlances; ++glance) std::this_thread::yield();
    lock_ = std::unique_lock(reader_.mutex_);
    reader_.turn_ended_.wait(lock_, [this] { return reader_.turns_ == number_; });
    const uint64_t now = reader_.file_offset_;
    const uint64_t off = now > offset_ ? now - offset_ : offset_ - now;
    reader_.doubt_ = std::max(reader_.doubt_ / 4 * 3, 2 * off);
  }

  // Makes what was read the rest, if the next record starts there and that is more than there was.
  bool give_rest() {
    const uint64_t now = reader_.file_offset_;
    if (buffer_ == nullptr || now < start_) return false;
    const uint64_t at = lead_ + (now - start_);
    if (at >= buffer_->size() || buffer_->size() - at <= reader_.rest_->size() - reader_.rest_at_)
      return false;
    reader_.rest_ = std::move(buffer_);
    reader_.rest_at_ = at;
    return true;
  }

 private:
  static constexpr uint64_t kMostAhead = uint64_t{16} << 20;

  // What goes wrong here is found again, and said, in the turn.
  void read(size_t size) try {
    buffer_ = reader_.pool_->take();
    buffer_->reserve(size + kLeastPiece + 2 * kLine);
    lead_ = lead_for(*buffer_, start_);
    buffer_->set_size(lead_);
    buffer_->set_size(lead_ + reader_.source_->read(start_, buffer_->grow(size), size));
    std::memset(buffer_->end(), 0, kPadding);
  } catch (const std::exception&) {
    buffer_.reset();
  }

  RecordReader& reader_;
  uint64_t number_;
  uint64_t size_;    // of what it will probably take
  uint64_t offset_;  // and where that is in the file
  bool alone_;
  uint64_t start_;  // of what was read
  std::shared_ptr<Buffer> buffer_;
  size_t lead_ = 0;
  std::unique_lock<std::mutex> lock_;
};

ReadResult RecordReader::next(size_t max_records, bool whole_count) {
  ReadResult result;
  const Clock::time_point since = Clock::now();
  const Taken taken = take(result.chunk, max_records, whole_count);
  const ScanEnd end = taken.checked ? taken.end : check_payloads(result.chunk, taken.end);
  if (taken.alone) note_pace(taken.second, result.chunk.size, Clock::now() - since);
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

RecordReader::Taken RecordReader::take(Chunk& chunk, size_t max_records, bool whole_count) {
  Turn turn(*this, max_records, whole_count);
  turn.wait();
  Taken taken;
  taken.alone = turn.alone();
  note_taker();
  chunk.first_record = next_record_;
  chunk.file_offset = file_offset_;
  if (fault_.fault != Fault::none) {
    chunk.file_offset = fault_.offset;
    chunk.first_record = fault_record_;
    taken.end = {fault_.fault, 0};
    return taken;
  }
  chunk.records.reserve(std::min(max_records, last_count_));
  const uint64_t max_bytes = whole_count ? UINT64_MAX : std::max<uint64_t>(limits_.chunk_bytes, 1);
  {
    std::lock_guard pace_lock(pace_mutex_);
    taken.second = taken.alone && !source_ended_ && faster_.second();
  }
  taken.checked = taken.second && copy_mapped(chunk, max_records, max_bytes);
  if (taken.checked) {
    taken.end.offset = chunk.size;
    rest_at_ = rest_->size();  // what was read of these is not needed
  } else {
    const bool ahead = turn.give_rest();
    taken.end = fill(chunk, max_records, max_bytes, whole_count, !ahead);
    chunk.data = rest_->data() + rest_at_;
    chunk.size = taken.end.offset;
    chunk.readable = rest_->size() - rest_at_ + kPadding;
    chunk.owner = rest_;
    rest_at_ += taken.end.offset;
  }
  last_count_ = chunk.records.size();
  last_size_ = chunk.size;
  file_offset_ += chunk.size;
  next_record_ += chunk.records.size();
  return taken;
}

bool RecordReader::is_alone() const {
  const bool taken_last = last_taker_ == std::this_thread::get_id();
  return in_a_row_ == kAlone && (taken_last || last_taker_ == std::thread::id());
}

void RecordReader::note_taker() {
  const std::thread::id taker = std::this_thread::get_id();
  const std::thread::id last = std::exchange(last_taker_, taker);
  if (last != std::thread::id()) in_a_row_ = last == taker ? std::min(in_a_row_ + 1, kAlone) : 0;
}

ScanEnd RecordReader::fill(Chunk& chunk, size_t max_records, uint64_t max_bytes, bool whole_count,
                           bool shared) {
  for (;;) {
    chunk.data = rest_->data() + rest_at_;
    chunk.size = rest_->size() - rest_at_;
    const ScanEnd end = hop(chunk, end_of(chunk), max_records, max_bytes, limits_.max_record_bytes);
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
    const size_t got = source_->read(file_offset_ + rest_->size() - rest_at_, rest_->grow(piece), piece);
    rest_->set_size(rest_->size() + got);
    std::memset(rest_->end(), 0, kPadding);
    source_ended_ = got == 0;
  }
}

void RecordReader::move_rest(size_t more) {
  const size_t size = rest_->size() - rest_at_;
  if (in_a_row_ > 0 && rest_.use_count() == 1) {
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

// Whether the map has these bytes, or another one from there on.
inline bool RecordReader::map_has(uint64_t offset, uint64_t size) {
  if (map_ != nullptr) {
    if (offset >= map_offset_ && offset + size <= map_offset_ + map_->size()) return true;
    if (!map_->is_whole()) return false;  // nor is what was copied from there
    map_.reset();
  }
  constexpr uint64_t kAtATime = uint64_t{8} << 20;  // so that memory stays flat
  map_offset_ = offset / kLargePage * kLargePage;
  map_ = source_->map(map_offset_, std::max(kAtATime, offset - map_offset_ + size));
  return map_ != nullptr && offset + size <= map_offset_ + map_->size();
}

[[gnu::always_inline]] inline std::optional<Header> RecordReader::mapped_record(uint64_t offset,
                                                                                const uint8_t*& payload) {
  if (!map_has(offset, kHeaderSize)) return std::nullopt;
  const Header header(map_->data() + (offset - map_offset_));
  const uint64_t length = header.length;
  if (!header.is_sound() || length > std::min<uint64_t>(limits_.max_record_bytes, INT64_MAX) ||
      !map_has(offset, kFrameSize + length))
    return std::nullopt;
  payload = map_->data() + (offset - map_offset_) + kHeaderSize;
  return header;
}

bool RecordReader::copy_mapped(Chunk& chunk, size_t max_records, uint64_t max_bytes) {
  const std::shared_ptr<Buffer> buffer = pool_->take();
  buffer->reserve(last_size_ + kLeastPiece);
  const size_t lead = lead_for(*buffer, file_offset_);
  buffer->set_size(lead);
  const auto copy_one = [&](uint64_t offset) {
    const uint8_t* payload;
    const std::optional<Header> header = mapped_record(offset, payload);
    if (!header) return false;
    const uint64_t length = header->length;
    uint8_t* const to = buffer->grow(kFrameSize + length);
    header->copy_to(to);
    if (!copy_payload(to + kHeaderSize, payload, length, Behind::next)) return false;
    chunk.records.push_back({buffer->size() - lead + kHeaderSize, length});
    buffer->set_size(buffer->size() + kFrameSize + length);
    return true;
  };
  bool sound = true;
  for (uint64_t size = 0; sound && chunk.records.size() < max_records && size < max_bytes;
       size = buffer->size() - lead)
    sound = copy_one(file_offset_ + size);
  if (!sound || map_ == nullptr || !map_->is_whole()) {
    chunk.records.clear();
    map_.reset();
    return false;
  }
  std::memset(buffer->end(), 0, kPadding);
  chunk.data = buffer->data() + lead;
  chunk.size = buffer->size() - lead;
  chunk.readable = chunk.size + kPadding;
  chunk.owner = buffer;
  was_mapped_ = true;
  return true;
}

std::optional<uint64_t> RecordReader::bring_next(size_t records,
                                                 const std::function<bool(const Bring&, uint64_t)>& use) {
  constexpr uint64_t kSmall = 4 << 10, kLargest = 1 << 20;  // of all, and of each
  constexpr int kInARow = 63;  // then `next` finds out whether this is still the faster way
  {
    std::lock_guard lock(mutex_);
    if (!is_alone()) return std::nullopt;
  }
  Turn turn(*this, records, true);
  turn.wait();
  const bool small = last_count_ > 0 && last_size_ <= last_count_ * kSmall;
  if (!turn.alone() || source_ended_ || fault_.fault != Fault::none || !small) return std::nullopt;
  if (brought_ == kInARow) {
    brought_ = 0;
    return std::nullopt;
  }
  {
    std::lock_guard pace_lock(pace_mutex_);
    if (!faster_.second()) return std::nullopt;
  }
  uint64_t offset = file_offset_;
  size_t left = records;
  const auto bring = [&](Chunk& few, bool abreast) {
    few_.clear();
    for (; left > 0; --left) {
      const uint8_t* payload;
      const std::optional<Header> header = mapped_record(offset, payload);
      if (!header) return false;
      const uint64_t size = kFrameSize + header->length;
      if (size > kLargest) return false;
      if (!few_.has_room(size, abreast)) break;
      if (!few_.add(*header, payload, Behind::anything)) return false;
      offset += size;
    }
    few_.hand_over(few);
    return true;
  };
  if (!use(bring, last_size_ / last_count_ * records) || map_ == nullptr || !map_->is_whole()) {
    map_.reset();
    return std::nullopt;
  }
  note_taker();
  ++brought_;
  rest_at_ = rest_->size();  // what was read of these is not needed
  last_count_ = records;
  last_size_ = offset - file_offset_;
  file_offset_ = offset;
  return next_record_.fetch_add(records);
}

void RecordReader::note_pace(bool second, uint64_t bytes, std::chrono::duration<double> time) {
  constexpr double kUnit = 1 << 19;
  std::lock_guard lock(pace_mutex_);
  if (second != faster_.second() || !std::exchange(set_up_, true)) return;
  faster_.add(static_cast<double>(bytes) / kUnit, time.count());
  if (faster_.ends()) set_up_ = !faster_.choose();
}

}  // namespace recordkit
