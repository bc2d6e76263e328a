// Runs every fact, or those whose name holds one of the arguments.
#include <chrono>
#include <cstdio>
#include <exception>
#include <string_view>

#include "support/check.h"

namespace {

bool wanted(std::string_view name, int count, char** parts) {
  for (int i = 1; i < count; ++i)
    if (name.find(parts[i]) != name.npos) return true;
  return count == 1;
}

}  // namespace

int main(int count, char** arguments) {
  const auto start = std::chrono::steady_clock::now();
  int run = 0, failed = 0;
  for (const recordkit::Test& test : recordkit::all_tests()) {
    if (!wanted(test.name, count, arguments)) continue;
    ++run;
    try {
      test.body();
    } catch (const std::exception& error) {
      ++failed;
      std::printf("FAILED %s\n  %s\n", test.name, error.what());
    }
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  std::printf("%d facts, %d do not hold, %.1f s\n", run, failed, took.count());
  return failed != 0 || run == 0;
}
