// Kernels of DialogCupyOps. Each works with any number of threads in a block, and adds in an order
// that depends only on the block, so results are reproducible bit for bit. Rows are contiguous.

// The sum of a value over all threads of the block. `part` has one element per thread.
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

// Whether all other blocks have written their results: true in one block, the last one to ask.
// `turns` is 0 before and after the kernel.
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

// out[g] = factors[g] * sum over j from starts[g] to starts[g + 1] of table[i], with i = ids[j], or
// i = j if there are no ids. Factors are 1 by default.
extern "C" __global__ void sum_rows(float* out, const float* table, const int* ids,
        const int* starts, const float* factors, int n_groups, int width) {
    for (int g = blockIdx.x; g < n_groups; g += gridDim.x) {
        for (int c = threadIdx.x; c < width; c += blockDim.x) {
            float total = 0;
            for (int j = starts[g]; j < starts[g + 1]; j++) {
                total += table[(ids ? ids[j] : j) * (long long)width + c];
            }
            out[(long long)g * width + c] = factors ? total * factors[g] : total;
        }
    }
}

// The maximum of each column of each group, and its row in the group; 0 for an empty group.
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

// Each token joined with its neighbours on both sides; zeros beyond the ends of its sequence,
// which begins at bounds[t] and ends at bounds[n_tokens + t].
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

extern "C" __global__ void backprop_windows(float* dX, const float* dY, const int* bounds,
        int n_tokens, int width, int size) {
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
            dX[(long long)t * width + c] = total;
        }
    }
}

// --- recurrence: one block per sequence and direction runs all steps. Gates i, f, o, g lie side by
// side; in each row, the gates of the forward direction come first.

__device__ float sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }

// G is W x, and is overwritten with the gates. C: cells. H: outputs. Ut: (2, width, 4 width).
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

// dG is the gradient of W x + U h + b. Z gets the values that the weights were multiplied by: x,
// the outputs of the step before in both directions, and 1 0 0 0. `carried` (n_sequences, 2,
// 5 width) is memory for gradients between steps: of the cell, and of the output in parts.
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

