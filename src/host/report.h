/* Names in reports, for report.c and deadlock.c: NULL, "?" or SPAN_NONE for what does not exist. */
#ifndef HOST_REPORT_H
#define HOST_REPORT_H

#include "base/text.h"
#include "collective/channel.h"
#include "host/host.h"

const pld_program *report_table(const pypto_worker *w, int32_t program);
const pld_function *report_function(const pypto_worker *w, int32_t program, int32_t function);
const char *report_buffer(const pypto_worker *w, int32_t program, int32_t buffer);
/* "rank 1 (device 5)": rank and device are the same thing twice only when the ids are 0, 1, 2 ... Behind
 * the ranks, "SubWorker 0". */
void report_rank(text *out, const pypto_worker *w, int32_t rank);
/* Those of a mask: "rank 1, rank 4 to rank 63". */
void report_ranks(text *out, const pypto_worker *w, uint64_t ranks);
pypto_span report_span(const pypto_worker *w, int32_t program, int32_t function, int32_t line);
/* The parts that two devices have of a channel, which differ: what each has called. */
void report_disagreement(pypto_status *status, const pypto_worker *w, int32_t program,
                         const int32_t devices[2], const channel_record *const records[2]);

#endif
