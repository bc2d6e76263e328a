#include "core/files/file_map.h"

#if defined(__linux__)
#include <signal.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

#include "core/files/descriptor.h"
#endif

namespace recordkit {

#if defined(__linux__)

namespace {

uintptr_t page_size() {
  static const uintptr_t size = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  return size;
}

}  // namespace

// A map, where the signal handler can look it up: without a lock, and never freed.
//
// A map is live from after mmap until before munmap. The handler runs in a thread that is accessing a map and
// so keeps it: that map stays live, its region does not change, and no other live map has the address. Any
// other region may be released and taken again meanwhile. What the handler reads of it counts only if its
// turn was odd before and is unchanged afterwards: then start and size belong to one map, which was live at
// that moment. Hence a region found to contain the address is the right one.
struct FileMap::Region {
  std::atomic<bool> taken = false;
  std::atomic<uint64_t> turn = 0;  // odd while the map is live
  std::atomic<uintptr_t> start = 0;
  std::atomic<uintptr_t> size = 0;
  std::atomic<bool> whole = true;

  // A map without an address is not live.
  Bytes live() const {
    const uint64_t before = turn.load();
    const Bytes bytes(reinterpret_cast<const uint8_t*>(start.load()), size.load());
    return before % 2 != 0 && turn.load() == before ? bytes : Bytes();
  }
};

struct Regions {
  static constexpr size_t kMost = 1024;
  static FileMap::Region all[kMost];
  static std::atomic<uint64_t> bytes;
  static std::atomic<uint64_t> touched;
  static struct sigaction previous;
  static std::atomic<bool> previous_is_spent;  // it was installed with SA_RESETHAND, and has been called

  static FileMap::Region* take(uintptr_t start, uint64_t size) {
    for (FileMap::Region& region : all) {
      if (region.taken.load(std::memory_order_relaxed) || region.taken.exchange(true)) continue;
      region.start = start;
      region.size = size;
      region.whole = true;
      ++region.turn;
      return &region;
    }
    return nullptr;
  }

  // REQUIRES: `unmap` unmaps the addresses
  template <typename Unmap>
  static void give_back(FileMap::Region& region, Unmap unmap) {
    ++region.turn;
    unmap();
    region.taken = false;
  }

  // Replaces the map that contains this address by zeros. All of it: splitting a mapping may fail for lack of
  // memory.
  static bool mend(uintptr_t address) {
    for (FileMap::Region& region : all) {
      const Bytes map = region.live();
      if (address - reinterpret_cast<uintptr_t>(map.data()) >= map.size()) continue;
      region.whole = false;  // before zeros become visible
      return ::mmap(const_cast<uint8_t*>(map.data()), map.size(), PROT_READ,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED;
    }
    return false;
  }

  static void on_bus_error(int signal, siginfo_t* facts, void* context) {
    const int error = errno;
    const bool from_memory = facts->si_code > 0;
    if (!from_memory || !mend(reinterpret_cast<uintptr_t>(facts->si_addr)))
      pass_on(signal, facts, context, from_memory);
    errno = error;
  }

  // Passes signals that are not ours to the previous handler, as the system would have. Our handler stays
  // installed for the other threads, unless the process ends.
  static void pass_on(int signal, siginfo_t* facts, void* context, bool from_memory) {
    struct sigaction to = previous;
    if ((to.sa_flags & SA_RESETHAND) != 0 && previous_is_spent.exchange(true)) to.sa_handler = SIG_DFL;
    if (to.sa_handler == SIG_IGN && !from_memory) return;
    if (to.sa_handler == SIG_DFL || to.sa_handler == SIG_IGN) {
      // A failed access is retried and ends the process; a signal sent by a process is raised again.
      to = {};
      to.sa_handler = SIG_DFL;
      ::sigaction(signal, &to, nullptr);
      if (!from_memory) ::raise(signal);
      return;
    }
    sigset_t own, before;
    ::pthread_sigmask(SIG_BLOCK, &to.sa_mask, &before);
    sigemptyset(&own);
    sigaddset(&own, signal);
    if ((to.sa_flags & SA_NODEFER) != 0 && !sigismember(&to.sa_mask, signal))
      ::pthread_sigmask(SIG_UNBLOCK, &own, nullptr);
    if ((to.sa_flags & SA_SIGINFO) != 0)
      to.sa_sigaction(signal, facts, context);
    else
      to.sa_handler(signal);
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

  // Installs the handler, once per process; code that replaces it later keeps it. No lock: a forked child
  // could inherit it locked. Such a child has no maps.
  static bool guard() {
    static std::atomic<bool> begun = false, done = false;
    if (!begun.exchange(true)) {
      struct sigaction action = {};
      action.sa_sigaction = on_bus_error;
      action.sa_flags = SA_SIGINFO | SA_ONSTACK;
      sigemptyset(&action.sa_mask);
      // `previous` must be known before our handler can be called.
      done = ::sigaction(SIGBUS, nullptr, &previous) == 0 && ::sigaction(SIGBUS, &action, &previous) == 0;
    }
    return done && FileMap::is_guarded();
  }
};

FileMap::Region Regions::all[kMost];
std::atomic<uint64_t> Regions::bytes = 0;
std::atomic<uint64_t> Regions::touched = 0;
struct sigaction Regions::previous = {};
std::atomic<bool> Regions::previous_is_spent = false;

namespace {

// Whether the file is on a disk, or in memory, of this machine.
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
  Regions::give_back(*region_, [&] { ::munmap(const_cast<uint8_t*>(data_), size_); });
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
  sigset_t blocked;
  return ::sigaction(SIGBUS, nullptr, &now) == 0 && (now.sa_flags & SA_SIGINFO) != 0 &&
         now.sa_sigaction == Regions::on_bus_error && ::pthread_sigmask(SIG_BLOCK, nullptr, &blocked) == 0 &&
         !sigismember(&blocked, SIGBUS);
}

uint64_t FileMap::touched() { return Regions::touched; }

void FileMap::note_touched(uint64_t bytes) {
  if (bytes != 0) Regions::touched.fetch_add(bytes, std::memory_order_relaxed);
}

#else  // Not tried on other systems.

std::unique_ptr<FileMap> FileMap::of(int, uint64_t, uint64_t, uint64_t) { return nullptr; }
std::unique_ptr<FileMap> FileMap::of_cached(int, uint64_t, uint64_t, uint64_t) { return nullptr; }
FileMap::~FileMap() = default;
bool FileMap::is_whole() const { return false; }
bool FileMap::is_cached() const { return false; }
bool FileMap::is_guarded() { return false; }
uint64_t FileMap::touched() { return 0; }
void FileMap::note_touched(uint64_t) {}

#endif

bool MapGuard::look(uint64_t bytes) {
  left_ = 0;
  if (over_ || !FileMap::is_guarded()) {
    over_ = true;
    return false;
  }
  left_ = std::max(bytes, kBetween);
  return true;
}

}  // namespace recordkit
