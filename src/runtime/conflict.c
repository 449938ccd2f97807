/* Tasks that use the same memory: see conflict.h. Exact to the element. */
#include "runtime/conflict.h"

#include "base/bits.h"
#include "collective/operands.h"

/* What a task does to an argument, as pld_use bits. */
uint32_t task_uses(const task *t, int32_t i)
{
    if (t->arguments.args[i].kind != PLD_ARG_TENSOR || (t->independent_args & word_bit(i)) != 0)
        return 0;
    const pld_param *param = &t->function->params[i];
    if (param->uses != 0)
        return param->uses;
    return param->direction == PLD_IN ? PLD_READS : PLD_READS | PLD_WRITES;
}

/* Whether the later of two uses of the same memory must come after the earlier one is over. Signals
 * have an order of their own: a wait does not come before the notify that it may wait for, and among
 * notifies only the last of several sets matters. */
static bool uses_conflict(uint32_t earlier, uint32_t later)
{
    const uint32_t any = PLD_READS | PLD_WRITES | PLD_NOTIFIES | PLD_AWAITS;
    if ((earlier & PLD_WRITES) != 0)
        return (later & any) != 0;
    if ((later & PLD_WRITES) != 0)
        return (earlier & any) != 0;
    if ((earlier & PLD_NOTIFIES) != 0 && (later & PLD_READS) != 0)
        return true;
    return (later & PLD_NOTIFIES) != 0 && (earlier & PLD_AWAITS) == 0 &&
           (earlier & (PLD_READS | PLD_NOTIFIES)) != 0;
}

static bool uses_data(uint32_t uses)
{
    return (uses & (PLD_READS | PLD_WRITES | PLD_NOTIFIES)) != 0;
}

/* Whether one of the two is a barrier of a wrapper, and the other does something in a window of its domain. A
 * task that only waits there is left alone: what it waits for may come behind the barrier. */
static bool is_fenced(const pld_tensor *a, uint32_t uses_a, const pld_tensor *b, uint32_t uses_b)
{
    const bool fences = ((uses_a & PLD_FENCES) != 0 && uses_data(uses_b)) ||
                        ((uses_b & PLD_FENCES) != 0 && uses_data(uses_a));
    return fences && a->window != NULL && b->window != NULL && same_domain(a, b);
}

int32_t task_conflict(const task *earlier, const pld_tensor *tensor, byte_range range,
                      uint32_t later)
{
    for (int32_t i = 0; i < earlier->arguments.count; ++i) {
        const uint32_t uses = task_uses(earlier, i);
        const pld_tensor *other = earlier->arguments.args[i].tensor;
        if (uses != 0 && is_fenced(other, uses, tensor, later))
            return i;
        if (uses_conflict(uses, later) && views_overlap(other, earlier->ranges[i], tensor, range))
            return i;
    }
    return earlier->tested.data != NULL && uses_conflict(PLD_READS, later) &&
                   views_overlap(&earlier->tested, earlier->tested_range, tensor, range)
               ? earlier->arguments.count
               : -1;
}

bool task_must_follow(const task *later, const task *earlier)
{
    for (int32_t i = 0; i < later->arguments.count; ++i) {
        const uint32_t uses = task_uses(later, i);
        if (uses != 0 &&
            task_must_precede(earlier, later->arguments.args[i].tensor, later->ranges[i], uses))
            return true;
    }
    return later->tested.data != NULL &&
           task_must_precede(earlier, &later->tested, later->tested_range, PLD_READS);
}
