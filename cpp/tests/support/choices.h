// Sources of variety for tests: bytes from a fuzzer, or a fixed seed.
#pragma once

#include <string>

#include "core/memory/bytes.h"

namespace recordkit {

// xorshift64*: the same numbers on every machine, so that failures are reproducible.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15 | 1) {}

  uint64_t next() {
    state_ ^= state_ >> 12;
    state_ ^= state_ << 25;
    state_ ^= state_ >> 27;
    return state_ * 0x2545f4914f6cdd1d;
  }

  // REQUIRES: limit > 0
  uint64_t below(uint64_t limit) { return (next() >> 11) % limit; }

  std::string bytes(size_t size) {
    std::string bytes(size, '\0');
    for (char& byte : bytes) byte = static_cast<char>(next() >> 56);
    return bytes;
  }

 private:
  uint64_t state_;
};

// Reads decisions from bytes, and zeros after their end, so that any fuzzer input is meaningful.
class Choices {
 public:
  explicit Choices(Bytes bytes) : rest_(bytes) {}

  bool done() const { return rest_.empty(); }

  uint64_t word(size_t size = 8) {
    uint64_t value = 0;
    for (size_t i = 0; i < size && !done(); ++i, rest_ = rest_.subspan(1))
      value |= uint64_t{rest_[0]} << (8 * i);
    return value;
  }

  // REQUIRES: 0 < limit <= 65536
  uint64_t below(uint64_t limit) { return word(limit <= 256 ? 1 : 2) % limit; }

  // Of any width, so that varints of every size occur.
  uint64_t number() {
    const uint64_t width = below(65);
    return width == 0 ? 0 : word() >> (64 - width);
  }

  // REQUIRES: limit <= 65536
  std::string bytes(size_t limit) {
    std::string bytes(below(limit), '\0');
    for (char& byte : bytes) byte = static_cast<char>(word(1));
    return bytes;
  }

  // What has not been read yet.
  Bytes rest() const { return rest_; }

 private:
  Bytes rest_;
};

}  // namespace recordkit
