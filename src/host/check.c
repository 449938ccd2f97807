/* Checks before anything runs: program tables, and the arguments of a call against the host
 * function's parameters. */
#include "base/alloc.h"
#include "base/text.h"
#include "host/host.h"

#include "runtime/args.h"
#include "sched/describe.h"

#include <string.h>

/* Dynamic dimensions of a function. */
#define MAX_DIM_NAMES (PYPTO_MAX_DIMS * 8)

static pypto_status bad_table(const char *format, const char *name)
{
    return diag_status(DIAG_BAD_PROGRAM, "see include/pypto/program.h", format, name);
}

static pypto_status check_param(const pld_function *f, const pld_param *param)
{
    if (param->name == NULL)
        return bad_table("a parameter of function '%s' has no name", f->name);
    if ((f->plane != PLD_PLANE_HOST && f->plane != PLD_PLANE_SUB) ||
        param->kind == PLD_PARAM_SCALAR)
        return STATUS_OK;
    if (param->kind == PLD_PARAM_WINDOW)
        return bad_table(f->plane == PLD_PLANE_HOST
                             ? "parameter '%s' of the host function is a window: windows are "
                               "allocated in it"
                             : "parameter '%s' of a SubWorker is a window, which only devices see",
                         param->name);
    if (param->ndim < 0 || param->ndim > PYPTO_MAX_DIMS ||
        pypto_dtype_bytes((pypto_dtype)param->dtype) == 0)
        return bad_table("parameter '%s' has a bad element type or number of dimensions",
                         param->name);
    for (int32_t d = 0; d < param->ndim; ++d)
        if (param->shape[d] < 0 && -1 - param->shape[d] >= f->ndims)
            return bad_table("parameter '%s' has a dynamic dimension that pld_function.dims lacks",
                             param->name);
    return STATUS_OK;
}

static pypto_status check_function(const pld_program *table, int32_t index)
{
    const pld_function *f = table->functions[index];
    if (f == NULL || f->name == NULL || f->file == NULL)
        return bad_table("a function of program '%s' is NULL or has no name or file", table->name);
    if (f->plane != PLD_PLANE_SUB && (index == table->host ? f->run_host == NULL : f->run == NULL))
        return bad_table("function '%s' has no code: set pld_function.run or run_host", f->name);
    if (f->scratch_bytes < 0 || f->nparams < 0 || (f->nparams > 0 && f->params == NULL) ||
        f->ndims < 0 || (f->ndims > 0 && f->dims == NULL))
        return bad_table("function '%s' has a negative size, or no params or dims", f->name);
    pypto_status status = STATUS_OK;
    for (int32_t i = 0; status_ok(status) && i < f->nparams; ++i)
        status = check_param(f, &f->params[i]);
    return status;
}

pypto_status check_program(const pld_program *table)
{
    if (table == NULL || table->abi != PLD_ABI || table->size != sizeof(pld_program))
        return diag_status(DIAG_BAD_PROGRAM, "compile it again with this version of pypto",
                           "the program was made for another version of pypto");
    if (table->name == NULL)
        return bad_table("pld_program.%s is NULL", "name");
    if (table->functions == NULL || table->host < 0 || table->host >= table->nfunctions ||
        table->functions[table->host] == NULL ||
        table->functions[table->host]->plane != PLD_PLANE_HOST)
        return bad_table("program '%s' has no host function: set functions and host", table->name);
    if (table->nbuffers < 0 || (table->nbuffers > 0 && table->buffers == NULL))
        return bad_table("program '%s' has no buffer table", table->name);
    for (int32_t i = 0; i < table->nbuffers; ++i)
        if (table->buffers[i].name == NULL)
            return bad_table("a window buffer of program '%s' has no name", table->name);
    pypto_status status = STATUS_OK;
    for (int32_t i = 0; status_ok(status) && i < table->nfunctions; ++i)
        status = check_function(table, i);
    return status;
}

static const char *ordinal_devices(int32_t count)
{
    return count == 1 ? "device" : "devices";
}

/* The declared shape as it is written, "(NR, 64)", into `out`. */
static const char *declared_shape(text *out, const pld_function *f, const pld_param *param)
{
    text_add(out, "(");
    for (int32_t d = 0; d < param->ndim; ++d) {
        const int64_t extent = param->shape[d], name = -1 - extent;
        if (extent >= 0)
            text_printf(out, "%s%lld", d > 0 ? ", " : "", (long long)extent);
        else
            text_printf(out, "%s%s", d > 0 ? ", " : "", name < f->ndims ? f->dims[name] : "?");
    }
    text_add(out, param->ndim == 1 ? ",)" : ")");
    return out->failed ? "another" : out->bytes;
}

