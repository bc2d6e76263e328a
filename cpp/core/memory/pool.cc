#include "core/memory/pool.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <cstring>
#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace recordkit {
namespace {

constexpr size_t kSlots = 96;
constexpr size_t kTooLarge = 4;  // times the wanted size, so that no small request occupies a large piece
// From this size on, pieces come from the system and go back to it. Otherwise the pieces of many threads
// fragment malloc's memory, which returns little of it: 340 MB were lost after some minutes.
constexpr size_t kMapped = size_t{1} << 20;
constexpr size_t kLargePages = size_t{4} << 20;
constexpr size_t kHuge = size_t{32} << 20;

// Written at the start of an unused piece.
struct Piece {
  size_t bytes;
};

// No lock: a forked child could inherit it locked.
std::atomic<Piece*> kept[kSlots];
std::atomic<size_t> kept_bytes = 0;

bool put(std::atomic<Piece*>& slot, Piece* piece) {
  Piece* none = nullptr;
  return slot.load(std::memory_order_relaxed) == nullptr && slot.compare_exchange_strong(none, piece);
}

// Takes a kept piece that fits, if there is one.
Piece* find(size_t& bytes) {
  if (bytes < kLargePiece || bytes > kMostKept) return nullptr;
  for (std::atomic<Piece*>& slot : kept) {
    if (slot.load(std::memory_order_relaxed) == nullptr) continue;
    Piece* const piece = slot.exchange(nullptr);
    if (piece == nullptr) continue;
    const size_t there = piece->bytes;
    kept_bytes -= there;
    if (there >= bytes && there / kTooLarge <= bytes) {
      bytes = there;
      return piece;
    }
    give_memory_back(piece, there);
  }
  return nullptr;
}

#if defined(__linux__) && !defined(__SANITIZE_ADDRESS__)

// Programs ask for many pieces of similar sizes; rounding lets the next one fit into the last.
size_t rounded(size_t bytes) {
  const size_t step = std::bit_floor(bytes) / 16;
  return (bytes + step - 1) / step * step;
}

// Asks for large pages: fresh memory comes in pages of 4 KiB, each with a page fault of its own. Only a hint;
// it may fail.
void* with_large_pages(void* data, size_t bytes) {
  if (data == MAP_FAILED) return nullptr;
  if (bytes >= kLargePages) ::madvise(data, bytes, MADV_HUGEPAGE);
  return data;
}

void* fresh(size_t& bytes) {
  if (bytes < kMapped) return std::malloc(bytes);
  if (bytes >= kHuge) drop_kept_memory();
  bytes = rounded(bytes);
  return with_large_pages(::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
                          bytes);
}

void* regrown(void* data, size_t used, size_t old_bytes, size_t& bytes) {
  if (bytes < kMapped) return std::realloc(data, bytes);
  if (old_bytes < kMapped) {
    void* const grown = fresh(bytes);
    if (grown == nullptr) return nullptr;
    std::memcpy(grown, data, used);
    std::free(data);
    return grown;
  }
  if (bytes >= kHuge) drop_kept_memory();
  bytes = rounded(bytes);
  // The system remaps it without copying.
  return with_large_pages(::mremap(data, old_bytes, bytes, MREMAP_MAYMOVE), bytes);
}

void drop(void* data, size_t bytes) {
  if (bytes < kMapped)
    std::free(data);
  else
    ::munmap(data, bytes);
}

void lend_to_system(void* data, size_t bytes) {
  constexpr size_t kPage = size_t{4} << 10;
  if (bytes >= kHuge) ::madvise(static_cast<char*>(data) + kPage, bytes - kPage, MADV_FREE);
}

#else

void* fresh(size_t& bytes) { return std::malloc(bytes); }
void* regrown(void* data, size_t, size_t, size_t& bytes) { return std::realloc(data, bytes); }
void drop(void* data, size_t) { std::free(data); }
void lend_to_system(void*, size_t) {}

#endif

}  // namespace

void* take_memory(size_t& bytes) noexcept {
  Piece* const piece = find(bytes);
  return piece != nullptr ? piece : fresh(bytes);
}

void* grow_memory(void* data, size_t used, size_t old_bytes, size_t& bytes) noexcept {
  // Move a small piece to a large one if there is one: it will not have to grow again soon.
  if (old_bytes < kLargePiece || bytes >= kHuge) {
    if (Piece* const piece = find(bytes)) {
      if (used != 0) std::memcpy(piece, data, used);
      give_memory_back(data, old_bytes);
      return piece;
    }
  }
  if (data == nullptr) return fresh(bytes);
  return regrown(data, used, old_bytes, bytes);
}

void give_memory_back(void* data, size_t bytes) noexcept {
  if (data == nullptr) return;
  if (bytes >= kLargePiece) {
    // The system can reclaim the pages of huge pieces.
    if (kept_bytes.fetch_add(bytes) + bytes <= (bytes >= kHuge ? kMostKept : kMostKept / 8)) {
      auto* const piece = static_cast<Piece*>(data);
      piece->bytes = bytes;
      lend_to_system(data, bytes);
      for (std::atomic<Piece*>& slot : kept) {
        if (put(slot, piece)) return;
      }
    }
    kept_bytes -= bytes;
  }
  drop(data, bytes);
}

void drop_kept_memory() noexcept {
  for (std::atomic<Piece*>& slot : kept) {
    Piece* const piece = slot.exchange(nullptr);
    if (piece == nullptr) continue;
    const size_t bytes = piece->bytes;
    kept_bytes -= bytes;
    drop(piece, bytes);
  }
}

}  // namespace recordkit
