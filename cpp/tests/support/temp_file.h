// A file for tests that read from a descriptor.
#pragma once

#include <cstdio>
#include <string>

namespace recordkit {

// A file with these bytes, deleted with the object.
class TempFile {
 public:
  explicit TempFile(const std::string& bytes) : file_(std::tmpfile()) {
    std::fwrite(bytes.data(), 1, bytes.size(), file_);
    std::fflush(file_);
  }
  ~TempFile() { std::fclose(file_); }
  operator int() const { return fileno(file_); }

 private:
  std::FILE* file_;
};

}  // namespace recordkit
