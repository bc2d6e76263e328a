// The state of a file when reading began, to detect later whether it has changed.
#pragma once

#include <vector>

#include "core/records/framing.h"

namespace recordkit {

// Remembers the state of an open file and some of the records read from it.
class FileSnapshot {
 public:
  // Throws std::system_error.
  explicit FileSnapshot(int descriptor);

  uint64_t size() const { return size_; }  // when reading began
  uint64_t current_size() const;

  // The file is known to have had this many bytes earlier.
  void had(uint64_t size) { size_ = std::max(size_, size); }

  // Notes that a piece of the file that starts with this record was read. Keeps the first, second, fourth,
  // eighth, and so on.
  void note(uint64_t offset, uint64_t length, uint32_t payload_crc);

  // Whether the file, read up to `end`, has changed. cut_short: it is shorter than it was. written_over: it
  // was written to, and a noted record is different now. none: it is unchanged, or was appended to, or no
  // change is visible so far. Throws std::system_error.
  Fault now(uint64_t end) const;

 private:
  struct Noted {
    uint64_t offset;
    uint64_t length;
    uint32_t payload_crc;
  };

  bool is_there(const Noted& record) const;

  int descriptor_;
  uint64_t size_;
  int64_t changed_[2];  // of the last change, in seconds and nanoseconds
  uint64_t pieces_ = 0;
  std::vector<Noted> noted_;
};

}  // namespace recordkit
