/* The passes in their order, and the driver that runs them.
 *
 * The order matters in one place only: names come last, so that variables which earlier passes add
 * get one too. A pass that finds errors of the user's program ends the run, because later passes
 * rely on what it would have filled in; inside a pass all errors are collected. */
#include "passes/passes.h"

#include "base/diag.h"

static pypto_status infer_domains(ir_program *p, const platform *target)
{
    (void)target;
    return pass_infer_domains(p);
}

static pypto_status spread(ir_program *p, const platform *target)
{
    (void)target;
    return pass_spread(p);
}

static pypto_status mark_signals(ir_program *p, const platform *target)
{
    (void)target;
    return pass_mark_signals(p);
}

static pypto_status effects(ir_program *p, const platform *target)
{
    (void)target;
    return pass_effects(p);
}

static pypto_status release(ir_program *p, const platform *target)
{
    (void)target;
    return pass_release(p);
}

static pypto_status names(ir_program *p, const platform *target)
{
    (void)target;
    return pass_names(p);
}

typedef struct pass {
    const char *name; /* as verify_program() knows it */
    pypto_status (*run)(ir_program *p, const platform *target);
} pass;

static const pass pass_table[] = {
    {"infer_domains", infer_domains},
    {"spread", spread},
    {"mark_signals", mark_signals},
    {"effects", effects},
    {"release", release},
    {"plan_scratch", pass_plan_scratch},
    {"names", names},
};

static void show(const pass_observer *observer, const char *stage, const ir_program *p)
{
    if (observer != NULL)
        observer->seen(observer->context, stage, p);
}

pypto_status passes_run(ir_program *p, const platform *target, const pass_observer *observer)
{
    pypto_status status = verify_program(p, NULL);
    if (status_ok(status))
        show(observer, "front_end", p);
    for (size_t i = 0; i < sizeof pass_table / sizeof pass_table[0] && status_ok(status); i++) {
        status = pass_table[i].run(p, target);
        if (status_ok(status))
            status = verify_program(p, pass_table[i].name);
        if (status_ok(status))
            show(observer, pass_table[i].name, p);
    }
    return status;
}
