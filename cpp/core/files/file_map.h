// A file as memory, for reading a little at many places: a call to the system for each takes ten times as
// long.
#pragma once

#include <algorithm>
#include <memory>

#include "core/memory/bytes.h"

namespace recordkit {

// Maps that start where one does are set up at once.
constexpr uint64_t kLargePage = uint64_t{2} << 20;

// What is mapped of a file that is cut short, or on a disk that fails, kills a process that touches it. Not
// here: a handler of the signal puts zeros in place of such a map, and the map tells that it is no longer
// whole. Others may take the signal at any time, so every touch is asked for first: see MapGuard. Safe to use
// from many threads.
class FileMap {
 public:
  // A map of `size` bytes of the file from `offset` on, or to its end; null if there are none, if it is on no
  // disk of this machine (where the file system should hear of every read), if all maps of the process would
  // have more than `most_bytes`, or if the signal is not ours. REQUIRES: a page starts at `offset`
  static std::unique_ptr<FileMap> of(int descriptor, uint64_t most_bytes, uint64_t offset = 0,
                                     uint64_t size = UINT64_MAX);

  // The same, and null if it is still on the disk: that is better read, for the system reads ahead further
  // then.
  static std::unique_ptr<FileMap> of_cached(int descriptor, uint64_t most_bytes, uint64_t offset,
                                            uint64_t size);
  ~FileMap();
  FileMap(const FileMap&) = delete;
  FileMap& operator=(const FileMap&) = delete;

  uint64_t size() const { return size_; }

  // The bytes; zeros where they could not be had. They may change: copy them before believing them.
  // REQUIRES: a MapGuard of this thread allows it
  const uint8_t* data() const { return data_; }

  // Whether all that was touched so far was there. What was copied while this was true is what the file has.
  bool is_whole() const;

  // Whether the last page is in memory already, as far as the system tells: only of one's own files.
  bool is_cached() const;

  // Whether a page that cannot be had would be noticed now: the handler of the signal is ours, and this
  // thread has not blocked the signal.
  static bool is_guarded();

  // How many bytes all threads were allowed to touch so far.
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

// Asked by one thread before it touches maps. Looking at the handler takes as long as copying some kilobytes,
// so that it is done once for every kBetween bytes: what is left is that others take the signal and the file
// is cut, both between a look and the last touch that it was for.
class MapGuard {
 public:
  static constexpr uint64_t kBetween = uint64_t{1} << 20;

  // What is long is touched in pieces of so many bytes, which stay in the second cache.
  static constexpr uint64_t kPiece = uint64_t{256} << 10;

  MapGuard() = default;
  ~MapGuard() { FileMap::note_touched(touched_); }
  MapGuard(const MapGuard&) = delete;
  MapGuard& operator=(const MapGuard&) = delete;

  // Whether so many bytes may be touched now. Once they may not, nothing more may.
  bool allows(uint64_t bytes) {
    if (bytes > left_ && !look(bytes)) [[unlikely]]
      return false;
    left_ -= std::min(bytes, left_);
    touched_ += bytes;
    return true;
  }

  // Whether something was not allowed.
  bool was_refused() const { return over_; }

 private:
  bool look(uint64_t bytes);

  uint64_t left_ = 0;
  uint64_t touched_ = 0;
  bool over_ = false;
};

}  // namespace recordkit
