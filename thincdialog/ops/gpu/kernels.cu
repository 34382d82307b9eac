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

// out[g] = factors[g] * sum over j from starts[g] to starts[g + 1] of weights[i] * table[i], with
// i = ids[j], or j where there are no ids. Without factors or weights these are 1.
extern "C" __global__ void sum_rows(float* out, const float* table, const int* ids,
        const int* starts, const float* factors, const float* weights, int n_groups, int width) {
    for (int g = blockIdx.x; g < n_groups; g += gridDim.x) {
        for (int c = threadIdx.x; c < width; c += blockDim.x) {
            float total = 0;
            for (int j = starts[g]; j < starts[g + 1]; j++) {
                long long i = ids ? ids[j] : j;
                float value = table[i * width + c];
                total += weights ? weights[i] * value : value;
            }
            out[(long long)g * width + c] = factors ? factors[g] * total : total;
        }
    }
}

// The highest cell of each column of each group, and its place in the group.
extern "C" __global__ void max_rows(float* highest, int* which, const float* X,
        const int* starts, int n_groups, int width) {
    for (int g = blockIdx.x; g < n_groups; g += gridDim.x) {
        for (int c = threadIdx.x; c < width; c += blockDim.x) {
            int first = starts[g], best = first;
            for (int j = first + 1; j < starts[g + 1]; j++) {
                if (X[(long long)j * width + c] > X[(long long)best * width + c]) best = j;
            }
            highest[(long long)g * width + c] = X[(long long)best * width + c];
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

extern "C" __global__ void backprop_maxout(float* dX, const float* dY, const int* which,
        long long n, int n_pieces) {
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < n * n_pieces;
            i += (long long)gridDim.x * blockDim.x) {
        dX[i] = which[i / n_pieces] == i % n_pieces ? dY[i / n_pieces] : 0.0f;
    }
}

// Sums of squares, one for each block.
extern "C" __global__ void square_sums(float* sums, const float* X, long long n) {
    __shared__ float part[1024];
    float own = 0;
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < n;
            i += (long long)gridDim.x * blockDim.x) {
        own += X[i] * X[i];
    }
    float total = block_sum(own, part);
    if (threadIdx.x == 0) sums[blockIdx.x] = total;
}

// Of sums of squares: found[0] is the norm of the scaled gradient, found[1] what the gradient is
// to be multiplied by (clipped; 0 if the norm is not finite).
extern "C" __global__ void clip_factor(float* found, const float* sums, int n, double scale,
        double limit) {
    if (blockIdx.x || threadIdx.x) return;
    double total = 0;
    for (int i = 0; i < n; i++) total += sums[i];
    double norm = fabs(scale) * sqrt(total);
    bool is_finite = norm - norm == 0;
    double clipped = limit > 0 && norm > limit ? scale * limit / norm : scale;
    found[0] = (float)norm;
    found[1] = is_finite ? (float)clipped : 0.0f;
}

// One step of Adam for some rows (all where there are no numbers of rows). Nothing is changed
// where the factor of the gradient is 0.
extern "C" __global__ void adam_rows(float* W, const float* dW, float* mom1, float* mom2,
        const int* rows, const float* found, long long n_rows, int width, double b1,
        double b2, double least, double eps, double rate, double nu, double newest,
        double decay) {
    float factor = found[1];
    if (factor == 0.0f) return;
    float share1 = (float)(1 - b1), share2 = (float)(1 - b2), keep = (float)(1 - decay);
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < n_rows * width;
            i += (long long)gridDim.x * blockDim.x) {
        long long at = rows ? (long long)rows[i / width] * width + i % width : i;
        float d = factor * dW[i];
        float m = (float)b1 * mom1[at] + share1 * d;
        float v = (float)b2 * mom2[at] + share2 * (d * d);
        if ((float)least * (m * m) > v) v = (float)least * (m * m);
        float ahead = nu == 1 ? m : (float)nu * m + (float)newest * d;
        float w = W[at] - (float)rate * (ahead / (sqrtf(v) + (float)eps));
        mom1[at] = m;
        mom2[at] = v;
        W[at] = decay != 0 ? keep * w : w;
    }
}

