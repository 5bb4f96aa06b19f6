// Takes evidence of a job and judges it, in a child process: a fault there, or a lack of memory, is not the job's.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "live/launch/stacks.h"
#include "live/launch/wrap.h"

namespace ddx::live {

struct Examination {
  pid_t pid = -1;   // of the child; -1: there is none
  int answer = -1;  // a file in memory that it writes
};

// `subjects`: whose stacks are to be kept first, in `folder`; `whole`: what is then to be analyzed.
Examination start_examination(const std::string& folder, const std::string& whole, const std::vector<Subject>& subjects,
                              const std::function<Judgement(const std::string&)>& analyze);
// Of a child that has ended. Closes `answer`.
Judgement take_judgement(Examination& examination);

}  // namespace ddx::live
