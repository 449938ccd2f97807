/* Checks of what the caller gives, before anything runs. */
#ifndef HOST_CHECK_H
#define HOST_CHECK_H

#include "base/export.h"

#include <pypto/worker.h>

/* Whether there are as many arguments as parameters, tensors for tensors and numbers for scalars. */
PYPTO_NODISCARD pypto_status check_kinds(const pld_function *function, const pypto_argument *args,
                                         int32_t count) EXPORTED(check_kinds);

/* That, and whatever else can be said before the call begins. */
PYPTO_NODISCARD pypto_status check_arguments(const pld_function *function, int32_t device_count,
                                             const pypto_argument *args, int32_t count);

/* Where a tensor of another element type carries the bits of the parameter's (uint8 those of FP8, two elements
 * of 4 bits in each): turns its description into that of the parameter. False when it does not fit. */
bool host_adopt(const pld_param *param, int32_t *dtype, int32_t ndim, int64_t *shape,
                int64_t *stride);

PYPTO_NODISCARD pypto_status check_program(const pld_program *table);

/* The tensors of a call of a function of plane SUB against its parameters. */
PYPTO_NODISCARD pypto_status check_sub_arguments(const pld_function *function, const pld_arg *args,
                                                 int32_t count);

#endif
