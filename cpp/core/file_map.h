// A file as memory, for reading a little at many places: a call to the system for each takes ten times as
// long.
#pragma once

#include <memory>

#include "core/bytes.h"

namespace recordkit {

// Maps that start where one does are set up at once.
constexpr uint64_t kLargePage = uint64_t{2} << 20;

// What is mapped of a file that is cut short, or on a disk that fails, kills a process that touches it. Not
// here: such pages become zeros, and the map tells that it is no longer whole. Safe to use from many threads.
class FileMap {
 public:
  // A map of `size` bytes of the file from `offset` on, or to its end; null if there are none, if it is on no
  // disk of this machine (where the file system should hear of every read), or if all maps of the process
  // would have more than `most_bytes`. REQUIRES: a page starts at `offset`
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
  const uint8_t* data() const { return data_; }

  // Whether all that was touched so far was there. What was copied while this was true is what the file has.
  bool is_whole() const;

  // Whether the last page is in memory already, as far as the system tells: only of one's own files.
  bool is_cached() const;

  // Whether a page that cannot be had would be noticed, which is so until someone else takes the signal.
  static bool is_guarded();

 private:
  struct Region;
  FileMap(const uint8_t* data, uint64_t size, Region* region) : data_(data), size_(size), region_(region) {}
  friend struct Regions;

  const uint8_t* data_;
  uint64_t size_;
  Region* region_;
};

}  // namespace recordkit
