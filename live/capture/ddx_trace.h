/* The recorder's C interface, of libddx_trace.so: what the layers that see calls (torch hook, NCCL interposer, profiler
 * plugin), or a program of the user's own, tell it. Any thread may call any of these; none fails, throws, prints or
 * waits. Where nothing is recorded (DDX_TRACE_DIR is not set, the disk is full, ...) all of them return 0 and do
 * nothing.
 *
 * The first of these calls makes the file DDX_TRACE_DIR/HOST-PID.ddx (traces/capture/record.h). A forked child has
 * its own, from its own first call on. Environment: DDX_TRACE_DIR, the folder; DDX_TRACE_MIB, the size at which the
 * oldest calls are written over (256).
 *
 * Numbers of kinds, element types, reductions, fields, layers and events are those of record.h. */
#ifndef DDX_TRACE_H
#define DDX_TRACE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DDX_TRACE_ABI 1

int ddx_trace_abi(void);
/* 1 where calls are recorded, opening the file if need be. */
int ddx_recording(void);
/* What the process knows of itself by now; -1: leave it. Until then it is what the launcher's environment says. */
void ddx_identify(int32_t rank, int32_t world_size, int32_t local_rank);

/* Of texts and frames: a number to name it by, the same each time. */
uint32_t ddx_text(const char* bytes, size_t length);
/* A place in code. `caller`: the frame it was called from, 0 for none; `line` 0, `address` 0: not known. */
uint32_t ddx_frame(uint32_t caller, uint32_t function, uint32_t file, uint32_t line, uint64_t address);

typedef struct DdxGroupInfo {
  uint32_t size_of; /* sizeof(DdxGroupInfo), as the caller knows it */
  uint8_t layer;
  uint32_t name, description, backend; /* texts */
  uint32_t parent, outer;              /* groups */
  int32_t size, position;              /* -1: not known */
  uint64_t hash;
  int32_t color, key, device; /* device -1: not known */
  const int32_t* ranks;       /* global ranks by position; NULL: not known */
  size_t rank_count;
} DdxGroupInfo;
/* A process group or communicator that this process is a member of. Returns its number; seq counts from 1 in it. */
uint32_t ddx_group(const DdxGroupInfo* info);

typedef struct DdxValues {
  uint8_t field; /* Field */
  size_t count;
  const int64_t* values;
} DdxValues;

typedef struct DdxCallInfo {
  uint32_t size_of; /* sizeof(DdxCallInfo) */
  uint8_t layer, kind, element, reduction;
  uint8_t flags; /* kAsync, kNoCount, kNoEnd */
  uint32_t group;
  int32_t peer;    /* position in the group; -1: none */
  uint32_t site;   /* frame */
  uint64_t count;  /* elements */
  uint64_t stream; /* any value that tells the streams of the process apart; 0: not known */
  uint16_t batch;  /* of ddx_batch(); 0: alone */
  const DdxValues* more;
  size_t more_count;
} DdxCallInfo;
/* A call is about to be made: issued now. Returns its number for the functions below. Until ddx_returned() it is this
 * thread's current call, which calls of inner layers name as the one that made them. */
uint64_t ddx_begin(const DdxCallInfo* info);
/* The library's function returned (in the same thread): its outer call, if any, is current again. status 0: it went
 * well. */
void ddx_returned(uint64_t call, int64_t status);
/* The work itself was seen to start, or to be over; at `when` (ns, CLOCK_MONOTONIC), or now where that is 0. From any
 * thread, in any order; the first word counts. */
void ddx_started(uint64_t call, int64_t when);
void ddx_ended(uint64_t call, int64_t when);
/* The host's wait for it returned: it was over by now. */
void ddx_waited(uint64_t call);
/* Nothing will tell when it is over, though that was not known when it began. */
void ddx_no_end(uint64_t call);

/* This thread's current call, and the group that it was made in; 0: none. */
uint64_t ddx_current(void);
uint32_t ddx_current_group(void);
/* A new number for calls that are posted together. */
uint16_t ddx_batch(void);

/* `group`, `text`, `site`: 0 for none. */
void ddx_event(uint8_t code, uint8_t layer, uint32_t group, uint32_t text, uint32_t site, int64_t value);

#ifdef __cplusplus
}
#endif
#endif
