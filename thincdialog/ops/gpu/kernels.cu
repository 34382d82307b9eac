// Kernels of DialogCupyOps. Each is right for any number of threads in a block, and adds in an
// order that depends on nothing but the block: the same bits each time. Rows are contiguous.

// The sum of each thread's value in all threads of the block. `part` has one place a thread.
__device__ float block_sum(float own, float* part) {
    part[threadIdx.x] = own;
    __syncthreads();
    for (int n = blockDim.x; n > 1;) {
        int half = (n + 1) / 2;
        if (threadIdx.x + half < n) part[threadIdx.x] += part[threadIdx.x + half];
        __syncthreads();
        n = half;
    }
    float total = part[0];
    __syncthreads();
    return total;
}

__device__ float block_max(float own, float* part) {
    part[threadIdx.x] = own;
    __syncthreads();
    for (int n = blockDim.x; n > 1;) {
        int half = (n + 1) / 2;
        if (threadIdx.x + half < n) {
            float other = part[threadIdx.x + half];
            if (other > part[threadIdx.x]) part[threadIdx.x] = other;
        }
        __syncthreads();
        n = half;
    }
    float highest = part[0];
    __syncthreads();
    return highest;
}

// Adds up `own` of the threads that are as many lanes apart (one column each): in the order of the
// threads. Lanes are columns of a tile, which has as many rows of threads as fit into the block.
__device__ int n_lanes() { return blockDim.x < 32 ? blockDim.x : 32; }

__device__ float lane_sum(float own, float* part) {
    int lanes = n_lanes();
    part[threadIdx.x] = own;
    __syncthreads();
    float total = 0;
    for (int at = threadIdx.x % lanes; at < blockDim.x / lanes * lanes; at += lanes) {
        total += part[at];
    }
    __syncthreads();
    return total;
}

// Whether all other blocks have written what they had to: true in one block, the last to ask.
// `turns` is 0 before and after.
__device__ bool is_last_block(unsigned int* turns) {
    __shared__ bool is_last;
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        is_last = atomicAdd(turns, 1u) == gridDim.x - 1;
        if (is_last) *turns = 0;
    }
    __syncthreads();
    if (is_last) __threadfence();
    return is_last;
}

// Philox 4x32 with 10 rounds (Salmon et al. 2011): the same draws on every GPU.
__device__ void philox(unsigned int* c, long long four, unsigned long long seed,
        unsigned long long number) {
    c[0] = (unsigned int)four, c[1] = (unsigned int)(four >> 32);
    c[2] = (unsigned int)number, c[3] = (unsigned int)(number >> 32);
    unsigned int k0 = (unsigned int)seed, k1 = (unsigned int)(seed >> 32);
    for (int round = 0; round < 10; round++) {
        unsigned long long a = 0xD2511F53ull * c[0], b = 0xCD9E8D57ull * c[2];
        unsigned int next0 = (unsigned int)(b >> 32) ^ c[1] ^ k0;
        unsigned int next2 = (unsigned int)(a >> 32) ^ c[3] ^ k1;
        c[1] = (unsigned int)b, c[3] = (unsigned int)a;
        c[0] = next0, c[2] = next2;
        k0 += 0x9E3779B9u, k1 += 0xBB67AE85u;
    }
}

// The factor of a cell in a dropout mask.
__device__ float mask_of(long long cell, unsigned long long seed, unsigned long long number,
        double rate) {
    if (rate == 0) return 1.0f;
    unsigned int c[4];
    philox(c, cell / 4, seed, number);
    return c[cell % 4] >= (unsigned int)(rate * 4294967296.0) ? (float)(1 / (1 - rate)) : 0.0f;
}

// The first of the highest pieces of x + bias, and how high it is.
__device__ int highest_piece(const float* x, const float* bias, int n_pieces, float* highest) {
    int best = 0;
    for (int p = 1; p < n_pieces; p++) {
        if (x[p] + bias[p] > x[best] + bias[best]) best = p;
    }
    *highest = x[best] + bias[best];
    return best;
}

// A row of layer normalisation; ``hat`` may be where x is.
__device__ void norm_row(float* y, float* hat, float* scale, const float* x, const float* G,
        const float* b, int width, double eps, float* part) {
    float own = 0;
    for (int c = threadIdx.x; c < width; c += blockDim.x) own += x[c];
    float mean = block_sum(own, part) / width;
    own = 0;
    for (int c = threadIdx.x; c < width; c += blockDim.x) own += (x[c] - mean) * (x[c] - mean);
    float factor = 1.0f / sqrtf(block_sum(own, part) / width + (float)eps);
    for (int c = threadIdx.x; c < width; c += blockDim.x) {
        float h = (x[c] - mean) * factor;
        hat[c] = h;
        y[c] = h * G[c] + b[c];
    }
    if (threadIdx.x == 0) *scale = factor;
}

// Of a row's gradient: its mean, and that of its product with the normalised row.
__device__ void norm_means(float* mean, float* along, const float* dy, const float* G,
        const float* hat, int width, float* part) {
    float own = 0, product = 0;
    for (int c = threadIdx.x; c < width; c += blockDim.x) {
        float d = dy[c] * G[c];
        own += d;
        product += d * hat[c];
    }
    *mean = block_sum(own, part) / width;
    *along = block_sum(product, part) / width;
}

__device__ void backprop_norm_row(float* dx, const float* dy, const float* G, const float* hat,
        float scale, int width, float* part) {
    float mean, along;
    norm_means(&mean, &along, dy, G, hat, width, part);
    for (int c = threadIdx.x; c < width; c += blockDim.x) {
        dx[c] = scale * (dy[c] * G[c] - mean - hat[c] * along);
    }
}

// out[g] = factors[g] * sum over j from starts[g] to starts[g + 1] of weights[i] * table[i], with
// i = ids[j], or j where there are no ids. Without factors or weights these are 1. With rows, the
// sum is added to out[rows[g]].
extern "C" __global__ void sum_rows(float* out, const float* table, const int* ids,
        const int* starts, const float* factors, const float* weights, const int* rows,
        int n_groups, int width) {
    for (int g = blockIdx.x; g < n_groups; g += gridDim.x) {
        for (int c = threadIdx.x; c < width; c += blockDim.x) {
            float total = 0;
            for (int j = starts[g]; j < starts[g + 1]; j++) {
                long long i = ids ? ids[j] : j;
                float value = table[i * width + c];
                total += weights ? weights[i] * value : value;
            }
            if (factors) total *= factors[g];
            if (rows) {
                out[(long long)rows[g] * width + c] += total;
            } else {
                out[(long long)g * width + c] = total;
            }
        }
    }
}

// The highest cell of each column of each group, and its place in the group; 0 for an empty one.
extern "C" __global__ void max_rows(float* highest, int* which, const float* X,
        const int* starts, int n_groups, int width) {
    for (int g = blockIdx.x; g < n_groups; g += gridDim.x) {
        for (int c = threadIdx.x; c < width; c += blockDim.x) {
            int first = starts[g], best = first;
            for (int j = first + 1; j < starts[g + 1]; j++) {
                if (X[(long long)j * width + c] > X[(long long)best * width + c]) best = j;
            }
            bool is_empty = starts[g + 1] == first;
            highest[(long long)g * width + c] = is_empty ? 0.0f : X[(long long)best * width + c];
            which[(long long)g * width + c] = best - first;
        }
    }
}

