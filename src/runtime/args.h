/* Arguments against the parameters of the function that they are passed to. */
#ifndef RUNTIME_ARGS_H
#define RUNTIME_ARGS_H

#include <pypto/program.h>

/* Whether `count` arguments can be passed to `f`; if not, says why in `text`. */
bool args_fit(const pld_function *f, const pld_arg *args, int32_t count, char *text, int64_t bytes);

#endif
