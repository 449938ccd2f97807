/* Type rules of collectives: element types, ranks, and what constants say about extents. Extents that only
 * a run knows, above all the number of ranks, are compared by the device library (PYPTO-R509, R510), which
 * sees every call. An extent that is written as the same expression twice agrees.
 *
 * Shapes of signals say how many ranks there are at most: a cell each. */
#include "ops/rules.h"

#include "ops/dtypes.h"

#include <string.h>

static const ir_type *type_of(const ir_operand *operand)
{
    return &operand->var->type;
}

/* Whether an extent is another number than `wanted`, for certain. */
static bool differs(const ir_expr *extent, int64_t wanted)
{
    int64_t value = 0;
    return ir_is_const_int(extent, &value) && value != wanted;
}

/* Whether two extents are two numbers, for certain. */
static bool unequal(const ir_expr *x, const ir_expr *y)
{
    int64_t value = 0;
    return ir_is_const_int(y, &value) && differs(x, value);
}

/* In a host function, or in the kernel that is made of a collective there. */
static bool on_host(const op_call *call)
{
    return call->function->plane == PLD_PLANE_HOST || call->function->is_collective;
}

/* ---- signals ---- */

static bool check_int32(op_call *call, const char *name)
{
    const ir_operand *operand = rule_given(call, name);
    return type_of(operand)->dtype == PYPTO_INT32 ||
           rule_fail(call, DIAG_DTYPE_MISMATCH, operand,
                     "declare it as pld.DistributedTensor[[...], pl.INT32]",
                     "%s must have INT32 element type, not %s", name,
                     pypto_dtype_name(type_of(operand)->dtype));
}

/* Of a host function: a row per rank at least, of a cell per core at least. */
static bool check_host_signal(op_call *call, int64_t cores)
{
    const ir_operand *signal = rule_given(call, "signal");
    const ir_type *type = type_of(signal);
    int64_t lanes = 0;
    if (type->ndim > 2)
        return rule_fail(call, DIAG_SHAPE_MISMATCH, signal, "view it as [pld.world_size()]",
                         "signal must be 1D [NR] or 2D [NR, 1], but its rank is %d", type->ndim);
    if (type->ndim == 1)
        return cores == 1 ||
               rule_fail(
                   call, DIAG_BAD_HOST_COLLECTIVE, signal,
                   "view it as [pld.world_size(), core_num]",
                   "rank-1 signal is valid only when one signal lane is required, but core_num "
                   "is %lld",
                   (long long)cores);
    if (!ir_is_const_int(type->shape[1], &lanes))
        return rule_fail(call, DIAG_BAD_HOST_COLLECTIVE, signal,
                         "view it as [pld.world_size(), core_num]",
                         "rank-2 signal shape[1] must be constant");
    return lanes >= cores ||
           rule_fail(call, DIAG_BAD_HOST_COLLECTIVE, signal,
                     "view it as [pld.world_size(), core_num]",
                     "signal shape[1] must be at least the required lane count: it is %lld, and "
                     "core_num %lld",
                     (long long)lanes, (long long)cores);
}

/* Whether a signal is one for mode "ring", by its columns. */
static bool counts_columns(const ir_type *signal)
{
    int64_t columns = 0;
    return signal->ndim == 2 && !ir_is_const_int(signal->shape[1], &columns);
}

static bool check_host_ring_signal(op_call *call)
{
    const ir_operand *signal = rule_given(call, "signal");
    const ir_type *type = type_of(signal);
    int64_t rows = 0;
    int64_t ranks = 0;
    if (type->ndim != 2)
        return rule_fail(
            call, DIAG_SHAPE_MISMATCH, signal, "view it as [2 * (NR - 1) + 1, NR]",
            "signal must be 2D [2*(NR-1) + 1, NR] in mode \"ring\", but its rank is %d",
            type->ndim);
    return !ir_is_const_int(type->shape[0], &rows) || !ir_is_const_int(type->shape[1], &ranks) ||
           rows > 2 * (ranks - 1) ||
           rule_fail(call, DIAG_BAD_HOST_COLLECTIVE, signal, "view it as [2 * (NR - 1) + 1, NR]",
                     "signal shape[0] must be at least 2*(NR-1) + 1 in mode \"ring\" of a host "
                     "function, which is %lld for NR = %lld",
                     2 * ((long long)ranks - 1) + 1, (long long)ranks);
}

