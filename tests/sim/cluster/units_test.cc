#include "sim/cluster/units.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace ddx::sim {
namespace {

TEST(Rates, AreReadWithTheirUnits) {
  EXPECT_EQ(parse_rate("50GB/s"), 50'000'000'000U);
  EXPECT_EQ(parse_rate("400Gb/s"), 50'000'000'000U);
  EXPECT_EQ(parse_rate("400 Gbps"), 50'000'000'000U);
  EXPECT_EQ(parse_rate("1GiB/s"), 1'073'741'824U);
  EXPECT_EQ(parse_rate("12.5GB/s"), 12'500'000'000U);
  EXPECT_EQ(parse_rate("1B/s"), 1U);
  EXPECT_EQ(parse_rate("8b/s"), 1U);
}

TEST(Rates, WithoutOneAreRefused) {
  for (const char* text : {"", "50", "GB/s", "50 GB", "-1GB/s", "0GB/s", "nanGB/s", "infGB/s", "1e3GB/s", "50gb/s",
                           "50GB/s x", "0.5B/s", "99999999999TB/s", "0x10GB/s"}) {
    EXPECT_THROW(parse_rate(text), Error) << text;
  }
}

TEST(Times, AreReadWithTheirUnits) {
  EXPECT_EQ(parse_time("1us"), 1'000'000);
  EXPECT_EQ(parse_time("500ns"), 500'000);
  EXPECT_EQ(parse_time("0us"), 0);
  EXPECT_EQ(parse_time("1.5 ms"), 1'500'000'000);
  EXPECT_EQ(parse_time("3ps"), 3);
  for (const char* text : {"", "1", "us", "-1us", "1e9s", "2000000s", "1 usec", "nanus"}) {
    EXPECT_THROW(parse_time(text), Error) << text;
  }
}

TEST(Flops, AreReadWithTheirUnits) {
  EXPECT_DOUBLE_EQ(parse_flops("989TFLOP/s"), 989e12);
  EXPECT_DOUBLE_EQ(parse_flops("1.5PFLOP/s"), 1.5e15);
  EXPECT_THROW(parse_flops("989"), Error);
  EXPECT_THROW(parse_flops("0TFLOP/s"), Error);
}

TEST(Units, WhatIsWrittenIsReadAsTheSame) {
  for (const std::uint64_t rate : {1ULL, 999ULL, 1'000ULL, 12'500'000'000ULL, 50'000'000'000ULL, 1'073'741'824ULL,
                                   123'456'789'012ULL, 999'999'999'999'999ULL}) {
    EXPECT_EQ(parse_rate(format_rate(rate)), rate) << format_rate(rate);
  }
  for (const Picos time :
       {Picos{0}, Picos{1}, Picos{600'000}, Picos{1'000'000}, Picos{1'234'567}, Picos{3'000'000'000'000}}) {
    EXPECT_EQ(parse_time(format_time(time)), time) << format_time(time);
  }
  EXPECT_EQ(format_rate(12'500'000'000U), "12.5GB/s");
  EXPECT_EQ(format_time(600'000), "600ns");
}

}  // namespace
}  // namespace ddx::sim
