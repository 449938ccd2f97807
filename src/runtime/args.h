/* Functions and their arguments, where a call crosses a boundary: does what is passed fit, and where it is
 * kept. */
#ifndef RUNTIME_ARGS_H
#define RUNTIME_ARGS_H

#include <pypto/program.h>

/* Whether `count` arguments can be passed to `f`; if not, says why in `text`. */
bool args_fit(const pld_function *f, const pld_arg *args, int32_t count, char *text, int64_t bytes);

/* The number by which a program knows a function of that plane; -1: it has no such function. */
int32_t function_index(const pld_program *program, const pld_function *function, pld_plane plane);

/* Arguments of a wrapper or task: own copies, reused from one to the next. `tensor` of an argument points
 * into `tensors`. */
typedef struct arg_list {
    pld_arg *args;
    pld_tensor *tensors;
    int32_t count;
    int32_t capacity;
} arg_list;

/* Room for `count` arguments, whatever was in them; false when memory is exhausted. */
bool arg_list_reserve(arg_list *list, int32_t count);
void arg_list_free(arg_list *list);

#endif
