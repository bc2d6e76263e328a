// Reading framed records from a stream of bytes, a chunk at a time, in memory that is used again.
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

// Where bytes come from, in order: `offset` is where the last ones ended, or where the reading starts.
class ByteSource {
 public:
  virtual ~ByteSource() = default;

  // Up to `size` bytes, 0 only at the end; throws what it likes.
  virtual size_t read(uint64_t offset, uint8_t* to, size_t size) = 0;

  // Whether bytes may be read at any offset, in any order and by many threads at once.
  virtual bool has_any_offset() const { return false; }

  // The same bytes where they are in memory, if they are; then they have any offset, too.
  // REQUIRES: a page starts at `offset`
  virtual std::unique_ptr<const FileMap> map(uint64_t /*offset*/, uint64_t /*size*/) { return nullptr; }

  // What the bytes come from as it was when the reading began, where that can be told. The reader notes there
  // what it has read, and asks at the end what has become of it.
  virtual FileSnapshot* snapshot() { return nullptr; }
};

// An open file, read with pread: its own position is left alone. Throws std::system_error.
class FileSource : public ByteSource {
 public:
  // `most_mapped`: as FileMap takes it
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

struct ReadResult {
  Chunk chunk;  // with no record at the end of the file
  // Set when the record behind the chunk is not sound. The chunk may be empty then; `offset` is in the file.
  Fault fault = Fault::none;
  uint64_t offset = 0;
};

// Memory grows with the bytes that really arrive, never with a length read from the file.
// Safe to call from many threads; each call gives the next records of the file. Hopping over headers is done
// by one at a time, checking payloads by all at once, and so is reading where the source has any offset: how
// far the others will come is guessed. What is in memory is copied from there if that is faster, and checked
// on the way.
class RecordReader {
 public:
  struct Limits {
    size_t chunk_bytes = size_t{1} << 20;  // about as many bytes of records a chunk; at least one record
    uint64_t max_record_bytes = UINT64_MAX;
  };

  RecordReader(std::unique_ptr<ByteSource> source, Limits limits, uint64_t file_offset = 0,
               uint64_t first_record = 0);
  ~RecordReader();

  // The next records: at most `max_records`, all of them checked. With `whole_count` exactly as many, however
  // large, unless the file ends.
  //
  // A fault ends the reading: the call that meets it gives the sound records before it, and every later one
  // gives the same fault with no record.
  ReadResult next(size_t max_records = SIZE_MAX, bool whole_count = false);

  struct Passed {
    Fault fault = Fault::too_large;  // none if it was passed
    uint64_t length = 0;             // of its payload
    uint32_t crc = 0;
  };

  // Checks the record that `next` has called too large, a piece at a time, and goes on behind it if it is
  // sound. If not, `next` says what is wrong with it.
  //
  // REQUIRES: nobody else reads meanwhile
  Passed pass_large();

  // Has `use` take the next `records` records a few at a time, told about how many bytes they are. Returns
  // the number of the first, or nothing, with nothing taken, unless it did: only small records are brought,
  // copied from maps for a single thread. `next` then tells what there is.
  std::optional<uint64_t> visit_next(size_t records,
                                     const std::function<bool(const NextRecords&, uint64_t bytes)>& use);

  // The number of the first record that was not handed out: at the end, how many there are.
  uint64_t next_record() const { return next_record_; }

  // As the source tells; null where it does not.
  const FileSnapshot* snapshot() const { return source_->snapshot(); }

 private:
  class Pool;
  static constexpr int kAlone = 8;
  using Clock = std::chrono::steady_clock;

  struct Taken {
    ScanEnd end;
    bool checked = false;
    bool second = false;  // the way that was tried
    Clock::duration waited = {};
  };

  // A part of the file that is in memory.
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

  // Takes the next bytes that make whole records, going by their headers.
  Taken take(Chunk& chunk, size_t max_records, bool whole_count);
  ScanEnd fill(Chunk& chunk, size_t max_records, uint64_t max_bytes, bool whole_count, bool shared);
  void move_rest(size_t more);
  void note_fault(ReadResult& result);
  bool is_alone() const;  // whether one thread has been taking records, and is this one
  void note_taker();

  // Makes the window have these bytes. False if they cannot be had, or the file was cut short under it: what
  // was copied from there counts for nothing then. `locked`: whether the mutex is held.
  bool look(Window& window, uint64_t offset, uint64_t size, bool locked);

  // The header of the record at this offset of the file, if it is sound, no longer than this, and all of the
  // record is in the window; `payload` becomes where, to be touched when the watch allows that too.
  std::optional<Header> mapped_record(Window& window, MapGuard& guard, uint64_t offset, uint64_t longest,
                                      bool locked, const uint8_t*& payload);

  // What has become of the file, where it ends or a record is not sound.
  Fault now(uint64_t end);

  void note_pace(bool second, uint64_t bytes, std::chrono::duration<double> time);

  std::unique_ptr<ByteSource> source_;
  Limits limits_;
  std::shared_ptr<Pool> pool_;
  std::mutex mutex_;
  uint64_t turns_given_ = 0;         // to calls, in order
  std::atomic<uint64_t> turns_ = 0;  // that have ended
  std::condition_variable turn_ended_;
  uint64_t awaited_ = 0;  // the bytes that those who have a turn will probably take
  uint64_t doubt_ = 0;    // how far off such guesses have been
  std::thread::id last_taker_;
  int in_a_row_ = kAlone;         // how often the last one has taken records
  std::shared_ptr<Buffer> rest_;  // from rest_at_ on, bytes read that belong to later records
  size_t rest_at_ = 0;
  uint64_t file_offset_;               // of the first byte of the rest
  std::atomic<uint64_t> next_record_;  // told without a lock: its holder may wait for a source
  size_t last_count_ = 0;              // records in the chunk before
  size_t last_size_ = 0;               // its bytes
  ScanEnd fault_;                      // the first one, offset in the file
  uint64_t fault_record_ = 0;
  bool source_ended_ = false;
  HotCopy hot_;
  int brought_ = 0;  // how often in a row
  Window window_;    // the last one
  std::mutex pace_mutex_;
  PathTuner tuner_;
  bool set_up_ = true;  // after the way has changed
  bool was_mapped_ = false;
};

}  // namespace recordkit
