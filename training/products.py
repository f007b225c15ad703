"""Products with packed weights, for the sublayers."""

from native import call, new


def matmul(x, packed, width, k=None):
    """x [n, k] times a packed weight; `width` outputs, padded to 32."""
    n, k = len(x), k or x.shape[1]
    out = new(n, -(-width // 32) * 32)
    call("gemm", n, width, k, x, x.shape[1], packed, 32, k * 32, out, out.shape[1], 0)
    return out


def add_outer(dy, x, grad, m=None):
    """grad [m, k] += dy^T x."""
    call("gemm_transposed", m or dy.shape[1], x.shape[1], len(x), dy, dy.shape[1], x, x.shape[1], grad, x.shape[1])
