/* A compiled program: the table of its functions, and what its host function calls.
 *
 * The compiler ends every emitted C file with one `const pld_program pypto_program = {...}`; a C
 * programmer writes the same table by hand (examples/c/allreduce.c). Everything in it is constant
 * and must live as long as a worker may run it.
 *
 * A *host function* runs once per call in the calling process. It allocates windows and dispatches
 * per-device wrappers; nothing it calls waits for the devices. As in kernels, a call that fails
 * does not return: the host function must own nothing that needs releasing. */
#ifndef PYPTO_PROGRAM_H
#define PYPTO_PROGRAM_H

#include <pypto/pld.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Layout version of pld_program, checked when a program is loaded. Changes with this header. */
#define PLD_ABI 6u

/* One call of a host function. Opaque; valid during that call, on its thread. */
typedef struct pld_host pld_host;

/* One run of a function of plane SUB. Opaque; valid during that run. */
typedef struct pld_sub pld_sub;

typedef enum pld_plane {
    PLD_PLANE_HOST, /* host orchestrator: runs in the calling process */
    PLD_PLANE_CHIP, /* per-device wrapper: what a host function dispatches */
    PLD_PLANE_CORE, /* in-core kernel: what a wrapper submits */
    PLD_PLANE_SUB   /* SubWorker: ordinary code beside the devices: what a host function calls */
} pld_plane;

typedef enum pld_param_kind { PLD_PARAM_TENSOR, PLD_PARAM_WINDOW, PLD_PARAM_SCALAR } pld_param_kind;
typedef enum pld_direction { PLD_IN = 0, PLD_OUT = 1, PLD_INOUT = 2 } pld_direction;

/* What a kernel does to a window, beyond what the direction of its parameter says: the order among
 * tasks follows from it. Signals order themselves: a task that waits for cells of a window holds up
 * no later one that notifies through it. */
typedef enum pld_use {
    PLD_USES_NOTHING = 1, /* none of the others: said so that it is not taken for "unknown" */
    PLD_READS = 2,
    PLD_WRITES = 4, /* own slice or a peer's */
    PLD_NOTIFIES = 8,
    PLD_AWAITS = 16,
    PLD_FENCES =
        32 /* comes between the uses of all windows of the domain before it and behind it */
} pld_use;

/* What a parameter of the host function promises. `shape` entries below 0 are dynamic: -1 - k names
 * entry k of pld_function.dims, whose extents must agree wherever the name occurs. */
typedef struct pld_param {
    const char *name;
    pld_param_kind kind;
    pld_direction direction;
    int32_t dtype; /* pypto_dtype */
    int32_t ndim;
    int64_t shape[PYPTO_MAX_DIMS];
    /* The dimension that the host function subscripts with a loop over all devices, or -1. Its
     * extent must be at least the number of devices; a dynamic one must equal it. */
    int32_t world_dim;
    /* pld_use bits; 0: reads, and unless it is PLD_IN writes. */
    uint32_t uses;
} pld_param;

typedef struct pld_function {
    const char *name; /* the user's name */
    const char *file; /* where it is written */
    int32_t line;
    pld_plane plane;
    /* Exactly one of the first two is set, or for SUB none. `args` has one entry per parameter, in order; tensors in it
     * stay valid until the function has returned. */
    void (*run)(pld_core *core, const pld_arg *args);      /* CHIP and CORE */
    void (*run_host)(pld_host *host, const pld_arg *args); /* HOST */
    void (*run_sub)(pld_sub *sub,
                    const pld_arg *args); /* SUB; NULL: pypto_worker_options.run_sub runs it */
    int64_t scratch_bytes;                /* what pld_scratch() gives */
    int32_t nparams;
    const pld_param *params;
    int32_t ndims;
    const char *const *dims; /* names of the dynamic dimensions */
} pld_function;

