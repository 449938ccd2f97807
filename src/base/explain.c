/* The long texts of diagnostics, for `pypto explain`. Apart from diag.c, which every failing call needs. */
#include "base/diag.h"

static const diag_explanation explanations[DIAG_COUNT] = {
#define EXPLAIN(name, meaning, example, fix) [DIAG_##name] = {meaning, example, fix},
#include "base/explanations.def"
#undef EXPLAIN
};

const diag_explanation *diag_explain(diag_code code)
{
    return &explanations[(uint32_t)code < DIAG_COUNT ? code : DIAG_INTERNAL];
}
