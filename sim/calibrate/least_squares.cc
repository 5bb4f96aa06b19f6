#include "sim/calibrate/least_squares.h"

#include <cmath>
#include <cstddef>

namespace ddx::sim {
namespace {

using Vector = std::vector<double>;

double sum_of_squares(const Vector& v) {
  double sum = 0;
  for (const double x : v) sum += x * x;
  return sum;
}

// The normal equations of a linear least-squares problem: matrix (lower half in use) and right side.
struct Normal {
  std::vector<Vector> matrix;
  Vector right;
};

Normal normal_equations(const Residuals& residuals, const Vector& x, const Vector& at_x) {
  constexpr double kStep = 1e-5;
  const std::size_t n = x.size();
  std::vector<Vector> columns(n);
  Vector above = at_x;
  Vector below = at_x;
  Vector moved = x;
  for (std::size_t i = 0; i < n; ++i) {
    moved[i] = x[i] + kStep;
    residuals(moved, above);
    moved[i] = x[i] - kStep;
    residuals(moved, below);
    moved[i] = x[i];
    columns[i].resize(at_x.size());
    for (std::size_t k = 0; k < at_x.size(); ++k) columns[i][k] = (above[k] - below[k]) / (2 * kStep);
  }
  Normal normal{std::vector<Vector>(n, Vector(n)), Vector(n)};
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j <= i; ++j) {
      for (std::size_t k = 0; k < at_x.size(); ++k) normal.matrix[i][j] += columns[i][k] * columns[j][k];
    }
    for (std::size_t k = 0; k < at_x.size(); ++k) normal.right[i] -= columns[i][k] * at_x[k];
  }
  return normal;
}

// Cholesky; false where the matrix is not positive definite.
bool solve(std::vector<Vector> a, Vector b, Vector& x) {
  const std::size_t n = b.size();
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j <= i; ++j) {
      double sum = a[i][j];
      for (std::size_t k = 0; k < j; ++k) sum -= a[i][k] * a[j][k];
      if (i != j) {
        a[i][j] = sum / a[j][j];
      } else if (sum <= 0) {
        return false;
      } else {
        a[i][i] = std::sqrt(sum);
      }
    }
  }
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t k = 0; k < i; ++k) b[i] -= a[i][k] * b[k];
    b[i] /= a[i][i];
  }
  for (std::size_t i = n; i-- > 0;) {
    for (std::size_t k = i + 1; k < n; ++k) b[i] -= a[k][i] * b[k];
    b[i] /= a[i][i];
  }
  x = std::move(b);
  return true;
}

}  // namespace

std::vector<double> least_squares(const Residuals& residuals, std::vector<double> start,
                                  const LeastSquaresOptions& options) {
  Vector x = std::move(start);
  Vector at_x;
  residuals(x, at_x);
  double best = sum_of_squares(at_x);
  double damping = 1e-3;
  Vector step;
  Vector tried_residuals = at_x;
  for (int round = 0; round < options.most_rounds; ++round) {
    const Normal normal = normal_equations(residuals, x, at_x);
    bool better = false;
    double gain = 0;
    while (!better && damping < 1e12) {
      std::vector<Vector> damped = normal.matrix;
      for (std::size_t i = 0; i < x.size(); ++i) damped[i][i] += damping * (damped[i][i] + 1e-12);
      Vector tried = x;
      if (solve(std::move(damped), normal.right, step)) {
        for (std::size_t i = 0; i < x.size(); ++i) tried[i] += step[i];
        residuals(tried, tried_residuals);
        const double sum = sum_of_squares(tried_residuals);
        if (sum < best) {
          gain = best - sum;
          best = sum;
          x = std::move(tried);
          at_x = tried_residuals;
          better = true;
        }
      }
      damping = better ? damping / 5 : damping * 4;
    }
    if (!better || gain < options.enough * best) break;
  }
  return x;
}

}  // namespace ddx::sim