/* A cell per rank: [NR, 1], or [NR] where a flat one will do. */
static bool check_signal(op_call *call, bool flat)
{
    const ir_operand *signal = rule_given(call, "signal");
    if (!check_int32(call, "signal"))
        return false;
    if (on_host(call))
        return check_host_signal(call, 1);
    const ir_type *type = type_of(signal);
    static const char columns[] =
        "view it as [pld.world_size(), 1] in the host function, or write pl.reshape(signal, [NR, 1])";
    if (type->ndim != 2 && !(flat && type->ndim == 1))
        return rule_fail(call, DIAG_SHAPE_MISMATCH, signal, columns,
                         "signal must be 2D [NR, 1]%s, but its rank is %d", flat ? " or [NR]" : "",
                         type->ndim);
    if (type->ndim == 2 && differs(type->shape[1], 1))
        return rule_fail(call, DIAG_SHAPE_MISMATCH, signal, columns,
                         "signal shape[1] must be 1: it has a cell per rank, [NR, 1]");
    return true;
}

static bool check_ring_signal(op_call *call)
{
    const ir_operand *signal = rule_given(call, "signal");
    const ir_type *type = type_of(signal);
    int64_t ranks = 0;
    if (type->ndim != 2)
        return rule_fail(call, DIAG_SHAPE_MISMATCH, signal, "view it as [2 * (NR - 1), NR]",
                         "signal must be 2D [2*(NR-1), NR] in mode \"ring\", but its rank is %d",
                         type->ndim);
    return !ir_is_const_int(type->shape[1], &ranks) || !differs(type->shape[0], 2 * (ranks - 1)) ||
           rule_fail(call, DIAG_SHAPE_MISMATCH, signal, "view it as [2 * (NR - 1), NR]",
                     "signal shape[0] must equal 2*(NR-1) in mode \"ring\" of a kernel, which is "
                     "%lld for NR = %lld",
                     2 * ((long long)ranks - 1), (long long)ranks);
}

/* ---- operands ---- */

/* Two operands that are the same memory, as far as names tell. Windows of a host function begin where their
 * buffer does. */
static bool check_distinct(op_call *call, const char *first, const char *second)
{
    const ir_operand *x = rule_given(call, first);
    const ir_operand *y = rule_given(call, second);
    const ir_var *root = x->var->root;
    const bool whole = on_host(call) || x->var == root || y->var == root;
    if (x->var != y->var && (root == NULL || root != y->var->root || !whole))
        return true;
    if (!on_host(call))
        return rule_fail(call, DIAG_BAD_ARGUMENTS, y, "allocate a window for each",
                         "%s and %s must be different windows", first, second);
    return rule_fail(
        call, DIAG_BAD_HOST_COLLECTIVE, y, "allocate a buffer for each",
        "%s and %s must be different window allocations, but '%s' and '%s' are views of "
        "one buffer",
        call->op->id == OP_ALLREDUCE ? "src" : first, second, x->var->name, y->var->name);
}

/* What a host function hands to a device of its windows' domain, it hands to all. */
static bool check_bound(op_call *call, const char *name, const char *role)
{
    const ir_operand *operand = rule_given(call, name);
    return !on_host(call) || type_of(operand)->kind == IR_WINDOW ||
           rule_fail(
               call, DIAG_BAD_HOST_COLLECTIVE, operand,
               "fill a window in a dispatch, and pass that",
               "%s must be a window-bound DistributedTensor in a host function, but '%s' is a "
               "Tensor",
               role, operand->var->name);
}

