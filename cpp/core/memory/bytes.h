// Little-endian loads and stores, and spans of bytes.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace recordkit {

static_assert(std::endian::native == std::endian::little, "recordkit is written for little-endian machines");

using Bytes = std::span<const uint8_t>;

// Code that handles short pieces loads whole words and masks off the rest. Our buffers have this many
// readable bytes past their contents; for memory of callers, the end of what may be read is passed along.
inline constexpr size_t kPadding = 64;

template <typename T>
inline T load(const uint8_t* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

// For memory that may change: the compiler must not replace this by a second load.
template <typename T>
inline T load_once(const uint8_t* from) {
  T value = load<T>(from);
  asm volatile("" : "+r"(value));
  return value;
}

template <typename T>
inline void store(uint8_t* to, T value) {
  std::memcpy(to, &value, sizeof value);
}

inline std::string_view as_text(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

inline Bytes as_bytes(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

}  // namespace recordkit