static pypto_status wrong_shape(const pld_function *f, const pld_param *param,
                                const pypto_tensor *t, int32_t d)
{
    char shape[LIST_TEXT];
    text declared = {0};
    pypto_status status = diag_status(
        DIAG_ARGUMENT_TYPE,
        "pass a tensor of the declared shape, or declare the dimension with pl.dynamic(\"NAME\")",
        "argument '%s' of %s expects shape %s, got %s: dimension %d is %lld, declared %lld",
        param->name, f->name, declared_shape(&declared, f, param),
        describe_list(shape, sizeof shape, t->shape, t->ndim), d, (long long)t->shape[d],
        (long long)param->shape[d]);
    text_free(&declared);
    return status;
}

/* What the dynamic names of a call are bound to (-1: not yet), and by which parameter. */
typedef struct named_dims {
    int64_t extent[MAX_DIM_NAMES];
    const char *bound_by[MAX_DIM_NAMES];
} named_dims;

static pypto_status start_dims(const pld_function *f, named_dims *dims)
{
    if (f->ndims > MAX_DIM_NAMES)
        return diag_status(DIAG_BAD_PROGRAM, NULL, "%s has too many dynamic dimensions", f->name);
    for (int32_t i = 0; i < f->ndims; ++i)
        dims->extent[i] = -1;
    return STATUS_OK;
}

/* A tensor's extents against the parameter's and those of the tensors before it. */
static pypto_status check_shape(const pld_function *f, const pld_param *param,
                                const pypto_tensor *t, named_dims *dims)
{
    for (int32_t d = 0; d < param->ndim; ++d) {
        const int64_t declared = param->shape[d];
        if (t->shape[d] < 0)
            return diag_status(DIAG_ARGUMENT_TYPE, NULL,
                               "argument '%s' of %s has a negative extent", param->name, f->name);
        if (declared >= 0) {
            if (t->shape[d] != declared)
                return wrong_shape(f, param, t, d);
            continue;
        }
        const int64_t name = -1 - declared;
        if (name >= f->ndims)
            continue;
        if (dims->extent[name] >= 0 && dims->extent[name] != t->shape[d])
            return diag_status(DIAG_DIM_MISMATCH, "make the extents agree, or use two names",
                               "dynamic dimension %s of %s is %lld in '%s' and %lld in '%s'",
                               f->dims[name], f->name, (long long)dims->extent[name],
                               dims->bound_by[name], (long long)t->shape[d], param->name);
        dims->extent[name] = t->shape[d];
        dims->bound_by[name] = param->name;
    }
    return STATUS_OK;
}

static pypto_status check_world(const pld_function *f, const pld_param *param,
                                const pypto_tensor *t, int32_t device_count)
{
    if (param->world_dim < 0 || param->world_dim >= t->ndim)
        return STATUS_OK;
    const int64_t extent = t->shape[param->world_dim];
    if (param->shape[param->world_dim] >= 0) {
        if (extent >= device_count)
            return STATUS_OK;
        return diag_status(
            DIAG_RANK_COUNT,
            "declare the dimension with NR = pl.dynamic(\"NR\") instead of a number, so that "
            "the program runs on any number of devices",
            "parameter '%s' of %s has the literal %lld in dimension %d, which is indexed by "
            "rank, but the run has %d %s",
            param->name, f->name, (long long)extent, param->world_dim, device_count,
            ordinal_devices(device_count));
    }
    if (extent == device_count)
        return STATUS_OK;
    return diag_status(
        DIAG_RANK_COUNT, "pass one slice per device, or set DistributedConfig(device_ids=...)",
        "argument '%s' of %s has %lld slices in dimension %d, but the run has %d %s", param->name,
        f->name, (long long)extent, param->world_dim, device_count, ordinal_devices(device_count));
}

/* Whether two different indices of the tensor can be the same element: sorted by stride, each
 * stride must step over everything below it. Conservative for exotic interleavings, exact for all
 * usual views. */
