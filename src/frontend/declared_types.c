/* Annotations of names and results against what they are. */
#include "frontend/lower.h"
#include "frontend/scalars.h"
#include "frontend/signature.h"

#include "ops/dtypes.h"

static bool mismatch(lowering *fl, pypto_span span, const char *what, const char *problem)
{
    report(fl->fe, DIAG_BAD_ANNOTATION, span, "change the annotation, or leave it out",
           "Type annotation for %s is %s", what, problem);
    return false;
}

static bool check_shape(lowering *fl, const ir_type *declared, const ir_type *have, pypto_span span,
                        const char *what)
{
    arena *a = fl->a;
    if (declared->dtype != have->dtype)
        return mismatch(fl, span, what,
                        arena_printf(a, "dtype %s but expression has dtype %s",
                                     pypto_dtype_name(declared->dtype),
                                     pypto_dtype_name(have->dtype)));
    if (declared->ndim != have->ndim)
        return mismatch(
            fl, span, what,
            arena_printf(a, "rank %d but expression has rank %d", declared->ndim, have->ndim));
    for (int32_t i = 0; i < have->ndim; i++) {
        int64_t x = 0;
        int64_t y = 0;
        if (ir_is_const_int(declared->shape[i], &x) && ir_is_const_int(have->shape[i], &y) &&
            x != y)
            return mismatch(fl, span, what,
                            arena_printf(a, "shape dimension %d = %lld but expression has %lld", i,
                                         (long long)x, (long long)y));
    }
    return true;
}

bool check_declared(lowering *fl, const dsl_annotation *declared, const ir_type *have,
                    pypto_span span, const char *what)
{
    bool same_kind = declared->type.kind == have->kind ||
                     (declared->type.kind == IR_TENSOR && have->kind == IR_WINDOW);
    if (!same_kind)
        return mismatch(fl, span, what,
                        arena_printf(fl->a, "%s but expression has type %s",
                                     ir_kind_name(declared->type.kind), ir_kind_name(have->kind)));
    bool shaped = ir_is_memory(have->kind) || ir_is_private(have->kind);
    return declared->form == ANNOTATION_BARE || !shaped ||
           check_shape(fl, &declared->type, have, span, what);
}

dsl_value annotated_scalar(lowering *fl, const dsl_annotation *declared, dsl_value v,
                           pypto_span span, const char *what)
{
    pypto_dtype have = v.expr->dtype;
    pypto_dtype want = declared->type.dtype;
    bool with_index = ir_is_integer(have) && ir_is_integer(want) &&
                      (dtype_is_index(have) || dtype_is_index(want));
    if (v.literal || with_index || have == want)
        return scalar_convert(fl, v, want, what);
    (void)mismatch(fl, span, what,
                   arena_printf(fl->a, "dtype %s but expression has dtype %s",
                                pypto_dtype_name(want), pypto_dtype_name(have)));
    return poison();
}