extern "C" __global__ void backprop_max_rows(float* dX, const float* d_highest, const int* which,
        const int* starts, int n_groups, int width) {
    for (int g = blockIdx.x; g < n_groups; g += gridDim.x) {
        for (int c = threadIdx.x; c < width; c += blockDim.x) {
            long long cell = (long long)g * width + c;
            for (int j = starts[g]; j < starts[g + 1]; j++) {
                bool is_highest = j - starts[g] == which[cell];
                dX[(long long)j * width + c] = is_highest ? d_highest[cell] : 0.0f;
            }
        }
    }
}

// Each token with its neighbours on both sides, side by side: zeros beyond the ends of its
// sequence. bounds[t] and bounds[n_tokens + t] are where that begins and ends.
extern "C" __global__ void windows(float* out, const float* X, const int* bounds, int n_tokens,
        int width, int size) {
    int n_cells = 2 * size + 1;
    for (int t = blockIdx.x; t < n_tokens; t += gridDim.x) {
        for (int cell = 0; cell < n_cells; cell++) {
            int from = t + cell - size;
            bool is_there = from >= bounds[t] && from < bounds[n_tokens + t];
            for (int c = threadIdx.x; c < width; c += blockDim.x) {
                out[((long long)t * n_cells + cell) * width + c] =
                    is_there ? X[(long long)from * width + c] : 0.0f;
            }
        }
    }
}

// With dZ, it is added.
extern "C" __global__ void backprop_windows(float* dX, const float* dY, const float* dZ,
        const int* bounds, int n_tokens, int width, int size) {
    int n_cells = 2 * size + 1;
    for (int t = blockIdx.x; t < n_tokens; t += gridDim.x) {
        for (int c = threadIdx.x; c < width; c += blockDim.x) {
            float total = 0;
            for (int cell = 0; cell < n_cells; cell++) {
                int to = t + size - cell;
                if (to >= bounds[t] && to < bounds[n_tokens + t]) {
                    total += dY[((long long)to * n_cells + cell) * width + c];
                }
            }
            if (dZ) total += dZ[(long long)t * width + c];
            dX[(long long)t * width + c] = total;
        }
    }
}

// Adds a bias to each row, in place; then, if asked, what is below 0 becomes 0.
extern "C" __global__ void add_bias(float* Y, const float* b, long long n, int width,
        int is_cut) {
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < n;
            i += (long long)gridDim.x * blockDim.x) {
        float y = Y[i] + b[i % width];
        Y[i] = is_cut && y < 0 ? 0.0f : y;
    }
}

// Adds the sums of columns of dY to db. With Y, cells where it is not above 0 do not count, and
// dZ is dY without them.
extern "C" __global__ void __launch_bounds__(1024) backprop_bias(float* db, float* dZ,
        const float* dY, const float* Y, int n_rows, int width) {
    __shared__ float part[1024];
    int lanes = n_lanes(), deep = blockDim.x / lanes, lane = threadIdx.x % lanes;
    int n_tiles = (width + lanes - 1) / lanes;
    for (int tile = blockIdx.x; tile < n_tiles; tile += gridDim.x) {
        int c = tile * lanes + lane;
        float own = 0;
        if (c < width && threadIdx.x < deep * lanes) {
            for (int row = threadIdx.x / lanes; row < n_rows; row += deep) {
                long long at = (long long)row * width + c;
                float d = !Y || Y[at] > 0 ? dY[at] : 0.0f;
                if (Y) dZ[at] = d;
                own += d;
            }
        }
        own = lane_sum(own, part);
        if (threadIdx.x < lanes && c < width) db[c] += own;
    }
}

extern "C" __global__ void backprop_maxout(float* dX, const float* dY, const int* which,
        long long n, int n_pieces) {
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < n * n_pieces;
            i += (long long)gridDim.x * blockDim.x) {
        dX[i] = which[i / n_pieces] == i % n_pieces ? dY[i / n_pieces] : 0.0f;
    }
}

// X times exp(s), which is cut off at the highest.
extern "C" __global__ void scale(float* Y, const float* X, const float* s, long long n,
        double highest) {
    float factor = expf(s[0]);
    if (factor > (float)highest) factor = (float)highest;
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < n;
            i += (long long)gridDim.x * blockDim.x) {
        Y[i] = X[i] * factor;
    }
}

extern "C" __global__ void backprop_scale(float* dX, float* ds, float* sums, unsigned int* turns,
        const float* dY, const float* X, const float* s, long long n, double highest) {
    __shared__ float part[1024];
    float factor = expf(s[0]), own = 0;
    bool is_free = factor <= (float)highest;
    if (!is_free) factor = (float)highest;
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < n;
            i += (long long)gridDim.x * blockDim.x) {
        dX[i] = dY[i] * factor;
        own += dY[i] * X[i];
    }
    float total = block_sum(own, part);
    if (threadIdx.x == 0) sums[blockIdx.x] = total;
    if (!is_last_block(turns) || threadIdx.x) return;
    const volatile float* of_blocks = sums;
    total = 0;
    for (int i = 0; i < gridDim.x; i++) total += of_blocks[i];
    // Beyond the highest, s may only become smaller.
    if (is_free || total > 0) ds[0] += total * factor;
}

// For the last block: in how many rows the best is the target, and the sum of their losses.
__device__ void count_right(float* found, const volatile int* best, const int* targets,
        const volatile float* losses, int n_rows, float* part) {
    float right = 0;  // Whole numbers below 2 ** 24 are exact.
    double loss = 0;
    for (int row = threadIdx.x; row < n_rows; row += blockDim.x) {
        right += best[row] == targets[row];
        loss += losses[row];
    }
    right = block_sum(right, part);
    float total = block_sum((float)loss, part);
    if (threadIdx.x == 0) found[0] = right, found[1] = total;
}

// The first of the highest cells of each row; and in how many rows that is the target, and the
// sum of their losses.
extern "C" __global__ void judge(int* best, float* found, unsigned int* turns, const float* Z,
        const int* targets, const float* losses, int n_rows, int width) {
    __shared__ float part[1024];
    __shared__ int places[1024];
    for (int row = blockIdx.x; row < n_rows; row += gridDim.x) {
        const float* z = Z + (long long)row * width;
        int own = threadIdx.x < width ? threadIdx.x : 0;
        for (int c = threadIdx.x; c < width; c += blockDim.x) {
            if (z[c] > z[own] || (z[c] != z[c] && z[own] == z[own])) own = c;
        }
        places[threadIdx.x] = own;
        __syncthreads();
        if (threadIdx.x == 0) {
            for (int t = 1; t < blockDim.x; t++) {
                int other = places[t];
                bool is_higher = z[other] > z[own] || (z[other] != z[other] && z[own] == z[own]);
                bool is_equal = z[other] == z[own] || (z[other] != z[other] && z[own] != z[own]);
                if (is_higher || (is_equal && other < own)) own = other;
            }
            best[row] = own;
        }
        __syncthreads();
    }
    if (!is_last_block(turns)) return;
    count_right(found, best, targets, losses, n_rows, part);
}

