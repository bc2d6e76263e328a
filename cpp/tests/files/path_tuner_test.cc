#include "core/files/path_tuner.h"

#include "support/check.h"

namespace recordkit {
namespace {

// Does `units` of work, of which each takes as long as its way says; returns how many went the second way.
template <typename Time>
int work(PathTuner& tuner, int units, Time&& seconds) {
  int second = 0;
  for (int i = 0; i < units; ++i) {
    second += tuner.second();
    tuner.add(1, seconds(tuner.second(), i));
    if (tuner.ends()) tuner.choose();
  }
  return second;
}

TEST(most_work_goes_the_way_that_is_clearly_faster) {
  for (const double second : {0.01, 0.5, 0.79}) {
    PathTuner tuner(0.8);
    CHECK(work(tuner, 10'000, [&](bool is_second, int) { return is_second ? second : 1; }) > 9'700);
  }
  for (const double second : {0.81, 1.0, 5.0}) {
    PathTuner tuner(0.8);
    CHECK(work(tuner, 10'000, [&](bool is_second, int) { return is_second ? second : 1; }) < 500);
  }
}

TEST(what_becomes_faster_or_slower_is_noticed) {
  PathTuner tuner(0.8);
  const auto later_better = [](bool second, int i) { return second ? (i < 3'000 ? 2 : 0.5) : 1; };
  const auto later_worse = [](bool second, int i) { return second ? (i < 3'000 ? 0.5 : 2) : 1; };

  CHECK(work(tuner, 6'000, later_better) > 2'300);
  CHECK(work(tuner, 6'000, later_worse) < 3'900);
}

TEST(one_slow_stretch_does_not_count) {
  PathTuner tuner(0.8);
  // The first way starts slowly, and is the faster one.
  CHECK(work(tuner, 5'000, [](bool second, int i) { return second ? 1.5 : i < 64 ? 3 : 1; }) < 900);
}

TEST(time_may_be_told_at_the_end_of_a_stretch) {
  PathTuner tuner(0.8);
  while (!tuner.ends()) tuner.add(1);
  CHECK(tuner.choose(64));
  CHECK(tuner.second());
  while (!tuner.ends()) tuner.add(1);
  CHECK(!tuner.choose(8));
  CHECK(tuner.second());
}

TEST(the_next_goes_on_as_the_last_did_and_looks_soon) {
  PathTuner good(0.8), bad(0.8);
  work(good, 1'000, [](bool second, int) { return second ? 0.5 : 1; });
  work(bad, 1'000, [](bool second, int) { return second ? 2 : 1; });

  PathTuner again(0.8, good.found());
  CHECK(again.second());
  CHECK(work(again, 200, [](bool second, int) { return second ? 2 : 1; }) < 100);
  again = PathTuner(0.8, bad.found());
  CHECK(!again.second());
  CHECK(work(again, 200, [](bool second, int) { return second ? 0.5 : 1; }) > 100);
}

}  // namespace
}  // namespace recordkit
