// Random access: records from known places of files, in any order.
#pragma once

#include <span>

#include "core/files/file_map.h"
#include "core/records/header_scan.h"

namespace recordkit {

// The records at these places, in order, up to the first that is not an intact record of the expected size.
struct Fetched {
  Chunk chunk;
  Fault fault = Fault::none;  // of place number chunk.records.size()
  size_t reads = 0;           // the number of read calls
};

// Reads in file order, coalesces neighbours, puts each record where the caller's order wants it, and checks
// it on arrival. Copies from maps where there are any. Memory grows with what the files really hold, not with
// what `places` claims. Throws std::system_error. REQUIRES: every place.file is less than descriptors.size(),
// and there are as many maps, null or not, or none
Fetched fetch(std::span<const int> descriptors, std::span<const Place> places,
              std::span<const FileMap* const> maps = {});

}  // namespace recordkit