// Whether cell a of a row stands before cell b: those `behind` come behind all others, the higher
// one first, of equals the first; nan behind all of its kind.
__device__ bool stands_before(const float* x, const bool* behind, int a, int b) {
    bool a_behind = behind && behind[a], b_behind = behind && behind[b];
    if (a_behind != b_behind) return b_behind;
    bool a_nan = x[a] != x[a], b_nan = x[b] != x[b];
    if (a_nan != b_nan) return b_nan;
    if (!a_nan && x[a] != x[b]) return x[a] > x[b];
    return a < b;
}

// Of a row the highest cell, and the sum of exp(cell - highest); of all, or of those not behind.
__device__ void sum_powers(float* found, const float* x, const bool* behind, int n, float* part) {
    float own = __int_as_float(0xff800000), sum = 0;  // -infinity
    for (int c = threadIdx.x; c < n; c += blockDim.x) {
        if (!(behind && behind[c]) && x[c] > own) own = x[c];
    }
    float highest = block_max(own, part);
    for (int c = threadIdx.x; c < n; c += blockDim.x) {
        if (!(behind && behind[c])) sum += expf(x[c] - highest);
    }
    sum = block_sum(sum, part);
    if (threadIdx.x == 0) found[0] = highest, found[1] = sum;
}

// Of each row, from starts[row] to starts[row + 1], the places of its n_best first cells, -1 where
// there are no more; and their cells, then what sum_powers finds of those that are not behind and
// of all, and the cell of the right place (0 if it is -1).
extern "C" __global__ void best_cells(int* places, float* numbers, const float* X,
        const long long* starts, const bool* behind, const long long* right, int n_rows,
        int n_best) {
    __shared__ float part[1024];
    __shared__ int best[1024];
    for (int row = blockIdx.x; row < n_rows; row += gridDim.x) {
        const float* x = X + starts[row];
        const bool* is_behind = behind ? behind + starts[row] : nullptr;
        int n = (int)(starts[row + 1] - starts[row]), last = -1;
        float* found = numbers + (long long)row * (n_best + 5);
        for (int k = 0; k < n_best; k++) {
            int own = -1;
            for (int c = threadIdx.x; k < n && c < n; c += blockDim.x) {
                bool is_left = last < 0 || stands_before(x, is_behind, last, c);
                if (is_left && (own < 0 || stands_before(x, is_behind, c, own))) own = c;
            }
            best[threadIdx.x] = own;
            __syncthreads();
            for (int m = blockDim.x; m > 1; m = (m + 1) / 2) {
                int half = (m + 1) / 2;
                if (threadIdx.x + half < m) {
                    int one = best[threadIdx.x], other = best[threadIdx.x + half];
                    bool is_first = one < 0 || stands_before(x, is_behind, other, one);
                    if (other >= 0 && is_first) best[threadIdx.x] = other;
                }
                __syncthreads();
            }
            last = best[0];
            __syncthreads();
            if (threadIdx.x == 0) {
                places[(long long)row * n_best + k] = last;
                found[k] = last < 0 ? 0.0f : x[last];
            }
        }
        sum_powers(found + n_best, x, is_behind, n, part);
        sum_powers(found + n_best + 2, x, nullptr, n, part);
        if (threadIdx.x == 0) found[n_best + 4] = right[row] < 0 ? 0.0f : x[right[row]];
    }
}

// Y[t] = A[a[t]] + B[b[t]].
extern "C" __global__ void add_rows(float* Y, const float* A, const int* a, const float* B,
        const int* b, int n_rows, int width) {
    for (int t = blockIdx.x; t < n_rows; t += gridDim.x) {
        for (int c = threadIdx.x; c < width; c += blockDim.x) {
            Y[(long long)t * width + c] =
                A[(long long)a[t] * width + c] + B[(long long)b[t] * width + c];
        }
    }
}

// Sums of products: out[g] = base[b[g]] + sum over j from starts[g] to starts[g + 1] of
// A[at[j]] * B[bt[j]]; without a base that is 0.
extern "C" __global__ void sum_products(float* out, const float* base, const int* b,
        const float* A, const int* at, const float* B, const int* bt, const int* starts,
        int n_groups, int width) {
    for (int g = blockIdx.x; g < n_groups; g += gridDim.x) {
        for (int c = threadIdx.x; c < width; c += blockDim.x) {
            float total = 0;
            for (int j = starts[g]; j < starts[g + 1]; j++) {
                total += A[(long long)at[j] * width + c] * B[(long long)bt[j] * width + c];
            }
            if (base) total += base[(long long)b[g] * width + c];
            out[(long long)g * width + c] = total;
        }
    }
}

// Readings of memories, a block for each example; see layers/memory_hops.py. The vectors of a row
// of X stand side by side. Y gets what is known in the end, U what was known before each hop, P
// each memory's share in each hop.
extern "C" __global__ void memory_hops(float* Y, float* U, float* P, const float* X, const int* starts,
        int n_examples, int width, int n_hops) {
    __shared__ float part[1024];
    long long all = (long long)(n_hops + 1) * width;
    for (int e = blockIdx.x; e < n_examples; e += gridDim.x) {
        int first = starts[e], last = starts[e + 1] - 1;
        float* u = U + (long long)e * n_hops * width;
        for (int c = threadIdx.x; c < width; c += blockDim.x) u[c] = X[last * all + c];
        __syncthreads();
        for (int hop = 0; hop < n_hops; hop++) {
            float* next = hop + 1 < n_hops ? u + width : Y + (long long)e * width;
            float own = __int_as_float(0xff800000), sum = 0;  // -infinity
            for (int i = first + threadIdx.x; i < last; i += blockDim.x) {
                const float* key = X + i * all + hop * width;
                float logit = 0;
                for (int c = 0; c < width; c++) logit += u[c] * key[c];
                P[(long long)i * n_hops + hop] = logit;
                if (logit > own) own = logit;
            }
            float highest = block_max(own, part);
            for (int i = first + threadIdx.x; i < last; i += blockDim.x) {
                float power = expf(P[(long long)i * n_hops + hop] - highest);
                P[(long long)i * n_hops + hop] = power;
                sum += power;
            }
            sum = block_sum(sum, part);
            for (int i = first + threadIdx.x; i < last; i += blockDim.x) {
                P[(long long)i * n_hops + hop] /= sum;
            }
            __syncthreads();
            for (int c = threadIdx.x; c < width; c += blockDim.x) {
                float total = 0;
                for (int i = first; i < last; i++) {
                    total += P[(long long)i * n_hops + hop] * X[i * all + (hop + 1) * width + c];
                }
                next[c] = u[c] + total;
            }
            __syncthreads();
            u = next;
        }
    }
}

