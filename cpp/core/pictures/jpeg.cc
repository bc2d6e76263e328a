#include "core/pictures/jpeg.h"

#include <algorithm>
#include <cstring>

#include "core/pictures/jpeg_blocks.h"
#include "core/pictures/jpeg_header.h"

#if defined(__x86_64__)
#define RECORDKIT_X86 1
#endif

namespace recordkit {
namespace {

// The decoding state of one component.
struct Plane {
  const HuffmanTable *dc, *ac;
  const float* steps;
  size_t across, down;                        // blocks of a unit, either way
  size_t columns;                             // blocks of a row
  size_t first;                               // index of its first block in a row of units
  const Strips *strips_across, *strips_down;  // null if the component is not wanted
  int32_t predicted;                          // the predicted DC coefficient of the next block
  float* rows;                                // rows of pixels being accumulated
};

// The smallest square that contains the coefficients up to the last one of the stream.
constexpr std::array<uint8_t, kBlockSize> kExtents = [] {
  std::array<uint8_t, kBlockSize> extents{};
  uint8_t extent = 1;
  for (size_t i = 0; i < kBlockSize; ++i) {
    extent = std::max(extent,
                      static_cast<uint8_t>(1 + std::max(kZigzag[i] / kBlockSide, kZigzag[i] % kBlockSide)));
    extents[i] = extent;
  }
  return extents;
}();

// Where the blocks of a row of units go.
struct Blocks {
  int16_t* coefficients;  // all zero
  uint8_t* extents;
};

RECORDKIT_INLINE bool read_block(BitStream& bits, Plane& plane, int16_t* block, uint8_t& extent) {
  int32_t difference;
  if (!plane.dc->read_first(bits, difference)) return false;
  plane.predicted += difference;
  const int last = plane.ac->read_others(bits, block);
  block[0] = static_cast<int16_t>(plane.predicted);
  if (last < 0 || bits.bits_left() < 0 || block[0] != plane.predicted) return false;
  extent = kExtents[static_cast<size_t>(last)];
  return true;
}

// Reads units from `begin` to `end` of a row.
RECORDKIT_INLINE bool read_units(BitStream& stream, std::span<Plane> planes, size_t begin, size_t end,
                                 Blocks to) {
  BitStream bits = stream;  // a local copy, to stay in registers
  for (size_t unit = begin; unit < end; ++unit)
    for (Plane& plane : planes)
      for (size_t i = 0; i < plane.down; ++i)
        for (size_t j = 0; j < plane.across; ++j) {
          const size_t place = plane.first + i * plane.columns + unit * plane.across + j;
          if (!read_block(bits, plane, to.coefficients + place * kBlockSize, to.extents[place])) return false;
        }
  stream = bits;
  return true;
}

// Converts a row of pixels: YCbCr as floats around zero to RGB from 0 to 255, or grey.
RECORDKIT_INLINE void mix(const float* __restrict brightness, const float* __restrict blue,
                          const float* __restrict red, size_t width, size_t channels, float* __restrict to) {
  const auto within = [](float value) { return std::min(255.0f, std::max(0.0f, value)); };
  if (!blue) {
    for (size_t i = 0; i < width; ++i)
      for (size_t channel = 0; channel < channels; ++channel)
        to[i * channels + channel] = within(brightness[i] + 128);
    return;
  }
  for (size_t i = 0; i < width; ++i) {
    const float grey = brightness[i] + 128;
    to[3 * i] = within(grey + 1.402f * red[i]);
    to[3 * i + 1] = within(grey - 0.344136286f * blue[i] - 0.714136286f * red[i]);
    to[3 * i + 2] = within(grey + 1.772f * blue[i]);
  }
}

// For newer processors, and for all.
struct Way {
  bool (*read_units)(BitStream&, std::span<Plane>, size_t begin, size_t end, Blocks);
  void (*mix)(const float* brightness, const float* blue, const float* red, size_t width, size_t channels,
              float* to);
};

constexpr Way kPortable = {
    [](BitStream& bits, std::span<Plane> planes, size_t begin, size_t end, Blocks to) {
      return read_units(bits, planes, begin, end, to);
    },
    [](const float* brightness, const float* blue, const float* red, size_t width, size_t channels,
       float* to) { mix(brightness, blue, red, width, channels, to); }};

#if RECORDKIT_X86
#define RECORDKIT_TARGET_AVX __attribute__((target("avx2,bmi,bmi2")))

constexpr Way kAvx = {
    [](BitStream& bits, std::span<Plane> planes, size_t begin, size_t end, Blocks to)
        RECORDKIT_TARGET_AVX { return read_units(bits, planes, begin, end, to); },
    [](const float* brightness, const float* blue, const float* red, size_t width, size_t channels, float* to)
        RECORDKIT_TARGET_AVX { mix(brightness, blue, red, width, channels, to); }};

bool has_avx() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
}
#else
constexpr Way kAvx = kPortable;

bool has_avx() { return false; }
#endif

// What the matrices depend on.
struct Shape {
  size_t height, width, wanted_height, wanted_width, across, down;
  Resampling how;

