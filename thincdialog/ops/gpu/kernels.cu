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

// Rows of mean 0 and variance 1 (hat), times G, plus b; and what they were multiplied by.
extern "C" __global__ void layer_norm(float* Y, float* hat, float* scales, const float* X,
        const float* G, const float* b, int n_rows, int width, double eps) {
    __shared__ float part[1024];
    for (int row = blockIdx.x; row < n_rows; row += gridDim.x) {
        long long first = (long long)row * width;
        float own = 0;
        for (int c = threadIdx.x; c < width; c += blockDim.x) own += X[first + c];
        float mean = block_sum(own, part) / width;
        own = 0;
        for (int c = threadIdx.x; c < width; c += blockDim.x) {
            own += (X[first + c] - mean) * (X[first + c] - mean);
        }
        float scale = 1.0f / sqrtf(block_sum(own, part) / width + (float)eps);
        for (int c = threadIdx.x; c < width; c += blockDim.x) {
            float h = (X[first + c] - mean) * scale;
            hat[first + c] = h;
            Y[first + c] = h * G[c] + b[c];
        }
        if (threadIdx.x == 0) scales[row] = scale;
    }
}

extern "C" __global__ void backprop_layer_norm(float* dX, const float* dY, const float* G,
        const float* hat, const float* scales, int n_rows, int width) {
    __shared__ float part[1024];
    for (int row = blockIdx.x; row < n_rows; row += gridDim.x) {
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
            float d = dY[first + c] * G[c];
            dX[first + c] = scales[row] * (d - mean - hat[first + c] * along);
        }
    }
}

// The gradients of G and b: sums over the rows, a block for each column.
extern "C" __global__ void backprop_gain(float* dG, float* db, const float* dY, const float* hat,
        int n_rows, int width) {
    __shared__ float part[1024];
    for (int c = blockIdx.x; c < width; c += gridDim.x) {
        float gain = 0, bias = 0;
        for (int row = threadIdx.x; row < n_rows; row += blockDim.x) {
            long long at = (long long)row * width + c;
            gain += dY[at] * hat[at];
            bias += dY[at];
        }
        gain = block_sum(gain, part);
        bias = block_sum(bias, part);
        if (threadIdx.x == 0) dG[c] = gain, db[c] = bias;
    }
}

// Philox 4x32 with 10 rounds (Salmon et al. 2011): the same draws on every GPU.
extern "C" __global__ void dropout_mask(float* mask, long long n, unsigned long long seed,
        unsigned long long number, double rate) {
    unsigned int limit = (unsigned int)(rate * 4294967296.0);
    float kept = (float)(1 / (1 - rate));
    for (long long four = (long long)blockIdx.x * blockDim.x + threadIdx.x; four * 4 < n;
            four += (long long)gridDim.x * blockDim.x) {
        unsigned int c[4] = {(unsigned int)four, (unsigned int)(four >> 32),
                             (unsigned int)number, (unsigned int)(number >> 32)};
        unsigned int k0 = (unsigned int)seed, k1 = (unsigned int)(seed >> 32);
        for (int round = 0; round < 10; round++) {
            unsigned long long a = 0xD2511F53ull * c[0], b = 0xCD9E8D57ull * c[2];
            unsigned int next0 = (unsigned int)(b >> 32) ^ c[1] ^ k0;
            unsigned int next2 = (unsigned int)(a >> 32) ^ c[3] ^ k1;
            c[1] = (unsigned int)b, c[3] = (unsigned int)a;
            c[0] = next0, c[2] = next2;
            k0 += 0x9E3779B9u, k1 += 0xBB67AE85u;
        }
        for (int at = 0; at < 4 && four * 4 + at < n; at++) {
            mask[four * 4 + at] = c[at] >= limit ? kept : 0.0f;
        }
    }
}