// du has room for as much as dY, dl for a number of each row.
extern "C" __global__ void backprop_memory_hops(float* dX, float* du, float* dl, const float* dY,
        const float* X, const float* U, const float* P, const int* starts, int n_examples, int width,
        int n_hops) {
    __shared__ float part[1024];
    long long all = (long long)(n_hops + 1) * width;
    for (int e = blockIdx.x; e < n_examples; e += gridDim.x) {
        int first = starts[e], last = starts[e + 1] - 1;
        float* d = du + (long long)e * width;
        for (int c = threadIdx.x; c < width; c += blockDim.x) d[c] = dY[(long long)e * width + c];
        __syncthreads();
        for (int hop = n_hops - 1; hop >= 0; hop--) {
            const float* u = U + ((long long)e * n_hops + hop) * width;
            float own = 0;
            for (int i = first + threadIdx.x; i < last; i += blockDim.x) {
                const float* value = X + i * all + (hop + 1) * width;
                float dp = 0;
                for (int c = 0; c < width; c++) dp += d[c] * value[c];
                dl[i] = dp;
                own += P[(long long)i * n_hops + hop] * dp;
            }
            float mean = block_sum(own, part);
            for (int i = first + threadIdx.x; i < last; i += blockDim.x) {
                dl[i] = P[(long long)i * n_hops + hop] * (dl[i] - mean);
            }
            __syncthreads();
            for (int c = threadIdx.x; c < width; c += blockDim.x) {
                float total = 0;
                for (int i = first; i < last; i++) {
                    float* key = dX + i * all + hop * width + c;
                    float of_value = P[(long long)i * n_hops + hop] * d[c];
                    key[width] = hop == n_hops - 1 ? of_value : key[width] + of_value;
                    key[0] = dl[i] * u[c];
                    total += dl[i] * X[i * all + hop * width + c];
                }
                d[c] += total;
            }
            __syncthreads();
        }
        for (int c = threadIdx.x; c < all; c += blockDim.x) {
            dX[last * all + c] = c < width ? d[c] : 0.0f;
        }
    }
}

// --- recurrence: a block for each sequence and direction, through all of its steps. Gates i, f,
// o, g lie side by side; of each row first those of the direction from the beginning.

__device__ float sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }

// G is W x and becomes the gates; C are the cells, H the outputs. Ut (2, width, 4 width).
extern "C" __global__ void __launch_bounds__(1024) lstm(float* G, float* C, float* H, const float* Ut, const float* b,
        const int* order, const int* starts, int n_sequences, int width) {
    int n_gates = 4 * width;
    for (int job = blockIdx.x; job < 2 * n_sequences; job += gridDim.x) {
        int side = job % 2, first = starts[order[job / 2]], stop = starts[order[job / 2] + 1];
        const float* u = Ut + (long long)side * width * n_gates;
        for (int step = 0; step < stop - first; step++) {
            long long row = side ? stop - 1 - step : first + step;
            long long at = 2 * row + side, before = side ? at + 2 : at - 2;
            float* gates = G + at * n_gates;
            for (int j = threadIdx.x; j < n_gates; j += blockDim.x) {
                float z = gates[j] + b[side * n_gates + j];
                if (step) {
                    const float* h = H + before * width;
                    for (int k = 0; k < width; k++) z += h[k] * u[(long long)k * n_gates + j];
                }
                gates[j] = j < 3 * width ? sigmoid(z) : tanhf(z);
            }
            __syncthreads();
            for (int k = threadIdx.x; k < width; k += blockDim.x) {
                float c = gates[k] * gates[3 * width + k];
                if (step) c += gates[width + k] * C[before * width + k];
                C[at * width + k] = c;
                H[at * width + k] = gates[2 * width + k] * tanhf(c);
            }
            __syncthreads();
        }
    }
}

// dG is the gradient of W x + U h + b. Z gets what the weights were multiplied with: x, the
// outputs of the step before in both directions, and 1 0 0 0. `carried` (n_sequences, 2, 5 width)
// is room for what goes from step to step: the gradient of the cell, and of the output in parts.
extern "C" __global__ void __launch_bounds__(1024) backprop_lstm(float* dG, float* Z, float* carried, const float* dY,
        const float* X, const float* G, const float* C, const float* H, const float* U,
        const int* order, const int* starts, int n_sequences, int width, int n_in) {
    int n_gates = 4 * width;
    long long n_all = n_in + 2 * width + 4;
    for (int job = blockIdx.x; job < 2 * n_sequences; job += gridDim.x) {
        int side = job % 2, first = starts[order[job / 2]], stop = starts[order[job / 2] + 1];
        const float* u = U + (long long)side * n_gates * width;
        float* dc = carried + (long long)job * 5 * width;
        float* dh = dc + width;
        for (int step = stop - first - 1; step >= 0; step--) {
            long long row = side ? stop - 1 - step : first + step;
            long long at = 2 * row + side, before = side ? at + 2 : at - 2;
            const float* gates = G + at * n_gates;
            float* d_gates = dG + at * n_gates;
            float* z = Z + row * n_all;
            bool is_newest = step == stop - first - 1;
            for (int k = threadIdx.x; k < width; k += blockDim.x) {
                float i = gates[k], f = gates[width + k];
                float o = gates[2 * width + k], g = gates[3 * width + k];
                float t = tanhf(C[at * width + k]), out = dY[at * width + k], d = 0;
                if (!is_newest) {
                    out += dh[k] + dh[width + k] + dh[2 * width + k] + dh[3 * width + k];
                    d = dc[k];
                }
                d += out * o * (1 - t * t);
                d_gates[k] = d * g * i * (1 - i);
                d_gates[width + k] = step ? d * C[before * width + k] * f * (1 - f) : 0.0f;
                d_gates[2 * width + k] = out * t * o * (1 - o);
                d_gates[3 * width + k] = d * i * (1 - g * g);
                dc[k] = d * f;
                z[n_in + side * width + k] = step ? H[before * width + k] : 0.0f;
            }
            if (side == 0) {
                for (int c = threadIdx.x; c < n_in; c += blockDim.x) z[c] = X[row * n_in + c];
                for (int c = threadIdx.x; c < 4; c += blockDim.x) z[n_all - 4 + c] = c == 0;
            }
            __syncthreads();
            for (int j = threadIdx.x; step && j < n_gates; j += blockDim.x) {
                float total = 0;
                int last = (j / width + 1) * width;
                for (int r = last - width; r < last; r++) {
                    total += d_gates[r] * u[(long long)r * width + j % width];
                }
                dh[j] = total;
            }
            __syncthreads();
        }
    }
}

// Adds to the gradients of W, U and b from the product of dG and Z, which has more than them.
extern "C" __global__ void add_lstm_gradients(float* dW, float* dU, float* db, const float* D,
        int width, int n_in) {
    int n_all = n_in + 2 * width + 4, n_gates = 4 * width;
    for (int row = blockIdx.x; row < 2 * n_gates; row += gridDim.x) {
        const float* d = D + (long long)row * n_all;
        const float* of_side = d + n_in + row / n_gates * width;
        for (int c = threadIdx.x; c < n_in; c += blockDim.x) dW[(long long)row * n_in + c] += d[c];
        for (int k = threadIdx.x; k < width; k += blockDim.x) {
            dU[(long long)row * width + k] += of_side[k];
        }
        if (threadIdx.x == 0) db[row] += d[n_in + 2 * width];
    }
}

