// CUDA's words for the host's compiler. Threads of a block take turns: each runs on a stack of
// its own until the next barrier. A block may have fewer threads than it was launched with, so
// kernels must be right for any size of block, as grid-stride loops are.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <type_traits>
#include <utility>
#include <ucontext.h>

template <class T, class U> static inline std::common_type_t<T, U> max(T x, U y) {
    return x < y ? y : x;
}
template <class T, class U> static inline std::common_type_t<T, U> min(T x, U y) {
    return y < x ? y : x;
}
struct Place { int x, y, z; };
// Of loops in kernels.
extern "C" { long long n_turns = 0; }
static Place threadIdx, blockIdx, blockDim, gridDim;
#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __restrict__
#define __shared__ static
#define __launch_bounds__(...)
static inline void __threadfence() {}
static inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
static inline double rsqrt(double x) { return 1.0 / sqrt(x); }
static inline float __int_as_float(int i) { float f; memcpy(&f, &i, 4); return f; }
template <class T, class U> static inline T atomicAdd(T *to, U value) {
    T before = *to; *to += value; return before;
}

static ucontext_t _turns[256], _block;
static bool _is_over[256];
static void (*_kernel)(void **);
static void **_arguments;
static inline void __syncthreads() {
    if (blockDim.x > 1) swapcontext(&_turns[threadIdx.x], &_block);
}
static void _run_thread() {
    _kernel(_arguments);
    _is_over[threadIdx.x] = true;
    swapcontext(&_turns[threadIdx.x], &_block);
}
template <class... A, size_t... I>
static void _called(void (*f)(A...), void **arguments, std::index_sequence<I...>) {
    f(*(A *)arguments[I]...);
}
template <class... A> static void _call(void (*f)(A...), void **arguments) {
    _called(f, arguments, std::index_sequence_for<A...>{});
}
static void _run_grid(void (*kernel)(void **), void **arguments, int blocks, int threads) {
    const size_t room = 1 << 16;
    char *stacks = threads > 1 ? (char *)malloc(room * threads) : nullptr;
    _kernel = kernel, _arguments = arguments;
    gridDim = {blocks, 1, 1}, blockDim = {threads, 1, 1};
    for (int b = 0; b < blocks; b++) {
        blockIdx = {b, 0, 0};
        threadIdx = {0, 0, 0};
        if (threads == 1) { kernel(arguments); continue; }
        for (int t = 0; t < threads; t++) {
            getcontext(&_turns[t]);
            _turns[t].uc_stack.ss_sp = stacks + room * t;
            _turns[t].uc_stack.ss_size = room;
            makecontext(&_turns[t], _run_thread, 0);
            _is_over[t] = false;
        }
        for (int left = threads; left;) {
            for (int t = 0; t < threads; t++) {
                if (_is_over[t]) continue;
                threadIdx = {t, 0, 0};
                swapcontext(&_block, &_turns[t]);
                left -= _is_over[t];
            }
        }
    }
    free(stacks);
}
