/* Collectives: operations that all ranks of a domain take part in. Included by pld.h.
 *
 * A collective may be called from an in-core kernel. Every rank of the domain calls the same collectives
 * on one signal in the same order with the same operands; that is checked, and a rank that differs ends the
 * call with an error that names both places. Data is updated in windows, in place.
 *
 * Signal. An INT32 window of at least one cell per rank, packed, all zero; it names the collective's line of
 * communication, so that collectives on different signals do not get in each other's way. The cells are
 * checked and stay zero. Its buffer must be marked in the program's table (pld_buffer_info.collectives).
 *
 * Entry and exit. No rank touches a window of a peer before that peer has entered the collective, and when a
 * call returns, no rank will touch mine any more and all that others write into it is there. So a window can be
 * filled before a collective and used, overwritten or passed to the next one behind it, without a barrier. What a
 * rank has pushed into windows of peers before it enters takes part. When a peer has its result is known to the
 * peer: who reads or writes a slice of another rank behind a collective needs a barrier or a signal.
 *
 * Results are the same bits on all ranks, in all runs and modes: an element is folded in the order of ranks,
 * starting from the value of rank 0. Floats of 16 bits are folded in FP32 and rounded once. A NaN comes out as
 * the quiet NaN without payload; in a maximum or minimum NaN wins, and +0 is larger than -0. Integers wrap. */
#ifndef PYPTO_PLD_COLLECTIVES_H
#define PYPTO_PLD_COLLECTIVES_H

#include <pypto/pld.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Values are part of the interface: append only. */
typedef enum pld_reduce_op { PLD_SUM = 0, PLD_MAX = 1, PLD_MIN = 2, PLD_PROD = 3 } pld_reduce_op;

/* Which shape the signal has: [P, 1] or [P] (mesh), [2(P-1), P] (ring), or either. All ranks say the same. How
 * the data moves follows from its size. */
typedef enum pld_mode { PLD_MESH = 0, PLD_RING = 1, PLD_AUTO = 2 } pld_mode;

/* Every element of `target` becomes the fold of the elements of all ranks. Of a view that counts in part, these
 * elements, the same ones on all ranks; others are not touched. */
PYPTO_API void pld_allreduce(pld_core *core, const pld_tensor *target, const pld_tensor *signal,
                             pld_reduce_op op, pld_mode mode);

/* Returns when all ranks have called it; what each did to windows before is visible to all behind it. */
PYPTO_API void pld_barrier(pld_core *core, const pld_tensor *signal);

/* `target` becomes what it is on rank `root`. */
PYPTO_API void pld_broadcast(pld_core *core, const pld_tensor *target, const pld_tensor *signal,
                             int64_t root);

/* Row s of `target` [P, n] becomes `local` [1, n], any tensor, of rank s. */
PYPTO_API void pld_allgather(pld_core *core, const pld_tensor *local, const pld_tensor *target,
                             const pld_tensor *signal);

/* On rank r, row r of `target` [P, n] becomes the fold of row r of all ranks; other rows stay as they are. */
PYPTO_API void pld_reduce_scatter(pld_core *core, const pld_tensor *target,
                                  const pld_tensor *signal, pld_reduce_op op);

/* On rank r, row s of `target` [P, n] becomes row r of `input` [P, n], any tensor, of rank s. */
PYPTO_API void pld_all_to_all(pld_core *core, const pld_tensor *input, const pld_tensor *target,
                              const pld_tensor *signal);

/* On rank r, block s (rows s * m up to (s + 1) * m, m = rows / P) of `target` becomes block r of `input` of
 * rank s, and recv_counts[s, 0], an INT32 window, becomes send_counts[r] of rank s: how many of its rows mean
 * something. A count above m becomes m; a negative one is an error. */
PYPTO_API void pld_all_to_all_v(pld_core *core, const pld_tensor *input, const pld_tensor *target,
                                const pld_tensor *signal, const pld_tensor *send_counts,
                                const pld_tensor *recv_counts);

#define pld_allreduce(core, ...) (pld_line(core, __LINE__), pld_allreduce(core, __VA_ARGS__))
#define pld_barrier(core, ...) (pld_line(core, __LINE__), pld_barrier(core, __VA_ARGS__))
#define pld_broadcast(core, ...) (pld_line(core, __LINE__), pld_broadcast(core, __VA_ARGS__))
#define pld_allgather(core, ...) (pld_line(core, __LINE__), pld_allgather(core, __VA_ARGS__))
#define pld_reduce_scatter(core, ...) \
    (pld_line(core, __LINE__), pld_reduce_scatter(core, __VA_ARGS__))
#define pld_all_to_all(core, ...) (pld_line(core, __LINE__), pld_all_to_all(core, __VA_ARGS__))
#define pld_all_to_all_v(core, ...) (pld_line(core, __LINE__), pld_all_to_all_v(core, __VA_ARGS__))

#ifdef __cplusplus
}
#endif
#endif
