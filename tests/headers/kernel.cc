// A kernel and a host function in C++17: the device API's macros must be usable there too. Only compiled.
#include <pypto/pypto.h>

static const pld_function *wrapper;

extern "C" void kernel(pld_core *core, const pld_arg *args)
{
    float *tile = static_cast<float *>(pld_scratch(core));
    const pld_tensor *data = args[0].tensor;
    const pld_comm *ctx = pld_get_comm(core, data);
    pld_load(core, tile, data, PLD_AT(0, 0), PLD_EXTENTS(1, 8));
    pld_notify(core, args[1].tensor, (ctx->rank + 1) % ctx->nranks, PLD_AT(0), 1, PLD_ATOMIC_ADD);
    pld_wait(core, args[1].tensor, PLD_AT(0), 1, PLD_GE);
    pld_remote_load(core, tile, data, 0, PLD_AT(0, 0), PLD_EXTENTS(1, 8));
    pld_store(core, tile, data, PLD_AT(0, 0), PLD_EXTENTS(1, 8));
    pld_remote_store(core, tile, data, 0, PLD_AT(0, 0), PLD_EXTENTS(1, 8), NULL, PLD_ADD);
    pld_remote_assemble(core, data, 0, args[2].tensor, PLD_AT(0, 0), PLD_PLAIN);
    pld_put(core, data, 0, data, PLD_AT(0, 0), NULL, PLD_EXTENTS(1, 8), PLD_PLAIN);
    pld_get(core, data, 0, data, NULL, NULL, NULL);
    pld_submit(core, wrapper, PLD_ARGS(PLD_TENSOR(data), PLD_INT(3), PLD_FLOAT(0.5)), 3);
}

extern "C" void host(pld_host *h, const pld_arg *args)
{
    pld_tensor row = pld_index(h, args[0].tensor, 1, PLD_AT(0));
    pld_dispatch(h, 0, wrapper, PLD_ARGS(PLD_TENSOR(&row)), 1);
}
