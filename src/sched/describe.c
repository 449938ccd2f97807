/* Words for reports: see describe.h. */
#include "sched/describe.h"

#include "sched/sched.h"

#include <stdio.h>
#include <string.h>

const char *describe_list(char *text, int64_t bytes, const int64_t *values, int32_t count)
{
    int64_t used = snprintf(text, (size_t)bytes, "[");
    for (int32_t i = 0; i < count && used < bytes; ++i)
        used += snprintf(text + used, (size_t)(bytes - used), "%s%lld", i > 0 ? ", " : "",
                         (long long)values[i]);
    if (used < bytes)
        snprintf(text + used, (size_t)(bytes - used), "]");
    return text;
}

int32_t task_param_of(const pld_core *core, const pld_tensor *tensor)
{
    for (int32_t i = 0; i < core->arg_count; ++i)
        if (core->args[i].kind == PLD_ARG_TENSOR && core->args[i].tensor == tensor)
            return i;
    for (int32_t i = 0; i < core->arg_count; ++i)
        if (core->args[i].kind == PLD_ARG_TENSOR &&
            core->args[i].tensor->window == tensor->window &&
            core->args[i].tensor->data == tensor->data)
            return i;
    return -1;
}

const char *task_describe(const pld_core *core, const pld_tensor *tensor, char *text, int64_t bytes)
{
    const int32_t param = task_param_of(core, tensor);
    const char *name =
        param >= 0 && param < core->function->nparams ? core->function->params[param].name : NULL;
    if (tensor->window != NULL && tensor->window->buffer < core->table->nbuffers) {
        const char *buffer = core->table->buffers[tensor->window->buffer].name;
        if (name != NULL && strcmp(name, buffer) != 0)
            snprintf(text, (size_t)bytes, "window '%s' (parameter '%s')", buffer, name);
        else
            snprintf(text, (size_t)bytes, "window '%s'", buffer);
    } else if (name != NULL) {
        snprintf(text, (size_t)bytes, "parameter '%s'", name);
    } else {
        snprintf(text, (size_t)bytes, "a tensor");
    }
    return text;
}
