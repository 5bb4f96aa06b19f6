#include "sim/calibrate/least_squares.h"

#include <gtest/gtest.h>

#include <cmath>

namespace ddx::sim {
namespace {

using Vector = std::vector<double>;

// y = 3 x + 2 through points that are 1 above and below it in turn: the normal equations give exactly that line.
TEST(LeastSquares, OfALineIsTheClosedForm) {
  const Vector found = least_squares(
      [](const Vector& p, Vector& out) {
        out.clear();
        for (int x = 0; x < 4; ++x) {
          const double y = 3. * x + 2 + (x == 0 || x == 3 ? 1 : -1);
          out.push_back(p[0] * x + p[1] - y);
        }
      },
      {0, 0});
  EXPECT_NEAR(found[0], 3, 1e-6);
  EXPECT_NEAR(found[1], 2, 1e-6);
}

// Rosenbrock's valley: the least is 0 at (1, 1), behind a bend.
TEST(LeastSquares, FollowsABend) {
  const Vector found = least_squares(
      [](const Vector& p, Vector& out) {
        out = {10 * (p[1] - p[0] * p[0]), 1 - p[0]};
      },
      {-1.2, 1});
  EXPECT_NEAR(found[0], 1, 1e-4);
  EXPECT_NEAR(found[1], 1, 1e-4);
}

TEST(LeastSquares, WhatNothingTellsStays) {
  const Vector found = least_squares([](const Vector& p, Vector& out) { out = {p[0] - 5}; }, {1, 7});
  EXPECT_NEAR(found[0], 5, 1e-6);
  EXPECT_NEAR(found[1], 7, 1e-6);
}

TEST(LeastSquares, StaysAtALeast) {
  const Vector found = least_squares([](const Vector& p, Vector& out) { out = {p[0], 2.}; }, {0});
  EXPECT_NEAR(found[0], 0, 1e-9);
}

}  // namespace
}  // namespace ddx::sim
