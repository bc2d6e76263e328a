// A library to preload: counts, records and spoils the calls by which a process changes a file system.
//
// Only what happens under the folder RK_SHIM_ROOT counts, and only calls that change something there (open
// when it may create or cut a file; close when it ends a file opened for writing). Each is one operation,
// numbered from 1 in the order in which it took place: a lock makes two threads take turns, so the log is
// that order.
//
//     RK_SHIM_ROOT        the folder, as realpath gives it; nothing counts without it
//     RK_SHIM_LOG         a file outside that folder that gets a line for each operation
//     RK_SHIM_KILL_AT     SIGKILL just before this operation
//     RK_SHIM_KILL_AFTER  SIGKILL just after it
//     RK_SHIM_FAIL_AT     this operation fails without having done anything (a close does close)
//     RK_SHIM_FAIL_REST   1: and so does every later one; for ENOSPC and EDQUOT every one that takes room
//     RK_SHIM_ERRNO       with which errno; EIO unless told
//     RK_SHIM_SHORT_AT    this write takes half of what it was given; with KILL_AFTER it is a torn write
//     RK_SHIM_OLD_RENAMES 1: renameat2 knows no flags, as on an old file system; such calls do not count
//     RK_SHIM_ROOM        writes take this many bytes in all, then fail with ENOSPC: a disk that fills up
//
// A line of the log has ten parts with tabs between them:
//
//     number, name, result, errno, inode, offset, length, path, other path, data
//
// Paths have bytes outside the printable ones, "%" and the space as %XX; data is in hexadecimal and is what
// was really written. Lines go out with the system call itself, so that they are not counted, and are in the
// file when the next operation begins, whatever becomes of the process.
//
// Not seen: stdio of the C library (fwrite calls write inside libc), writable memory maps, io_uring, and
// functions taken from a handle of libc itself (ctypes.CDLL("libc.so.6"); CDLL(None) is seen). Whoever
// replays a log finds that out, because the result then differs from the folder.

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <string>
#include <string_view>

