// Byte sources that behave as files and networks do: short reads, and errors in between.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>

#include "core/records/reader.h"

namespace recordkit {

// Returns at most `piece` bytes at a time.
class PieceSource : public ByteSource {
 public:
  PieceSource(std::string_view file, size_t piece) : rest_(file), piece_(piece) {}

  size_t read(uint64_t /*offset*/, uint8_t* to, size_t size) override {
    const size_t got = rest_.copy(reinterpret_cast<char*>(to), std::min(size, piece_));
    rest_.remove_prefix(got);
    return got;
  }

 private:
  std::string_view rest_;
  size_t piece_;
};

// Fails every other call, without losing its position.
class ShakySource : public PieceSource {
 public:
  using PieceSource::PieceSource;

  size_t read(uint64_t offset, uint8_t* to, size_t size) override {
    if ((failed_ = !failed_)) throw std::runtime_error("connection reset");
    return PieceSource::read(offset, to, size);
  }

 private:
  bool failed_ = false;
};

// Reads so slowly that copying from maps is faster on any machine.
class SlowFile : public FileSource {
 public:
  SlowFile(int descriptor, std::atomic<size_t>& read) : FileSource(descriptor, UINT64_MAX / 2), read_(read) {}

  size_t read(uint64_t offset, uint8_t* to, size_t size) override {
    std::this_thread::sleep_for(std::chrono::nanoseconds(4 * size));
    const size_t got = FileSource::read(offset, to, size);
    read_ += got;
    return got;
  }

 private:
  std::atomic<size_t>& read_;
};

}  // namespace recordkit
