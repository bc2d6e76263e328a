// Resizing pictures: each new pixel is a weighted sum of old ones, along one axis after the other. Positions
// are those of TensorFlow 2, with half-pixel centres.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace recordkit {

enum class Resampling : uint8_t {
  nearest,   // the pixel that contains the new one's centre
  bilinear,  // between the two nearest centres, without antialiasing
  area,      // the mean of all pixels it covers
};

// Rows of pixels of `channels` values each. Rows need not be adjacent, so that this may be a part of a
// picture.
template <typename T>
struct Pixels {
  T* data;
  size_t height, width, channels;
  ptrdiff_t row_stride;  // in values; negative for a picture that is upside down
};

// The longest side: beyond it, positions are no longer exact.
inline constexpr size_t kLongestSide = size_t{1} << 24;

// The old pixels along an axis that contribute to a new one.
struct Taps {
  uint32_t first, last;
  float part;        // the share of the last one, if there are no weights; the first has the rest
  uint32_t weights;  // where their weights start
};

struct Axis {
  std::vector<Taps> taps;  // of each new pixel
  std::vector<float> weights;

  bool is_between_two() const { return weights.empty(); }
};

// Sides are at least 1 and at most kLongestSide.
Axis axis_of(Resampling how, size_t from, size_t to);

// Resizes `from` to the size of `to`, and stores value * scale[channel] + shift[channel], for bytes rounded
// and clamped to 0 to 255. `mirrored`: flips left and right. Sides are at least 1 and at most kLongestSide,
// and both have the same channels.
template <typename From, typename To>
void resize(const Pixels<const From>& from, const Pixels<To>& to, Resampling how, bool mirrored,
            const float* scale, const float* shift);

// The last step alone, for rows computed elsewhere: times `scale`, plus `shift`, into a picture.
template <typename To>
class RowWriter {
 public:
  RowWriter(const Pixels<To>& to, const float* scale, const float* shift);
  RowWriter(const RowWriter&) = delete;
  RowWriter& operator=(const RowWriter&) = delete;
  ~RowWriter();  // afterwards other threads may read the picture

  void write(size_t row, const float* values) const;

 private:
  Pixels<To> to_;
  std::vector<float> scale_, shift_;  // one for every value of a row
  bool is_far_ = false;
};

}  // namespace recordkit
