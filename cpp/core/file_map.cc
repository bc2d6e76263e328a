#include "core/file_map.h"

#if defined(__linux__)
#include <signal.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>

#include "core/descriptor.h"
#endif

namespace recordkit {

#if defined(__linux__)

namespace {

uintptr_t page_size() {
  static const uintptr_t size = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  return size;
}

}  // namespace

// One that is mapped, where the handler of a signal can look it up: no lock, and never freed.
struct FileMap::Region {
  std::atomic<uintptr_t> start = 0;  // 0: nobody has it
  std::atomic<uintptr_t> size = 0;
  std::atomic<bool> whole = true;

  bool has(uintptr_t address) const { return address - start.load() < size.load(); }
};

struct Regions {
  static constexpr size_t kMost = 1024;
  static FileMap::Region all[kMost];
  static std::atomic<uint64_t> bytes;
  static struct sigaction previous;

  static FileMap::Region* take(uintptr_t start, uint64_t size) {
    for (FileMap::Region& region : all) {
      uintptr_t none = 0;
      if (region.start.load() != 0 || !region.start.compare_exchange_strong(none, start)) continue;
      region.whole = true;
      region.size = size;
      return &region;
    }
    return nullptr;
  }

  // Zeros from the page on that could not be had.
  static bool mend(uintptr_t address) {
    FileMap::Region* const region =
        std::find_if(all, all + kMost, [&](const FileMap::Region& one) { return one.has(address); });
    if (region == all + kMost) return false;
    region->whole = false;
    const uintptr_t from = address & ~(page_size() - 1), end = region->start.load() + region->size.load();
    return ::mmap(reinterpret_cast<void*>(from), end - from, PROT_READ,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED;
  }

  static void on_bus_error(int signal, siginfo_t* facts, void*) {
    const int error = errno;
    const bool from_memory = facts->si_code > 0;
    if (!from_memory || !mend(reinterpret_cast<uintptr_t>(facts->si_addr))) {
      // Not ours: to whoever took the signal before. What failed is tried again, and fails again.
      ::sigaction(signal, &previous, nullptr);
      if (!from_memory) ::raise(signal);
    }
    errno = error;
  }

  static bool guard() {
    static const bool done = [] {
      struct sigaction action = {};
      action.sa_sigaction = on_bus_error;
      action.sa_flags = SA_SIGINFO | SA_ONSTACK;
      sigemptyset(&action.sa_mask);
      return ::sigaction(SIGBUS, &action, &previous) == 0;
    }();
    return done && FileMap::is_guarded();
  }
};

FileMap::Region Regions::all[kMost];
std::atomic<uint64_t> Regions::bytes = 0;
struct sigaction Regions::previous = {};

namespace {

// Those whose pages come from a disk or from memory of this machine.
bool is_local(int descriptor) {
  struct statfs facts;
  if (::fstatfs(descriptor, &facts) != 0) return false;
  constexpr uint32_t kExt = 0xEF53, kXfs = 0x58465342, kBtrfs = 0x9123683E, kF2fs = 0xF2F52010;
  constexpr uint32_t kTmpfs = 0x01021994, kOverlay = 0x794C7630, kZfs = 0x2FC12FC1;
  const uint32_t known[] = {kExt, kXfs, kBtrfs, kF2fs, kTmpfs, kOverlay, kZfs};
  return std::find(std::begin(known), std::end(known), static_cast<uint32_t>(facts.f_type)) !=
         std::end(known);
}

}  // namespace

std::unique_ptr<FileMap> FileMap::of(int descriptor, uint64_t most_bytes, uint64_t offset, uint64_t size) {
  const uint64_t end = size_of(descriptor);
  if (offset >= end || !is_local(descriptor) || !Regions::guard()) return nullptr;
  size = std::min(size, end - offset);
  if (Regions::bytes.fetch_add(size) + size <= most_bytes) {
    void* const data = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, descriptor, static_cast<off_t>(offset));
    if (data != MAP_FAILED) {
      if (Region* const region = Regions::take(reinterpret_cast<uintptr_t>(data), size))
        return std::unique_ptr<FileMap>(new FileMap(static_cast<const uint8_t*>(data), size, region));
      ::munmap(data, size);
    }
  }
  Regions::bytes -= size;
  return nullptr;
}

std::unique_ptr<FileMap> FileMap::of_cached(int descriptor, uint64_t most_bytes, uint64_t offset,
                                            uint64_t size) {
  std::unique_ptr<FileMap> map = of(descriptor, most_bytes, offset, size);
  if (map != nullptr && !map->is_cached()) map.reset();
  return map;
}

FileMap::~FileMap() {
  region_->size = 0;
  ::munmap(const_cast<uint8_t*>(data_), size_);
  region_->start = 0;
  Regions::bytes -= size_;
}

bool FileMap::is_whole() const { return region_->whole; }

bool FileMap::is_cached() const {
  unsigned char found = 0;
  const uintptr_t last = reinterpret_cast<uintptr_t>(data_) + size_ - 1;
  return ::mincore(reinterpret_cast<void*>(last & ~(page_size() - 1)), 1, &found) == 0 && (found & 1) != 0;
}

bool FileMap::is_guarded() {
  struct sigaction now;
  return ::sigaction(SIGBUS, nullptr, &now) == 0 && (now.sa_flags & SA_SIGINFO) != 0 &&
         now.sa_sigaction == Regions::on_bus_error;
}

#else  // Elsewhere it has not been tried.

std::unique_ptr<FileMap> FileMap::of(int, uint64_t, uint64_t, uint64_t) { return nullptr; }
std::unique_ptr<FileMap> FileMap::of_cached(int, uint64_t, uint64_t, uint64_t) { return nullptr; }
FileMap::~FileMap() = default;
bool FileMap::is_whole() const { return false; }
bool FileMap::is_cached() const { return false; }
bool FileMap::is_guarded() { return false; }

#endif

}  // namespace recordkit