/* Whether cells of a window buffer are the signal of a collective. The runtime keeps such a signal's channel, which
 * its flags and small messages travel through, behind the buffer on each device. */
typedef enum pld_collectives {
    PLD_NO_COLLECTIVES = 0,
    PLD_ONE_SIGNAL = 1,  /* one signal, which begins with the buffer's first cell */
    PLD_MANY_SIGNALS = 2 /* signals anywhere in the buffer that do not overlap */
} pld_collectives;

/* One pld.alloc_window_buffer statement. */
typedef struct pld_buffer_info {
    const char *name;
    int32_t line;
    pld_collectives collectives;
} pld_buffer_info;

typedef struct pld_program {
    uint32_t abi;  /* PLD_ABI */
    uint32_t size; /* sizeof(pld_program) */
    const char *name;
    int32_t nfunctions;
    int32_t host; /* index of the function that a call enters */
    /* A wrapper or kernel is known to workers by its index here. */
    const pld_function *const *functions;
    int32_t nbuffers;
    /* 1: no kernel reaches into slices of peers (notify, put, get, remote loads and stores) but by collectives, so that
     * a broadcast need not hold up its root. */
    int32_t collectives_only;
    const pld_buffer_info *buffers;
} pld_program;

/* Name under which a compiled program exports its table. */
#define PLD_PROGRAM_SYMBOL "pypto_program"

/* A window buffer of this call: a handle, meaningless outside it. */
typedef struct pld_buffer {
    int32_t index; /* in pld_program.buffers */
} pld_buffer;

/* Notes the script line; the calls below do it themselves. */
PYPTO_API void pld_host_line(pld_host *host, int32_t line);

/* Asks now and then whether the caller wants to be interrupted (pypto_worker_options.interrupted), and ends the call then. Every
 * dispatch does it; a loop that may have turns without one calls it at the head of its body. */
PYPTO_API void pld_host_poll(pld_host *host);

/* Number of devices of the run. */
PYPTO_API int64_t pld_world_size(pld_host *host);

/* Device sets, as bit masks: all devices; those of range(start, stop). */
PYPTO_API uint64_t pld_all_devices(pld_host *host);
PYPTO_API uint64_t pld_device_range(pld_host *host, int64_t start, int64_t stop);

/* Reserves `bytes` bytes, zero-filled, on each device of the set, which becomes (or joins) the
 * communication domain of exactly those devices. Lives until the call ends. `buffer` is the index
 * of the allocation in pld_program.buffers; allocating it twice in one call fails. */
PYPTO_API pld_buffer pld_alloc_window(pld_host *host, int32_t buffer, int64_t bytes,
                                      uint64_t devices);

/* A typed row-major view of a buffer from its first byte: "each rank's own slice". It can be passed
 * to dispatches; the host cannot read or write it. Fails when it is larger than the buffer. */
PYPTO_API pld_tensor pld_window_view(pld_host *host, pld_buffer buffer, int32_t dtype, int32_t ndim,
                                     const int64_t *shape);

/* tensor[i0, i1, ...]: the view with the `count` leading dimensions dropped. */
PYPTO_API pld_tensor pld_index(pld_host *host, const pld_tensor *tensor, int32_t count,
                               const int64_t *indices);

/* The view of `shape` at `offsets`, one entry per dimension; no dimension is dropped. Fails when it
 * leaves the tensor. */
PYPTO_API pld_tensor pld_slice(pld_host *host, const pld_tensor *tensor, const int64_t *shape,
                               const int64_t *offsets);

/* The view of `extents` at `offsets`, one entry of each per dimension; one whose extent is PLD_DROP is an
 * index, and leaves no dimension. Fails when the part leaves the tensor. */
PYPTO_API pld_tensor pld_host_part(pld_host *host, const pld_tensor *tensor, const int64_t *offsets,
                                   const int64_t *extents);

/* A new packed tensor in memory that all devices share, every element `value`; lives until the call ends.
 * Fails when the machine does not have the memory. */
