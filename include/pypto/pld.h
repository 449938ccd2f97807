/* The device API: what in-core kernels and per-device wrappers call, generated from the DSL or
 * written by hand in C. Both kinds see exactly these functions.
 *
 * The model. A program runs on a set of ranks. Every rank has the same *windows*: blocks of memory
 * at the same offset in each rank's part of a symmetric heap. A kernel reads and writes its own
 * slice of a window with pld_load and pld_store, a peer's slice with pld_remote_load and
 * pld_remote_store (tiles) or pld_get and pld_put (tensors), and orders itself against peers with signals: pld_notify adds to (or sets) one INT32 cell of a peer's
 * window, pld_wait blocks until a cell of the own window satisfies a comparison.
 *
 * Memory model. pld_notify releases everything that the task did before it; a pld_wait that returns
 * acquires everything released before the notifies that produced the value it saw.
 *
 * Errors. A call that fails (an index outside a window, a peer that does not exist, a call that was
 * cancelled) does NOT return: it records the error and leaves the task for good. A kernel must
 * therefore own nothing but its scratch memory: no malloc, no open file, no lock across a call.
 *
 * Units. Shapes, offsets and extents count elements; sizes named `bytes` count bytes.
 *
 * Threads. A pld_core belongs to one task and may only be used by that task.
 *
 * Script lines. Each call notes the line it stands on (__LINE__, which `#line` maps to the DSL
 * script), so that errors, deadlock reports and crash reports name it. */
#ifndef PYPTO_PLD_H
#define PYPTO_PLD_H

#include <pypto/pld_small.h>
#include <pypto/types.h>

