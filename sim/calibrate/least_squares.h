// Non-linear least squares for a few dozen unknowns: Levenberg-Marquardt with differences for the derivatives.
#pragma once

#include <functional>
#include <vector>

namespace ddx::sim {

// Writes the residuals at `x`; their number never changes.
using Residuals = std::function<void(const std::vector<double>& x, std::vector<double>& residuals)>;

struct LeastSquaresOptions {
  int most_rounds = 100;
  double enough = 1e-9;  // ends when a round lessens the sum by less than this part of it
};

// The x near `start` at which the sum of squares is least.
std::vector<double> least_squares(const Residuals& residuals, std::vector<double> start,
                                  const LeastSquaresOptions& options = {});

}  // namespace ddx::sim