// Sums of squares, one for each block: of some stretches of X (bounds: where each begins and
// ends), and of all cells of Z. The last block adds up all n_sums that there are (if asked):
// found[0] is the norm of the scaled gradient, found[1] what the gradient is to be multiplied by
// (clipped; 0 if the norm is not finite, which is counted).
extern "C" __global__ void square_sums(float* sums, float* found, int* n_skipped,
        unsigned int* turns,
        const float* X, const long long* bounds, int n_stretches, const float* Z, long long n,
        const float* all_sums, int n_sums, double scale, double limit) {
    __shared__ float part[1024];
    float own = 0;
    long long first = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    long long step = (long long)gridDim.x * blockDim.x;
    for (int s = 0; s < n_stretches; s++) {
        for (long long i = bounds[2 * s] + first; i < bounds[2 * s + 1]; i += step) {
            own += X[i] * X[i];
        }
    }
    for (long long i = first; i < n; i += step) own += Z[i] * Z[i];
    float total = block_sum(own, part);
    if (threadIdx.x == 0) sums[blockIdx.x] = total;
    if (!found || !is_last_block(turns) || threadIdx.x) return;
    const volatile float* of_blocks = all_sums;
    double square = 0;
    for (int i = 0; i < n_sums; i++) square += of_blocks[i];
    double norm = fabs(scale) * sqrt(square);
    bool is_finite = norm - norm == 0;
    double clipped = limit > 0 && norm > limit ? scale * limit / norm : scale;
    found[0] = (float)norm;
    found[1] = is_finite ? (float)clipped : 0.0f;
    if (!is_finite && n_skipped) n_skipped[0]++;
}

// Of each stretch of X (bounds: where it begins and ends) the sum of squares; a block has one.
extern "C" __global__ void stretch_squares(double* sums, const float* X, const long long* bounds) {
    __shared__ float part[1024];
    float own = 0;
    const long long* of_block = bounds + 2 * blockIdx.x;
    for (long long i = of_block[0] + threadIdx.x; i < of_block[1]; i += blockDim.x) {
        own += X[i] * X[i];
    }
    float total = block_sum(own, part);
    if (threadIdx.x == 0) sums[blockIdx.x] = total;
}

__device__ void adam_cell(float* W, float* mom1, float* mom2, float d, double b1, double b2,
        double least, double eps, double rate, double nu, double newest, double decay) {
    float share1 = (float)(1 - b1), share2 = (float)(1 - b2), keep = (float)(1 - decay);
    float m = (float)b1 * *mom1 + share1 * d;
    float v = (float)b2 * *mom2 + share2 * (d * d);
    if ((float)least * (m * m) > v) v = (float)least * (m * m);
    float ahead = nu == 1 ? m : (float)nu * m + (float)newest * d;
    float w = *W - (float)rate * (ahead / (sqrtf(v) + (float)eps));
    *mom1 = m;
    *mom2 = v;
    *W = decay != 0 ? keep * w : w;
}

// One step of Adam for some stretches of W (bounds: where each begins and ends), whose gradients
// in dW are 0 afterwards, and for some rows of the table that begins at `table`. No weights are
// changed where the factor of the gradient is 0.
extern "C" __global__ void adam(float* W, float* dW, float* mom1, float* mom2,
        const float* found, const long long* bounds, int n_stretches, long long table,
        const int* rows, const float* d_rows, long long n_rows, int width, double b1, double b2,
        double least, double eps, double rate, double nu, double newest, double decay) {
    float factor = found[1];
    long long first = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    long long step = (long long)gridDim.x * blockDim.x;
    for (int s = 0; s < n_stretches; s++) {
        for (long long i = bounds[2 * s] + first; i < bounds[2 * s + 1]; i += step) {
            if (factor != 0.0f) {
                adam_cell(W + i, mom1 + i, mom2 + i, factor * dW[i], b1, b2, least, eps, rate, nu,
                          newest, decay);
            }
            dW[i] = 0;
        }
    }
    if (factor == 0.0f) return;
    for (long long i = first; i < n_rows * width; i += step) {
        long long at = table + (long long)rows[i / width] * width + i % width;
        adam_cell(W + at, mom1 + at, mom2 + at, factor * d_rows[i], b1, b2, least, eps, rate, nu,
                  newest, decay);
    }
}

// A comes nearer to W, by a share of the distance.
extern "C" __global__ void move_average(float* A, const float* W, long long n, double share) {
    float part = (float)share;
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < n;
            i += (long long)gridDim.x * blockDim.x) {
        A[i] += part * (W[i] - A[i]);
    }
}

// X times a factor, in place; 0 where the factor is, whatever X is.
extern "C" __global__ void times_found(float* X, const float* found, long long n) {
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < n;
            i += (long long)gridDim.x * blockDim.x) {
        X[i] = found[1] != 0.0f ? X[i] * found[1] : 0.0f;
    }
}

// Softmax cross-entropy of each row's right cell: its gradient, which may take the place of Z, and
// loss. Cells that are not allowed do not count, the right one always does. Without weights, each
// row's is 1. best is the first of each row's highest cells; found[0] is in how many rows that is
// the right one, found[1] the sum of the losses.
extern "C" __global__ void softmax_loss(float* gradient, float* losses, int* best, float* found,
        unsigned int* turns, const float* Z, const int* targets, const bool* allowed,
        const float* weights, int n_rows, int width, double smoothing) {
    __shared__ float part[1024];
    float spread = (float)(smoothing / width), right = (float)(1 - smoothing);
    for (int row = blockIdx.x; row < n_rows; row += gridDim.x) {
        const float* z = Z + (long long)row * width;
        const bool* ok = allowed ? allowed + (long long)row * width : nullptr;
        float* d = gradient + (long long)row * width;
        int target = targets[row];
        float weight = weights ? weights[target] : 1.0f, of_target = z[target];
        float highest = of_target, first = -3.0e38f;
        for (int c = threadIdx.x; c < width; c += blockDim.x) {
            if ((!ok || ok[c]) && z[c] > highest) highest = z[c];
        }
        highest = block_max(highest, part);
        float powers = 0, sum = 0;
        for (int c = threadIdx.x; c < width; c += blockDim.x) {
            bool counts = !ok || ok[c] || c == target;
            float apart = z[c] - highest;
            if (counts && apart == 0 && -c > first) first = -c;
            d[c] = counts ? expf(apart) : 0.0f;
            powers += d[c];
            sum += apart;
        }
        powers = block_sum(powers, part);
        sum = block_sum(sum, part);
        first = block_max(first, part);  // Whole numbers below 2 ** 24 are exact.
        for (int c = threadIdx.x; c < width; c += blockDim.x) {
            d[c] = weight * (d[c] / powers - spread - (c == target ? right : 0.0f));
        }
        if (threadIdx.x == 0) {
            float log_powers = logf(powers);
            float loss = right * (log_powers - (of_target - highest));
            losses[row] = weight * (loss + spread * (width * log_powers - sum));
            best[row] = first < -width ? target : (int)-first;
        }
    }
    if (!is_last_block(turns)) return;
    count_right(found, best, targets, losses, n_rows, part);
}

