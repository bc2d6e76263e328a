#include "core/records/reader.h"

#include <algorithm>
#include <atomic>
#include <thread>

#include "core/files/descriptor.h"
#include "core/records/buffer_pool.h"

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

namespace {

constexpr size_t kPiece = size_t{1} << 20;
constexpr size_t kLeastPiece = size_t{16} << 10;
constexpr size_t kFirstPiece = size_t{64} << 10;
constexpr uint64_t kMostRoom = uint64_t{128} << 20;
constexpr size_t kLine = 64;

// How far into the buffer to start so that bytes have the same alignment as in the page cache: the kernel
// copies little more than half as fast between places with different offsets in a cache line.
size_t lead_for(const Buffer& buffer, uint64_t file_offset) {
  return static_cast<size_t>(file_offset - reinterpret_cast<uintptr_t>(buffer.data())) % kLine;
}

// Where the records of the chunk end.
uint64_t end_of(const Chunk& chunk) {
  if (chunk.records.empty()) return 0;
  return chunk.records.back().start + chunk.records.back().length + kFooterSize;
}

// Where the incomplete record at the end of the data will end, going by its verified header.
uint64_t record_end(const Chunk& chunk, ScanEnd end) {
  if (end.fault == Fault::torn_header) return end.offset + kHeaderSize;
  const uint64_t length = load<uint64_t>(chunk.data + end.offset);
  return length > UINT64_MAX - kFrameSize - end.offset ? UINT64_MAX : end.offset + kFrameSize + length;
}

// An estimate of the size of `max_records` records, going by those so far. Without any, enough to estimate
// next time.
uint64_t likely_size(const Chunk& chunk, uint64_t offset, size_t max_records) {
  const size_t have = chunk.records.size();
  return have == 0 ? kFirstPiece : offset + (offset / have + 1) * (max_records - have);
}

constexpr double kClearly = 0.85;

// What the previous reader has found: files are often similar, and short. No lock: a forked child could
// inherit it locked.
std::atomic<PathTuner::Found> last_found;
static_assert(std::atomic<PathTuner::Found>::is_always_lock_free);

}  // namespace

RecordReader::RecordReader(std::unique_ptr<ByteSource> source, Limits limits, uint64_t file_offset,
                           uint64_t first_record)
    : source_(std::move(source)),
      limits_(limits),
      pool_(std::make_shared<BufferPool>()),
      rest_(pool_->take()),
      file_offset_(file_offset),
      next_record_(first_record),
      tuner_(kClearly, last_found) {}

RecordReader::~RecordReader() {
  if (was_mapped_) last_found = tuner_.found();
}

bool RecordReader::look(Window& window, uint64_t offset, uint64_t size, bool locked) {
  constexpr uint64_t kAtATime = uint64_t{8} << 20;  // to bound memory
  std::unique_lock lock(mutex_, std::defer_lock);
  if (!locked) lock.lock();
  if (window.map != nullptr && !window.map->is_whole()) return false;
  if (!window_.has(offset, size)) {
    const uint64_t start = offset / kLargePage * kLargePage;
    window_ = {source_->map(start, std::max(kAtATime, offset - start + size)), start};
  }
  window = window_;
  return window.has(offset, size);
}

[[gnu::always_inline]] inline std::optional<Header> RecordReader::mapped_record(Window& window,
                                                                                MapGuard& guard,
                                                                                uint64_t offset,
                                                                                uint64_t longest, bool locked,
                                                                                const uint8_t*& payload) {
  if (!window.has(offset, kHeaderSize) && !look(window, offset, kHeaderSize, locked)) return std::nullopt;
  if (!guard.allows(kHeaderSize)) return std::nullopt;
  const Header header(window.at(offset));
  const uint64_t size = kFrameSize + header.length;
  if (!header.is_sound() || header.length > std::min(limits_.max_record_bytes, longest) ||
      (!window.has(offset, size) && !look(window, offset, size, locked)))
    return std::nullopt;
  payload = window.at(offset) + kHeaderSize;
  return header;
}