  bool operator==(const Shape&) const = default;
};

}  // namespace

class JpegDecoder::Work {
 public:
  explicit Work(bool is_portable)
      : is_portable_(is_portable || !has_avx()), way_(is_portable_ ? kPortable : kAvx) {}

  template <typename To>
  bool decode(Bytes file, const Pixels<To>& to, Resampling how, const float* scale, const float* shift) {
    if (!read_jpeg_header(file, header_) || (to.channels != 1 && to.channels != 3) ||
        to.height > header_.height || to.width > header_.width ||
        !set_up(to.height, to.width, to.channels, how))
      return false;
    const RowWriter<To> writer(to, scale, shift);
    std::vector<float> mixed(to.width * to.channels);
    size_t written = 0;
    for (size_t row = 0; row < units_down_; ++row) {
      if (!read_row()) return false;
      add_row(row);
      for (const size_t end = row + 1 < units_down_ ? first_of(row + 1) : to.height; written < end;
           ++written) {
        const auto values = [&](size_t plane) {
          return plane < planes_.size() && planes_[plane].rows ? row_of(planes_[plane], written) : nullptr;
        };
        way_.mix(values(0), values(1), values(2), to.width, to.channels, mixed.data());
        writer.write(written, mixed.data());
        for (size_t plane = 0; plane < 3; ++plane)
          if (float* const used = values(plane)) std::fill_n(used, stride_, 0.0f);
      }
    }
    return bits_.bits_left() < 8 && marker_ == 0xd9;
  }

 private:
  // False if the header claims more than its bytes can hold.
  bool set_up(size_t height, size_t width, size_t channels, Resampling how) {
    const JpegComponent& whole = header_.components[0];
    const size_t side_across = kBlockSide * whole.across, side_down = kBlockSide * whole.down;
    units_across_ = (header_.width + side_across - 1) / side_across;
    units_down_ = (header_.height + side_down - 1) / side_down;
    size_t blocks = 0;  // of a row of units
    for (const JpegComponent& each : header_.components) blocks += units_across_ * each.across * each.down;
    // A block takes at least two bits, so no header can claim memory out of proportion to the file.
    if (blocks * units_down_ > 4 * header_.scan.size()) return false;
    make_strips({header_.height, header_.width, height, width, whole.across, whole.down, how});
    make_planes(channels);
    stride_ = width + kBlockSide * 3;
    depth_ = 1;
    for (size_t row = 0; row < units_down_; ++row)
      depth_ = std::max(depth_, end_of(row) - std::min(end_of(row), first_of(row)));
    rows_.assign(planes_.size() * depth_ * stride_, 0);
    for (size_t i = 0; i < planes_.size(); ++i)
      planes_[i].rows = planes_[i].strips_down ? rows_.data() + i * depth_ * stride_ : nullptr;
    coefficients_.resize(blocks * kBlockSize);
    extents_.resize(blocks);
    rest_ = header_.scan;
    if (bytes_.size() < rest_.size() + BitStream::kBehind) bytes_.resize(rest_.size() + BitStream::kBehind);
    units_left_ = 0;
    restarts_ = 0;
    return true;
  }

  void make_strips(const Shape& shape) {
    if (shape == shape_) return;
    shape_ = shape;
    const Axis across = axis_of(shape.how, shape.width, shape.wanted_width);
    const Axis down = axis_of(shape.how, shape.height, shape.wanted_height);
    for (const bool is_colour : {false, true}) {
      const size_t by_across = is_colour ? shape.across : 1, by_down = is_colour ? shape.down : 1;
      const size_t samples_across = (shape.width + by_across - 1) / by_across;
      // Like libjpeg: in very narrow pictures, colours are repeated.
      const bool is_smooth = samples_across > 2 || by_across == 1;
      across_[is_colour] = strips_of(across, Direction::across, samples_across,
                                     units_across_ * shape.across / by_across, by_across == 2, is_smooth);
      down_[is_colour] = strips_of(down, Direction::down, (shape.height + by_down - 1) / by_down,
                                   units_down_ * shape.down / by_down, by_down == 2, is_smooth);
    }
  }

  void make_planes(size_t channels) {
    planes_.clear();
    size_t first = 0;
    for (const JpegComponent& each : header_.components) {
      const bool is_colour = !planes_.empty(), is_wanted = planes_.size() < channels;
      const size_t columns = units_across_ * each.across;
      planes_.push_back({&header_.dc[each.dc], &header_.ac[each.ac], header_.steps[each.steps].data(),
                         each.across, each.down, columns, first, is_wanted ? &across_[is_colour] : nullptr,
                         is_wanted ? &down_[is_colour] : nullptr, 0, nullptr});
      first += columns * each.down;
    }
  }