namespace {

// The system call itself: through libc's own `syscall`, since the one below is ours.
template <typename... Arguments>
long raw(long number, Arguments... arguments) {
  using Syscall = long (*)(long, ...);
  static const Syscall call = reinterpret_cast<Syscall>(dlsym(RTLD_NEXT, "syscall"));
  return call(number, arguments...);
}

struct Plan {
  std::string root;
  long log = -1;
  long kill_at = 0, kill_after = 0, fail_at = 0, fail_rest = 0, error = EIO, short_at = 0, old_renames = 0,
       room = -1;
  long count = 0;
};

std::mutex mutex;

Plan read_plan() {
  const auto text = [](const char* name) { return std::string(getenv(name) ? getenv(name) : ""); };
  const auto number = [&](const char* name, long otherwise) {
    return text(name).empty() ? otherwise : atol(text(name).c_str());
  };
  Plan plan;
  plan.root = text("RK_SHIM_ROOT");
  plan.kill_at = number("RK_SHIM_KILL_AT", 0);
  plan.kill_after = number("RK_SHIM_KILL_AFTER", 0);
  plan.fail_at = number("RK_SHIM_FAIL_AT", 0);
  plan.fail_rest = number("RK_SHIM_FAIL_REST", 0);
  plan.error = number("RK_SHIM_ERRNO", EIO);
  plan.short_at = number("RK_SHIM_SHORT_AT", 0);
  plan.old_renames = number("RK_SHIM_OLD_RENAMES", 0);
  plan.room = number("RK_SHIM_ROOM", -1);
  if (const std::string log = text("RK_SHIM_LOG"); !log.empty()) {
    const long low = raw(SYS_openat, AT_FDCWD, log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    // Out of the way, so that the process gets the descriptors that it would get without a log.
    plan.log = raw(SYS_fcntl, low, F_DUPFD_CLOEXEC, 500);
    raw(SYS_close, low);
  }
  return plan;
}

// Never destroyed: threads may still write while the process ends.
Plan& plan() {
  static Plan* const the_plan = [] {
    // A child of fork must not inherit a lock that nobody in it will ever release.
    pthread_atfork([] { mutex.lock(); }, [] { mutex.unlock(); }, [] { mutex.unlock(); });
    return new Plan(read_plan());
  }();
  return *the_plan;
}

[[noreturn]] void die() {
  raw(SYS_kill, raw(SYS_getpid), SIGKILL);
  for (;;) raw(SYS_sched_yield);
}

// `path` without ".", "..", doubled and trailing slashes.
std::string normal(std::string_view path) {
  std::string out;
  while (!path.empty()) {
    const size_t end = std::min(path.find('/'), path.size());
    const std::string_view part = path.substr(0, end);
    path.remove_prefix(std::min(end + 1, path.size()));
    if (part == "..") {
      out.resize(out.empty() ? 0 : out.rfind('/'));
    } else if (!part.empty() && part != ".") {
      out.append("/").append(part);
    }
  }
  return out;
}

std::string path_of(int fd) {
  char link[64], target[PATH_MAX];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const long size = raw(SYS_readlinkat, AT_FDCWD, link, target, sizeof target);
  std::string path(target, size < 0 ? 0 : size);
  if (constexpr std::string_view kGone = " (deleted)"; path.ends_with(kGone)) {
    path.resize(path.size() - kGone.size());
  }
  return path;
}

std::string path_at(int folder, const char* path) {
  if (path == nullptr) return {};
  if (path[0] == '/') return normal(path);
  char here[PATH_MAX] = "";
  if (folder == AT_FDCWD) raw(SYS_getcwd, here, sizeof here);
  return normal((folder == AT_FDCWD ? std::string(here) : path_of(folder)) + "/" + path);
}

bool counts(const std::string& path) {
  const std::string& root = plan().root;
  return !root.empty() && path.starts_with(root) && (path.size() == root.size() || path[root.size()] == '/');
}

struct Operation {
  const char* name;
  std::string path = {}, other = {};
  unsigned long inode = 0;
  long offset = 0, length = 0;
  std::string data = {};
};

bool takes_room(std::string_view name) {
  return name != "unlink" && name != "rmdir" && name != "close" && !name.ends_with("truncate");
}

bool fails(long number, const Operation& operation) {
  const Plan& now = plan();
  if (now.fail_at == 0 || number < now.fail_at) return false;
  if (number == now.fail_at) return true;
  return now.fail_rest && (now.error == EIO || takes_room(operation.name));
}

void add_path(std::string& line, const std::string& path) {
  char escaped[4];
  for (const unsigned char byte : path) {
    if (byte > ' ' && byte < 127 && byte != '%') {
      line += static_cast<char>(byte);
    } else {
      snprintf(escaped, sizeof escaped, "%%%02X", byte);
      line += escaped;
    }
  }
  line += '\t';
}

void record(long number, const Operation& operation, long result, int error) {
  if (plan().log < 0) return;
  char head[256];
  snprintf(head, sizeof head, "%ld\t%s\t%ld\t%d\t%lu\t%ld\t%ld\t", number, operation.name, result,
           result < 0 ? error : 0, operation.inode, operation.offset, operation.length);
  std::string line = head;
  add_path(line, operation.path);
  add_path(line, operation.other);
  constexpr char kDigits[] = "0123456789abcdef";
  for (const unsigned char byte : operation.data) {
    line += kDigits[byte >> 4];
    line += kDigits[byte & 15];
  }
  line += '\n';
  for (size_t done = 0; done < line.size();) {
    const long wrote = raw(SYS_write, plan().log, line.data() + done, line.size() - done);
    if (wrote < 0) die();  // A log with a hole would prove things that are not so.
    done += wrote;
  }
}

// Counts `operation`, does it by `act`, and records it. `act` returns what the system call did, may complete
// the operation with what is known only afterwards, and is told whether to take half. The lock is held.
template <typename Act>
long change(Operation operation, Act act) {
  const long number = ++plan().count;
  if (number == plan().kill_at) die();
  long result = -1;
  if (fails(number, operation)) {
    if (std::string_view(operation.name) == "close") act(operation, false);
    operation.data.clear();
    errno = static_cast<int>(plan().error);
  } else {
    result = act(operation, number == plan().short_at);
  }
  const int error = errno;
  record(number, operation, result, error);
  if (number == plan().kill_after) die();
  errno = error;
  return result;
}

unsigned long inode_of(int fd) {
  struct stat facts;
  return fstat(fd, &facts) == 0 ? facts.st_ino : 0;
}

unsigned long inode_at(int folder, const char* path) {
  struct stat facts;
  return fstatat(folder, path, &facts, AT_SYMLINK_NOFOLLOW) == 0 ? facts.st_ino : 0;
}

int do_open(int folder, const char* path, int flags, mode_t mode) {
  const std::string where = path_at(folder, path);
  const bool nameless = (flags & O_TMPFILE) == O_TMPFILE;
  if (!(flags & (O_CREAT | O_TRUNC) || nameless) || !counts(where)) {
    return raw(SYS_openat, folder, path, flags, mode);
  }
  const std::lock_guard lock(mutex);
  struct stat before;
  const bool existed = !nameless && fstatat(folder, path, &before, 0) == 0;
  const char* name = !existed ? "create" : flags & O_TRUNC ? "open+truncate" : "open";
  return change({.name = name, .path = nameless ? "" : where}, [&](Operation& operation, bool) {
    const long fd = raw(SYS_openat, folder, path, flags, mode);
    if (fd >= 0) operation.inode = inode_of(fd);
    return fd;
  });
}

// A write of one piece or of several, at `offset` or, when that is -1, where the file stands.
ssize_t do_write(const char* name, int fd, const iovec* parts, int count, off_t offset) {
  const std::string path = path_of(fd);
  std::string data;
  for (int i = 0; i < count; i++) data.append(static_cast<const char*>(parts[i].iov_base), parts[i].iov_len);
  const auto put = [&](size_t size) {
    return offset < 0 ? raw(SYS_write, fd, data.data(), size)
                      : raw(SYS_pwrite64, fd, data.data(), size, offset);
  };
  if (!counts(path)) return put(data.size());

  const std::lock_guard lock(mutex);
  return change({.name = name, .path = path, .inode = inode_of(fd)}, [&](Operation& operation, bool half) {
    struct stat facts;
    const bool appends = fcntl(fd, F_GETFL) & O_APPEND && fstat(fd, &facts) == 0;
    operation.offset = appends ? facts.st_size : offset < 0 ? lseek(fd, 0, SEEK_CUR) : offset;
    operation.length = static_cast<long>(data.size());
    size_t size = half ? (data.size() + 1) / 2 : data.size();
    if (plan().room == 0 && size > 0) {
      errno = ENOSPC;
      return -1L;
    }
    if (plan().room > 0) size = std::min(size, static_cast<size_t>(plan().room));
    const long wrote = put(size);
    if (wrote > 0 && plan().room > 0) plan().room -= wrote;
    operation.data = data.substr(0, std::max(wrote, 0L));
    return wrote;
  });
}

// What the kernel copied into `fd` without showing it to the process. Opened anew: `fd` may be for writing
// only.
std::string read_back(int fd, off_t offset, size_t size) {
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const long again = raw(SYS_openat, AT_FDCWD, link, O_RDONLY | O_CLOEXEC, 0);
  std::string data(size, '\0');
  const long got = raw(SYS_pread64, again, data.data(), size, offset);
  raw(SYS_close, again);
  data.resize(std::max(got, 0L));
  return data;
}

template <typename Copy>
ssize_t do_copy(const char* name, int to, const off_t* at, size_t size, Copy copy) {
  const std::string path = path_of(to);
  if (!counts(path)) return copy(size);
  const std::lock_guard lock(mutex);
  return change({.name = name, .path = path, .inode = inode_of(to)}, [&](Operation& operation, bool half) {
    operation.offset = at ? *at : lseek(to, 0, SEEK_CUR);
    operation.length = static_cast<long>(size);
    const long copied = copy(half ? (size + 1) / 2 : size);
    if (copied > 0) operation.data = read_back(to, operation.offset, copied);
    return copied;
  });
}

// An operation on the file or folder behind a descriptor that needs no more than its arguments.
template <typename Act>
long on_file(const char* name, int fd, long offset, long length, Act act) {
  const std::string path = path_of(fd);
  if (!counts(path)) return act();
  const std::lock_guard lock(mutex);
  return change({.name = name, .path = path, .inode = inode_of(fd), .offset = offset, .length = length},
                [&](Operation&, bool) { return act(); });
}

template <typename Act>
long on_name(const char* name, int folder, const char* path, Act act) {
  const std::string where = path_at(folder, path);
  if (!counts(where)) return act();
  const std::lock_guard lock(mutex);
  return change({.name = name, .path = where, .inode = inode_at(folder, path)},
                [&](Operation& operation, bool) {
                  const long result = act();
                  if (operation.inode == 0) operation.inode = inode_at(folder, path);
                  return result;
                });
}

template <typename Act>
long on_names(const char* name, int from_folder, const char* from, int to_folder, const char* to, Act act) {
  const std::string source = path_at(from_folder, from), goal = path_at(to_folder, to);
  if (!counts(source) && !counts(goal)) return act();
  const std::lock_guard lock(mutex);
  return change({.name = name, .path = source, .other = goal}, [&](Operation& operation, bool) {
    const long result = act();
    operation.inode = inode_at(to_folder, to);
    return result;
  });
}

int do_rename(int from_folder, const char* from, int to_folder, const char* to, unsigned flags) {
  if (flags != 0 && plan().old_renames) {
    errno = EINVAL;
    return -1;
  }
  const char* name = flags & RENAME_EXCHANGE ? "exchange" : "rename";
  return on_names(name, from_folder, from, to_folder, to,
                  [&] { return raw(SYS_renameat2, from_folder, from, to_folder, to, flags); });
}

int do_link(int from_folder, const char* from, int to_folder, const char* to, int flags) {
  return on_names("link", from_folder, from, to_folder, to,
                  [&] { return raw(SYS_linkat, from_folder, from, to_folder, to, flags); });
}

int do_symlink(const char* target, int folder, const char* path) {
  const std::string where = path_at(folder, path);
  if (!counts(where)) return raw(SYS_symlinkat, target, folder, path);
  const std::lock_guard lock(mutex);
  return change({.name = "symlink", .path = where, .data = target}, [&](Operation& operation, bool) {
    const long result = raw(SYS_symlinkat, target, folder, path);
    operation.inode = inode_at(folder, path);
    return result;
  });
}

int do_unlink(int folder, const char* path, int flags) {
  return on_name(flags & AT_REMOVEDIR ? "rmdir" : "unlink", folder, path,
                 [&] { return raw(SYS_unlinkat, folder, path, flags); });
}

int do_mkdir(int folder, const char* path, mode_t mode) {
  return on_name("mkdir", folder, path, [&] { return raw(SYS_mkdirat, folder, path, mode); });
}

int do_fallocate(int fd, int mode, off_t offset, off_t length) {
  const long grown = mode & FALLOC_FL_KEEP_SIZE ? 0 : offset + length;
  return on_file("fallocate", fd, offset, grown,
                 [&] { return raw(SYS_fallocate, fd, mode, offset, length); });
}

mode_t mode_argument(int flags, va_list arguments) {
  return flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(arguments, mode_t) : 0;
}

}  // namespace

// The names of the C library. Those with 64 are the same functions on every system that this is for.
extern "C" {

// Reads the environment again and counts from 1: for a process that forks one child for each trial.
void rk_shim_reload() {
  plan();
  const std::lock_guard lock(mutex);
  if (plan().log >= 0) raw(SYS_close, plan().log);
  plan() = read_plan();
}

#define RK_OPEN(name)                                    \
  int name(const char* path, int flags, ...) {           \
    va_list arguments;                                   \
    va_start(arguments, flags);                          \
    const mode_t mode = mode_argument(flags, arguments); \
    va_end(arguments);                                   \
    return do_open(AT_FDCWD, path, flags, mode);         \
  }
RK_OPEN(open)
RK_OPEN(open64)
#undef RK_OPEN

#define RK_OPENAT(name)                                    \
  int name(int folder, const char* path, int flags, ...) { \
    va_list arguments;                                     \
    va_start(arguments, flags);                            \
    const mode_t mode = mode_argument(flags, arguments);   \
    va_end(arguments);                                     \
    return do_open(folder, path, flags, mode);             \
  }
RK_OPENAT(openat)
RK_OPENAT(openat64)
#undef RK_OPENAT

int __open_2(const char* path, int flags) { return do_open(AT_FDCWD, path, flags, 0); }
int __open64_2(const char* path, int flags) { return do_open(AT_FDCWD, path, flags, 0); }
int __openat_2(int folder, const char* path, int flags) { return do_open(folder, path, flags, 0); }
int __openat64_2(int folder, const char* path, int flags) { return do_open(folder, path, flags, 0); }
int creat(const char* path, mode_t mode) {
  return do_open(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode);
}
int creat64(const char* path, mode_t mode) { return creat(path, mode); }

ssize_t write(int fd, const void* data, size_t size) {
  const iovec part{const_cast<void*>(data), size};
  return do_write("write", fd, &part, 1, -1);
}
ssize_t pwrite(int fd, const void* data, size_t size, off_t offset) {
  const iovec part{const_cast<void*>(data), size};
  return do_write("pwrite", fd, &part, 1, offset);
}
ssize_t pwrite64(int fd, const void* data, size_t size, off64_t offset) {
  return pwrite(fd, data, size, offset);
}
ssize_t writev(int fd, const iovec* parts, int count) { return do_write("writev", fd, parts, count, -1); }
ssize_t pwritev(int fd, const iovec* parts, int count, off_t offset) {
  return do_write("pwritev", fd, parts, count, offset);
}
ssize_t pwritev64(int fd, const iovec* parts, int count, off64_t offset) {
  return do_write("pwritev", fd, parts, count, offset);
}
ssize_t pwritev2(int fd, const iovec* parts, int count, off_t offset, int) {
  return do_write("pwritev", fd, parts, count, offset);
}
ssize_t pwritev64v2(int fd, const iovec* parts, int count, off64_t offset, int) {
  return do_write("pwritev", fd, parts, count, offset);
}

ssize_t copy_file_range(int from, off64_t* at, int to, off64_t* to_at, size_t size, unsigned flags) {
  return do_copy("copy_file_range", to, to_at, size,
                 [&](size_t size) { return raw(SYS_copy_file_range, from, at, to, to_at, size, flags); });
}
ssize_t sendfile(int to, int from, off_t* at, size_t size) noexcept {
  return do_copy("sendfile", to, nullptr, size,
                 [&](size_t size) { return raw(SYS_sendfile, to, from, at, size); });
}
ssize_t sendfile64(int to, int from, off64_t* at, size_t size) noexcept {
  return sendfile(to, from, at, size);
}

int fsync(int fd) {
  return on_file("fsync", fd, 0, 0, [&] { return raw(SYS_fsync, fd); });
}
int fdatasync(int fd) {
  return on_file("fdatasync", fd, 0, 0, [&] { return raw(SYS_fdatasync, fd); });
}
int syncfs(int fd) noexcept {
  return on_file("syncfs", fd, 0, 0, [&] { return raw(SYS_syncfs, fd); });
}
// Of all file systems, and so of the folder.
void sync() noexcept {
  const std::lock_guard lock(mutex);
  if (plan().root.empty()) {
    raw(SYS_sync);
  } else {
    change({.name = "sync", .path = plan().root}, [](Operation&, bool) { return raw(SYS_sync); });
  }
}
int sync_file_range(int fd, off64_t offset, off64_t size, unsigned flags) {
  return on_file("sync_file_range", fd, offset, size,
                 [&] { return raw(SYS_sync_file_range, fd, offset, size, flags); });
}

int ftruncate(int fd, off_t length) noexcept {
  return on_file("ftruncate", fd, 0, length, [&] { return raw(SYS_ftruncate, fd, length); });
}
int ftruncate64(int fd, off64_t length) noexcept { return ftruncate(fd, length); }
int truncate(const char* path, off_t length) noexcept {
  const std::string where = path_at(AT_FDCWD, path);
  if (!counts(where)) return raw(SYS_truncate, path, length);
  const std::lock_guard lock(mutex);
  return change({.name = "truncate", .path = where, .inode = inode_at(AT_FDCWD, path), .length = length},
                [&](Operation&, bool) { return raw(SYS_truncate, path, length); });
}
int truncate64(const char* path, off64_t length) noexcept { return truncate(path, length); }

int fallocate(int fd, int mode, off_t offset, off_t length) { return do_fallocate(fd, mode, offset, length); }
int fallocate64(int fd, int mode, off64_t offset, off64_t length) {
  return do_fallocate(fd, mode, offset, length);
}
// Returns the error instead of setting it.
int posix_fallocate(int fd, off_t offset, off_t length) {
  return do_fallocate(fd, 0, offset, length) < 0 ? errno : 0;
}
int posix_fallocate64(int fd, off64_t offset, off64_t length) { return posix_fallocate(fd, offset, length); }

int rename(const char* from, const char* to) noexcept { return do_rename(AT_FDCWD, from, AT_FDCWD, to, 0); }
int renameat(int from_folder, const char* from, int to_folder, const char* to) noexcept {
  return do_rename(from_folder, from, to_folder, to, 0);
}
int renameat2(int from_folder, const char* from, int to_folder, const char* to, unsigned flags) noexcept {
  return do_rename(from_folder, from, to_folder, to, flags);
}
int link(const char* from, const char* to) noexcept { return do_link(AT_FDCWD, from, AT_FDCWD, to, 0); }
int linkat(int from_folder, const char* from, int to_folder, const char* to, int flags) noexcept {
  return do_link(from_folder, from, to_folder, to, flags);
}
int symlink(const char* target, const char* path) noexcept { return do_symlink(target, AT_FDCWD, path); }
int symlinkat(const char* target, int folder, const char* path) noexcept {
  return do_symlink(target, folder, path);
}
int unlink(const char* path) noexcept { return do_unlink(AT_FDCWD, path, 0); }
int unlinkat(int folder, const char* path, int flags) noexcept { return do_unlink(folder, path, flags); }
int rmdir(const char* path) noexcept { return do_unlink(AT_FDCWD, path, AT_REMOVEDIR); }
int mkdir(const char* path, mode_t mode) noexcept { return do_mkdir(AT_FDCWD, path, mode); }
int mkdirat(int folder, const char* path, mode_t mode) noexcept { return do_mkdir(folder, path, mode); }

int close(int fd) {
  struct stat facts;
  const int flags = fcntl(fd, F_GETFL);
  const bool written = flags >= 0 && (flags & O_ACCMODE) != O_RDONLY && !(flags & O_PATH) &&
                       fstat(fd, &facts) == 0 && S_ISREG(facts.st_mode);
  if (!written) return raw(SYS_close, fd);
  return on_file("close", fd, 0, 0, [&] { return raw(SYS_close, fd); });
}

// Some calls have no function in an older C library, and are made by number.
long syscall(long number, ...) noexcept {
  va_list list;
  va_start(list, number);
  long a[6];
  for (long& argument : a) argument = va_arg(list, long);
  va_end(list);
  if (number == SYS_renameat2) {
    return do_rename(a[0], reinterpret_cast<const char*>(a[1]), a[2], reinterpret_cast<const char*>(a[3]),
                     a[4]);
  }
  return raw(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

}  // extern "C"
