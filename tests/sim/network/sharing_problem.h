// Problems of sharing that tests draw at random.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "sim/network/fair_share.h"

namespace ddx::testing {

using sim::kNoCap;
using sim::LinkUse;

struct TestFlow {
  std::vector<LinkUse> uses;
  std::uint64_t cap = kNoCap;
};

inline std::vector<sim::Rate> shares(const std::vector<std::uint64_t>& capacities, const std::vector<TestFlow>& flows) {
  std::vector<sim::FlowDemand> demands;
  for (const TestFlow& flow : flows) demands.push_back({flow.uses, flow.cap});
  return sim::fair_rates(capacities, demands);
}

inline std::vector<double> rates(const std::vector<std::uint64_t>& capacities, const std::vector<TestFlow>& flows) {
  std::vector<double> all;
  for (const sim::Rate& rate : shares(capacities, flows)) all.push_back(bytes_per_second(rate));
  return all;
}

struct Problem {
  std::vector<std::uint64_t> capacities;
  std::vector<TestFlow> flows;
};

inline Problem random_problem(std::mt19937_64& random) {
  Problem problem;
  const std::size_t links = 1 + random() % 12, flows = 1 + random() % 30;
  for (std::size_t link = 0; link < links; ++link) problem.capacities.push_back(1 + random() % 1'000'000'000'000);
  for (std::size_t flow = 0; flow < flows; ++flow) {
    TestFlow& made = problem.flows.emplace_back();
    for (std::uint32_t link = 0; link < links; ++link) {
      if (random() % 3 == 0) made.uses.push_back({link, static_cast<std::uint32_t>(1 + random() % 4)});
    }
    if (made.uses.empty() || random() % 4 == 0) made.cap = random() % 1'000'000'000'000;
  }
  return problem;
}

}  // namespace ddx::testing