// Consecutive records copied from maps, all of them verified.
class RecordReader::Copies {
 public:
  // `likely`: their expected size in bytes
  Copies(RecordReader& reader, uint64_t offset, uint64_t likely)
      : reader_(reader), start_(offset), buffer_(reader.pool_->take()) {
    buffer_->reserve(likely + kLeastPiece);
    lead_ = lead_for(*buffer_, offset);
    buffer_->set_size(lead_);
  }

  uint64_t end() const { return start_ + buffer_->size() - lead_; }

  // Copies the next one. False if it is damaged or longer than `longest`. `locked`: whether the reader's
  // mutex is held.
  [[gnu::always_inline]] bool add(uint64_t longest, bool locked) {
    const uint8_t* payload;
    const std::optional<Header> header =
        reader_.mapped_record(window_, guard_, end(), longest, locked, payload);
    if (!header) return false;
    uint8_t* const to = buffer_->grow(kFrameSize + header->length);
    header->copy_to(to);
    if (!copy_payload(guard_, to + kHeaderSize, payload, header->length, Prefetch::ahead)) return false;
    records_.push_back({buffer_->size() - lead_ + kHeaderSize, header->length});
    buffer_->set_size(buffer_->size() + kFrameSize + header->length);
    return true;
  }

  // Makes a chunk of those from this offset of the file on, and copies more up to `max_records` or
  // `max_bytes`. False if none starts at the offset, or if one is damaged.
  //
  // REQUIRES: the reader's mutex is held
  bool give(uint64_t offset, size_t max_records, uint64_t max_bytes, Chunk& chunk) {
    if (offset < start_) return false;
    const uint64_t skipped = offset - start_;
    const auto first =
        std::lower_bound(records_.begin(), records_.end(), skipped + kHeaderSize,
                         [](const Chunk::Span& record, uint64_t start) { return record.start < start; });
    if (first == records_.end() ? offset != end() : first->start != skipped + kHeaderSize) return false;
    records_.erase(records_.begin(), first);
    const auto end_of = [&](const Chunk::Span& record) {
      return record.start + record.length + kFooterSize - skipped;
    };
    while (records_.size() < max_records && (records_.empty() || end_of(records_.back()) < max_bytes)) {
      if (!add(INT64_MAX, true)) return false;
    }
    if (window_.map == nullptr || !window_.map->is_whole()) return false;
    const auto enough =
        std::lower_bound(records_.begin(), records_.end(), max_bytes,
                         [&](const Chunk::Span& record, uint64_t bytes) { return end_of(record) < bytes; });
    records_.resize(
        std::min<size_t>({max_records, records_.size(), static_cast<size_t>(enough - records_.begin()) + 1}));
    chunk.size = end_of(records_.back());
    for (Chunk::Span& record : records_) record.start -= skipped;
    std::memset(buffer_->end(), 0, kPadding);
    chunk.data = buffer_->data() + lead_ + skipped;
    chunk.readable = buffer_->size() - lead_ - skipped + kPadding;
    chunk.records = std::move(records_);
    chunk.owner = std::move(buffer_);
    return true;
  }

 private:
  RecordReader& reader_;
  Window window_;
  MapGuard guard_;
  uint64_t start_;
  std::shared_ptr<Buffer> buffer_;
  size_t lead_ = 0;
  std::vector<Chunk::Span> records_;  // relative to the lead
};