// The margin by which each row's right cell beats the others: each that comes nearer is a loss,
// of which the mean counts, or the largest alone. As softmax_loss else.
extern "C" __global__ void hinge_loss(float* gradient, float* losses, int* best, float* found,
        unsigned int* turns, const float* Z, const int* targets, const bool* allowed, int n_rows,
        int width, int is_hardest, double margin) {
    __shared__ float part[1024];
    for (int row = blockIdx.x; row < n_rows; row += gridDim.x) {
        const float* z = Z + (long long)row * width;
        const bool* ok = allowed ? allowed + (long long)row * width : nullptr;
        float* d = gradient + (long long)row * width;
        int target = targets[row];
        float of_target = z[target], highest = of_target, hardest = 0, sum = 0, n_others = 0;
        for (int c = threadIdx.x; c < width; c += blockDim.x) {
            if (c == target || (ok && !ok[c])) continue;
            if (z[c] > highest) highest = z[c];
            float excess = z[c] - of_target + (float)margin;
            if (excess <= 0) excess = 0;
            if (excess > hardest) hardest = excess;
            sum += excess;
            n_others += 1;
        }
        highest = block_max(highest, part);
        hardest = block_max(hardest, part);
        sum = block_sum(sum, part);
        n_others = block_sum(n_others, part);
        if (n_others < 1) n_others = 1;
        float first = -3.0e38f, first_hardest = -3.0e38f, n_wrong = 0;
        for (int c = threadIdx.x; c < width; c += blockDim.x) {
            if (c != target && ok && !ok[c]) continue;
            if (z[c] == highest && -c > first) first = -c;
            if (c == target) continue;
            float excess = z[c] - of_target + (float)margin;
            if (excess > 0) n_wrong += 1;
            if (excess > 0 && excess == hardest && -c > first_hardest) first_hardest = -c;
        }
        first = block_max(first, part);  // Whole numbers below 2 ** 24 are exact.
        first_hardest = block_max(first_hardest, part);
        n_wrong = block_sum(n_wrong, part);
        for (int c = threadIdx.x; c < width; c += blockDim.x) {
            bool is_other = c != target && (!ok || ok[c]);
            float excess = z[c] - of_target + (float)margin, slope = 0;
            if (is_hardest) {
                if (c == target) slope = first_hardest > -3.0e38f ? -1.0f : 0.0f;
                if (is_other) slope = -c == first_hardest ? 1.0f : 0.0f;
            } else {
                if (c == target) slope = -n_wrong / n_others;
                if (is_other) slope = excess > 0 ? 1.0f / n_others : 0.0f;
            }
            d[c] = slope;
        }
        if (threadIdx.x == 0) {
            losses[row] = is_hardest ? hardest + 0 * sum : sum / n_others;  // nan stays nan.
            best[row] = first < -width ? target : (int)-first;
        }
    }
    if (!is_last_block(turns)) return;
    count_right(found, best, targets, losses, n_rows, part);
}

// Rows of length 1, and how long they were; those shorter than `shortest` stay shorter.
extern "C" __global__ void l2_normalise(float* Y, float* lengths, const float* X, int n_rows,
        int width, double shortest) {
    __shared__ float part[1024];
    for (int row = blockIdx.x; row < n_rows; row += gridDim.x) {
        const float* x = X + (long long)row * width;
        float own = 0;
        for (int c = threadIdx.x; c < width; c += blockDim.x) own += x[c] * x[c];
        float length = sqrtf(block_sum(own, part));
        float divisor = length > (float)shortest ? length : (float)shortest;
        for (int c = threadIdx.x; c < width; c += blockDim.x) {
            Y[(long long)row * width + c] = x[c] / divisor;
        }
        if (threadIdx.x == 0) lengths[row] = length;
    }
}

extern "C" __global__ void backprop_l2_normalise(float* dX, const float* dY, const float* Y,
        const float* lengths, int n_rows, int width, double shortest) {
    __shared__ float part[1024];
    for (int row = blockIdx.x; row < n_rows; row += gridDim.x) {
        long long first = (long long)row * width;
        float own = 0;
        for (int c = threadIdx.x; c < width; c += blockDim.x) own += dY[first + c] * Y[first + c];
        float along = block_sum(own, part);
        bool is_long = lengths[row] > (float)shortest;
        float divisor = is_long ? lengths[row] : (float)shortest;
        for (int c = threadIdx.x; c < width; c += blockDim.x) {
            float d = dY[first + c] - (is_long ? along * Y[first + c] : 0.0f);
            dX[first + c] = d / divisor;
        }
    }
}

extern "C" __global__ void layer_norm(float* Y, float* hat, float* scales, const float* X,
        const float* G, const float* b, int n_rows, int width, double eps) {
    __shared__ float part[1024];
    for (int row = blockIdx.x; row < n_rows; row += gridDim.x) {
        long long first = (long long)row * width;
        norm_row(Y + first, hat + first, scales + row, X + first, G, b, width, eps, part);
    }
}

// The same of skip + mask * (X + bias), which is `sum` where it is wanted; without G, that alone.
extern "C" __global__ void add_norm(float* Y, float* hat, float* scales, float* sum,
        const float* X, const float* skip, const float* bias, const float* G, const float* b,
        int n_rows, int width, double eps, unsigned long long seed, unsigned long long number,
        double rate) {
    __shared__ float part[1024];
    for (int row = blockIdx.x; row < n_rows; row += gridDim.x) {
        long long first = (long long)row * width;
        float* to = (sum ? sum : hat) + first;
        for (int c = threadIdx.x; c < width; c += blockDim.x) {
            float x = X[first + c] + bias[c];
            to[c] = skip[first + c] + x * mask_of(first + c, seed, number, rate);
        }
        if (G) norm_row(Y + first, hat + first, scales + row, to, G, b, width, eps, part);
    }
}

// The same of the highest of the pieces of each cell of X + bias; what comes of it is dropped out
// and added to skip.
extern "C" __global__ void maxout_norm(float* Y, float* hat, float* scales, int* which,
        const float* X, const float* skip, const float* bias, const float* G, const float* b,
        int n_rows, int width, int n_pieces, double eps, unsigned long long seed,
        unsigned long long number, double rate) {
    __shared__ float part[1024];
    for (int row = blockIdx.x; row < n_rows; row += gridDim.x) {
        long long first = (long long)row * width;
        for (int c = threadIdx.x; c < width; c += blockDim.x) {
            which[first + c] = highest_piece(X + (first + c) * n_pieces, bias + c * n_pieces,
                                             n_pieces, hat + first + c);
        }
        norm_row(Y + first, hat + first, scales + row, hat + first, G, b, width, eps, part);
        for (int c = threadIdx.x; c < width; c += blockDim.x) {
            float factor = mask_of(first + c, seed, number, rate);
            Y[first + c] = skip[first + c] + Y[first + c] * factor;
        }
    }
}

// The gradient of the pieces; dN gets what of dY belongs to the normalised rows.
extern "C" __global__ void backprop_maxout_norm(float* dX, float* dN, const float* dY,
        const float* G, const float* hat, const float* scales, const int* which, int n_rows,
        int width, int n_pieces, unsigned long long seed, unsigned long long number,
        double rate) {
    __shared__ float part[1024];
    for (int row = blockIdx.x; row < n_rows; row += gridDim.x) {
        long long first = (long long)row * width;
        for (int c = threadIdx.x; c < width; c += blockDim.x) {
            dN[first + c] = dY[first + c] * mask_of(first + c, seed, number, rate);
        }
        float mean, along;
        norm_means(&mean, &along, dN + first, G, hat + first, width, part);
        for (int c = threadIdx.x; c < width; c += blockDim.x) {
            float d = dN[first + c] * G[c];
            d = scales[row] * (d - mean - hat[first + c] * along);
            for (int p = 0; p < n_pieces; p++) {
                dX[(first + c) * n_pieces + p] = which[first + c] == p ? d : 0.0f;
            }
        }
    }
}

