// Which of two ways is the faster one: found out on the way, and again and again, for it may change.
#pragma once

#include <algorithm>

namespace recordkit {

// Work goes the first way, and now and then, for a short stretch, the second. Where that took clearly less it
// stays there, for as long as it does; the first is then tried again ever more rarely. The unit of work is up
// to the user: a stretch has 16 at least.
class PathTuner {
 public:
  // What is worth knowing for more work that may be alike.
  struct alignas(8) Found {  // one word, which is taken and kept at once
    bool second = false;
    float first_pace = 0;
  };

  // `clearly`: the share of the first way's time that the second may take.
  explicit PathTuner(double clearly) : clearly_(clearly) {}

  // Goes on as another one did, and looks soon whether that is right.
  PathTuner(double clearly, Found before)
      : clearly_(clearly), second_(before.second), stretch_(kShortest), first_pace_(before.first_pace) {}

  Found found() const { return {second_, static_cast<float>(first_pace_)}; }

  bool second() const { return second_; }

  // Notes that so much was done, and how long it took, or nothing of that until the stretch ends.
  void add(double work, double seconds = 0) {
    work_ += work;
    seconds_ += seconds;
  }

  // Whether the stretch ends here: then a choice is due.
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
