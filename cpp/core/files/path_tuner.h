// Picks the faster of two implementations at run time, and re-checks now and then.
#pragma once

#include <algorithm>

namespace recordkit {

// Starts with the first way and now and then tries the second for a short stretch. If that is clearly faster,
// the tuner stays with it and tries the first again ever more rarely. Callers choose the unit of work; a
// stretch has at least 16.
class PathTuner {
 public:
  // What one tuner has learned, to start another one with.
  struct alignas(8) Found {  // one word, to be loaded and stored atomically
    bool second = false;
    float first_pace = 0;
  };

  // `clearly`: the second way must take less than this share of the first's time.
  explicit PathTuner(double clearly) : clearly_(clearly) {}

  // Starts from what another tuner found, and checks soon whether that still holds.
  PathTuner(double clearly, Found before)
      : clearly_(clearly), second_(before.second), stretch_(kShortest), first_pace_(before.first_pace) {}

  Found found() const { return {second_, static_cast<float>(first_pace_)}; }

  bool second() const { return second_; }

  // Records work done and the time it took. The time may also be given to choose() for the whole stretch.
  void add(double work, double seconds = 0) {
    work_ += work;
    seconds_ += seconds;
  }

  // Whether the stretch is over: then call choose().
  bool ends() const { return work_ >= stretch_; }

  // Ends the stretch. Returns whether the way changes.
  bool choose(double more_seconds = 0) {
    const double pace = (seconds_ + more_seconds) / work_;
    work_ = seconds_ = 0;
    if (!second_) {
      first_pace_ = pace;
      stretch_ = kShortest;
    } else if (pace >= clearly_ * first_pace_) {
      stretch_ = pause_;
      pause_ = std::min(2 * pause_, kLongest);
      stays_ = stayed_ = 0;
    } else if (stayed_++ < stays_) {
      stretch_ = kLongest;
      return false;
    } else {
      stretch_ = kShortest;
      stays_ = std::clamp(2 * stays_, 1, kMostStays);
      stayed_ = 0;
    }
    second_ = !second_;
    return true;
  }

 private:
  static constexpr double kShortest = 16, kFirst = 64, kLongest = 512;
  static constexpr int kMostStays = 32;
  double clearly_;
  bool second_ = false;
  double work_ = 0, seconds_ = 0, stretch_ = kFirst, pause_ = kFirst;
  double first_pace_ = 0;
  int stays_ = 1, stayed_ = 0;  // long stretches
};

}  // namespace recordkit