// Adds to the gradients of G and b: sums over the rows, a block for each tile of columns. With
// d_bias, it is the same for dX, which may be wider.
extern "C" __global__ void __launch_bounds__(1024) backprop_gain(float* dG, float* db,
        float* d_bias, const float* dY, const float* hat, const float* dX, int n_rows, int width,
        int width_of_bias) {
    __shared__ float part[1024];
    int lanes = n_lanes(), deep = blockDim.x / lanes, lane = threadIdx.x % lanes;
    int n_tiles = (width + lanes - 1) / lanes;
    int n_all = n_tiles + (d_bias ? (width_of_bias + lanes - 1) / lanes : 0);
    for (int tile = blockIdx.x; tile < n_all; tile += gridDim.x) {
        bool is_bias = tile >= n_tiles;
        int c = (tile - (is_bias ? n_tiles : 0)) * lanes + lane;
        int n = is_bias ? width_of_bias : width, row = threadIdx.x / lanes;
        float gain = 0, bias = 0;
        for (; c < n && threadIdx.x < deep * lanes && row < n_rows; row += deep) {
            long long at = (long long)row * n + c;
            bias += is_bias ? dX[at] : dY[at];
            if (!is_bias) gain += dY[at] * hat[at];
        }
        gain = lane_sum(gain, part);
        bias = lane_sum(bias, part);
        if (threadIdx.x >= lanes || c >= n) continue;
        if (is_bias) {
            d_bias[c] += bias;
        } else {
            dG[c] += gain;
            db[c] += bias;
        }
    }
}

// Y is X times a mask; without X the mask itself.
extern "C" __global__ void dropout(float* Y, const float* X, long long n, unsigned long long seed,
        unsigned long long number, double rate) {
    unsigned int limit = (unsigned int)(rate * 4294967296.0);
    float kept = (float)(1 / (1 - rate));
    for (long long four = (long long)blockIdx.x * blockDim.x + threadIdx.x; four * 4 < n;
            four += (long long)gridDim.x * blockDim.x) {
        unsigned int c[4];
        philox(c, four, seed, number);
        for (long long at = four * 4; at < four * 4 + 4 && at < n; at++) {
            float factor = c[at - four * 4] >= limit ? kept : 0.0f;
            Y[at] = X ? X[at] * factor : factor;
        }
    }
}

// --- transformers ---------------------------------------------------------------------

// Of each column the sum over all rows of what cell(row, c) gives, which put(c, sum) takes. Blocks
// share the work: n_chunks of them have the same 32 columns, and each some rows. The last one to
// come adds up what they found, in their order. `place` is the block's number among these, `parts`
// has room for (n_chunks, width), and `done` is zero before and after, a number for 32 columns.
template <class Cell, class Put>
__device__ void sum_columns(float* parts, int* done, int n_rows, int width, int place,
        int n_chunks, Cell cell, Put put) {
    __shared__ float part[128];
    __shared__ bool is_last;
    int group = place / n_chunks, chunk = place % n_chunks, first = 32 * group;
    int n_own = (n_rows + n_chunks - 1) / n_chunks, start = chunk * n_own;
    int stop = start + n_own < n_rows ? start + n_own : n_rows;
    for (int v = threadIdx.x; v < 128; v += blockDim.x) {
        float total = 0;
        if (first + v % 32 < width) {
            for (int row = start + v / 32; row < stop; row += 4) total += cell(row, first + v % 32);
        }
        part[v] = total;
    }
    __syncthreads();
    for (int v = threadIdx.x; v < 32 && first + v < width; v += blockDim.x) {
        parts[(long long)chunk * width + first + v] =
            (part[v] + part[v + 32]) + (part[v + 64] + part[v + 96]);
    }
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) is_last = atomicAdd(&done[group], 1) == n_chunks - 1;
    __syncthreads();
    if (!is_last) return;
    __threadfence();
    const volatile float* found = parts;
    for (int v = threadIdx.x; v < 128; v += blockDim.x) {
        float total = 0;
        if (first + v % 32 < width) {
            for (int k = v / 32; k < n_chunks; k += 4) {
                total += found[(long long)k * width + first + v % 32];
            }
        }
        part[v] = total;
    }
    __syncthreads();
    for (int v = threadIdx.x; v < 32 && first + v < width; v += blockDim.x) {
        put(first + v, (part[v] + part[v + 32]) + (part[v + 64] + part[v + 96]));
    }
    if (threadIdx.x == 0) done[group] = 0;
}

// The gradient of X, plus `more` where there is some, by the first n_row_blocks blocks, and, if it
// is wanted, what a dropout lets through of it; those of G and b, added to them, by the others.
extern "C" __global__ void backprop_layer_norm(float* dX, float* d_dropped, float* dG, float* db,
        float* parts, int* done, const float* dY, const float* G, const float* hat,
        const float* scales, const float* more, int n_rows, int width, int n_row_blocks,
        int n_chunks, unsigned long long seed, unsigned long long number, double rate) {
    __shared__ float part[1024];
    if (blockIdx.x >= n_row_blocks) {
        int place = blockIdx.x - n_row_blocks;
        sum_columns(parts, done, n_rows, 2 * width, place, n_chunks, [&](int row, int c) {
            long long at = (long long)row * width + c % width;
            return c < width ? dY[at] * hat[at] : dY[at];
        }, [&](int c, float sum) { (c < width ? dG[c] : db[c - width]) += sum; });
        return;
    }
    for (int row = blockIdx.x; row < n_rows; row += n_row_blocks) {
        long long first = (long long)row * width;
        backprop_norm_row(dX + first, dY + first, G, hat + first, scales[row], width, part);
        for (int c = threadIdx.x; (more || d_dropped) && c < width; c += blockDim.x) {
            long long at = first + c;
            if (more) dX[at] += more[at];
            if (d_dropped) d_dropped[at] = dX[at] * mask_of(at, seed, number, rate);
        }
    }
}

// Kinds of activations. A gated one reads pairs of cells, of a left and a right half of each row.
#define GELU 1
#define SWIGLU 2

// Adds b to Z; and Y, of n cells in rows of a width, is relu(Z), gelu(Z) or swiglu(Z).
extern "C" __global__ void activate(float* Y, float* Z, const float* b, long long n, int width,
        int kind) {
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < n;
            i += (long long)gridDim.x * blockDim.x) {
        int c = i % width;
        long long at = kind == SWIGLU ? i / width * 2 * width + c : i;
        float z = Z[at] + b[c];
        Z[at] = z;
        if (kind == SWIGLU) {
            float value = Z[at + width] + b[c + width];
            Z[at + width] = value;
            Y[i] = z / (1 + expf(-z)) * value;
        } else {
            Y[i] = kind == GELU ? z * 0.5f * (1 + erff(z * 0.70710678f)) : z > 0 ? z : 0.0f;
        }
    }
}

