"""exp, tanh, sigmoid and erf of one float32, accurate to a few units in the last place. The
compiler can vectorise loops over them (unlike loops over calls of the C library)."""

import math
from typing import Any

import numpy as np

from .kernel import ordered_kernel

_F = np.float32
_LOG2E, _LN2_HIGH, _LN2_LOW = _F(1.44269504), _F(0.693359375), _F(-2.12194440e-4)
_SMALLEST, _LARGEST, _INFINITY = _F(-87.0), _F(88.0), _F(math.inf)
_HALF, _ONE, _ZERO = _F(0.5), _F(1.0), _F(0.0)
_E0, _E1, _E2 = _F(1.9875691500e-4), _F(1.3981999507e-3), _F(8.3334519073e-3)
_E3, _E4, _E5 = _F(4.1665795894e-2), _F(1.6666665459e-1), _F(5.0000001201e-1)
_T_END = _F(7.90531110763549805)
_T1, _T3, _T5 = _F(4.89352455891786e-03), _F(6.37261928875436e-04), _F(1.48572235717979e-05)
_T7, _T9 = _F(5.12229709037114e-08), _F(-8.60467152213735e-11)
_T11, _T13 = _F(2.00018790482477e-13), _F(-2.76076847742355e-16)
_B0, _B2 = _F(4.89352518554385e-03), _F(2.26843463243900e-03)
_B4, _B6 = _F(1.18534705686654e-04), _F(1.19825839466702e-06)
_P, _A1, _A2 = _F(0.3275911), _F(0.254829592), _F(-0.284496736)
_A3, _A4, _A5 = _F(1.421413741), _F(-1.453152027), _F(1.061405429)


@ordered_kernel
def exp(x: Any) -> Any:
    """Return e to the power of x; 0 below -87, infinity above 88.

    x (float32): Any number; NaN stays NaN.
    SOURCE: Moshier, Cephes, expf
    """
    inside = x
    if x < _SMALLEST:
        inside = _SMALLEST
    if x > _LARGEST:
        inside = _LARGEST
    n = np.floor(inside * _LOG2E + _HALF)
    r = inside - n * _LN2_HIGH
    r = r - n * _LN2_LOW
    p = ((((_E0 * r + _E1) * r + _E2) * r + _E3) * r + _E4) * r + _E5
    p = p * (r * r) + r + _ONE
    # 2 to the power of n: set the bits of the exponent to n + 127.
    scale = np.int32((np.int32(n) + np.int32(127)) << np.int32(23)).view(np.float32)
    y = p * scale
    if x < _SMALLEST:
        y = _ZERO
    if x > _LARGEST:
        y = _INFINITY
    return y


@ordered_kernel
def tanh(x: Any) -> Any:
    """Return the hyperbolic tangent.

    x (float32): Any number; NaN stays NaN.
    SOURCE: Eigen's rational function, generic_fast_tanh_float
    """
    inside = x
    if x < -_T_END:
        inside = -_T_END
    if x > _T_END:
        inside = _T_END
    z = inside * inside
    p = (((((_T13 * z + _T11) * z + _T9) * z + _T7) * z + _T5) * z + _T3) * z + _T1
    y = (inside * p) / (((_B6 * z + _B4) * z + _B2) * z + _B0)
    if x < -_T_END:
        y = -_ONE
    if x > _T_END:
        y = _ONE
    return y


@ordered_kernel
def sigmoid(x: Any) -> Any:
    """Return 1 / (1 + exp(-x)).

    x (float32): Any number; NaN stays NaN.
    """
    return _ONE / (_ONE + exp(-x))


@ordered_kernel
def erf(x: Any) -> Any:
    """Return the error function, accurate to 2e-7.

    x (float32): Any number; NaN stays NaN.
    SOURCE: Abramowitz and Stegun, 7.1.26, as in Thinc
    """
    size = abs(x)
    t = _ONE / (_ONE + _P * size)
    p = ((((_A5 * t + _A4) * t + _A3) * t + _A2) * t + _A1) * t
    y = _ONE - p * exp(-size * size)
    return -y if x < _ZERO else y
