#include "core/pool.h"

#include <atomic>
#include <cstdlib>

namespace recordkit {
namespace {

constexpr size_t kSlots = 96;
constexpr size_t kTooLarge = 4;  // times what is wanted: whoever keeps a little keeps no large piece

// Stands at the start of a piece that nobody uses.
struct Piece {
  size_t bytes;
};

// No lock, for a child of a fork would inherit one that a thread of its parent holds.
std::atomic<Piece*> kept[kSlots];
std::atomic<size_t> kept_bytes = 0;

bool put(std::atomic<Piece*>& slot, Piece* piece) {
  Piece* none = nullptr;
  return slot.load(std::memory_order_relaxed) == nullptr && slot.compare_exchange_strong(none, piece);
}

}  // namespace

void* take_memory(size_t& bytes) noexcept {
  if (bytes < kLargePiece || bytes > kMostKept) return std::malloc(bytes);
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
  return std::malloc(bytes);
}

void give_memory_back(void* data, size_t bytes) noexcept {
  if (bytes >= kLargePiece && data != nullptr) {
    if (kept_bytes.fetch_add(bytes) + bytes <= kMostKept) {
      auto* const piece = static_cast<Piece*>(data);
      piece->bytes = bytes;
      for (std::atomic<Piece*>& slot : kept) {
        if (put(slot, piece)) return;
      }
    }
    kept_bytes -= bytes;
  }
  std::free(data);
}

}  // namespace recordkit
