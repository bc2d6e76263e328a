// A memory-mapped file, for many small reads: a system call for each takes ten times as long.
#pragma once

#include <algorithm>
#include <memory>

#include "core/memory/bytes.h"

namespace recordkit {

// Maps that start at a large page are set up faster.
constexpr uint64_t kLargePage = uint64_t{2} << 20;

// Touching a map of a file that was truncated, or whose disk fails, raises SIGBUS and kills the process. Not
// here: our signal handler replaces such a map by zeros, and is_whole() becomes false. Other code may install
// its own handler at any time, so ask a MapGuard before every access. Thread-safe.
class FileMap {
 public:
  // Maps `size` bytes of the file from `offset` on, or to its end. Null if the range is empty, if the file is
  // not on a local file system (a remote one should see every read), if all maps of the process would exceed
  // `most_bytes`, or if the signal handler is not ours. REQUIRES: `offset` is a multiple of the page size
  static std::unique_ptr<FileMap> of(int descriptor, uint64_t most_bytes, uint64_t offset = 0,
                                     uint64_t size = UINT64_MAX);

  // The same, but null if the range is not in the page cache: the system reads ahead further for plain reads.
  static std::unique_ptr<FileMap> of_cached(int descriptor, uint64_t most_bytes, uint64_t offset,
                                            uint64_t size);
  ~FileMap();
  FileMap(const FileMap&) = delete;
  FileMap& operator=(const FileMap&) = delete;

  uint64_t size() const { return size_; }

  // The bytes; zeros if they could not be read. They may change at any time: copy them, then check the copy.
  // REQUIRES: a MapGuard of this thread allows it
  const uint8_t* data() const { return data_; }

  // Whether every access so far succeeded. What was copied while this was true is what the file has.
  bool is_whole() const;

  // Whether the last page is in the page cache. The system answers only for files the user owns.
  bool is_cached() const;

  // Whether a failed access would be caught now: the signal handler is ours, and this thread has not blocked
  // the signal.
  static bool is_guarded();

  // How many bytes all threads together were allowed to access so far.
  static uint64_t touched();

 private:
  friend class MapGuard;
  friend struct Regions;
  struct Region;
  FileMap(const uint8_t* data, uint64_t size, Region* region) : data_(data), size_(size), region_(region) {}
  static void note_touched(uint64_t bytes);

  const uint8_t* data_;
  uint64_t size_;
  Region* region_;
};

// Permission for one thread to access maps. Checking the signal handler takes as long as copying some
// kilobytes, so it is done once every kBetween bytes. The remaining risk: other code replaces the handler and
// the file is truncated, both between a check and the last access it covers.
class MapGuard {
 public:
  static constexpr uint64_t kBetween = uint64_t{1} << 20;

  // Long payloads are accessed in pieces of this size, which stay in the L2 cache.
  static constexpr uint64_t kPiece = uint64_t{256} << 10;

  MapGuard() = default;
  ~MapGuard() { FileMap::note_touched(touched_); }
  MapGuard(const MapGuard&) = delete;
  MapGuard& operator=(const MapGuard&) = delete;

  // Whether this many bytes may be accessed now. After one refusal, everything is refused.
  bool allows(uint64_t bytes) {
    if (bytes > left_ && !look(bytes)) [[unlikely]]
      return false;
    left_ -= std::min(bytes, left_);
    touched_ += bytes;
    return true;
  }

  // Whether something was refused.
  bool was_refused() const { return over_; }

 private:
  bool look(uint64_t bytes);

  uint64_t left_ = 0;
  uint64_t touched_ = 0;
  bool over_ = false;
};

}  // namespace recordkit