// Sums of squares, one per block, of some ranges of X (bounds: begin and end of each) and of all
// cells of Z. If asked for, the last block adds all n_sums: found[0] is the norm of the scaled
// gradient, found[1] the factor that scales and clips the gradient (0 if the norm is not finite,
// which is counted).
extern "C" __global__ void square_sums(float* sums, float* found, int* n_skipped,
        unsigned int* turns,
        const float* X, const long long* bounds, int n_ranges, const float* Z, long long n,
        const float* all_sums, int n_sums, double scale, double limit) {
    __shared__ float part[1024];
    float own = 0;
    long long first = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    long long step = (long long)gridDim.x * blockDim.x;
    for (int s = 0; s < n_ranges; s++) {
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

// One step of Adam for some ranges of W (bounds: begin and end of each), whose gradients in dW are
// 0 afterwards, and for some rows of the table that begins at `table`. If the factor of the
// gradient is 0, no weights are changed.
extern "C" __global__ void adam(float* W, float* dW, float* mom1, float* mom2,
        const float* found, const long long* bounds, int n_ranges, long long table,
        const int* rows, const float* d_rows, long long n_rows, int width, double b1, double b2,
        double least, double eps, double rate, double nu, double newest, double decay) {
    float factor = found[1];
    long long first = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    long long step = (long long)gridDim.x * blockDim.x;
    for (int s = 0; s < n_ranges; s++) {
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

// Softmax cross-entropy of each row's right cell: gradient and loss. Cells that are not allowed are
// excluded, except the right one. The weight of a row is 1 by default.
extern "C" __global__ void softmax_loss(float* gradient, float* losses, const float* Z,
        const int* targets, const bool* allowed, const float* weights, int n_rows, int width,
        double smoothing) {
    __shared__ float part[1024];
    float spread = (float)(smoothing / width), right = (float)(1 - smoothing);
    for (int row = blockIdx.x; row < n_rows; row += gridDim.x) {
        const float* z = Z + (long long)row * width;
        const bool* ok = allowed ? allowed + (long long)row * width : nullptr;
        float* d = gradient + (long long)row * width;
        int target = targets[row];
        float weight = weights ? weights[target] : 1.0f, highest = z[target];
        for (int c = threadIdx.x; c < width; c += blockDim.x) {
            if ((!ok || ok[c]) && z[c] > highest) highest = z[c];
        }
        highest = block_max(highest, part);
        float powers = 0, sum = 0;
        for (int c = threadIdx.x; c < width; c += blockDim.x) {
            d[c] = !ok || ok[c] || c == target ? expf(z[c] - highest) : 0.0f;
            powers += d[c];
            sum += z[c] - highest;
        }
        powers = block_sum(powers, part);
        sum = block_sum(sum, part);
        for (int c = threadIdx.x; c < width; c += blockDim.x) {
            d[c] = weight * (d[c] / powers - spread - (c == target ? right : 0.0f));
        }
        if (threadIdx.x == 0) {
            float log_powers = logf(powers), loss = right * (log_powers - (z[target] - highest));
            losses[row] = weight * (loss + spread * (width * log_powers - sum));
        }
    }
}

// --- layer normalisation: one block per row

extern "C" __global__ void layer_norm(float* Y, float* hat, float* scales, const float* X,
        const float* G, const float* b, int n_rows, int width, double eps) {
    __shared__ float part[1024];
    for (int row = blockIdx.x; row < n_rows; row += gridDim.x) {
        long long first = (long long)row * width;
        const float* x = X + first;
        float own = 0;
        for (int c = threadIdx.x; c < width; c += blockDim.x) own += x[c];
        float mean = block_sum(own, part) / width;
        own = 0;
        for (int c = threadIdx.x; c < width; c += blockDim.x) own += (x[c] - mean) * (x[c] - mean);
        float factor = 1.0f / sqrtf(block_sum(own, part) / width + (float)eps);
        for (int c = threadIdx.x; c < width; c += blockDim.x) {
            hat[first + c] = (x[c] - mean) * factor;
            Y[first + c] = hat[first + c] * G[c] + b[c];
        }
        if (threadIdx.x == 0) scales[row] = factor;
    }
}

extern "C" __global__ void backprop_layer_norm(float* dX, const float* dY, const float* G,
        const float* hat, const float* scales, int n_rows, int width) {
    __shared__ float part[1024];
    for (int row = blockIdx.x; row < n_rows; row += gridDim.x) {
        const float *dy = dY + (long long)row * width, *h = hat + (long long)row * width;
        float own = 0, product = 0;
        for (int c = threadIdx.x; c < width; c += blockDim.x) {
            own += dy[c] * G[c];
            product += dy[c] * G[c] * h[c];
        }
        float mean = block_sum(own, part) / width, along = block_sum(product, part) / width;
        for (int c = threadIdx.x; c < width; c += blockDim.x) {
            dX[(long long)row * width + c] = scales[row] * (dy[c] * G[c] - mean - h[c] * along);
        }
    }
}

// --- one cell per thread

// Factors for dropout: 0 with probability `rate`, else the factor that keeps the mean.
extern "C" __global__ void dropout_mask(float* Y, long long n, unsigned long long seed,
        unsigned long long number, double rate) {
    unsigned int limit = (unsigned int)(rate * 4294967296.0);
    for (long long four = (long long)blockIdx.x * blockDim.x + threadIdx.x; four * 4 < n;
            four += (long long)gridDim.x * blockDim.x) {
        unsigned int c[4];
        philox(c, four, seed, number);
        for (long long at = four * 4; at < four * 4 + 4 && at < n; at++) {
            Y[at] = c[at - four * 4] >= limit ? (float)(1 / (1 - rate)) : 0.0f;
        }
    }
}

// Gates times their sigmoid times values, the halves of each row of Z + b, which overwrites Z.
extern "C" __global__ void swiglu(float* Y, float* Z, const float* b, long long n, int width) {
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < n;
            i += (long long)gridDim.x * blockDim.x) {
        int c = i % width;
        float *gate = Z + i / width * 2 * width + c, *value = gate + width;
        *gate += b[c];
        *value += b[width + c];
        Y[i] = *gate * sigmoid(*gate) * *value;
    }
}

extern "C" __global__ void backprop_swiglu(float* dZ, const float* dY, const float* Z, long long n,
        int width) {
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < n;
            i += (long long)gridDim.x * blockDim.x) {
        long long at = i / width * 2 * width + i % width;
        float gate = Z[at], value = Z[at + width], s = sigmoid(gate);
        dZ[at] = dY[i] * value * (s * (1 + gate * (1 - s)));
        dZ[at + width] = dY[i] * (gate * s);
    }
}

// Rotates queries and keys in place: X (n_tokens, 3 * width). In the first 2 * width cells of each
// row, cells i and i + half of each head are a point. Tables have the shape (n_places, half).
extern "C" __global__ void rotate(float* X, const int* places, const float* cosines,
        const float* sines, int n_tokens, int width, int half, double direction) {
    for (long long at = (long long)blockIdx.x * blockDim.x + threadIdx.x;
            at < (long long)n_tokens * width; at += (long long)gridDim.x * blockDim.x) {
        long long t = at / width, turn = (long long)places[t] * half + at % half;
        float* x = X + t * 3 * width + at % width / half * 2 * half + at % half;
        float left = x[0], right = x[half], s = (float)direction * sines[turn];
        x[0] = left * cosines[turn] - right * s;
        x[half] = left * s + right * cosines[turn];
    }
}