// Softmax cross-entropy of each row's right cell: gradient and loss. Cells that are not allowed
// do not count, the right one always does. Without weights, each row's is 1.
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
        float weight = weights ? weights[target] : 1.0f;
        float highest = z[target];
        for (int c = threadIdx.x; c < width; c += blockDim.x) {
            if ((!ok || ok[c]) && z[c] > highest) highest = z[c];
        }
        highest = block_max(highest, part);
        float powers = 0, sum = 0;
        for (int c = threadIdx.x; c < width; c += blockDim.x) {
            bool counts = !ok || ok[c] || c == target;
            d[c] = counts ? expf(z[c] - highest) : 0.0f;
            powers += d[c];
            sum += z[c] - highest;
        }
        powers = block_sum(powers, part);
        sum = block_sum(sum, part);
        for (int c = threadIdx.x; c < width; c += blockDim.x) {
            d[c] = weight * (d[c] / powers - spread - (c == target ? right : 0.0f));
        }
        if (threadIdx.x == 0) {
            float log_powers = logf(powers);
            float loss = right * (log_powers - (z[target] - highest));
            losses[row] = weight * (loss + spread * (width * log_powers - sum));
        }
    }
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

// A row of mean 0 and variance 1 (hat), times G, plus b; and what it was multiplied by.
__device__ void normalise_row(float* y, float* hat, float* scale, const float* x, const float* G,
        const float* b, float mean, int width, double eps, float* part) {
    float own = 0;
    for (int c = threadIdx.x; c < width; c += blockDim.x) own += (x[c] - mean) * (x[c] - mean);
    float factor = 1.0f / sqrtf(block_sum(own, part) / width + (float)eps);
    for (int c = threadIdx.x; c < width; c += blockDim.x) {
        hat[c] = (x[c] - mean) * factor;
        y[c] = hat[c] * G[c] + b[c];
    }
    if (threadIdx.x == 0) *scale = factor;
}

extern "C" __global__ void layer_norm(float* Y, float* hat, float* scales, const float* X,
        const float* G, const float* b, int n_rows, int width, double eps) {
    __shared__ float part[1024];
    for (int row = blockIdx.x; row < n_rows; row += gridDim.x) {
        long long first = (long long)row * width;
        float own = 0;
        for (int c = threadIdx.x; c < width; c += blockDim.x) own += X[first + c];
        float mean = block_sum(own, part) / width;
        normalise_row(Y + first, hat + first, scales + row, X + first, G, b, mean, width, eps, part);
    }
}

// Philox 4x32 with 10 rounds (Salmon et al. 2011): the same draws on every GPU.
__device__ void four_draws(unsigned int* c, long long four, unsigned long long seed,
        unsigned long long number) {
    unsigned int k0 = (unsigned int)seed, k1 = (unsigned int)(seed >> 32);
    c[0] = (unsigned int)four, c[1] = (unsigned int)(four >> 32);
    c[2] = (unsigned int)number, c[3] = (unsigned int)(number >> 32);
    for (int round = 0; round < 10; round++) {
        unsigned long long a = 0xD2511F53ull * c[0], b = 0xCD9E8D57ull * c[2];
        unsigned int next0 = (unsigned int)(b >> 32) ^ c[1] ^ k0;
        unsigned int next2 = (unsigned int)(a >> 32) ^ c[3] ^ k1;
        c[1] = (unsigned int)b, c[3] = (unsigned int)a;
        c[0] = next0, c[2] = next2;
        k0 += 0x9E3779B9u, k1 += 0xBB67AE85u;
    }
}