PYPTO_API pld_tensor pld_host_create_tensor(pld_host *host, int32_t dtype, int32_t ndim,
                                            const int64_t *shape, double value);

/* A tensor of pld_host_create_tensor() is passed to no later dispatch: the next ones may have its memory when
 * those that it was passed to are complete. Optional. */
PYPTO_API void pld_host_release_tensor(pld_host *host, const pld_tensor *tensor);

/* Posts one run of `wrapper` on a device (an index into the device ids of the run). Returns at
 * once. On one device a dispatch starts when every earlier one is complete that passes a window of
 * the same domain, or touches the same memory of host tensors, one of the two writing; among devices
 * when those are complete that write what it reads. Otherwise dispatches overlap. */
PYPTO_API void pld_dispatch(pld_host *host, int64_t device, const pld_function *wrapper,
                            const pld_arg *args, int32_t count);

/* Posts one run of a function of plane SUB. Returns at once. The function is called in a SubWorker of the worker set
 * (pypto_worker_options.sub_workers) when every earlier dispatch and SUB function is complete that touches the same
 * memory, one of the two writing; later ones that do so wait for it. Its tensors are host tensors, in place; its
 * parameters promise shapes and element types, which are checked here. */
PYPTO_API void pld_call_sub(pld_host *host, const pld_function *function, const pld_arg *args,
                            int32_t count);

/* In a function of plane SUB: it has failed, with these words; the first ones count. `details` are further lines, or
 * NULL. Returns: the function comes to its end by itself. Its call then fails, what depends on it is not run. */
PYPTO_API void pld_sub_fail(pld_sub *sub, const char *details, const char *format, ...)
    PYPTO_PRINTF(3, 4);

/* Ends the call with an error of the user's program. */
PYPTO_API PYPTO_NORETURN void pld_host_fail(pld_host *host, const char *message, ...)
    PYPTO_PRINTF(2, 3);

/* Ends the call: the variable `name` is read, and no turn of the loop that binds it has run. */
PYPTO_API PYPTO_NORETURN void pld_host_unbound(pld_host *host, const char *name);

#define pld_host_poll(host) (pld_host_line(host, __LINE__), pld_host_poll(host))
#define pld_world_size(host) (pld_host_line(host, __LINE__), pld_world_size(host))
#define pld_alloc_window(host, ...) \
    (pld_host_line(host, __LINE__), pld_alloc_window(host, __VA_ARGS__))
#define pld_window_view(host, ...) \
    (pld_host_line(host, __LINE__), pld_window_view(host, __VA_ARGS__))
#define pld_index(host, ...) (pld_host_line(host, __LINE__), pld_index(host, __VA_ARGS__))
#define pld_slice(host, ...) (pld_host_line(host, __LINE__), pld_slice(host, __VA_ARGS__))
#define pld_host_part(host, ...) (pld_host_line(host, __LINE__), pld_host_part(host, __VA_ARGS__))
#define pld_host_create_tensor(host, ...) \
    (pld_host_line(host, __LINE__), pld_host_create_tensor(host, __VA_ARGS__))
#define pld_host_release_tensor(host, ...) \
    (pld_host_line(host, __LINE__), pld_host_release_tensor(host, __VA_ARGS__))
#define pld_dispatch(host, ...) (pld_host_line(host, __LINE__), pld_dispatch(host, __VA_ARGS__))
#define pld_call_sub(host, ...) (pld_host_line(host, __LINE__), pld_call_sub(host, __VA_ARGS__))
#define pld_host_unbound(host, ...) \
    (pld_host_line(host, __LINE__), pld_host_unbound(host, __VA_ARGS__))
#define pld_host_fail(host, ...) (pld_host_line(host, __LINE__), pld_host_fail(host, __VA_ARGS__))

#ifdef __cplusplus
}
#endif
#endif
