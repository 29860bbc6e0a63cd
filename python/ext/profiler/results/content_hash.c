/* SPDX-License-Identifier: Apache-2.0
 *
 * What tells a file from others: a hash of its bytes, the same in every version. It costs no more
 * than reading; nobody is kept from making two files with the same one.
 */
#include "profiler/results/model_object.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum {
    LANES = 4, /* independent of each other, so that the processor works on all of them at once */
    STRIPE = LANES * sizeof(uint64_t),
    BLOCK = 1 << 20
};

static const uint64_t seeds[LANES] = {0x9E3779B97F4A7C15u, 0xD6E8FEB86659FD93u, 0xA0761D6478BD642Fu,
                                      0xE7037ED1A0B428DBu};

/* Multiplies two words and folds the product: every bit that goes in reaches every bit. */
static uint64_t fold(uint64_t a, uint64_t b)
{
    unsigned __int128 product = (unsigned __int128)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* n: a multiple of STRIPE. */
static void hash_stripes(uint64_t *lanes, const unsigned char *bytes, size_t n)
{
    uint64_t a[LANES];
    memcpy(a, lanes, sizeof a);
    for (size_t i = 0; i < n; i += STRIPE) {
        uint64_t words[LANES];
        memcpy(words, bytes + i, sizeof words);
        for (int k = 0; k < LANES; k++) {
            a[k] = fold(a[k] ^ words[k], seeds[k]) + words[k];
        }
    }
    memcpy(lanes, a, sizeof a);
}

/* The bytes of an open file; 0 or an errno value. */
static int hash_file(int fd, unsigned char *block, uint64_t *out)
{
    uint64_t lanes[LANES];
    uint64_t length = 0;
    size_t held = 0; /* in the block */
    memcpy(lanes, seeds, sizeof lanes);
    for (;;) {
        ssize_t n = read(fd, block + held, BLOCK - held);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            return errno;
        }
        held += (size_t)n;
        length += (uint64_t)n;
        if (n != 0 && held < BLOCK) {
            continue;
        }
        size_t padded = (held + STRIPE - 1) / STRIPE * STRIPE;
        memset(block + held, 0, padded - held);
        hash_stripes(lanes, block, padded);
        held = 0;
        if (n == 0) {
            break;
        }
    }
    uint64_t both = fold(lanes[0] ^ length, lanes[1] ^ seeds[0]);
    out[0] = fold(both ^ lanes[2], lanes[3] ^ seeds[1]);
    out[1] = fold(out[0] ^ lanes[3] ^ seeds[2], lanes[2] ^ both ^ seeds[3]);
    return 0;
}

/* content_hash(path): 32 hexadecimal digits. */
static PyObject *content_hash(PyObject *Py_UNUSED(module), PyObject *path)
{
    PyObject *bytes = NULL;
    uint64_t hash[2] = {0, 0};
    if (!PyUnicode_FSConverter(path, &bytes)) {
        return NULL;
    }
    unsigned char *block = PyMem_Malloc(BLOCK);
    if (block == NULL) {
        Py_DECREF(bytes);
        return PyErr_NoMemory();
    }
    int error = 0;
    Py_BEGIN_ALLOW_THREADS;
    int fd = open(PyBytes_AS_STRING(bytes), O_RDONLY | O_CLOEXEC);
    error = fd < 0 ? errno : hash_file(fd, block, hash);
    if (fd >= 0) {
        close(fd);
    }
    Py_END_ALLOW_THREADS;
    PyMem_Free(block);
    Py_DECREF(bytes);
    if (error != 0) {
        errno = error;
        return PyErr_SetFromErrnoWithFilenameObject(PyExc_OSError, path);
    }
    char text[40];
    PyOS_snprintf(text, sizeof text, "%016llx%016llx", (unsigned long long)hash[0],
                  (unsigned long long)hash[1]);
    return PyUnicode_FromString(text);
}

static PyMethodDef functions[] = {
    {"content_hash", content_hash, METH_O,
     "content_hash(path): a hash of a file's bytes, 128 bits as text."},
    {NULL, NULL, 0, NULL},
};

py_part content_part;
int content_part(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