// The gradient of Z (of the width), and of b (added to it), from that of Y; and the columns of X
// are added to dx.
extern "C" __global__ void backprop_activate(float* dZ, float* db, float* dx, float* parts,
        int* done, const float* dY, const float* Z, const float* X, int n_rows, int width,
        int n_more, int n_chunks, int kind) {
    sum_columns(parts, done, n_rows, width + n_more, blockIdx.x, n_chunks, [&](int row, int c) {
        if (c >= width) return X[(long long)row * n_more + c - width];
        long long at = (long long)row * width + c;
        if (kind == SWIGLU) {
            int half = width / 2;
            bool is_gate = c < half;
            float gate = Z[is_gate ? at : at - half], s = 1 / (1 + expf(-gate));
            float slope = is_gate ? Z[at + half] * s * (1 + gate * (1 - s)) : gate * s;
            return dZ[at] = slope * dY[(long long)row * half + c % half];
        }
        float z = Z[at], slope = z > 0 ? 1.0f : 0.0f;
        if (kind == GELU) {
            slope = 0.5f * (1 + erff(z * 0.70710678f)) + z * 0.39894228f * expf(-0.5f * z * z);
        }
        return dZ[at] = slope * dY[at];
    }, [&](int c, float sum) { (c < width ? db[c] : dx[c - width]) += sum; });
}

// Cosine and sine of the turn of each place and point of a head.
extern "C" __global__ void rotation_tables(float* cosines, float* sines, int n_places, int half,
        double base) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n_places * half;
            i += gridDim.x * blockDim.x) {
        double angle = (i / half) * pow(base, -(double)(i % half) / half);
        cosines[i] = (float)cos(angle);
        sines[i] = (float)sin(angle);
    }
}

// Cell c of a token's queries, keys and values (3 * width cells), turned by its place.
__device__ float turned(const float* x, int c, int width, int half, const float* cosines,
        const float* sines, long long place, float direction) {
    if (c >= 2 * width) return x[c];
    int i = c % (2 * half);
    long long at = place * half + i % half;
    float s = direction * sines[at];
    return i < half ? x[c] * cosines[at] - x[c + half] * s : x[c - half] * s + x[c] * cosines[at];
}

// Adds a bias, where there is one, and turns queries and keys, where there are places; in place.
extern "C" __global__ void rotate(float* X, const float* b, const long long* places,
        const float* cosines, const float* sines, int n_tokens, int width, int half,
        double direction) {
    long long n_points = places ? 3LL * width / 2 : 3LL * width;  // Of two cells, or of one.
    for (long long at = (long long)blockIdx.x * blockDim.x + threadIdx.x; at < n_tokens * n_points;
            at += (long long)gridDim.x * blockDim.x) {
        long long t = at / n_points;
        int point = at % n_points;
        float* x = X + t * 3 * width;
        if (!places) {
            if (b) x[point] += b[point];
            continue;
        }
        int c = point / half * 2 * half + point % half;
        if (b) x[c] += b[c], x[c + half] += b[c + half];
        float left = turned(x, c, width, half, cosines, sines, places[t], (float)direction);
        x[c + half] = turned(x, c + half, width, half, cosines, sines, places[t], (float)direction);
        x[c] = left;
    }
}

// The gradient before it was turned, and of the bias (added to it); and the columns of Z are
// added to dz.
extern "C" __global__ void backprop_rotate(float* dX, float* db, float* dz, float* parts, int* done,
        const float* dY, const float* Z, const long long* places, const float* cosines,
        const float* sines, int n_tokens, int width, int half, int n_chunks) {
    sum_columns(parts, done, n_tokens, 4 * width, blockIdx.x, n_chunks, [&](int t, int c) {
        if (c >= 3 * width) return Z[(long long)t * width + c - 3 * width];
        const float* d = dY + (long long)t * 3 * width;
        float own = places ? turned(d, c, width, half, cosines, sines, places[t], -1.0f) : d[c];
        return dX[(long long)t * 3 * width + c] = own;
    }, [&](int c, float sum) { (c < 3 * width ? db[c] : dz[c - 3 * width]) += sum; });
}

// Each query attends to the tokens of each sequence: of their scores S (n_tokens, n_queries) the
// softmax P over the sequence, and Y (n_sequences, n_queries, width), sums of tokens by it.
extern "C" __global__ void attend_with(float* Y, float* P, const float* S, const float* X,
        const int* starts, int n_sequences, int n_queries, int width) {
    __shared__ float part[1024];
    for (int pair = blockIdx.x; pair < n_sequences * n_queries; pair += gridDim.x) {
        int first = starts[pair / n_queries], stop = starts[pair / n_queries + 1];
        long long q = pair % n_queries;
        float highest = -3.0e38f, own = 0;
        for (int t = first + threadIdx.x; t < stop; t += blockDim.x) {
            float score = S[t * (long long)n_queries + q];
            if (!(score <= highest)) highest = score;
        }
        highest = block_max(highest, part);
        for (int t = first + threadIdx.x; t < stop; t += blockDim.x) {
            long long at = t * (long long)n_queries + q;
            P[at] = expf(S[at] - highest);
            own += P[at];
        }
        float sum = block_sum(own, part);
        for (int c = threadIdx.x; c < width; c += blockDim.x) {
            float total = 0;
            for (int t = first; t < stop; t++) {
                total += P[t * (long long)n_queries + q] * X[t * (long long)width + c];
            }
            Y[pair * (long long)width + c] = first < stop ? total / sum : 0.0f;
        }
        __syncthreads();
        for (int t = first + threadIdx.x; t < stop; t += blockDim.x) {
            P[t * (long long)n_queries + q] /= sum;
        }
    }
}

// The gradient of the scores.
extern "C" __global__ void backprop_scores(float* dS, const float* dY, const float* P,
        const float* X, const int* starts, int n_sequences, int n_queries, int width) {
    __shared__ float part[1024];
    for (int pair = blockIdx.x; pair < n_sequences * n_queries; pair += gridDim.x) {
        int first = starts[pair / n_queries], stop = starts[pair / n_queries + 1];
        const float* d = dY + pair * (long long)width;
        float own = 0;
        for (int t = first + threadIdx.x; t < stop; t += blockDim.x) {
            long long at = t * (long long)n_queries + pair % n_queries;
            float dP = 0;
            for (int c = 0; c < width; c++) dP += d[c] * X[t * (long long)width + c];
            dS[at] = dP;
            own += P[at] * dP;
        }
        float mean = block_sum(own, part);
        for (int t = first + threadIdx.x; t < stop; t += blockDim.x) {
            long long at = t * (long long)n_queries + pair % n_queries;
            dS[at] = P[at] * (dS[at] - mean);
        }
    }
}

// The gradient of the tokens: as what is summed up, and as what queries are compared with.
extern "C" __global__ void backprop_attend_with(float* dX, const float* dY, const float* P,
        const float* dS, const float* queries, const int* owners, int n_tokens,
        int n_queries, int width) {
    for (int t = blockIdx.x; t < n_tokens; t += gridDim.x) {
        const float *p = P + t * (long long)n_queries, *ds = dS + t * (long long)n_queries;
        const float* d = dY + (long long)owners[t] * n_queries * width;
        for (int c = threadIdx.x; c < width; c += blockDim.x) {
            float total = 0;
            for (int q = 0; q < n_queries; q++) {
                total += p[q] * d[q * width + c] + ds[q] * queries[q * width + c];
            }
            dX[t * (long long)width + c] = total;
        }
    }
}
