// What the pump writes: to the terminal (or whatever wrap's standard output and error are), and to the ranks' logs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "live/launch/line_splitter.h"

namespace ddx::live {

// Who wrote something: a number for each pipe, its rank (-1: the launcher, or a process that is no rank), the stream.
struct Speaker {
  std::uint64_t id = 0;
  std::int32_t rank = -1;
  bool is_error = false;
};

class Display {
 public:
  explicit Display(bool status_line) : has_status_(status_line) {}

  // `skip`: so much of its text was shown by show_rest().
  void show(const Speaker& speaker, const Line& line, std::size_t skip);
  // Of a line whose end has not come.
  void show_rest(const Speaker& speaker, std::string_view text);
  void tell(std::string_view text);
  void set_status(std::string text);
  // Writes what was gathered.
  void flush();

 private:
  void begin(const Speaker& speaker, bool fresh);
  void gather(bool is_error, std::string_view text);
  void write_out();

  bool has_status_;
  bool status_shown_ = false;
  bool closed_[2] = {false, false};  // nobody reads there any more
  std::string status_;
  std::string gathered_;
  bool gathered_error_ = false;
  std::uint64_t open_ = 0;  // whose line the cursor stands in; 0: at the beginning of one
};

// rank_N.log and launcher.log, each line as container runtimes keep them: TIME stdout|stderr F|P TEXT (P: it goes on,
// or was cut).
class Logs {
 public:
  explicit Logs(std::string folder) : folder_(std::move(folder)) {}
  ~Logs();
  Logs(const Logs&) = delete;
  Logs& operator=(const Logs&) = delete;

  void keep(const Speaker& speaker, const Line& line);
  void flush();
  // What went wrong since the last call; empty: nothing.
  std::string take_trouble();

 private:
  struct Log {
    int file = -1;
    bool lost = false;
    std::string gathered;
  };
  Log& log_of(std::int32_t rank);
  void write_out(std::int32_t rank, Log& log);
  std::string_view stamp();

  std::string folder_;
  std::map<std::int32_t, Log> logs_;
  std::string trouble_;
  std::int64_t stamped_ = 0;
  std::string stamp_;
};

}  // namespace ddx::live
