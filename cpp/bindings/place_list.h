// Places of records, made in places.cc and also used in examples.cc.
#pragma once

#include <vector>

#include "core/records/header_scan.h"

namespace recordkit {

struct PlaceList {
  size_t files;  // how many files the places refer to
  std::vector<Place> places;
};

}  // namespace recordkit
