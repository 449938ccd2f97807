/* Loaded programs: pypto_program_*. */
#include "base/alloc.h"
#include "base/os.h"
#include "host/host.h"

#include <dlfcn.h>
#include <errno.h>

static pypto_status make_program(const pld_program *table, void *object, int fd,
                                 pypto_program **program)
{
    pypto_status status = check_program(table);
    if (!status_ok(status))
        return status;
    pypto_program *p = alloc_zeroed(1, (int64_t)sizeof *p);
    if (p == NULL)
        return diag_no_memory();
    atomic_store_explicit(&p->references, 1, memory_order_relaxed);
    p->table = table;
    p->object = object;
    p->fd = fd;
    *program = p;
    return STATUS_OK;
}

pypto_status pypto_program_from_table(const pld_program *table, pypto_program **program)
{
    return make_program(table, NULL, -1, program);
}

pypto_status pypto_program_open(const char *path, pypto_program **program)
{
    int fd = os_open_read(path);
    if (fd < 0)
        return diag_system(errno, NULL, "open the compiled program %s", path);
    void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    const pld_program *table = object == NULL ? NULL : dlsym(object, PLD_PROGRAM_SYMBOL);
    pypto_status status;
    if (table == NULL)
        status = diag_status(DIAG_BAD_PROGRAM, "delete it, or set PYPTO_CACHE_DIR to another place",
                             "cannot load the compiled program: %s", dlerror());
    else
        status = make_program(table, object, fd, program);
    if (!status_ok(status)) {
        if (object != NULL)
            dlclose(object);
        os_close(&fd);
    }
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
    os_close(&program->fd);
    alloc_free(program);
}
