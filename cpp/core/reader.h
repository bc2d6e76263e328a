// Reading framed records from a stream of bytes, a chunk at a time, in memory that is used again.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "core/framing.h"

namespace recordkit {

// Where bytes come from. `read` gives up to `size` bytes, 0 only at the end; it throws what it likes.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  virtual size_t read(uint8_t* to, size_t size) = 0;
};

// An open file, read from `offset` on with pread: the file's own position is left alone. Throws
// std::system_error.
class FileSource : public ByteSource {
 public:
  FileSource(int descriptor, uint64_t offset) : descriptor_(descriptor), offset_(offset) {}
  size_t read(uint8_t* to, size_t size) override;

 private:
  int descriptor_;
  uint64_t offset_;
};

struct ReadResult {
  Chunk chunk;  // with no record at the end of the file
  // Set when the record behind the chunk is not sound. The chunk may be empty then; `offset` is in the file.
  Fault fault = Fault::none;
  uint64_t offset = 0;
};

// Memory grows with the bytes that really arrive, never with a length read from the file.
// Safe to call from many threads; each call gives the next records of the file. Reading and hopping over
// headers is done by one at a time, checking payloads by all at once.
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

  // The number of the first record that was not handed out: at the end, how many there are.
  uint64_t next_record();

 private:
  class Pool;

  // Takes the next bytes that make whole records, going by their headers.
  ScanEnd take(Chunk& chunk, size_t max_records, bool whole_count);
  ScanEnd fill(Chunk& chunk, size_t max_records, bool whole_count);
  void move_rest(size_t more);

  std::unique_ptr<ByteSource> source_;
  Limits limits_;
  std::shared_ptr<Pool> pool_;
  std::mutex mutex_;
  std::shared_ptr<Buffer> rest_;  // from rest_at_ on, bytes read that belong to later records
  size_t rest_at_ = 0;
  uint64_t file_offset_;  // of the first byte of the rest
  uint64_t next_record_;
  size_t last_count_ = 0;  // records in the chunk before
  ScanEnd fault_;          // the first one, offset in the file
  uint64_t fault_record_ = 0;
  bool source_ended_ = false;
};

}  // namespace recordkit
