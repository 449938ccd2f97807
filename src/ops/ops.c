/* Questions about operations, answered from the parsed table (table.c): what they are called, what they do to their
 * operands, where they may stand; and about enumerations.
 *
 * Called by the front end (lookup, binding, checking), the verifier and the emitter. */
#include "ops/ops.h"

#include <string.h>

bool op_reaches_peers(const op_def *op)
{
    for (int32_t i = 0; i < op->param_count; i++)
        if (strcmp(op->params[i].name, "peer") == 0)
            return true;
    return false;
}

bool op_creates_tensor(const op_def *op)
{
    return op->id == OP_CREATE_TENSOR || op->id == OP_HOST_CREATE_TENSOR;
}

const char *op_entry_name(const op_param *param)
{
    static const char *const names[][2] = {
        {"offsets", "offset"}, {"shapes", "shape"}, {"indices", "index"}};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(param->name, names[i][0]) == 0)
            return names[i][1];
    }
    return param->name;
}

const op_def *op_find(const char *spelling)
{
    for (int32_t i = 0; i < OP_COUNT; i++) {
        const op_def *def = op_get((op_id)i);
        if (op_is_spelled(def, spelling))
            return def;
    }
    return NULL;
}

static const char *last_segment(const char *dotted)
{
    const char *dot = strrchr(dotted, '.');
    return dot == NULL ? dotted : dot + 1;
}

/* A right name in the wrong place ("pl.notify") is a nearer miss than any typing error. */
const char *op_nearest(const char *spelling)
{
    const char *all[OP_COUNT * OP_MAX_SPELLINGS + WORD_COUNT];
    int64_t count = 0;
    const char *module = strncmp(spelling, "pld.", 4) == 0 ? "pld." : "";
    for (int32_t i = 0; i < WORD_COUNT; i++)
        if (strncmp(language_words()[i].path, module, strlen(module)) == 0)
            all[count++] = language_words()[i].path;
    for (int32_t i = 0; i < OP_COUNT; i++) {
        const op_def *def = op_get((op_id)i);
        for (const char *const *s = def->spellings; *s != NULL; s++)
            if (strncmp(*s, module, strlen(module)) == 0)
                all[count++] = *s;
    }
    const char *same[OP_COUNT * OP_MAX_SPELLINGS + WORD_COUNT];
    int64_t same_count = 0;
    for (int64_t i = 0; i < count; i++) {
        if (strcmp(last_segment(all[i]), last_segment(spelling)) == 0)
            same[same_count++] = all[i];
    }
    if (same_count == 0)
        return nearest_word(spelling, all, count);
    const char *nearest = nearest_word(spelling, same, same_count);
    return nearest == NULL ? same[0] : nearest;
}

void op_list_short_forms(text *out, const char *module)
{
    const size_t length = strlen(module);
    const char *separator = "";
    for (int32_t i = 0; i < OP_COUNT; i++) {
        for (const char *const *s = op_get((op_id)i)->spellings; *s != NULL; s++) {
            if (strncmp(*s, module, length) != 0 || last_segment(*s) != *s + length + 1 ||
                op_find(*s) != op_get((op_id)i)) /* several of one name */
                continue;
            text_printf(out, "%s%s", separator, *s);
            separator = ", ";
        }
    }
}

bool op_writes(const op_def *op, int32_t param)
{
    return (op->writes >> param & 1u) != 0;
}

bool op_reads(const op_def *op, int32_t param)
{
    return (op->reads >> param & 1u) != 0;
}

bool op_is_elementwise(const op_def *op)
{
    static const char prefix[] = "elementwise:";
    return strncmp(op->emit, prefix, sizeof prefix - 1) == 0;
}

bool op_in_place(const op_def *op, int32_t param)
{
    if (!op_is_elementwise(op))
        return false;
    const size_t length = strlen(op->params[param].name);
    for (const char *at = strstr(op->emit, ".bit}"); at != NULL; at = strstr(at + 1, ".bit}"))
        if (at - op->emit > (ptrdiff_t)length && at[-1 - (ptrdiff_t)length] == '{' &&
            memcmp(at - length, op->params[param].name, length) == 0)
            return false;
    return true;
}

const char *op_operator(const op_def *op)
{
    static const char prefix[] = "operator: ";
    return strncmp(op->emit, prefix, sizeof prefix - 1) == 0 ? op->emit + sizeof prefix - 1 : NULL;
}

bool op_allowed(const op_def *op, pld_plane plane)
{
    switch (plane) {
    case PLD_PLANE_HOST: return op->on_host;
    case PLD_PLANE_CHIP: return op->on_chip;
    case PLD_PLANE_CORE: return op->in_core;
    case PLD_PLANE_SUB: break;
    }
    return false;
}

/* ---- enumerations ---- */

static const enum_member members[] = {
#define ENUM(module, enumeration, member, value, c_name) \
    {module, enumeration, member, value, c_name},
#include "ops/enums.def"
#undef ENUM
};

const enum_member *enum_members(int32_t *count)
{
    *count = (int32_t)(sizeof members / sizeof members[0]);
    return members;
}

const enum_member *enum_find(const char *enumeration, const char *member)
{
    for (size_t i = 0; i < sizeof members / sizeof members[0]; i++) {
        if (strcmp(members[i].enumeration, enumeration) == 0 &&
            strcmp(members[i].member, member) == 0)
            return &members[i];
    }
    return NULL;
}

const char *enum_member_name(const char *enumeration, int64_t value)
{
    for (size_t i = 0; i < sizeof members / sizeof members[0]; i++) {
        if (strcmp(members[i].enumeration, enumeration) == 0 && members[i].value == value)
            return members[i].member;
    }
    return NULL;
}
