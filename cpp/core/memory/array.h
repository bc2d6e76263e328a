// Growable memory that is not cleared, with a few readable bytes past its end.
#pragma once

#include <algorithm>
#include <new>
#include <utility>

#include "core/memory/bytes.h"
#include "core/memory/pool.h"

namespace recordkit {

// A vector of plain values that leaves new memory uninitialised and keeps kPadding readable bytes past its
// contents. Large pieces come from the pool and go back to it.
template <typename T>
class Array {
 public:
  Array() = default;
  explicit Array(size_t capacity) { reserve(capacity); }
  Array(Array&& other) noexcept { swap(other); }
  Array& operator=(Array&& other) noexcept {
    swap(other);
    return *this;
  }
  ~Array() { give_memory_back(data_, nbytes()); }

  T* data() { return data_; }
  const T* data() const { return data_; }
  size_t size() const { return size_; }
  size_t capacity() const { return capacity_; }
  bool empty() const { return size_ == 0; }
  T* end() { return data_ + size_; }
  T& back() { return data_[size_ - 1]; }
  const T& back() const { return data_[size_ - 1]; }
  void set_size(size_t size) { size_ = size; }
  // The bytes of memory it owns.
  size_t nbytes() const { return data_ == nullptr ? 0 : capacity_ * sizeof(T) + kPadding; }

  // Makes room for at least `capacity` values and keeps the contents. On failure, throws std::bad_alloc and
  // changes nothing.
  void reserve(size_t capacity) {
    if (capacity <= capacity_ && data_ != nullptr) return;
    if (capacity > (SIZE_MAX - kPadding) / sizeof(T)) throw std::bad_alloc();
    size_t bytes = capacity * sizeof(T) + kPadding;
    void* const grown = grow_memory(data_, size_ * sizeof(T), nbytes(), bytes);
    if (grown == nullptr) throw std::bad_alloc();
    data_ = static_cast<T*>(grown);
    capacity_ = (bytes - kPadding) / sizeof(T);
  }

  // Makes room for `more` values after the contents. Grows by half, so that appending stays linear.
  T* grow(size_t more) {
    if (capacity_ - size_ < more) reserve(std::max(size_ + more, capacity_ + capacity_ / 2));
    return data_ + size_;
  }

  void push(T value) {
    *grow(1) = value;
    ++size_;
  }
  void append(const T* values, size_t count) {
    T* to = grow(count);
    if (count != 0) std::memcpy(to, values, count * sizeof(T));
    size_ += count;
  }

 private:
  void swap(Array& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(capacity_, other.capacity_);
  }

  T* data_ = nullptr;
  size_t size_ = 0;
  size_t capacity_ = 0;
};

using Buffer = Array<uint8_t>;

}  // namespace recordkit