// One call's turn to take records. Several threads read or copy before their turn, around where their records
// will probably be; only the start of the first record has to come from the turns before.
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
    {
      std::lock_guard pace_lock(reader.pace_mutex_);
      second_ = reader.tuner_.second();
    }
    if (alone_) return;
    const bool ends = reader.source_ended_ || reader.fault_.fault != Fault::none;
    const bool guesses = size_ >= kLeastPiece && doubt <= size_ / 8;
    if (ends || !guesses || !reader.source_->has_any_offset()) {
      second_ = false;
      return;
    }
    lock.unlock();
    // Errors here will occur again in the turn, and are reported there.
    try {
      if (second_)
        copy(each, offset_ + size_ + doubt);
      else
        read(offset_ - start_ + size_ + doubt);
    } catch (const std::exception&) {
      copies_.reset();
      buffer_.reset();
    }
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

  // Whether to copy records from maps.
  bool second() const { return second_; }

  // Waits for the turn, first by spinning: a turn takes about as long as waking a thread. Returns how long it
  // waited.
  Clock::duration wait() {
    constexpr int kGlances = 200;
    const Clock::time_point since = Clock::now();
    for (int glance = 0; reader_.turns_ != number_ && glance < kGlances; ++glance) std::this_thread::yield();
    lock_ = std::unique_lock(reader_.mutex_);
    reader_.turn_ended_.wait(lock_, [this] { return reader_.turns_ == number_; });
    const uint64_t now = reader_.file_offset_;
    const uint64_t off = now > offset_ ? now - offset_ : offset_ - now;
    reader_.doubt_ = std::max(reader_.doubt_ / 4 * 3, 2 * off);
    return Clock::now() - since;
  }

  // Makes a chunk of records copied from maps, now or before the turn. False if they have to be read instead,
  // which also reports what is wrong, if anything.
  bool give_copies(size_t max_records, uint64_t max_bytes, Chunk& chunk) {
    if (alone_) copies_.emplace(reader_, reader_.file_offset_, size_);
    return copies_ && copies_->give(reader_.file_offset_, max_records, max_bytes, chunk);
  }

  // Replaces the reader's rest by what was read ahead, if the next record starts in it and it is longer.
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

  void read(size_t size) {
    buffer_ = reader_.pool_->take();
    buffer_->reserve(size + kLeastPiece + 2 * kLine);
    lead_ = lead_for(*buffer_, start_);
    buffer_->set_size(lead_);
    buffer_->set_size(lead_ + reader_.source_->read(start_, buffer_->grow(size), size));
    std::memset(buffer_->end(), 0, kPadding);
  }

  // Copies from the first apparent header on, up to `end`. It may be a false one: payloads can contain
  // anything. In the turn, the copies count only if the next record is among them.
  void copy(uint64_t each, uint64_t end) {
    const uint64_t longest = 16 * each;
    Window window;
    MapGuard guard;
    uint64_t at = start_;
    const auto is_header = [&] {
      const Header header(window.at(at));
      return header.length <= longest && header.is_sound();
    };
    for (; at < start_ + longest; ++at) {
      if (!window.has(at, kHeaderSize) && !reader_.look(window, at, kHeaderSize, false)) return;
      if (!guard.allows(1)) return;
      if (is_header()) break;
    }
    copies_.emplace(reader_, at, end - start_);
    while (copies_->end() < end && copies_->add(longest, false)) {
    }
  }

  RecordReader& reader_;
  uint64_t number_;
  uint64_t size_;    // estimated size of what it will take
  uint64_t offset_;  // and the estimated offset in the file
  bool alone_;
  bool second_;
  uint64_t start_;  // start of what was read ahead
  std::shared_ptr<Buffer> buffer_;
  size_t lead_ = 0;
  std::optional<Copies> copies_;
  std::unique_lock<std::mutex> lock_;
};

ReadResult RecordReader::next(size_t max_records, bool whole_count) {
  ReadResult result;
  const Clock::time_point since = Clock::now();
  const Taken taken = take(result.chunk, max_records, whole_count);
  const ScanEnd end = taken.checked ? taken.end : check_payloads(result.chunk, taken.end);
  note_pace(taken.second, result.chunk.size, Clock::now() - since - taken.waited);
  result.fault = end.fault;
  result.offset = result.chunk.file_offset + end.offset;
  if (end.fault != Fault::none || result.chunk.records.empty()) {
    result.chunk.size = end.offset;
    note_fault(result);
  }
  return result;
}

// Frees what was read of a damaged record, which may be most of the memory; later calls read it again.
void RecordReader::note_fault(ReadResult& result) {
  Chunk& chunk = result.chunk;
  std::lock_guard lock(mutex_);
  if (const Fault changed = now(result.offset); changed != Fault::none) result.fault = changed;
  if (result.fault == Fault::none) return;
  if (fault_.fault == Fault::none || result.offset < fault_.offset) {
    fault_ = {result.fault, result.offset};
    fault_record_ = chunk.first_record + chunk.records.size();
  }
  if (result.fault == Fault::too_large) return;  // nothing was read, and its header is needed
  auto own = std::make_shared<Buffer>(chunk.size);
  own->append(chunk.data, chunk.size);
  std::memset(own->end(), 0, kPadding);
  chunk.data = own->data();
  chunk.readable = chunk.size + kPadding;
  chunk.owner = std::move(own);
  pool_->end();
  rest_ = pool_->take();
  rest_at_ = 0;
  drop_kept_memory();
}

