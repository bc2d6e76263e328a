// Pictures made larger or smaller: each new pixel is a weighted sum of old ones, along one axis after the
// other. Positions are those of TensorFlow 2: the centre of a pixel lies at one half.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace recordkit {

enum class Resampling : uint8_t {
  nearest,   // the pixel that the new one's centre lies in
  bilinear,  // between the centres next to it, however many pixels are passed over
  area,      // the mean of all that it covers
};

// Rows of pixels, each of `channels` values side by side; rows may stand anywhere, as those of a part do.
template <typename T>
struct Pixels {
  T* data;
  size_t height, width, channels;
  ptrdiff_t row_stride;  // in values; negative where the picture stands on its head
};

// How many pixels a picture may have a side, so that positions can be told apart.
inline constexpr size_t kLongestSide = size_t{1} << 24;

// The old pixels that a new one is made of along an axis.
struct Taps {
  uint32_t first, last;
  float part;        // of the last one, where there are no weights: the rest is the first's
  uint32_t weights;  // where theirs stand
};

struct Axis {
  std::vector<Taps> taps;  // of each new pixel
  std::vector<float> weights;

  bool is_between_two() const { return weights.empty(); }
};

// Sides are at least 1 and at most kLongestSide.
Axis axis_of(Resampling how, size_t from, size_t to);

// Fills `to`, whose size says what is made of `from`, with value * scale[channel] + shift[channel]: rounded
// and held within 0 to 255 where bytes are asked for. `mirrored`: left and right change places.
// Sides are at least 1 and at most kLongestSide, and both have the same channels.
template <typename From, typename To>
void resize(const Pixels<const From>& from, const Pixels<To>& to, Resampling how, bool mirrored,
            const float* scale, const float* shift);

// The end of it, for rows of values that others have made: times `scale`, plus `shift`, into a picture.
template <typename To>
class RowWriter {
 public:
  RowWriter(const Pixels<To>& to, const float* scale, const float* shift);
  RowWriter(const RowWriter&) = delete;
  RowWriter& operator=(const RowWriter&) = delete;
  ~RowWriter();  // then other threads may be told that the picture is there

  void write(size_t row, const float* values) const;

 private:
  Pixels<To> to_;
  std::vector<float> scale_, shift_;  // for every value of a row
  bool is_far_ = false;
};

}  // namespace recordkit
