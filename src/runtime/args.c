/* The last check before a call crosses a boundary: see args.h. The compiler has checked its own
 * calls; this is for programs written in C, whose mistakes would otherwise be read past the end of
 * an array. */
#include "runtime/args.h"

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
