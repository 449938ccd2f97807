/* Chooses the loops for this CPU. */
#include "collective/fold.h"

const fold *fold_of(pypto_dtype dtype, pld_reduce_op op)
{
#ifdef FOLD_X86
    if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl"))
        return fold_of_avx512(dtype, op);
    if (__builtin_cpu_supports("avx2"))
        return fold_of_avx2(dtype, op);
#endif
    return fold_of_any_cpu(dtype, op);
}
