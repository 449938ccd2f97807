/* Loaded programs: pypto_program_*. */
#include "base/alloc.h"
#include "host/host.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>

static _Atomic uint64_t loaded;

uint64_t programs_loaded(void)
{
    return atomic_load_explicit(&loaded, memory_order_acquire);
}

static pypto_status make_program(const pld_program *table, void *object, const char *path,
                                 pypto_program **program)
{
    pypto_status status = check_program(table);
    if (!status_ok(status))
        return status;
    char *full = path != NULL ? realpath(path, NULL) : NULL; /* the caller may change directory */
    if (path != NULL && full == NULL)
        return diag_system(errno, NULL, "find the compiled program %s", path);
    pypto_program *p = alloc_zeroed(1, (int64_t)sizeof *p);
    if (p == NULL) {
        free(full);
        return diag_no_memory();
    }
    atomic_store_explicit(&p->references, 1, memory_order_relaxed);
    p->serial = atomic_fetch_add_explicit(&loaded, 1, memory_order_acq_rel) + 1;
    p->table = table;
    p->object = object;
    p->path = full;
    *program = p;
    return STATUS_OK;
}

pypto_status pypto_program_from_table(const pld_program *table, pypto_program **program)
{
    return make_program(table, NULL, NULL, program);
}

pypto_status pypto_program_open(const char *path, pypto_program **program)
{
    void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    const pld_program *table = object == NULL ? NULL : dlsym(object, PLD_PROGRAM_SYMBOL);
    pypto_status status;
    if (table == NULL)
        status =
            diag_status(DIAG_BAD_PROGRAM, NULL, "cannot load the compiled program: %s", dlerror());
    else
        status = make_program(table, object, path, program);
    if (!status_ok(status) && object != NULL)
        dlclose(object);
    return status;
}

const pld_program *pypto_program_table(const pypto_program *program)
{
    return program->table;
}

pypto_program *pypto_program_retain(pypto_program *program)
{
    atomic_fetch_add_explicit(&program->references, 1, memory_order_relaxed);
    return program;
}

void pypto_program_release(pypto_program *program)
{
    if (program == NULL ||
        atomic_fetch_sub_explicit(&program->references, 1, memory_order_acq_rel) != 1)
        return;
    if (program->object != NULL)
        dlclose(program->object);
    free(program->path);
    alloc_free(program);
}
