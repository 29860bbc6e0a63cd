# SPDX-License-Identifier: Apache-2.0
"""Cases of ops_linalg.def: eigenvalues and eigenvectors of any square matrix. Gradients are compared with differences
in tests/python/linalg/test_eig.py, with losses that do not depend on the vectors' phases."""
import numpy as np
from cases_linalg import not_square, square
from opcases import Bad, Case, cases

SKIP = {"0-d": "needs a matrix"}
SHAPES = ((3, 3), (2, 4, 4), (1, 1), (0, 3, 3), (2, 0, 0))


def near(got, want, single):
    limit = 1e-4 if single else 1e-10
    assert got.shape == want.shape, (got.shape, want.shape)
    assert np.allclose(got, want, rtol=limit, atol=limit), np.abs(got - want).max()


def matrices(g):
    """Real and complex ones; the rotation has a pair of conjugates."""
    for shape in SHAPES:
        yield square(g, shape)
        real = np.asarray(square(g, shape))
        yield np.array(real + 1j * np.asarray(g.array(shape)), "complex64" if g.dtype == "float32" else "complex128")
    yield g.cast([[0.0, -1.0], [1.0, 0.0]])


def refused(g, op):
    yield Bad((g.other("float16", (2, 2)),), "NotImplementedError", "\"linalg_eig_out_cpu\" not implemented for 'Half'")
    yield Bad((g.other("int64", (2, 2)),), "RuntimeError", "Unknown Complex ScalarType for Long")
    for wrong in (np.nan, np.inf) if g.op == "linalg_eig" else ():  # torch's eigvals() does not look
        yield Bad((g.cast([[1.0, wrong], [0.0, 1.0]]),), "RuntimeError",
                  "torch.linalg.eig: input tensor should not contain infs or NaNs.")
    yield from not_square(g, op)


@cases("linalg_eig", skip=SKIP)
def linalg_eig(g):
    def check(got, args, given):
        a = args[0].numpy()
        values, vectors = got[0].numpy(), got[1].numpy()
        single = g.dtype == "float32"
        assert values.dtype == vectors.dtype == np.dtype("complex64" if single else "complex128")
        near(a @ vectors, vectors * values[..., None, :], single)
        near(np.linalg.norm(vectors, axis=-2), np.ones(values.shape), single)
        near(np.sort_complex(values), np.sort_complex(np.linalg.eigvals(a)), single)
    for matrix in matrices(g):
        yield Case((matrix,), {}, check=check, grad=False)
    yield from refused(g, "linalg.eig")


@cases("linalg_eigvals", "_linalg_eigvals", skip=SKIP)
def linalg_eigvals(g):
    def check(got, args, given):
        near(np.sort_complex(got.numpy()), np.sort_complex(np.linalg.eigvals(args[0].numpy())), g.dtype == "float32")
    for matrix in matrices(g):
        yield Case((matrix,), {}, check=check, grad=False)
    yield from refused(g, "linalg.eigvals")
