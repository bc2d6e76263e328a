// Files as memory, and the system calls that Python's os module lacks.
#include <nanobind/stl/unique_ptr.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "bindings/bindings.h"
#include "core/files/file_map.h"

#if defined(__linux__)
#include <fcntl.h>
#include <sys/syscall.h>
#endif

namespace recordkit {
namespace {

using namespace nb::literals;

// Returns 0 or the errno; ENOSYS if the system lacks the call.
int rename_with(const nb::bytes& from, const nb::bytes& to, bool exchange) {
#if defined(__linux__)
  // By number: the C libraries we support may lack the function.
  constexpr unsigned kNoReplace = 1, kExchange = 2;
  const long result = ::syscall(SYS_renameat2, AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(),
                                exchange ? kExchange : kNoReplace);
#elif defined(__APPLE__)
  const int result = ::renamex_np(from.c_str(), to.c_str(), exchange ? RENAME_SWAP : RENAME_EXCL);
#else
  errno = ENOSYS;
  const int result = -1;
#endif
  return result == 0 ? 0 : errno;
}

// Only a hint: without the call, or if it fails, the system writes when it sees fit.
void start_writeback([[maybe_unused]] int descriptor, [[maybe_unused]] uint64_t offset,
                     [[maybe_unused]] uint64_t size) {
#if defined(__linux__)
  ::sync_file_range(descriptor, static_cast<off64_t>(offset), static_cast<off64_t>(size),
                    SYNC_FILE_RANGE_WRITE);
#endif
}

// Returns 0 or the errno. The size of the file does not change.
int preallocate([[maybe_unused]] int descriptor, [[maybe_unused]] uint64_t offset,
                [[maybe_unused]] uint64_t size) {
#if defined(__linux__)
  // Not posix_fallocate, which writes zeros if the file system lacks support.
  return ::fallocate(descriptor, FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset), static_cast<off_t>(size)) ==
                 0
             ? 0
             : errno;
#else
  return ENOSYS;
#endif
}

}  // namespace

void bind_files(nb::module_& m) {
  m.def(
      "exchange", [](const nb::bytes& a, const nb::bytes& b) { return rename_with(a, b, true); }, "a"_a,
      "b"_a, "Swap two paths atomically. Return 0 or the errno.");
  m.def(
      "rename_new", [](const nb::bytes& from, const nb::bytes& to) { return rename_with(from, to, false); },
      "source"_a, "target"_a, "Rename unless the target exists. Return 0 or the errno.");
  m.def("preallocate", &preallocate, nb::call_guard<nb::gil_scoped_release>(), "descriptor"_a, "offset"_a,
        "size"_a, "Reserve disk space for a range of a file that will be written. Return 0 or the errno.");
  m.def("start_writeback", &start_writeback, nb::call_guard<nb::gil_scoped_release>(), "descriptor"_a,
        "offset"_a, "size"_a, "Start writing this range of a file to the disk, without waiting.");
  nb::class_<FileMap>(m, "FileMap", "A memory-mapped file, safe even if the file is truncated.")
      .def("__len__", &FileMap::size)
      .def_prop_ro("is_whole", &FileMap::is_whole, "Whether every access so far succeeded.");
  m.def("mapped_bytes", &FileMap::touched, "Return how many bytes were read from maps so far.");
  m.def(
      "map_file", [](int descriptor, uint64_t most_bytes) { return FileMap::of(descriptor, most_bytes); },
      "descriptor"_a, "most_bytes"_a,
      nb::sig("def map_file(descriptor: int, most_bytes: int) -> FileMap | None"),
      "Map a local file. Return None if it cannot be mapped, or if all maps would exceed `most_bytes`.");
}

}  // namespace recordkit
