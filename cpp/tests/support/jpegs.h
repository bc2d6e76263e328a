// JPEGs built from coefficients, and their pixels by definition.
#pragma once

#include <string>
#include <vector>

#include "core/pictures/resize.h"
#include "support/choices.h"

namespace recordkit {

// A description of a JPEG, every part of which can be chosen.
struct JpegPlan {
  size_t height = 8, width = 8, components = 3;
  size_t across = 1, down = 1;  // blocks of brightness for one of colours
  size_t restart_interval = 0;
  int step = 1;                                // that all coefficients are multiples of
  std::vector<std::vector<int16_t>> blocks{};  // in the order of the file, 64 coefficients in rows each

  size_t units_across() const { return (width + 8 * across - 1) / (8 * across); }
  size_t units_down() const { return (height + 8 * down - 1) / (8 * down); }
  size_t unit() const { return components == 1 ? 1 : across * down + 2; }  // blocks of one
};

// A plan with blocks of every kind: empty ones, full ones, with large values and with long runs of zeros.
JpegPlan chosen_jpeg(Choices& choices);

std::string written(const JpegPlan& plan);

// Usually a valid JPEG, otherwise one with changed segments or bytes.
std::string hostile_jpeg(Choices& choices);

// Its pixels resized, in double precision, [height][width][channels].
std::vector<double> expected_pixels(const JpegPlan& plan, size_t height, size_t width, size_t channels,
                                    Resampling how);

}  // namespace recordkit
