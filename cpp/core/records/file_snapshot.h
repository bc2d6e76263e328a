// A file as it was when its reading began: what has become of it meanwhile is asked at the end.
#pragma once

#include <vector>

#include "core/records/framing.h"

namespace recordkit {

// Notes the state of an open file, and some of the records that are read from it.
class FileSnapshot {
 public:
  // Throws std::system_error.
  explicit FileSnapshot(int descriptor);

  uint64_t size() const { return size_; }  // that it had
  uint64_t current_size() const;

  // The file is known to have had so many bytes before.
  void had(uint64_t size) { size_ = std::max(size_, size); }

  // Takes notice that a piece of the file was read, which starts with this record. Few of them are kept: the
  // first, the second, the fourth and so on.
  void note(uint64_t offset, uint64_t length, uint32_t payload_crc);

  // What has become of the file that was read up to `end`. cut_short: it has fewer bytes than it had.
  // written_over: it was written to, and a record that was noted is another one now. none: it is as it was,
  // or records came behind it, or so far nothing shows. Throws std::system_error.
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
  int64_t changed_[2];  // seconds and nanoseconds of the last change
  uint64_t pieces_ = 0;
  std::vector<Noted> noted_;
};

}  // namespace recordkit