#ifdef __cplusplus
#include <initializer_list>
extern "C" {
#endif

/* One running task: the handle that every device call takes first. Opaque. */
typedef struct pld_core pld_core;

/* The ranks that share a set of windows, as one of them sees it. */
typedef struct pld_comm {
    int32_t rank;   /* my position in the domain, 0 <= rank < nranks */
    int32_t nranks; /* ranks in the domain */
    /* Logical device of each rank, ascending. */
    uint8_t devices[PYPTO_MAX_RANKS];
} pld_comm;

/* One window buffer as one rank sees it. Filled by the runtime; kernels only read it. */
typedef struct pld_window {
    const pld_comm *comm;
    char *base;        /* first byte of my slice */
    char *device_base; /* first byte of the same buffer on device 0 */
    int64_t stride;    /* bytes from a device's slice to the next device's */
    int64_t bytes;     /* logical size of the buffer on each rank */
    int32_t buffer;    /* index of the allocation in pld_program.buffers, for reports */
    int32_t channels;  /* of collectives, behind the buffer: see pld_buffer_info */
} pld_window;

/* A typed view of memory: a tensor that the host passed, or (window != NULL) my slice of a window.
 * Row-major unless the strides say otherwise.
 *
 * A view may count in part only, from its origin: `valid` elements along each dimension, which is all that
 * is read of it. It may also reach over the end of its memory: `declared` is then the shape that a program
 * sees, and `shape` what of it is there, which bounds every access. Both are set where `partial` is, and
 * valid <= shape <= declared; else all three are `shape`. */
typedef struct pld_tensor {
    char *data;               /* element [0, 0, ...] */
    const pld_window *window; /* NULL for memory that has no peers */
    int32_t dtype;            /* pypto_dtype */
    int32_t ndim;
    int64_t shape[PYPTO_MAX_DIMS];
    int64_t stride[PYPTO_MAX_DIMS]; /* in elements */
    bool partial;
    int64_t declared[PYPTO_MAX_DIMS];
    int64_t valid[PYPTO_MAX_DIMS];
} pld_tensor;

/* The shape of a view as the program sees it, and what counts of it. */
static inline const int64_t *pld_extents(const pld_tensor *tensor)
{
    return tensor->partial ? tensor->declared : tensor->shape;
}
static inline const int64_t *pld_valid(const pld_tensor *tensor)
{
    return tensor->partial ? tensor->valid : tensor->shape;
}

typedef enum pld_notify_op { PLD_ATOMIC_ADD = 0, PLD_SET = 1 } pld_notify_op;
typedef enum pld_wait_cmp { PLD_EQ = 0, PLD_GE = 1 } pld_wait_cmp;

/* What a store or transfer does to the elements that it reaches: replaces them, or adds to each
 * atomically (all element types but BOOL; integers wrap; the order of adds is not defined). */
typedef enum pld_atomic { PLD_PLAIN = 0, PLD_ADD = 1 } pld_atomic;

/* What a wrapper or host function passes to another function: one of the three. */
typedef enum pld_arg_kind { PLD_ARG_TENSOR, PLD_ARG_INT, PLD_ARG_FLOAT } pld_arg_kind;

typedef struct pld_arg {
    pld_arg_kind kind;
    const pld_tensor *tensor; /* borrowed for the call that it is passed to */
    int64_t integer;
    double real;
} pld_arg;

/* Offsets, extents and arguments are written in place: PLD_AT(0, r), PLD_EXTENTS(1, 256). The list
 * lives as long as the call that it is passed to. */
#ifdef __cplusplus
#define PLD_LIST(type, ...) (std::initializer_list<type>{__VA_ARGS__}.begin())
#else
#define PLD_LIST(type, ...) ((const type[]){__VA_ARGS__})
#endif
#define PLD_AT(...) PLD_LIST(int64_t, __VA_ARGS__)
#define PLD_EXTENTS(...) PLD_LIST(int64_t, __VA_ARGS__)
#define PLD_ARGS(...) PLD_LIST(pld_arg, __VA_ARGS__)
#define PLD_TENSOR(pointer)               \
    {                                     \
        PLD_ARG_TENSOR, (pointer), 0, 0.0 \
    }
#define PLD_INT(value)                  \
    {                                   \
        PLD_ARG_INT, NULL, (value), 0.0 \
    }
#define PLD_FLOAT(value)                \
    {                                   \
        PLD_ARG_FLOAT, NULL, 0, (value) \
    }

/* Notes the script line that the task is at. The calls below do it themselves. */
PYPTO_API void pld_line(pld_core *core, int32_t line);

/* Leaves the task if its call has been cancelled; otherwise returns at once. Every device call asks
 * this first; a loop that computes for long without any other device call asks it here, so that
 * Ctrl-C can end it. */
PYPTO_API void pld_poll(pld_core *core);

/* Address of this task's scratch memory, 64-byte aligned. Its size is pld_function.scratch_bytes;
 * its content is undefined when the task starts. Valid until the task ends. */
PYPTO_API void *pld_scratch(pld_core *core);

/* The communication domain of a window-bound tensor; fails for a tensor without a window.
 * Valid until the task ends. */
PYPTO_API const pld_comm *pld_get_comm(pld_core *core, const pld_tensor *tensor);

/* A view of the same storage under another packed row-major shape of the same dtype: what a callee
 * that declares a window parameter sees. Fails when the view is larger than the window. */
PYPTO_API pld_tensor pld_view(pld_core *core, const pld_tensor *tensor, int32_t ndim,
                              const int64_t *shape);

/* A view of the part of `extents` elements at `offsets`, one entry of each per dimension; one whose extent
 * is PLD_DROP is an index, and leaves no dimension. Fails when the part leaves the tensor. */
#define PLD_DROP INT64_MIN
PYPTO_API pld_tensor pld_part(pld_core *core, const pld_tensor *tensor, const int64_t *offsets,
                              const int64_t *extents);

/* pld_part of which only `valid` elements count (NULL: all), as far as they count in the tensor. That box
 * must lie inside the tensor; with `clamp` what does not, does not count. The rest of the part may reach
 * over the tensor's end. */
PYPTO_API pld_tensor pld_part_valid(pld_core *core, const pld_tensor *tensor,
                                    const int64_t *offsets, const int64_t *extents,
                                    const int64_t *valid, bool clamp);

/* The view with all that is there of it counting: what it is when something was written through it. */
PYPTO_API pld_tensor pld_whole(const pld_tensor *tensor);

/* Copies the box of `extents` at `offsets` (one entry per dimension of `source`) into `tile`,
 * packed row-major. Fails when the box leaves the tensor. */
PYPTO_API void pld_load(pld_core *core, void *tile, const pld_tensor *source,
                        const int64_t *offsets, const int64_t *extents);

/* The reverse: copies the packed tile into the box of `target`. */
PYPTO_API void pld_store(pld_core *core, const void *tile, const pld_tensor *target,
                         const int64_t *offsets, const int64_t *extents);

/* pld_load from rank `peer`'s slice of the window that `source` views. `peer` may be my own rank.
 */
PYPTO_API void pld_remote_load(pld_core *core, void *tile, const pld_tensor *source, int64_t peer,
                               const int64_t *offsets, const int64_t *extents);

/* Writes the packed tile into the box of rank `peer`'s slice of the window that `target` views, or the part
 * of `valid` elements from its origin along each dimension (NULL: all). The tile may be used again at
 * once. The peer sees the bytes when it has waited for a pld_notify that follows. */
PYPTO_API void pld_remote_store(pld_core *core, const void *tile, const pld_tensor *target,
                                int64_t peer, const int64_t *offsets, const int64_t *extents,
                                const int64_t *valid, pld_atomic atomic);

/* Copies `source`, a tensor or my slice of a window, into rank `peer`'s slice of the window that `target`
 * views: all of it, or (extents != NULL) the box of `extents` from src_offsets to dst_offsets, where
 * NULL is the origin. Both have one rank and element type; for all of it also one shape. The source may
 * be used again at once. The peer sees the bytes when it has waited for a pld_notify that follows. */
PYPTO_API void pld_put(pld_core *core, const pld_tensor *target, int64_t peer,
                       const pld_tensor *source, const int64_t *dst_offsets,
                       const int64_t *src_offsets, const int64_t *extents, pld_atomic atomic);

/* The reverse: copies from rank `peer`'s slice of the window that `source` views into `target`, a tensor or
 * my slice of a window. The bytes are there when the call returns. */
PYPTO_API void pld_get(pld_core *core, const pld_tensor *target, int64_t peer,
                       const pld_tensor *source, const int64_t *dst_offsets,
                       const int64_t *src_offsets, const int64_t *extents);

/* pld_assemble into rank `peer`'s slice: a tensor goes into the box at `offsets`; missing leading axes
 * count as 1. */
PYPTO_API void pld_remote_assemble(pld_core *core, const pld_tensor *target, int64_t peer,
                                   const pld_tensor *source, const int64_t *offsets,
                                   pld_atomic atomic);

/* pld_load of a part of the tile: `valid` elements from the origin along each dimension (NULL: all),
 * or with `clamp` the part of them that lies inside the tensor. The rest of the tile becomes 0.
 * What does not count of the source is not loaded either. `loaded` receives the extents, one per dimension. */
PYPTO_API void pld_load_part(pld_core *core, void *tile, const pld_tensor *source,
                             const int64_t *offsets, const int64_t *extents, const int64_t *valid,
                             bool clamp, int64_t *loaded);

/* pld_store of the part of a tile of `extents` that `valid` describes. */
PYPTO_API void pld_store_part(pld_core *core, const void *tile, const pld_tensor *target,
                              const int64_t *offsets, const int64_t *extents, const int64_t *valid);

/* pld_store_part that adds to what is there, each element atomically. */
PYPTO_API void pld_store_add(pld_core *core, const void *tile, const pld_tensor *target,
                             const int64_t *offsets, const int64_t *extents, const int64_t *valid);

/* pld_remote_load of a part, as in pld_load_part. */
PYPTO_API void pld_remote_load_part(pld_core *core, void *tile, const pld_tensor *source,
                                    int64_t peer, const int64_t *offsets, const int64_t *extents,
                                    const int64_t *valid, int64_t *loaded);

/* A view of the same elements under another shape; fails unless the tensor is packed and has as many. Of a
 * view that counts in part the same elements count, which must be a box under both shapes. */
PYPTO_API pld_tensor pld_reshape(pld_core *core, const pld_tensor *tensor, int32_t ndim,
                                 const int64_t *shape);

/* The same with `valid` elements along each dimension counting (NULL: pld_reshape). */
PYPTO_API pld_tensor pld_reshape_valid(pld_core *core, const pld_tensor *tensor, int32_t ndim,
                                       const int64_t *shape, const int64_t *valid);

/* Copies a tensor, as far as it counts, into the box of `target` at `offsets`; missing leading axes count as 1. */
PYPTO_API void pld_assemble(pld_core *core, const pld_tensor *target, const pld_tensor *source,
                            const int64_t *offsets);

/* The same, adding to what is there, each element atomically. */
PYPTO_API void pld_assemble_add(pld_core *core, const pld_tensor *target, const pld_tensor *source,
                                const int64_t *offsets);

/* Fills `target` with `source`, a tensor or packed tile of the same rank and element type. Along each dimension
 * it has as many elements as target, or one, which is repeated. */
PYPTO_API void pld_expand_clone(pld_core *core, const pld_tensor *target, const pld_tensor *source);
PYPTO_API void pld_expand_clone_tile(pld_core *core, const pld_tensor *target, const void *tile,
                                     const int64_t *extents);

/* Copies the box of `extents` at `offsets` of a tile of `shape` into the packed `tile`; elements have
 * `width` bytes. The part form also finds what of it is valid, `wanted` at most (NULL: no limit). */
PYPTO_API void pld_tile_slice(pld_core *core, void *tile, const void *source, int64_t width,
                              int32_t ndim, const int64_t *shape, const int64_t *extents,
                              const int64_t *offsets);
PYPTO_API void pld_tile_slice_part(pld_core *core, void *tile, const void *source, int64_t width,
                                   int32_t ndim, const int64_t *shape, const int64_t *extents,
                                   const int64_t *offsets, const int64_t *valid,
                                   const int64_t *wanted, int64_t *found);

/* The reverse: copies the packed tile of `extents` into the box of `target`. */
PYPTO_API void pld_tile_assemble(pld_core *core, void *target, const void *tile, int64_t width,
                                 int32_t ndim, const int64_t *shape, const int64_t *extents,
                                 const int64_t *offsets);

/* A new packed tensor of this rank, every element `value`; lives until the dispatch ends, or
 * pld_release_tensor(). Fails when the machine does not have the memory. */
PYPTO_API pld_tensor pld_create_tensor(pld_core *core, int32_t dtype, int32_t ndim,
                                       const int64_t *shape, double value);

/* The program uses a tensor of pld_create_tensor(), and views of it, no more, tasks apart: its memory is free
 * for others when those that are submitted now are over. */
PYPTO_API void pld_release_tensor(pld_core *core, const pld_tensor *tensor);

/* Prints lines to the standard output, the rank in front of each. The pieces of a line are collected until
 * pld_print_end(); nothing else may be called meanwhile. `format` has one conversion, of long long or double. */
PYPTO_API void pld_print_text(pld_core *core, const char *text);
PYPTO_API void pld_print_int(pld_core *core, const char *format, int64_t value);
PYPTO_API void pld_print_float(pld_core *core, const char *format, double value);
PYPTO_API void pld_print_tile(pld_core *core, int32_t dtype, const void *tile, int32_t ndim,
                              const int64_t *extents, const int64_t *valid);
PYPTO_API void pld_print_end(pld_core *core);

/* Where a scope of a wrapper begins and ends, for records of calls (scope_stats); it changes nothing else. `scope` is what kind
 * of scope it is, "pl.at", `name` its name; both stay valid as long as the program. `depth` counts the scopes around it, 0 for none:
 * an end, or the next begin, also ends those that are inside of it and were left by a jump. */
PYPTO_API void pld_scope_begin(pld_core *core, const char *scope, const char *name, int64_t depth);
PYPTO_API void pld_scope_end(pld_core *core, int64_t depth);

/* One element of a tensor, or of my slice of a window: integers and BOOL as int64_t (UINT64 by its
 * bits), floats as float. Fails when an index is out of range. Writes to integers wrap. In a wrapper
 * each of them first waits as pld_await does. */
PYPTO_API int64_t pld_read_int(pld_core *core, const pld_tensor *source, const int64_t *indices);
PYPTO_API float pld_read_float(pld_core *core, const pld_tensor *source, const int64_t *indices);
PYPTO_API void pld_write_int(pld_core *core, const pld_tensor *target, const int64_t *indices,
                             int64_t value);
PYPTO_API void pld_write_float(pld_core *core, const pld_tensor *target, const int64_t *indices,
                               float value);

/* Changes one INT32 cell of rank `peer`'s slice of `signal` and wakes whoever waits for it.
 * A release; adds wrap in two's complement. Fails for a `value` that does not fit INT32. */
PYPTO_API void pld_notify(pld_core *core, const pld_tensor *signal, int64_t peer,
                          const int64_t *cell, int64_t value, pld_notify_op op);

/* Blocks this task until my cell compares to `expected`, which fits INT32, as asked. An acquire; the
 * cell is not changed. Other tasks of the rank run meanwhile. Never returns unsatisfied. */
PYPTO_API void pld_wait(pld_core *core, const pld_tensor *signal, const int64_t *cell,
                        int64_t expected, pld_wait_cmp cmp);

/* Does not wait: the task of this kernel is not over, and what depends on it does not start, before
 * the condition has held once. Several are waited for in order. `expected` is not negative and fits INT32.
 * Kernels only. */
PYPTO_API void pld_defer_wait(pld_core *core, const pld_tensor *signal, const int64_t *cell,
                              int64_t expected, pld_wait_cmp cmp);

struct pld_function;

/* A task of a dispatch, for `after`. Counts from 1; 0 is no task. */
typedef int64_t pld_task;

/* How an element compares to a number. */
typedef enum pld_compare {
    PLD_EQUAL,
    PLD_NOT_EQUAL,
    PLD_LESS,
    PLD_LESS_EQUAL,
    PLD_GREATER,
    PLD_GREATER_EQUAL
} pld_compare;

/* A condition on one element of an integer, BOOL or float tensor; UINT64 compares as the number it is, and a NaN
 * is only unequal. The element is read when the task could start, and counts as read by it: what writes it comes
 * before the task, or after. */
typedef struct pld_predicate {
    const pld_tensor *tensor;
    const int64_t *indices; /* one per dimension */
    pld_compare compare;
    int64_t limit;
} pld_predicate;

/* How a task is submitted. All zero: one block, ordered by its arguments. */
typedef struct pld_submit_options {
    /* The kernel runs once for each block 0 to blocks - 1, in any order; 0 is 1. The task is over when
     * all blocks are. */
    int64_t blocks;
    /* No order follows from the arguments, neither for this task nor for later ones. */
    bool manual;
    /* Bit i: none follows from argument i; from those behind the first 64 it always does. */
    uint64_t independent_args;
    /* Tasks of this dispatch that must be over before it starts. */
    const pld_task *after;
    int32_t after_count;
    /* If it does not hold, the kernel does not run, and the task is over at once. NULL: always. */
    const pld_predicate *predicate;
    /* Bit i: what argument i holds is told of by a call whose records have `dump_args` 1 (records.h);
     * of the first 64. */
    uint64_t marked_args;
} pld_submit_options;

/* From a per-device wrapper: submits an in-core function as a task of this dispatch and returns at
 * once. Tensors are copied by descriptor, not by content.
 *
 * A task starts when every earlier task is over that writes what it reads or writes, or reads what it
 * writes. What is read and written is the memory of its tensor arguments, by the parameters'
 * directions, for windows by their uses (pld_param); of a window, the own slice stands for all slices.
 * A task that waits for signals holds up no later one because that notifies. Tasks without such order
 * may overlap: while one waits for a signal, others run. `options` may be NULL. */
PYPTO_API pld_task pld_submit(pld_core *core, const struct pld_function *kernel,
                              const pld_arg *args, int32_t count);
PYPTO_API pld_task pld_submit_with(pld_core *core, const struct pld_function *kernel,
                                   const pld_arg *args, int32_t count,
                                   const pld_submit_options *options);
/* `blocks`, for the options of a task that is to have so many; ends the wrapper with an error if that is none. */
PYPTO_API int64_t pld_blocks(pld_core *core, int64_t blocks);
/* A task that does nothing, over when those of `options->after` are. */
PYPTO_API pld_task pld_submit_join(pld_core *core, const pld_submit_options *options);

/* From a per-device wrapper, before it touches memory itself: waits until the tasks are over that read
 * (if the wrapper writes) or write elements of `tensor`. */
PYPTO_API void pld_await(pld_core *core, const pld_tensor *tensor, bool writes);

/* Which of its task's blocks a kernel runs as, and how many there are. */
PYPTO_API int64_t pld_block_index(pld_core *core);
PYPTO_API int64_t pld_block_count(pld_core *core);

/* Ends the task with an error of the user's program. `message` is printf-like. */
PYPTO_API PYPTO_NORETURN void pld_fail(pld_core *core, const char *message, ...) PYPTO_PRINTF(2, 3);

/* Ends the task: the variable `name` of the script is read, and no turn of the loop that binds it has run. */
PYPTO_API PYPTO_NORETURN void pld_unbound(pld_core *core, const char *name);

/* Ends the task: x[a:b] = y, where in a dimension the part has `wanted` elements and y has `have`. */
PYPTO_API PYPTO_NORETURN void pld_misfit(pld_core *core, int64_t dim, int64_t have, int64_t wanted);

/* Ends the task: `what`, an index or a valid extent, is outside of a tile that has `extent` elements there. */
PYPTO_API PYPTO_NORETURN void pld_tile_fail(pld_core *core, const char *what, int64_t number,
                                            int32_t dim, int64_t extent);

/* Where an element of a packed tile lies; fails when an index is out of range. */
static inline int64_t pld_tile_index_at(pld_core *core, int32_t line, int32_t ndim,
                                        const int64_t *extents, const int64_t *indices)
{
    int64_t at = 0;
    for (int32_t d = 0; d < ndim; ++d) {
        if ((uint64_t)indices[d] >= (uint64_t)extents[d]) {
            pld_line(core, line);
            pld_tile_fail(core, "index", indices[d], d, extents[d]);
        }
        at = at * extents[d] + indices[d];
    }
    return at;
}
#define pld_tile_index(core, ...) pld_tile_index_at(core, __LINE__, __VA_ARGS__)

/* Sets a tile's valid extents; fails when one is outside the tile. */
static inline void pld_set_valid(pld_core *core, int32_t ndim, const int64_t *extents,
                                 const int64_t *wanted, int64_t *valid)
{
    for (int32_t d = 0; d < ndim; ++d) {
        if (wanted[d] < 0 || wanted[d] > extents[d])
            pld_tile_fail(core, "valid extent", wanted[d], d, extents[d]);
        valid[d] = wanted[d];
    }
}

/* Ends the task: an index of an array is out of range. */
PYPTO_API PYPTO_NORETURN void pld_array_fail(pld_core *core, int32_t line, const char *name,
                                             int64_t extent, int64_t index);

/* The index of an element of an array of `extent`; fails when it is out of range. */
static inline int64_t pld_array_index_at(pld_core *core, int32_t line, const char *name,
                                         int64_t extent, int64_t index)
{
    if ((uint64_t)index >= (uint64_t)extent)
        pld_array_fail(core, line, name, extent, index);
    return index;
}
#define pld_array_index(core, ...) pld_array_index_at(core, __LINE__, __VA_ARGS__)

/* Integer division and remainder that round towards minus infinity, as Python's do. Division by 0
 * gives 0 and does not trap; INT64_MIN / -1 wraps. */
static inline int64_t pld_floordiv(int64_t a, int64_t b)
{
    if (b == 0)
        return 0;
    if (b == -1)
        return (int64_t)(0 - (uint64_t)a);
    int64_t quotient = a / b;
    return (a % b != 0 && (a < 0) != (b < 0)) ? quotient - 1 : quotient;
}
static inline int64_t pld_floormod(int64_t a, int64_t b)
{
    if (b == 0 || b == -1)
        return 0;
    int64_t remainder = a % b;
    return (remainder != 0 && (remainder < 0) != (b < 0)) ? remainder + b : remainder;
}

/* Smaller and larger. */
static inline int64_t pld_min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}
static inline int64_t pld_max(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Shifts of any count: what is shifted out is gone, and >> repeats the sign. */
static inline int64_t pld_shl(int64_t a, int64_t count)
{
    return (uint64_t)count < 64 ? (int64_t)((uint64_t)a << count) : 0;
}
static inline int64_t pld_shr(int64_t a, int64_t count)
{
    return a >> ((uint64_t)count < 64 ? count : 63);
}

/* Each call notes its line first. A function-like macro is not expanded inside itself, so these
 * name the functions declared above. */
#define pld_get_comm(core, ...) (pld_line(core, __LINE__), pld_get_comm(core, __VA_ARGS__))
#define pld_part(core, ...) (pld_line(core, __LINE__), pld_part(core, __VA_ARGS__))
#define pld_part_valid(core, ...) (pld_line(core, __LINE__), pld_part_valid(core, __VA_ARGS__))
#define pld_view(core, ...) (pld_line(core, __LINE__), pld_view(core, __VA_ARGS__))
#define pld_load(core, ...) (pld_line(core, __LINE__), pld_load(core, __VA_ARGS__))
#define pld_store(core, ...) (pld_line(core, __LINE__), pld_store(core, __VA_ARGS__))
#define pld_load_part(core, ...) (pld_line(core, __LINE__), pld_load_part(core, __VA_ARGS__))
#define pld_store_part(core, ...) (pld_line(core, __LINE__), pld_store_part(core, __VA_ARGS__))
#define pld_store_add(core, ...) (pld_line(core, __LINE__), pld_store_add(core, __VA_ARGS__))
#define pld_assemble_add(core, ...) (pld_line(core, __LINE__), pld_assemble_add(core, __VA_ARGS__))
#define pld_remote_load_part(core, ...) \
    (pld_line(core, __LINE__), pld_remote_load_part(core, __VA_ARGS__))
#define pld_remote_load(core, ...) (pld_line(core, __LINE__), pld_remote_load(core, __VA_ARGS__))
#define pld_remote_store(core, ...) (pld_line(core, __LINE__), pld_remote_store(core, __VA_ARGS__))
#define pld_remote_assemble(core, ...) \
    (pld_line(core, __LINE__), pld_remote_assemble(core, __VA_ARGS__))
#define pld_put(core, ...) (pld_line(core, __LINE__), pld_put(core, __VA_ARGS__))
#define pld_get(core, ...) (pld_line(core, __LINE__), pld_get(core, __VA_ARGS__))
#define pld_notify(core, ...) (pld_line(core, __LINE__), pld_notify(core, __VA_ARGS__))
#define pld_wait(core, ...) (pld_line(core, __LINE__), pld_wait(core, __VA_ARGS__))
#define pld_defer_wait(core, ...) (pld_line(core, __LINE__), pld_defer_wait(core, __VA_ARGS__))
#define pld_submit(core, ...) (pld_line(core, __LINE__), pld_submit(core, __VA_ARGS__))
#define pld_submit_with(core, ...) (pld_line(core, __LINE__), pld_submit_with(core, __VA_ARGS__))
#define pld_blocks(core, ...) (pld_line(core, __LINE__), pld_blocks(core, __VA_ARGS__))
#define pld_submit_join(core, ...) (pld_line(core, __LINE__), pld_submit_join(core, __VA_ARGS__))
#define pld_await(core, ...) (pld_line(core, __LINE__), pld_await(core, __VA_ARGS__))
#define pld_reshape(core, ...) (pld_line(core, __LINE__), pld_reshape(core, __VA_ARGS__))
#define pld_reshape_valid(core, ...) \
    (pld_line(core, __LINE__), pld_reshape_valid(core, __VA_ARGS__))
#define pld_assemble(core, ...) (pld_line(core, __LINE__), pld_assemble(core, __VA_ARGS__))
#define pld_expand_clone(core, ...) (pld_line(core, __LINE__), pld_expand_clone(core, __VA_ARGS__))
#define pld_expand_clone_tile(core, ...) \
    (pld_line(core, __LINE__), pld_expand_clone_tile(core, __VA_ARGS__))
#define pld_tile_slice(core, ...) (pld_line(core, __LINE__), pld_tile_slice(core, __VA_ARGS__))
#define pld_tile_slice_part(core, ...) \
    (pld_line(core, __LINE__), pld_tile_slice_part(core, __VA_ARGS__))
#define pld_tile_assemble(core, ...) \
    (pld_line(core, __LINE__), pld_tile_assemble(core, __VA_ARGS__))
#define pld_create_tensor(core, ...) \
    (pld_line(core, __LINE__), pld_create_tensor(core, __VA_ARGS__))
#define pld_release_tensor(core, ...) \
    (pld_line(core, __LINE__), pld_release_tensor(core, __VA_ARGS__))
#define pld_print_end(core) (pld_line(core, __LINE__), pld_print_end(core))
#define pld_scope_begin(core, ...) (pld_line(core, __LINE__), pld_scope_begin(core, __VA_ARGS__))
#define pld_scope_end(core, ...) (pld_line(core, __LINE__), pld_scope_end(core, __VA_ARGS__))
#define pld_read_int(core, ...) (pld_line(core, __LINE__), pld_read_int(core, __VA_ARGS__))
#define pld_read_float(core, ...) (pld_line(core, __LINE__), pld_read_float(core, __VA_ARGS__))
#define pld_write_int(core, ...) (pld_line(core, __LINE__), pld_write_int(core, __VA_ARGS__))
#define pld_write_float(core, ...) (pld_line(core, __LINE__), pld_write_float(core, __VA_ARGS__))
#define pld_set_valid(core, ...) (pld_line(core, __LINE__), pld_set_valid(core, __VA_ARGS__))
#define pld_unbound(core, ...) (pld_line(core, __LINE__), pld_unbound(core, __VA_ARGS__))
#define pld_misfit(core, ...) (pld_line(core, __LINE__), pld_misfit(core, __VA_ARGS__))
#define pld_fail(core, ...) (pld_line(core, __LINE__), pld_fail(core, __VA_ARGS__))

#ifdef __cplusplus
}
#endif

#include <pypto/pld_collectives.h>

#endif