/* What a fold computes with. */
static bool check_number(op_call *call)
{
    const ir_operand *target = rule_given(call, "target");
    pypto_dtype dtype = type_of(target)->dtype;
    return dtype_is_number(dtype) ||
           rule_fail(call, DIAG_DTYPE_MISMATCH, target, "convert the elements first",
                     "target dtype must be FP16 or FP32, or BF16 or an integer type: not %s",
                     pypto_dtype_name(dtype));
}

static bool check_matrix(op_call *call, const char *name, const char *shape)
{
    const ir_operand *operand = rule_given(call, name);
    return type_of(operand)->ndim == 2 ||
           rule_fail(call, DIAG_SHAPE_MISMATCH, operand, "view it with two dimensions",
                     "%s must be 2D %s, but its rank is %d", name, shape, type_of(operand)->ndim);
}

static bool check_dtype(op_call *call, const char *source)
{
    const ir_operand *target = rule_given(call, "target");
    pypto_dtype from = type_of(rule_given(call, source))->dtype;
    pypto_dtype to = type_of(target)->dtype;
    return from == to || rule_fail(call, DIAG_DTYPE_MISMATCH, target, "declare both with one dtype",
                                   "target dtype must equal that of %s: %s is not %s", source,
                                   pypto_dtype_name(to), pypto_dtype_name(from));
}

/* Whether a first extent may be the number of ranks: at most the signal's cells. */
static bool check_rank_rows(op_call *call, const char *name)
{
    const ir_operand *operand = rule_given(call, name);
    int64_t cells = 0;
    int64_t rows = 0;
    return !ir_is_const_int(type_of(rule_given(call, "signal"))->shape[0], &cells) ||
           !ir_is_const_int(type_of(operand)->shape[0], &rows) || rows <= cells ||
           rule_fail(call, DIAG_SHAPE_MISMATCH, operand, "both count the ranks of the domain",
                     "%s has %lld rows, one per rank, but signal shape[0] is %lld: a cell per rank",
                     name, (long long)rows, (long long)cells);
}

/* ---- rules ---- */

static const char *mode_name(op_call *call)
{
    return enum_member_name("CollectiveMode", rule_given(call, "mode")->number);
}

static bool check_host_mode(op_call *call, int64_t cores)
{
    if (strcmp(mode_name(call), "ring") != 0)
        return true;
    if (cores != 1)
        return rule_fail(call, DIAG_BAD_HOST_COLLECTIVE, rule_given(call, "core_num"),
                         "leave it out", "mode=\"ring\" does not support core_num > 1");
    return rule_given(call, "signal") != NULL ||
           rule_fail(call, DIAG_BAD_HOST_COLLECTIVE, NULL,
                     "pass a window [2 * (NR - 1) + 1, NR], or leave mode= out",
                     "mode=\"ring\" requires an explicit signal");
}

/* A kernel is one core, and has a signal; host functions may leave both to us. */
static bool check_host_arguments(op_call *call)
{
    const ir_operand *signal = &call->operands[op_param_index(call->op, "signal")];
    const ir_operand *cores = rule_given(call, "core_num");
    int64_t number = 0;
    if (signal->kind == IR_OPERAND_NONE && signal->span.line != 0)
        return rule_fail(call, DIAG_KIND_MISMATCH, signal, "leave it out in a host function",
                         "signal cannot be None");
    if (cores->expr->kind != IR_INT || !ir_is_const_int(cores->expr, &number))
        return rule_fail(call, DIAG_NOT_CONSTANT, cores, "write a number",
                         "core_num must be a compile-time int");
    if (number <= 0)
        return rule_fail(call, DIAG_BAD_ARGUMENTS, cores, "write 1 or more",
                         "core_num must be positive, not %lld", (long long)number);
    if (on_host(call))
        return check_host_mode(call, number);
    if (number != 1)
        return rule_fail(call, DIAG_BAD_ARGUMENTS, cores, "leave it out",
                         "core_num is supported only in a HOST orchestrator: a kernel is one core");
    return signal->kind != IR_OPERAND_NONE ||
           rule_fail(call, DIAG_BAD_ARGUMENTS, NULL,
                     "allocate an INT32 window [NR, 1] in the host function, and pass it on",
                     "requires an explicit signal outside host orchestrator functions");
}

