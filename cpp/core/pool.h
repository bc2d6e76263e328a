// Large buffers that are used again: fresh pages cost more than the checksums of what is read into them.
#pragma once

#include <memory>

#include "core/array.h"

namespace recordkit {

// An empty buffer with room for `size` bytes. A large one comes back here when its last owner goes, and a few
// are kept for the whole process. Safe to call from many threads, and in a child after a fork.
std::shared_ptr<Buffer> pooled_buffer(size_t size);

}  // namespace recordkit
