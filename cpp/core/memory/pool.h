// Large pieces of memory that are used again: fresh pages cost more than the checksums of what is put there.
#pragma once

#include <cstddef>

namespace recordkit {

// At least `bytes` bytes, as they are; `bytes` becomes how many there are. Null if there is no memory.
void* take_memory(size_t& bytes) noexcept;

// The same, for one that has `old_bytes` and needs more: its first `used` bytes are kept. Null, with nothing
// changed, if there is no memory.
void* grow_memory(void* data, size_t used, size_t old_bytes, size_t& bytes) noexcept;

// Takes memory back. Of large pieces some are kept for the whole process, up to kMostKept in all, and up to
// an eighth of that but for the largest ones, whose pages the system may take while they lie there.
//
// All are safe to call from many threads, and in a child after a fork.
void give_memory_back(void* data, size_t bytes) noexcept;

// Lets go of all that is kept.
void drop_kept_memory() noexcept;

// Smaller pieces are malloc's own to keep.
inline constexpr size_t kLargePiece = size_t{128} << 10;
inline constexpr size_t kMostKept = size_t{512} << 20;

}  // namespace recordkit
