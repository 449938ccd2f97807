/* Disagreements: see mismatch.h. */
#include "collective/mismatch.h"

#include <stdio.h>
#include <string.h>

const char *collective_name(int32_t kind)
{
    static const char *const names[] = {[COLLECTIVE_BARRIER] = "barrier",
                                        [COLLECTIVE_ALLREDUCE] = "allreduce",
                                        [COLLECTIVE_BROADCAST] = "broadcast",
                                        [COLLECTIVE_ALLGATHER] = "allgather",
                                        [COLLECTIVE_REDUCE_SCATTER] = "reduce_scatter",
                                        [COLLECTIVE_ALL_TO_ALL] = "all_to_all",
                                        [COLLECTIVE_ALL_TO_ALL_V] = "all_to_all_v"};
    return kind > 0 && kind <= COLLECTIVE_ALL_TO_ALL_V ? names[kind] : "a collective";
}

static const char *op_name(uint8_t op)
{
    static const char *const names[] = {
        [PLD_SUM] = "Sum", [PLD_MAX] = "Max", [PLD_MIN] = "Min", [PLD_PROD] = "Prod"};
    return op < sizeof names / sizeof names[0] ? names[op] : "?";
}

static const char *mode_name(uint8_t mode)
{
    static const char *const names[] = {
        [PLD_MESH] = "mesh", [PLD_RING] = "ring", [PLD_AUTO] = "auto"};
    return mode < sizeof names / sizeof names[0] ? names[mode] : "?";
}

void describe_entry(const pld_program *table, const channel_entry *entry, char *text, size_t bytes)
{
    const collective_call *call = &entry->what;
    char runs[40] = "", more[96] = "", target[64] = "";
    if (call->run != call->count)
        snprintf(runs, sizeof runs, ", %lld side by side", (long long)call->run);
    if (call->kind == COLLECTIVE_ALLREDUCE)
        snprintf(more, sizeof more, ", op=%s, mode=%s", op_name(call->op), mode_name(call->mode));
    else if (call->kind == COLLECTIVE_REDUCE_SCATTER)
        snprintf(more, sizeof more, ", op=%s", op_name(call->op));
    else if (call->kind == COLLECTIVE_BROADCAST)
        snprintf(more, sizeof more, ", root=%d", call->root);
    if (call->buffer >= 0 && call->buffer < table->nbuffers)
        snprintf(target, sizeof target, ", window '%.32s' from byte %lld",
                 table->buffers[call->buffer].name, (long long)call->offset);
    const pld_function *f = entry->function >= 0 && entry->function < table->nfunctions
                                ? table->functions[entry->function]
                                : NULL;
    int used = snprintf(text, bytes, "%s", collective_name(call->kind));
    if (call->kind != COLLECTIVE_BARRIER)
        used +=
            snprintf(text + used, bytes - (size_t)used, "(%lld x %s%s%s%s)", (long long)call->count,
                     pypto_dtype_name((pypto_dtype)call->dtype), runs, more, target);
    if (f != NULL && (size_t)used < bytes)
        snprintf(text + used, bytes - (size_t)used, " in %s at %s:%d", f->name, f->file,
                 entry->line);
}

/* The n-th collective of a rank since its latest whole round, the whole round that it is in included. NULL: it has
 * not come so far. */
static const channel_entry *entry_at(const channel_record *record, int32_t n)
{
    if (n < record->rooted)
        return &record->entries[n];
    return n == record->rooted && record->busy && record->whole ? &record->now : NULL;
}

static bool same_call(const channel_entry *a, const channel_entry *b)
{
    return memcmp(&a->what, &b->what, sizeof a->what) == 0;
}

bool channels_differ(const channel_record *a, const channel_record *b,
                     const channel_entry *calls[2])
{
    for (int32_t n = 0; n <= ROOTED_ROUNDS; ++n) {
        calls[0] = entry_at(a, n);
        calls[1] = entry_at(b, n);
        if (calls[0] == NULL && calls[1] == NULL)
            return false;
        if (calls[0] == NULL || calls[1] == NULL || !same_call(calls[0], calls[1]))
            return true;
    }
    return false;
}

bool channel_histories_differ(const channel_record *a, const channel_record *b)
{
    return a->rooted_rounds != b->rooted_rounds || a->history != b->history;
}

uint64_t channel_position(const channel_record *record)
{
    return record->rounds + record->rooted_rounds;
}

/* The peer is in the same whole round, or has gone on from the rooted round that this rank is in: what it
 * has done so far does not change any more. */
void mismatch_fail(const collective *c, int32_t peer)
{
    char mine[ENTRY_TEXT], theirs[ENTRY_TEXT];
    const channel_record *own = c->record;
    const channel_record *other = (const channel_record *)(const void *)peer_address(
        c->comm, c->window, (const char *)own, peer);
    const channel_entry *calls[2] = {&own->now, own->whole ? &other->now : &own->now};
    if (own->whole) {
        (void)channels_differ(own, other, calls);
    } else {
        int32_t n = 0;
        while (n < own->rooted - 1 && same_call(&own->entries[n], &other->entries[n]))
            ++n;
        calls[0] = &own->entries[n];
        calls[1] = &other->entries[n];
    }
    describe_entry(c->core->table, calls[0], mine, sizeof mine);
    describe_entry(c->core->table, calls[1], theirs, sizeof theirs);
    task_fail(c->core, DIAG_COLLECTIVE_MISMATCH,
              "ranks disagree about a collective: rank %d calls %s; rank %d calls %s",
              c->comm->rank, mine, peer, theirs);
}
