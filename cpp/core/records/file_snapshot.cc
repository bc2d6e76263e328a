#include "core/records/file_snapshot.h"

#include <algorithm>
#include <bit>

#include "core/files/descriptor.h"

namespace recordkit {
namespace {

// The ctime, because the mtime can be set back.
void set_change(const struct stat& facts, int64_t* changed) {
#if defined(__APPLE__)
  changed[0] = facts.st_ctimespec.tv_sec, changed[1] = facts.st_ctimespec.tv_nsec;
#else
  changed[0] = facts.st_ctim.tv_sec, changed[1] = facts.st_ctim.tv_nsec;
#endif
}

struct stat facts_of(int descriptor) {
  struct stat facts;
  if (::fstat(descriptor, &facts) != 0) throw std::system_error(errno, std::generic_category());
  return facts;
}

}  // namespace

FileSnapshot::FileSnapshot(int descriptor) : descriptor_(descriptor) {
  const struct stat facts = facts_of(descriptor);
  size_ = S_ISREG(facts.st_mode) ? static_cast<uint64_t>(facts.st_size) : 0;
  set_change(facts, changed_);
}

uint64_t FileSnapshot::current_size() const { return size_of(descriptor_); }

void FileSnapshot::note(uint64_t offset, uint64_t length, uint32_t payload_crc) {
  if (std::has_single_bit(++pieces_)) noted_.push_back({offset, length, payload_crc});
}

Fault FileSnapshot::now(uint64_t end) const {
  const struct stat facts = facts_of(descriptor_);
  const uint64_t size = static_cast<uint64_t>(facts.st_size);
  int64_t changed[2];
  set_change(facts, changed);
  if (size_ == 0 && size == 0) return Fault::none;  // a device, or a virtual file such as those in /proc
  if (size < std::max(size_, end)) return Fault::cut_short;
  if (size == size_ && std::equal(changed, changed + 2, changed_)) return Fault::none;
  const bool same =
      std::all_of(noted_.begin(), noted_.end(), [&](const Noted& one) { return is_there(one); });
  return same ? Fault::none : Fault::written_over;
}

bool FileSnapshot::is_there(const Noted& record) const {
  uint8_t header[kHeaderSize], footer[kFooterSize];
  return read_at(descriptor_, record.offset, header, kHeaderSize) == kHeaderSize &&
         read_at(descriptor_, record.offset + kHeaderSize + record.length, footer, kFooterSize) ==
             kFooterSize &&
         load<uint64_t>(header) == record.length && unmask_crc(load<uint32_t>(footer)) == record.payload_crc;
}

}  // namespace recordkit
