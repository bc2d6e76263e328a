// Places of records, found by the one binding and used by the other.
#pragma once

#include <vector>

#include "core/records/header_scan.h"

namespace recordkit {

struct PlaceList {
  size_t files;  // every place is in one of so many
  std::vector<Place> places;
};

}  // namespace recordkit