static bool overlaps_itself(const pypto_tensor *t)
{
    int64_t strides[PYPTO_MAX_DIMS], extents[PYPTO_MAX_DIMS];
    int32_t n = 0;
    for (int32_t d = 0; d < t->ndim; ++d) {
        if (t->shape[d] == 0)
            return false;
        if (t->shape[d] == 1)
            continue;
        const int64_t stride = t->stride[d] < 0 ? -t->stride[d] : t->stride[d];
        int32_t at = n++;
        for (; at > 0 && strides[at - 1] > stride; --at) {
            strides[at] = strides[at - 1];
            extents[at] = extents[at - 1];
        }
        strides[at] = stride;
        extents[at] = t->shape[d];
    }
    int64_t span = 1;
    for (int32_t i = 0; i < n; ++i) {
        if (strides[i] < span)
            return true;
        int64_t reach;
        if (!size_mul(strides[i], extents[i] - 1, &reach) || !size_add(span, reach, &span))
            return false; /* no such memory: staging refuses it */
    }
    return false;
}

static bool is_empty(const pypto_tensor *t)
{
    for (int32_t d = 0; d < t->ndim; ++d)
        if (t->shape[d] == 0)
            return true;
    return false;
}

bool host_adopt(const pld_param *param, int32_t *dtype, int32_t ndim, int64_t *shape,
                int64_t *stride)
{
    if (!pypto_dtype_carries((pypto_dtype)*dtype, (pypto_dtype)param->dtype))
        return false;
    *dtype = param->dtype;
    if (!pypto_dtype_packed((pypto_dtype)param->dtype))
        return true;
    if (ndim == 0 || (stride[ndim - 1] != 1 && shape[ndim - 1] > 1))
        return false;
    for (int32_t d = 0; d < ndim - 1; ++d)
        stride[d] *= 2;
    stride[ndim - 1] = 1;
    shape[ndim - 1] *= 2;
    return true;
}

static pypto_status check_tensor(const pld_function *f, const pld_param *param,
                                 const pypto_argument *arg, const pypto_tensor *t, bool adopted)
{
    char shape[LIST_TEXT];
    if (pypto_dtype_packed((pypto_dtype)param->dtype) && !adopted)
        return diag_status(
            DIAG_ARGUMENT_TYPE,
            "the element with the even index lies in the lower half of the byte",
            "argument '%s' of %s is %s, declared %s: pass its bytes as uint8, packed in the last "
            "dimension, of half its extent",
            param->name, f->name, pypto_dtype_name(arg->tensor.dtype),
            pypto_dtype_name((pypto_dtype)param->dtype));
    if ((int32_t)t->dtype != param->dtype)
        return diag_status(DIAG_ARGUMENT_TYPE, "convert the tensor, or change the declaration",
                           "argument '%s' of %s expects dtype %s, got %s", param->name, f->name,
                           pypto_dtype_name((pypto_dtype)param->dtype), pypto_dtype_name(t->dtype));
    if (t->ndim != param->ndim)
        return diag_status(DIAG_ARGUMENT_TYPE, "reshape the tensor, or change the declaration",
                           "argument '%s' of %s expects rank %d, got shape %s of rank %d",
                           param->name, f->name, param->ndim,
                           describe_list(shape, sizeof shape, t->shape, t->ndim), t->ndim);
    if (t->data == NULL && t->rows == NULL && !is_empty(t))
        return diag_status(DIAG_ARGUMENT_TYPE, NULL,
                           "argument '%s' of %s has no memory (data is NULL)", param->name,
                           f->name);
    if (param->direction == PLD_IN)
        return STATUS_OK;
    if (t->read_only)
        return diag_status(DIAG_ARGUMENT_READ_ONLY, "pass a writable tensor",
                           "argument '%s' of %s is written by the program but is read-only",
                           param->name, f->name);
    if (overlaps_itself(&arg->tensor))
        return diag_status(DIAG_ARGUMENT_READ_ONLY,
                           "pass a tensor whose elements are all distinct memory",
                           "argument '%s' of %s is written by the program but its elements overlap "
                           "(an expanded or stride-0 view)",
                           param->name, f->name);
    return STATUS_OK;
}

/* Whether an integer type has the number; of UINT64 the bits are given. */
static bool holds(pypto_dtype dtype, int64_t value)
{
    switch (dtype) {
    case PYPTO_INT8: return value == (int8_t)value;
    case PYPTO_INT16: return value == (int16_t)value;
    case PYPTO_INT32: return value == (int32_t)value;
    case PYPTO_UINT8: return value == (uint8_t)value;
    case PYPTO_UINT16: return value == (uint16_t)value;
    case PYPTO_UINT32: return value == (uint32_t)value;
    default: return true;
    }
}