extern "C" __global__ void dropout_mask(float* mask, long long n, unsigned long long seed,
        unsigned long long number, double rate) {
    unsigned int limit = (unsigned int)(rate * 4294967296.0), c[4];
    float kept = (float)(1 / (1 - rate));
    for (long long four = (long long)blockIdx.x * blockDim.x + threadIdx.x; four * 4 < n;
            four += (long long)gridDim.x * blockDim.x) {
        four_draws(c, four, seed, number);
        for (int at = 0; at < 4 && four * 4 + at < n; at++) {
            mask[four * 4 + at] = c[at] >= limit ? kept : 0.0f;
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

// The gradient of X, plus `more` where there is some, by the first n_row_blocks blocks; those of G
// and b, added to them, by the others.
extern "C" __global__ void backprop_layer_norm(float* dX, float* dG, float* db, float* parts,
        int* done, const float* dY, const float* G, const float* hat, const float* scales,
        const float* more, int n_rows, int width, int n_row_blocks, int n_chunks) {
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
        float own = 0, along = 0;
        for (int c = threadIdx.x; c < width; c += blockDim.x) {
            float d = dY[first + c] * G[c];
            own += d;
            along += d * hat[first + c];
        }
        float mean = block_sum(own, part) / width;
        along = block_sum(along, part) / width;
        for (int c = threadIdx.x; c < width; c += blockDim.x) {
            float d = scales[row] * (dY[first + c] * G[c] - mean - hat[first + c] * along);
            dX[first + c] = more ? more[first + c] + d : d;
        }
    }
}

// Numbers from 0 to 2^32 - 1 for cell `at` of a mask, as of ``dropout_mask``.
__device__ unsigned int drawn(long long at, unsigned long long seed, unsigned long long number) {
    unsigned int c[4];
    four_draws(c, at / 4, seed, number);
    return c[at % 4];
}

__device__ float dropped(float value, long long at, unsigned long long seed,
        unsigned long long number, double rate) {
    if (rate <= 0) return value;
    unsigned int limit = (unsigned int)(rate * 4294967296.0);
    return drawn(at, seed, number) >= limit ? value * (float)(1 / (1 - rate)) : 0.0f;
}

// H = X + dropout(Z + b); with G, also the normal rows of H as of ``layer_norm``.
extern "C" __global__ void add_dropped(float* H, const float* X, const float* Z, const float* b,
        float* Y, float* hat, float* scales, const float* G, const float* bias, int n_rows,
        int width, unsigned long long seed, unsigned long long number, double rate, double eps) {
    __shared__ float part[1024];
    for (int row = blockIdx.x; row < n_rows; row += gridDim.x) {
        long long first = (long long)row * width;
        float own = 0;
        for (int c = threadIdx.x; c < width; c += blockDim.x) {
            H[first + c] = X[first + c] + dropped(Z[first + c] + b[c], first + c, seed, number, rate);
            own += H[first + c];
        }
        if (!G) continue;
        float mean = block_sum(own, part) / width;
        normalise_row(Y + first, hat + first, scales + row, H + first, G, bias, mean, width, eps, part);
    }
}

// The gradient of Z, and of b (added to it), from that of H.
extern "C" __global__ void backprop_add_dropped(float* dZ, float* db, float* parts, int* done,
        const float* dH, int n_rows, int width, int n_chunks, unsigned long long seed,
        unsigned long long number, double rate) {
    sum_columns(parts, done, n_rows, width, blockIdx.x, n_chunks, [&](int row, int c) {
        long long at = (long long)row * width + c;
        return dZ[at] = dropped(dH[at], at, seed, number, rate);
    }, [&](int c, float sum) { db[c] += sum; });
}

// Adds b to Z, and Y = gelu(Z), or relu(Z).
extern "C" __global__ void activate(float* Y, float* Z, const float* b, long long n, int width,
        int is_gelu) {
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < n;
            i += (long long)gridDim.x * blockDim.x) {
        float z = Z[i] + b[i % width];
        Z[i] = z;
        Y[i] = is_gelu ? z * 0.5f * (1 + erff(z * 0.70710678f)) : z > 0 ? z : 0.0f;
    }
}

// The gradient of Z, and of b (added to it), from that of Y.
extern "C" __global__ void backprop_activate(float* dZ, float* db, float* parts, int* done,
        const float* dY, const float* Z, int n_rows, int width, int n_chunks, int is_gelu) {
    sum_columns(parts, done, n_rows, width, blockIdx.x, n_chunks, [&](int row, int c) {
        long long at = (long long)row * width + c;
        float z = Z[at], slope = z > 0 ? 1.0f : 0.0f;
        if (is_gelu) {
            slope = 0.5f * (1 + erff(z * 0.70710678f)) + z * 0.39894228f * expf(-0.5f * z * z);
        }
        return dZ[at] = slope * dY[at];
    }, [&](int c, float sum) { db[c] += sum; });
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

// The gradient before it was turned, and of the bias (added to it).
extern "C" __global__ void backprop_rotate(float* dX, float* db, float* parts, int* done,
        const float* dY, const long long* places, const float* cosines, const float* sines,
        int n_tokens, int width, int half, int n_chunks) {
    sum_columns(parts, done, n_tokens, 3 * width, blockIdx.x, n_chunks, [&](int t, int c) {
        const float* d = dY + (long long)t * 3 * width;
        float own = places ? turned(d, c, width, half, cosines, sines, places[t], -1.0f) : d[c];
        return dX[(long long)t * 3 * width + c] = own;
    }, [&](int c, float sum) { db[c] += sum; });
}
