// Records fetched from known places of files, in any order.
#pragma once

#include <span>

#include "core/files/file_map.h"
#include "core/records/header_scan.h"

namespace recordkit {

// The records at these places, in their order, up to the first that is not a sound record of that size.
struct Fetched {
  Chunk chunk;
  Fault fault = Fault::none;  // of place number chunk.records.size()
  size_t reads = 0;           // how often files were read from
};

// They are read in the order of the files, those that are near each other in one go, each into its place in
// the order asked for, and checked as they arrive; what a file's map has is copied from there, where there is
// one. Memory grows with what the files hold, whatever the places say. Throws std::system_error.
// REQUIRES: every place.file is less than descriptors.size(), and there are as many maps, null or not, or
// none
Fetched fetch(std::span<const int> descriptors, std::span<const Place> places,
              std::span<const FileMap* const> maps = {});

}  // namespace recordkit