static pypto_status check_scalar(const pld_function *f, const pld_param *param,
                                 const pypto_argument *arg)
{
    const pypto_dtype dtype = (pypto_dtype)param->dtype;
    const char *type = pypto_dtype_name(dtype);
    const bool real = dtype == PYPTO_FP32 || dtype == PYPTO_FP16 || dtype == PYPTO_BF16;
    if (dtype == PYPTO_BOOL) /* or not said: 0 in a table that was written by hand */
        return STATUS_OK;
    if (arg->kind == PLD_ARG_FLOAT && !real)
        return diag_status(DIAG_ARGUMENT_TYPE, "pass an integer: int(x)",
                           "argument '%s' of %s is the float %g, but its parameter is %s %s scalar",
                           param->name, f->name, arg->real, text_article(type), type);
    if (arg->kind == PLD_ARG_INT && !real && !holds(dtype, arg->integer))
        return diag_status(DIAG_ARGUMENT_TYPE, "pass another number, or declare a wider type",
                           "argument '%s' of %s: %lld does not fit %s", param->name, f->name,
                           (long long)arg->integer, type);
    return STATUS_OK;
}

pypto_status check_kinds(const pld_function *f, const pypto_argument *args, int32_t count)
{
    if (count != f->nparams || (count > 0 && args == NULL))
        return diag_status(DIAG_ARGUMENT_COUNT, "pass one argument per parameter",
                           "%s expects %d arguments, got %d", f->name, f->nparams, count);
    for (int32_t i = 0; i < count; ++i) {
        const pld_param *param = &f->params[i];
        const bool tensor = args[i].kind == PLD_ARG_TENSOR;
        if (param->kind == PLD_PARAM_SCALAR && tensor)
            return diag_status(
                DIAG_ARGUMENT_TYPE, "pass a number",
                "argument '%s' of %s must be a number: its parameter is a scalar, %s", param->name,
                f->name, pypto_dtype_name((pypto_dtype)param->dtype));
        if (param->kind != PLD_PARAM_SCALAR && !tensor)
            return diag_status(DIAG_ARGUMENT_TYPE, "pass a tensor",
                               "argument '%s' of %s must be a tensor", param->name, f->name);
    }
    return STATUS_OK;
}

pypto_status check_arguments(const pld_function *f, int32_t device_count,
                             const pypto_argument *args, int32_t count)
{
    pypto_status status = check_kinds(f, args, count);
    named_dims dims;
    if (status_ok(status))
        status = start_dims(f, &dims);
    if (!status_ok(status))
        return status;
    for (int32_t i = 0; i < count; ++i) {
        const pld_param *param = &f->params[i];
        if (param->kind == PLD_PARAM_SCALAR) {
            status = check_scalar(f, param, &args[i]);
            if (!status_ok(status))
                return status;
            continue;
        }
        pypto_tensor adopted = args[i].tensor;
        int32_t dtype = (int32_t)adopted.dtype;
        const bool adopts = host_adopt(param, &dtype, adopted.ndim, adopted.shape, adopted.stride);
        adopted.dtype = adopts ? (pypto_dtype)dtype : adopted.dtype;
        status = check_tensor(f, param, &args[i], &adopted, adopts);
        if (status_ok(status))
            status = check_shape(f, param, &adopted, &dims);
        if (status_ok(status))
            status = check_world(f, param, &adopted, device_count);
        if (!status_ok(status))
            return status;
    }
    return STATUS_OK;
}

pypto_status check_sub_arguments(const pld_function *f, const pld_arg *args, int32_t count)
{
    char why[NAME_TEXT];
    if (!args_fit(f, args, count, why, sizeof why))
        return diag_status(DIAG_BAD_DISPATCH, NULL, "%s", why);
    named_dims dims;
    pypto_status status = start_dims(f, &dims);
    if (!status_ok(status))
        return status;
    for (int32_t i = 0; i < count; ++i) {
        if (args[i].kind != PLD_ARG_TENSOR)
            continue;
        const pld_param *param = &f->params[i];
        const pld_tensor *view = args[i].tensor;
        if (view->window != NULL)
            return diag_status(DIAG_BAD_DISPATCH, "pass a tensor, which a kernel has filled",
                               "parameter '%s' of SubWorker '%s' gets a window", param->name,
                               f->name);
        pypto_argument arg = {.kind = PLD_ARG_TENSOR};
        arg.tensor = (pypto_tensor){
            .data = view->data, .dtype = (pypto_dtype)view->dtype, .ndim = view->ndim};
        memcpy(arg.tensor.shape, view->shape, sizeof arg.tensor.shape);
        memcpy(arg.tensor.stride, view->stride, sizeof arg.tensor.stride);
        status = check_tensor(f, param, &arg, &arg.tensor, true);
        if (status_ok(status))
            status = check_shape(f, param, &arg.tensor, &dims);
        if (!status_ok(status))
            return status;
    }
    return STATUS_OK;
}