RecordReader::Passed RecordReader::pass_large() {
  std::lock_guard lock(mutex_);
  Passed passed;
  if (fault_.fault != Fault::too_large || fault_.offset != file_offset_) return passed;
  passed.length = load<uint64_t>(rest_->data() + rest_at_);
  uint64_t left = passed.length;
  size_t at = rest_at_ + kHeaderSize;
  for (uint64_t place = file_offset_ + kHeaderSize;;) {
    const size_t there = std::min<uint64_t>(left, rest_->size() - at);
    passed.crc = crc32c_extend(passed.crc, rest_->data() + at, there);
    left -= there;
    place += there;
    at += there;
    if (left == 0 && rest_->size() - at >= kFooterSize) break;
    // All but the start of the footer was used. Chunks may still refer to the old buffer.
    const size_t kept = rest_->size() - at;
    std::shared_ptr<Buffer> next = pool_->take();
    next->append(rest_->data() + at, kept);
    rest_ = std::move(next);
    at = 0;
    const size_t wanted = std::min<uint64_t>(left + kFooterSize - kept, kPiece);
    const size_t got = source_->read(place + kept, rest_->grow(wanted), wanted);
    rest_->set_size(kept + got);
    if (got != 0) continue;
    source_ended_ = true;
    const Fault changed = now(place + kept);
    fault_.fault = passed.fault = changed != Fault::none ? changed : Fault::torn_payload;
    return passed;
  }
  const bool sound = unmask_crc(load<uint32_t>(rest_->data() + at)) == passed.crc;
  passed.fault = fault_.fault = sound ? Fault::none : Fault::bad_payload_crc;
  if (!sound) return passed;
  rest_at_ = at + kFooterSize;
  file_offset_ += kFrameSize + passed.length;
  ++next_record_;
  std::memset(rest_->end(), 0, kPadding);
  return passed;
}

RecordReader::Taken RecordReader::take(Chunk& chunk, size_t max_records, bool whole_count) {
  Turn turn(*this, max_records, whole_count);
  Taken taken;
  taken.waited = turn.wait();
  note_taker();
  chunk.first_record = next_record_;
  chunk.file_offset = file_offset_;
  if (fault_.fault != Fault::none) {
    chunk.file_offset = fault_.offset;
    chunk.first_record = fault_record_;
    taken.end = {fault_.fault, 0};
    return taken;
  }
  const uint64_t max_bytes = whole_count ? UINT64_MAX : std::max<uint64_t>(limits_.chunk_bytes, 1);
  taken.second = turn.second() && !source_ended_;
  taken.checked = taken.second && turn.give_copies(max_records, max_bytes, chunk);
  if (taken.checked) {
    taken.end.offset = chunk.size;
    rest_at_ = rest_->size();  // what was read of these is not needed
    was_mapped_ = true;
  } else {
    if (taken.second) window_ = {};
    chunk.records.reserve(std::min(max_records, last_count_));
    const bool ahead = turn.give_rest();
    taken.end = fill(chunk, max_records, max_bytes, whole_count, !ahead);
    chunk.data = rest_->data() + rest_at_;
    chunk.size = taken.end.offset;
    chunk.readable = rest_->size() - rest_at_ + kPadding;
    chunk.owner = rest_;
    rest_at_ += taken.end.offset;
  }
  if (FileSnapshot* const snapshot = source_->snapshot(); snapshot != nullptr && !chunk.records.empty())
    snapshot->note(chunk.file_offset, chunk.records[0].length, chunk.payload_crc(0));
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
    // Carrying a short start of a record to the next chunk is cheaper than another read.
    if (chunk.size >= max_bytes && end.offset > 0 && chunk.size - end.offset < kLeastPiece)
      return {Fault::none, end.offset};

    // Read only what the chunk still needs: bytes beyond it may have to be moved for the next call. Read a
    // long record in ever larger pieces, but never far beyond what has already arrived. If the file is large
    // enough, reserve memory for a large chunk at once: growing takes fresh pages and moves data.
    const uint64_t wanted = std::max(whole_count ? likely_size(chunk, end.offset, max_records) : max_bytes,
                                     torn ? record_end(chunk, end) : 0);
    const size_t most = std::max<size_t>(kPiece, (chunk.size - end.offset) / 2);
    const uint64_t lacking = wanted > chunk.size ? wanted - chunk.size : 0;
    const size_t piece = std::clamp<uint64_t>(lacking, kLeastPiece, most);
    const uint64_t place = file_offset_ + chunk.size;
    const FileSnapshot* const snapshot = source_->snapshot();
    const uint64_t there = snapshot != nullptr && snapshot->size() > place ? snapshot->size() - place : 0;
    const size_t room = std::max<size_t>(piece, std::min({lacking, there, kMostRoom}));
    // Chunks handed out earlier may refer to this buffer: move the rest to another one.
    if (std::exchange(shared, false)) move_rest(room);
    const size_t got = source_->read(place, rest_->grow(room), piece);
    rest_->set_size(rest_->size() + got);
    std::memset(rest_->end(), 0, kPadding);
    source_ended_ = got == 0;
  }
}

