// Reads framed records from a stream of bytes, a chunk at a time, into buffers that are reused.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "core/files/file_map.h"
#include "core/files/path_tuner.h"
#include "core/records/file_snapshot.h"
#include "core/records/framing.h"
#include "core/records/hot_copy.h"

namespace recordkit {

// A sequential source of bytes: `offset` is where the last read ended, or where reading starts.
class ByteSource {
 public:
  virtual ~ByteSource() = default;

  // Reads up to `size` bytes, 0 only at the end. May throw anything.
  virtual size_t read(uint64_t offset, uint8_t* to, size_t size) = 0;

  // Whether bytes can be read at any offset, in any order and from many threads at once.
  virtual bool has_any_offset() const { return false; }

  // Maps the bytes, if they are in memory; has_any_offset() is true then, too. REQUIRES: `offset` is a
  // multiple of the page size
  virtual std::unique_ptr<const FileMap> map(uint64_t /*offset*/, uint64_t /*size*/) { return nullptr; }

  // The state of the file when reading began, if there is a file. The reader notes there what it has read,
  // and checks at the end whether the file has changed.
  virtual FileSnapshot* snapshot() { return nullptr; }
};

// An open file, read with pread; its own position is left alone. Throws std::system_error.
class FileSource : public ByteSource {
 public:
  // `most_mapped`: the limit passed to FileMap
  FileSource(int descriptor, uint64_t most_mapped)
      : descriptor_(descriptor), most_mapped_(most_mapped), snapshot_(descriptor) {}
  size_t read(uint64_t offset, uint8_t* to, size_t size) override;
  bool has_any_offset() const override { return true; }
  std::unique_ptr<const FileMap> map(uint64_t offset, uint64_t size) override;
  FileSnapshot* snapshot() override { return &snapshot_; }

 private:
  int descriptor_;
  uint64_t most_mapped_;
  FileSnapshot snapshot_;
};

class BufferPool;

struct ReadResult {
  Chunk chunk;  // empty at the end of the file
  // Set if the record after the chunk is damaged; the chunk may be empty then. `offset` is in the file.
  Fault fault = Fault::none;
  uint64_t offset = 0;
};

// Memory grows with the bytes that really arrive, never with a length read from the file. Thread-safe: each
// call gives the next records of the file. Threads take turns to walk the headers and check payloads in
// parallel. They also read in parallel if the source allows it, each from where it guesses that the others
// will stop. Copies from maps if that is faster, and checks on the way.
class RecordReader {
 public:
  struct Limits {
    size_t chunk_bytes = size_t{1} << 20;  // about the size of a chunk; it has at least one record
    uint64_t max_record_bytes = UINT64_MAX;
  };

  RecordReader(std::unique_ptr<ByteSource> source, Limits limits, uint64_t file_offset = 0,
               uint64_t first_record = 0);
  ~RecordReader();

  // Returns the next records, at most `max_records`, all of them checked. With `whole_count` exactly that
  // many, however large, unless the file ends.
  //
  // A fault ends reading: the call that meets it returns the intact records before it, and every later call
  // returns the same fault without records.
  ReadResult next(size_t max_records = SIZE_MAX, bool whole_count = false);

  struct Passed {
    Fault fault = Fault::too_large;  // none if it was skipped
    uint64_t length = 0;             // of its payload
    uint32_t crc = 0;
  };

  // Checks the record that `next` called too large, a piece at a time, and continues after it if it is
  // intact. If not, `next` reports the fault.
  //
  // REQUIRES: no other thread is reading
  Passed pass_large();

  // Passes the next `records` records to `use`, a few at a time, with an estimate of their total size.
  // Returns the number of the first. Works only for small records, copied from maps, with a single thread;
  // otherwise returns nothing and takes no record, and the caller goes on with `next`.
  std::optional<uint64_t> visit_next(size_t records,
                                     const std::function<bool(const NextRecords&, uint64_t bytes)>& use);

  // The number of the next record; at the end, the number of records.
  uint64_t next_record() const { return next_record_; }

  // The snapshot of the source, or null.
  const FileSnapshot* snapshot() const { return source_->snapshot(); }

 private:
  static constexpr int kAlone = 8;
  using Clock = std::chrono::steady_clock;

  struct Taken {
    ScanEnd end;
    bool checked = false;
    bool second = false;  // which way was tried
    Clock::duration waited = {};
  };

  // A mapped part of the file.
  struct Window {
    std::shared_ptr<const FileMap> map;
    uint64_t offset = 0;

    bool has(uint64_t at, uint64_t size) const {
      return map != nullptr && at >= offset && at + size <= offset + map->size();
    }
    const uint8_t* at(uint64_t place) const { return map->data() + (place - offset); }
  };

  class Copies;
  class Turn;

  // Takes the next whole records, going by their headers.
  Taken take(Chunk& chunk, size_t max_records, bool whole_count);
  ScanEnd fill(Chunk& chunk, size_t max_records, uint64_t max_bytes, bool whole_count, bool shared);
  void move_rest(size_t more);
  void note_fault(ReadResult& result);
  bool is_alone() const;  // whether this thread alone has been taking records
  void note_taker();

  // Moves the window to these bytes. False if they cannot be mapped, or if the file was truncated: what was
  // copied from the window is invalid then. `locked`: whether the mutex is held.
  bool look(Window& window, uint64_t offset, uint64_t size, bool locked);

  // The header of the record at this offset of the file, if it is sound, the payload is no longer than
  // `longest`, and the whole record is in the window. Sets `payload`, which may be accessed only if the guard
  // allows that too.
  std::optional<Header> mapped_record(Window& window, MapGuard& guard, uint64_t offset, uint64_t longest,
                                      bool locked, const uint8_t*& payload);

  // Whether the file has changed; asked at its end and at a damaged record.
  Fault now(uint64_t end);

  void note_pace(bool second, uint64_t bytes, std::chrono::duration<double> time);

  std::unique_ptr<ByteSource> source_;
  Limits limits_;
  std::shared_ptr<BufferPool> pool_;
  std::mutex mutex_;
  uint64_t turns_given_ = 0;         // handed out, in order
  std::atomic<uint64_t> turns_ = 0;  // finished
  std::condition_variable turn_ended_;
  uint64_t awaited_ = 0;  // estimated bytes that turns in progress will take
  uint64_t doubt_ = 0;    // how far off those estimates have been
  std::thread::id last_taker_;
  int in_a_row_ = kAlone;         // consecutive takes by that thread
  std::shared_ptr<Buffer> rest_;  // bytes already read for later records, from rest_at_ on
  size_t rest_at_ = 0;
  uint64_t file_offset_;               // where the rest starts in the file
  std::atomic<uint64_t> next_record_;  // read without the lock, which may be held for long
  size_t last_count_ = 0;              // records of the previous chunk
  size_t last_size_ = 0;               // its size
  ScanEnd fault_;                      // the first one, offset in the file
  uint64_t fault_record_ = 0;
  bool source_ended_ = false;
  HotCopy hot_;
  int brought_ = 0;  // consecutive successes of visit_next
  Window window_;    // the last one
  std::mutex pace_mutex_;
  PathTuner tuner_;
  bool set_up_ = true;  // false right after the tuner has switched
  bool was_mapped_ = false;
};

}  // namespace recordkit
