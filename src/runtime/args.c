/* The last check before a call crosses a boundary: see args.h. The compiler has checked its own
 * calls; this is for programs written in C, whose mistakes would otherwise be read past the end of
 * an array. */
#include "runtime/args.h"

#include "base/alloc.h"

#include <stdio.h>

static bool arg_fits(const pld_param *param, const pld_arg *arg, const char **expected)
{
    const bool tensor = arg->kind == PLD_ARG_TENSOR;
    if (param->kind == PLD_PARAM_SCALAR) {
        *expected = "a number";
        return arg->kind == PLD_ARG_INT || arg->kind == PLD_ARG_FLOAT;
    }
    *expected = param->kind == PLD_PARAM_WINDOW ? "a window" : "a tensor";
    return tensor && arg->tensor != NULL &&
           (param->kind != PLD_PARAM_WINDOW || arg->tensor->window != NULL);
}

bool args_fit(const pld_function *f, const pld_arg *args, int32_t count, char *text, int64_t bytes)
{
    if (count != f->nparams || (count > 0 && args == NULL)) {
        snprintf(text, (size_t)bytes, "%s takes %d arguments, got %d", f->name, f->nparams, count);
        return false;
    }
    for (int32_t i = 0; i < count; ++i) {
        const char *expected;
        if (arg_fits(&f->params[i], &args[i], &expected))
            continue;
        snprintf(text, (size_t)bytes, "parameter '%s' of %s needs %s", f->params[i].name, f->name,
                 expected);
        return false;
    }
    return true;
}

int32_t function_index(const pld_program *program, const pld_function *function, pld_plane plane)
{
    for (int32_t i = 0; i < program->nfunctions; ++i)
        if (program->functions[i] == function && function->plane == plane)
            return i;
    return -1;
}

bool arg_list_reserve(arg_list *list, int32_t count)
{
    list->count = count;
    if (count <= list->capacity)
        return true;
    pld_arg *args = alloc_resize(list->args, count, (int64_t)sizeof *args);
    if (args != NULL)
        list->args = args;
    pld_tensor *tensors = alloc_resize(list->tensors, count, (int64_t)sizeof *tensors);
    if (tensors != NULL)
        list->tensors = tensors;
    if (args == NULL || tensors == NULL)
        return false;
    list->capacity = count;
    return true;
}

void arg_list_free(arg_list *list)
{
    alloc_free(list->args);
    alloc_free(list->tensors);
    *list = (arg_list){0};
}