void RecordReader::move_rest(size_t more) {
  const size_t size = rest_->size() - rest_at_;
  if (in_a_row_ > 0 && rest_.use_count() == 1) {
    // No chunk refers to it any more: reuse it while it is in the caches.
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

std::optional<uint64_t> RecordReader::visit_next(
    size_t records, const std::function<bool(const NextRecords&, uint64_t)>& use) {
  constexpr uint64_t kSmall = 4 << 10, kLargest = 1 << 20;  // on average, and each
  constexpr int kInARow = 63;                               // then `next` checks whether this is still faster
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
  if (!turn.second()) return std::nullopt;
  Window window = window_;
  MapGuard guard;
  uint64_t offset = file_offset_;
  size_t left = records;
  std::optional<std::pair<uint64_t, uint32_t>> first;  // length and CRC of its payload
  const auto bring = [&](Chunk& few, bool in_lanes) {
    hot_.clear();
    for (; left > 0; --left) {
      const uint8_t* payload;
      const std::optional<Header> header = mapped_record(window, guard, offset, kLargest, true, payload);
      if (!header) return false;
      const uint64_t size = kFrameSize + header->length;
      if (!hot_.has_room(size, in_lanes)) break;
      if (!guard.allows(header->length + kFooterSize) || !hot_.add(*header, payload, Prefetch::ahead))
        return false;
      offset += size;
    }
    hot_.hand_over(few);
    if (!first && !few.records.empty()) first.emplace(few.records[0].length, few.payload_crc(0));
    return true;
  };
  if (!use(bring, last_size_ / last_count_ * records) || window.map == nullptr || !window.map->is_whole()) {
    window_ = {};
    return std::nullopt;
  }
  note_taker();
  if (FileSnapshot* const snapshot = source_->snapshot(); snapshot != nullptr && first)
    snapshot->note(file_offset_, first->first, first->second);
  ++brought_;
  rest_at_ = rest_->size();  // what was read of these is not needed
  last_count_ = records;
  last_size_ = offset - file_offset_;
  file_offset_ = offset;
  return next_record_.fetch_add(records);
}

Fault RecordReader::now(uint64_t end) {
  FileSnapshot* const snapshot = source_->snapshot();
  return snapshot == nullptr ? Fault::none : snapshot->now(end);
}

void RecordReader::note_pace(bool second, uint64_t bytes, std::chrono::duration<double> time) {
  constexpr double kUnit = 1 << 19;
  std::lock_guard lock(pace_mutex_);
  if (second != tuner_.second() || !std::exchange(set_up_, true)) return;
  tuner_.add(static_cast<double>(bytes) / kUnit, time.count());
  if (tuner_.ends()) set_up_ = !tuner_.choose();
}

}  // namespace recordkit
