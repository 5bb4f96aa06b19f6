// Story: evidence of log lines, told line by line: `story.in("a.log").by(3).at(6.9).says(ProcessEnd{...})`.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/finding.h"
#include "traces/model/evidence.h"

namespace ddx::test {

class Story {
 public:
  // The file that the next lines are in; a new one unless it was named before.
  Story& in(const std::string& path) {
    for (std::size_t i = 0; i < evidence_.inputs.size(); ++i) {
      if (evidence_.inputs[i].path == path) return at_input(i);
    }
    Input input;
    input.path = path;
    evidence_.inputs.push_back(input);
    lines_.push_back(0);
    return at_input(evidence_.inputs.size() - 1);
  }
  // These hold for the next line only.
  Story& by(std::int64_t rank) { return next_.rank = RankId(rank), *this; }
  Story& at(double seconds) {  // time of day
    next_.time = static_cast<Nanos>(seconds * 1e9);
    next_.time_of_day = true;
    return *this;
  }
  Story& on(const std::string& host, std::int64_t pid) { return next_.host = host, next_.pid = pid, *this; }
  Story& group(const std::string& name) { return next_.group = name, *this; }
  Story& attempt(std::uint32_t number) { return next_.attempt = number, *this; }
  Story& device(std::int64_t device) { return next_.cuda_device = device, *this; }
  Story& says(LogFact fact, const std::string& text = "line") {
    if (evidence_.inputs.empty()) in("job.log");
    LogEvent event = std::exchange(next_, LogEvent{});
    event.input = InputId(input_);
    event.line = ++lines_[input_];
    event.text = text;
    event.fact = std::move(fact);
    evidence_.events.push_back(std::move(event));
    return *this;
  }
  // Another fact of the line just written.
  Story& also(LogFact fact) {
    LogEvent event = evidence_.events.back();
    event.fact = std::move(fact);
    evidence_.events.push_back(std::move(event));
    return *this;
  }
  Story& world(std::uint32_t size) { return evidence_.trace.world_size = size, *this; }
  // A recorder dump of `rank` that holds the sequence numbers 1..last of the default group, the last one unfinished.
  Story& dump(std::int64_t rank, std::uint32_t last, std::uint32_t world_size, Nanos issued = 0) {
    Input input;
    input.path = "fr/rank_" + std::to_string(rank);
    evidence_.inputs.push_back(input);
    lines_.push_back(0);
    Communicator comm;
    comm.name = evidence_.trace.strings.intern("0");
    for (std::uint32_t r = 0; r < world_size; ++r) comm.members.emplace_back(std::int64_t{r});
    RankRecord record;
    record.rank = RankId(rank);
    record.snapshot = true;
    record.input = InputId(evidence_.inputs.size() - 1);
    record.comms.push_back(evidence_.trace.intern(comm));
    Program program;
    Signature signature;
    signature.kind = OpKind::all_reduce;
    for (std::uint32_t seq = 1; seq <= last; ++seq) {
      Op op;
      op.signature = evidence_.trace.intern(signature);
      op.comm_slot = 0;
      op.seq = seq;
      op.issue = issued + seq;
      op.state = seq < last ? OpState::completed : OpState::scheduled;
      program.append(op);
    }
    record.program = ProgramId(evidence_.trace.programs.size());
    evidence_.trace.programs.push_back(program);
    evidence_.trace.ranks.push_back(record);
    return *this;
  }
  Evidence& evidence() { return evidence_; }

 private:
  Story& at_input(std::size_t index) { return input_ = index, *this; }

  Evidence evidence_;
  LogEvent next_;
  std::size_t input_ = 0;
  std::vector<std::uint64_t> lines_;
};

inline RankSet ranks(std::initializer_list<std::int64_t> numbers) {
  RankSet set;
  for (std::int64_t number : numbers) set.insert(RankId(number));
  return set;
}

// "dead-rank error high 3": a finding in one line, for comparison with what is expected.
inline std::string brief(const Finding& finding) {
  std::string text = finding.code;
  text += ' ';
  text += name_of(finding.severity);
  text += ' ';
  text += name_of(finding.confidence);
  return text + ' ' + finding.ranks.text();
}
inline std::vector<std::string> brief(const std::vector<Finding>& findings) {
  std::vector<std::string> all;
  for (const Finding& finding : findings) all.push_back(brief(finding));
  return all;
}

}  // namespace ddx::test