bool rule_allreduce(op_call *call, ir_type *result)
{
    *result = *type_of(rule_given(call, "target"));
    if (!check_host_arguments(call) || !check_number(call))
        return false;
    if (rule_given(call, "signal") == NULL)
        return true;
    if (!check_int32(call, "signal") || !check_distinct(call, "target", "signal"))
        return false;
    const ir_type *signal = type_of(rule_given(call, "signal"));
    const char *mode = mode_name(call);
    if (on_host(call))
        return strcmp(mode, "ring") == 0 || (strcmp(mode, "auto") == 0 && counts_columns(signal))
                   ? check_host_ring_signal(call)
                   : check_host_signal(call, rule_given(call, "core_num")->expr->integer);
    if (strcmp(mode, "mesh") == 0)
        return check_signal(call, false);
    const bool column =
        strcmp(mode, "auto") == 0 && signal->ndim == 2 && !differs(signal->shape[1], 1);
    return column || check_ring_signal(call);
}

bool rule_barrier(op_call *call, ir_type *result)
{
    *result = *type_of(rule_given(call, "signal"));
    return check_signal(call, true);
}

/* A root that a run computes is checked there. */
bool rule_broadcast(op_call *call, ir_type *result)
{
    const ir_operand *root = rule_given(call, "root");
    int64_t rank = 0;
    int64_t ranks = 0;
    *result = *type_of(rule_given(call, "target"));
    if (!check_signal(call, true) || !check_distinct(call, "target", "signal"))
        return false;
    if (!ir_is_const_int(root->expr, &rank))
        return true;
    if (rank < 0)
        return rule_fail(call, DIAG_BAD_ARGUMENTS, root, "ranks count from 0",
                         "root rank must be non-negative, not %lld", (long long)rank);
    return on_host(call) ||
           !ir_is_const_int(type_of(rule_given(call, "signal"))->shape[0], &ranks) ||
           rank < ranks ||
           rule_fail(call, DIAG_BAD_ARGUMENTS, root, "ranks are numbered within the domain",
                     "root (%lld) must be a valid rank in [0, %lld)", (long long)rank,
                     (long long)ranks);
}

bool rule_allgather(op_call *call, ir_type *result)
{
    const ir_operand *local = rule_given(call, "local_data");
    const ir_operand *target = rule_given(call, "target");
    *result = *type_of(target);
    if (!check_signal(call, true) || !check_bound(call, "local_data", "input") ||
        !check_matrix(call, "local_data", "[1, SIZE]") ||
        !check_matrix(call, "target", "[NR, SIZE]") || !check_dtype(call, "local_data"))
        return false;
    if (differs(type_of(local)->shape[0], 1))
        return rule_fail(call, DIAG_SHAPE_MISMATCH, local, "pass the row of this rank",
                         "local_data must be [1, SIZE]: the row of this rank");
    if (unequal(type_of(local)->shape[1], type_of(target)->shape[1]))
        return rule_fail(call, DIAG_SHAPE_MISMATCH, target, "give both as many columns",
                         "target SIZE must equal input SIZE");
    return check_rank_rows(call, "target") && check_distinct(call, "local_data", "target") &&
           check_distinct(call, "local_data", "signal") && check_distinct(call, "target", "signal");
}

bool rule_reduce_scatter(op_call *call, ir_type *result)
{
    *result = *type_of(rule_given(call, "target"));
    return check_signal(call, true) && check_matrix(call, "target", "[NR, SIZE]") &&
           check_number(call) && check_rank_rows(call, "target") &&
           check_distinct(call, "target", "signal");
}