  // The rows of pixels that a row of units contributes to.
  size_t first_of(size_t row) const {
    size_t first = shape_.wanted_height;
    for (const Plane& plane : planes_)
      if (plane.strips_down)
        first = std::min<size_t>(first, plane.strips_down->blocks[row * plane.down].first);
    return first;
  }
  size_t end_of(size_t row) const {
    size_t end = 0;
    for (const Plane& plane : planes_)
      for (size_t i = 0; plane.strips_down && i < plane.down; ++i) {
        const Strips::Strip strip = plane.strips_down->blocks[row * plane.down + i];
        end = std::max<size_t>(end, strip.first + strip.count);
      }
    return end;
  }

  float* row_of(const Plane& plane, size_t number) const { return plane.rows + number % depth_ * stride_; }

  // Takes the bytes up to the next marker, without stuffing.
  bool next_part() {
    uint8_t* to = bytes_.data();
    for (marker_ = 0; marker_ == 0;) {
      const auto* const found = static_cast<const uint8_t*>(std::memchr(rest_.data(), 0xff, rest_.size()));
      if (!found || found + 1 == rest_.data() + rest_.size()) return false;
      const auto size = static_cast<size_t>(found - rest_.data());
      std::memcpy(to, rest_.data(), size);
      to += size;
      *to++ = 0xff;
      marker_ = found[1];
      rest_ = rest_.subspan(size + 2);
    }
    --to;
    bits_ = BitStream({bytes_.data(), to});
    std::memset(to, 0, BitStream::kBehind);
    return true;
  }

  // Starts the first part, or the next one if the previous one ended properly.
  bool restart() {
    if (restarts_ > 0 && (bits_.bits_left() >= 8 || marker_ != 0xd0 + (restarts_ - 1) % 8)) return false;
    ++restarts_;
    for (Plane& plane : planes_) plane.predicted = 0;
    units_left_ = header_.restart_interval ? header_.restart_interval : units_across_ * units_down_;
    return next_part();
  }

  bool read_row() {
    std::fill(coefficients_.begin(), coefficients_.end(), int16_t{0});
    for (size_t unit = 0; unit < units_across_;) {
      if (units_left_ == 0 && !restart()) return false;
      const size_t count = std::min(units_across_ - unit, units_left_);
      if (!way_.read_units(bits_, planes_, unit, unit + count, {coefficients_.data(), extents_.data()}))
        return false;
      unit += count;
      units_left_ -= count;
    }
    return true;
  }

  void add_row(size_t row) {
    for (const Plane& plane : planes_)
      for (size_t i = 0; plane.rows && i < plane.down; ++i) {
        const size_t number = row * plane.down + i, first = plane.first + i * plane.columns;
        const Strips::Strip strip = plane.strips_down->blocks[number];
        float* to[kMostStrip];
        for (size_t k = 0; k < strip.count; ++k) to[k] = row_of(plane, strip.first + k);
        add_blocks({plane.strips_across->blocks,
                    plane.strips_across->matrices.data(),
                    plane.strips_across->stride,
                    coefficients_.data() + first * kBlockSize,
                    extents_.data() + first,
                    plane.steps,
                    plane.strips_down->matrices.data() + number * plane.strips_down->stride * kBlockSide,
                    {to, strip.count}},
                   is_portable_);
      }
  }

  bool is_portable_;
  Way way_;
  JpegHeader header_;
  Shape shape_{};
  std::array<Strips, 2> across_, down_;  // for brightness and colours
  std::vector<Plane> planes_;
  size_t units_across_ = 0, units_down_ = 0;

  Bytes rest_;                  // of the file
  std::vector<uint8_t> bytes_;  // of one part
  BitStream bits_{Bytes()};
  uint8_t marker_ = 0;  // the marker after it
  size_t units_left_ = 0, restarts_ = 0;

  std::vector<int16_t> coefficients_;  // of a row of units
  std::vector<uint8_t> extents_;
  std::vector<float> rows_;  // of pixels: the last `depth_` of each component, as a ring
  size_t depth_ = 1, stride_ = 0;
};

JpegDecoder::JpegDecoder(bool is_portable) : work_(std::make_unique<Work>(is_portable)) {}

JpegDecoder::~JpegDecoder() = default;

template <typename To>
bool JpegDecoder::decode(Bytes file, const Pixels<To>& to, Resampling how, const float* scale,
                         const float* shift) {
  return work_->decode(file, to, how, scale, shift);
}

template bool JpegDecoder::decode(Bytes, const Pixels<uint8_t>&, Resampling, const float*, const float*);
template bool JpegDecoder::decode(Bytes, const Pixels<float>&, Resampling, const float*, const float*);

}  // namespace recordkit
