// Large pieces of memory that are used again: fresh pages cost more than the checksums of what is put there.
#pragma once

#include <cstddef>

namespace recordkit {

// At least `bytes` bytes, as they are; `bytes` becomes how many there are. Null if there is no memory.
void* take_memory(size_t& bytes) noexcept;

// Takes memory back. Of large pieces a few are kept for the whole process, up to kMostKept in all.
//
// Both are safe to call from many threads, and in a child after a fork.
void give_memory_back(void* data, size_t bytes) noexcept;

// Smaller pieces are malloc's own to keep.
inline constexpr size_t kLargePiece = size_t{128} << 10;
inline constexpr size_t kMostKept = size_t{64} << 20;

}  // namespace recordkit
