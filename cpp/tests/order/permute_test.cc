#include "core/order/permute.h"

#include <vector>

#include "support/check.h"

namespace recordkit {
namespace {

struct Case {
  uint64_t count, seed, epoch, salt;
  std::vector<int64_t> indices, images;
};

// As in tests/golden/order.json. They never change.
const std::vector<Case> kGolden = {
    {1, 0, 0, 0, {0}, {0}},
    {2, 1, 0, 0, {0, 1}, {1, 0}},
    {10, 7, 0, 0, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, {1, 0, 9, 5, 7, 3, 6, 8, 2, 4}},
    {10, 7, 1, 0, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, {6, 4, 3, 2, 9, 1, 8, 0, 5, 7}},
    {10, 7, 0, 1, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, {7, 2, 3, 0, 5, 6, 4, 8, 1, 9}},
    {1000, 42, 3, 0, {0, 1, 2, 3, 500, 998, 999}, {496, 589, 796, 672, 196, 95, 557}},
    {1024,
     18446744073709551615u,
     18446744073709551615u,
     18446744073709551615u,
     {0, 1, 1022, 1023},
     {251, 948, 467, 250}},
    {1025, 9223372036854775808u, 5, 9, {0, 1, 1023, 1024}, {341, 835, 927, 594}},
    {1000000, 0, 0, 0, {0, 1, 2, 999998, 999999}, {167395, 154523, 814104, 416261, 441911}},
    {10000000019,
     123456789,
     12,
     34,
     {0, 1, 9999999999, 10000000018},
     {5225166269, 537280854, 510055326, 83543574}},
    {4611686018427387904,
     1,
     2,
     3,
     {0, 1, 2147483648, 4611686018427387903},
     {462574159927105876, 428796373597199839, 2275085608516675046, 1878776123170180305}}};

TEST(the_order_never_changes) {
  for (const Case& golden : kGolden) {
    std::vector<int64_t> images = golden.indices;

    Permutation(golden.count, golden.seed, golden.epoch, golden.salt).apply(images);

    CHECK(images == golden.images);
  }
}

TEST(the_order_of_any_count_holds_every_index_once) {
  for (uint64_t count = 0; count <= 3000; count += count < 1100 ? 1 : 97) {
    std::vector<int64_t> images(count);
    for (uint64_t i = 0; i < count; ++i) images[i] = static_cast<int64_t>(i);

    Permutation(count, count, 1, 2).apply(images);

    std::vector<bool> seen(count);
    for (const int64_t image : images) {
      CHECK(image >= 0 && static_cast<uint64_t>(image) < count && !seen[static_cast<size_t>(image)]);
      seen[static_cast<size_t>(image)] = true;
    }
  }
}

}  // namespace
}  // namespace recordkit
