// A pool of large pieces of memory. Fresh pages cost more than the checksums of the data put there.
#pragma once

#include <cstddef>

namespace recordkit {

// Returns at least `bytes` bytes, uninitialised, and sets `bytes` to the actual size. Null if out of memory.
void* take_memory(size_t& bytes) noexcept;

// Grows a piece of `old_bytes` and keeps its first `used` bytes. Null, with nothing changed, if out of
// memory.
void* grow_memory(void* data, size_t used, size_t old_bytes, size_t& bytes) noexcept;

// Returns memory to the pool. The pool keeps large pieces for the whole process: up to kMostKept bytes in
// all, of which at most an eighth are pieces whose pages the system may not reclaim meanwhile.
//
// Thread-safe, and safe in a child after fork().
void give_memory_back(void* data, size_t bytes) noexcept;

// Frees everything the pool keeps.
void drop_kept_memory() noexcept;

// Smaller pieces are left to malloc.
inline constexpr size_t kLargePiece = size_t{128} << 10;
inline constexpr size_t kMostKept = size_t{512} << 20;

}  // namespace recordkit
