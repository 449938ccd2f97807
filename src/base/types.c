/* The words of types.h and pypto.h as data: names and sizes of element types, the version. */
#include <pypto/pypto.h>

typedef struct dtype_info {
    const char *name;
    int64_t bits;
} dtype_info;

static const dtype_info dtypes[PYPTO_DTYPE_COUNT] = {
#define DTYPE_ROW(name, text, bits, class_) [PYPTO_##name] = {text, bits},
    PYPTO_DTYPES(DTYPE_ROW)
#undef DTYPE_ROW
};

/* Numbers arrive from Python and over the wire: anything may come. */
static bool is_dtype(pypto_dtype dtype)
{
    return (uint32_t)dtype < PYPTO_DTYPE_COUNT;
}

const char *pypto_dtype_name(pypto_dtype dtype)
{
    return is_dtype(dtype) ? dtypes[dtype].name : "?";
}

int64_t pypto_dtype_bytes(pypto_dtype dtype)
{
    return is_dtype(dtype) ? (dtypes[dtype].bits + 7) / 8 : 0;
}

bool pypto_dtype_packed(pypto_dtype dtype)
{
    return is_dtype(dtype) && dtypes[dtype].bits < 8;
}

int64_t pypto_dtype_size(pypto_dtype dtype, int64_t elems)
{
    return pypto_dtype_packed(dtype) ? elems / 2 : elems * pypto_dtype_bytes(dtype);
}

bool pypto_dtype_carries(pypto_dtype carrier, pypto_dtype dtype)
{
    switch (dtype) {
    case PYPTO_FP8E4M3FN:
    case PYPTO_FP8E5M2:
    case PYPTO_FP8E8M0: return carrier == dtype || carrier == PYPTO_UINT8;
    case PYPTO_FP4:
    case PYPTO_INT4:
    case PYPTO_UINT4: return carrier == PYPTO_UINT8;
    case PYPTO_UINT16: return carrier == dtype || carrier == PYPTO_INT16;
    case PYPTO_UINT32: return carrier == dtype || carrier == PYPTO_INT32;
    case PYPTO_UINT64:
    case PYPTO_INDEX: return carrier == dtype || carrier == PYPTO_INT64;
    default: return carrier == dtype;
    }
}

const char *pypto_version(void)
{
    return PYPTO_VERSION;
}