/* What all_to_all and all_to_all_v have in common. */
static bool check_exchange(op_call *call, const char *shape)
{
    const ir_operand *target = rule_given(call, "target");
    const ir_type *from = type_of(rule_given(call, "input"));
    if (!check_bound(call, "input", "input") || !check_matrix(call, "input", shape) ||
        !check_matrix(call, "target", shape) || !check_dtype(call, "input"))
        return false;
    for (int32_t i = 0; i < 2; i++) {
        if (unequal(from->shape[i], type_of(target)->shape[i]))
            return rule_fail(call, DIAG_SHAPE_MISMATCH, target, "declare both with one shape",
                             "target shape must equal input shape: dimension %d differs", i);
    }
    return check_distinct(call, "input", "target") && check_distinct(call, "input", "signal") &&
           check_distinct(call, "target", "signal");
}

bool rule_all_to_all(op_call *call, ir_type *result)
{
    *result = *type_of(rule_given(call, "target"));
    return check_signal(call, true) && check_exchange(call, "[NR, SIZE]") &&
           check_rank_rows(call, "target");
}

/* A column of counts, one per rank; a flat one where that will do. */
static bool check_counts(op_call *call, const char *name, bool flat)
{
    const ir_operand *counts = rule_given(call, name);
    const ir_type *type = type_of(counts);
    int64_t ranks = 0;
    if (!check_int32(call, name))
        return false;
    if (type->ndim != 2 && !(flat && type->ndim == 1))
        return rule_fail(call, DIAG_SHAPE_MISMATCH, counts, "give it an entry per rank",
                         flat ? "%s must be 1D [NR] or 2D [NR, 1], but its rank is %d"
                              : "%s must be 2D [NR, 1], but its rank is %d",
                         name, type->ndim);
    if (type->ndim == 2 && differs(type->shape[1], 1))
        return rule_fail(
            call, DIAG_SHAPE_MISMATCH, counts, "give it an entry per rank",
            flat ? "%s must be 1D [NR] or 2D [NR, 1]" : "%s second dimension must be 1", name);
    const ir_expr *cells = type_of(rule_given(call, "signal"))->shape[0];
    return on_host(call) || !ir_is_const_int(cells, &ranks) || !differs(type->shape[0], ranks) ||
           rule_fail(call, DIAG_SHAPE_MISMATCH, counts, "both count the ranks of the domain",
                     "%s dim 0 must equal signal dim 0, %lld", name, (long long)ranks);
}

bool rule_all_to_all_v(op_call *call, ir_type *result)
{
    static const char *const pairs[][2] = {
        {"send_counts", "recv_counts"}, {"input", "send_counts"}, {"target", "send_counts"},
        {"signal", "send_counts"},      {"input", "recv_counts"}, {"target", "recv_counts"},
        {"signal", "recv_counts"}};
    const ir_operand *target = rule_given(call, "target");
    int64_t ranks = 0;
    int64_t rows = 0;
    *result = *type_of(target);
    if (!check_signal(call, false) || !check_exchange(call, "[NR * MAX_RECV, SIZE]") ||
        !check_bound(call, "send_counts", "send_counts") ||
        !check_counts(call, "send_counts", true) || !check_counts(call, "recv_counts", false))
        return false;
    if (!on_host(call) && ir_is_const_int(type_of(rule_given(call, "signal"))->shape[0], &ranks) &&
        ir_is_const_int(type_of(target)->shape[0], &rows) && rows % ranks != 0)
        return rule_fail(call, DIAG_SHAPE_MISMATCH, target, "give each rank as many rows",
                         "signal dim 0, %lld, must divide target dim 0, %lld", (long long)ranks,
                         (long long)rows);
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        if (!check_distinct(call, pairs[i][0], pairs[i][1]))
            return false;
    }
    return true;
}
