/* args_dump: what arguments held before and after their tasks. args.bin has the elements of each, packed in row-major order,
 * one behind the other; the index says where, and what the argument looked like. */
#include "trace/trace.h"

static bool is_contiguous(const trace_arg *arg)
{
    int64_t next = 1;
    for (int32_t d = arg->ndim - 1; d >= 0; --d) {
        if (arg->shape[d] != 1 && arg->stride[d] != next)
            return false;
        next *= arg->shape[d];
    }
    return true;
}

static void add_entry(const trace_run *run, const trace_task *t, const event_content *c, int64_t at,
                      text *out)
{
    static const char *const roles[] = {"input", "output", "inout"};
    const trace_arg *arg = &t->args[c->arg];
    const pld_function *f = run->table->functions[t->event->function];
    json_next(out);
    text_printf(out,
                "\n{\"task_id\":\"%lld\",\"func_id\":%d,\"role\":\"%s\",\"stage\":\"%s\","
                "\"arg_index\":%d,\"kind\":\"tensor\",\"dtype\":\"%s\",\"shape\":",
                (long long)t->event->id - 1, t->event->function, roles[f->params[c->arg].direction],
                c->after != 0 ? "after_completion" : "before_dispatch", c->arg,
                pypto_dtype_name((pypto_dtype)arg->dtype));
    json_numbers(out, arg->shape, arg->ndim);
    text_add(out, ",\"strides\":");
    json_numbers(out, arg->stride, arg->ndim);
    text_printf(out,
                ",\"start_offset\":0,\"is_contiguous\":%s,\"truncated\":%s,\"overwritten\":false,"
                "\"bin_offset\":%lld,\"bin_size\":%lld}",
                is_contiguous(arg) ? "true" : "false", c->bytes_kept < c->bytes ? "true" : "false",
                (long long)at, (long long)c->bytes_kept);
}

/* With level 2, numbers are told, too. */
static void add_scalars(const trace_task *t, text *out)
{
    for (int32_t i = 0; t->event->function >= 0 && i < t->event->arg_count; ++i) {
        const trace_arg *arg = &t->args[i];
        if (arg->kind == PLD_ARG_TENSOR)
            continue;
        json_next(out);
        text_printf(out,
                    "\n{\"task_id\":\"%lld\",\"func_id\":%d,\"role\":\"input\","
                    "\"stage\":\"before_dispatch\",\"arg_index\":%d,\"kind\":\"scalar\","
                    "\"dtype\":\"%s\",\"shape\":[],\"strides\":[],\"start_offset\":0,"
                    "\"is_contiguous\":true,\"truncated\":false,\"overwritten\":false,"
                    "\"bin_offset\":0,\"bin_size\":0,\"value\":",
                    (long long)t->event->id - 1, t->event->function, i,
                    arg->kind == PLD_ARG_FLOAT ? "fp32" : "int64");
        if (arg->kind == PLD_ARG_FLOAT)
            text_printf(out, arg->real - arg->real == 0 ? "%.17g}" : "null}", arg->real);
        else
            text_printf(out, "\"%lld\"}", (long long)arg->integer);
    }
}

void trace_contents(const trace_run *run, const trace_dispatch *d, const char *folder, text *out,
                    text *content)
{
    int64_t truncated = 0;
    for (int64_t i = 0; i < d->contents.count; ++i)
        truncated += d->contents.items[i]->bytes_kept < d->contents.items[i]->bytes;
    text_add(out, "{\"run_dir\":");
    json_string(out, folder);
    text_printf(
        out,
        ",\"bin_format\":{\"type\":\"logical_contiguous\",\"byte_order\":\"little_endian\"},"
        "\"dump_args_level\":%d,\"total_args\":%lld,\"truncated_args\":%lld,"
        "\"dropped_records\":%lld,\"bin_file\":\"args.bin\",\n\"args\":[",
        run->wanted->dump_args, (long long)d->contents.count, (long long)truncated,
        (long long)run->consumers[d->consumer].dropped);
    for (int64_t k = 0; run->wanted->dump_args >= 2 && k < d->tasks.count; ++k)
        add_scalars(&d->tasks.items[k], out);
    for (int64_t i = 0; i < d->contents.count; ++i) {
        const event_content *c = d->contents.items[i];
        if (c->task > d->tasks.count)
            continue;
        add_entry(run, &d->tasks.items[c->task - 1], c, content->length, out);
        text_add_n(content, (const char *)(c + 1), c->bytes_kept);
    }
    text_add(out, "]}\n");
}
