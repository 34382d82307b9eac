// Attention of each token to all of its sequence, in each head of HEAD cells: right for any number
// of threads in a block, and the same bits with each. QKV has queries, keys and values side by side,
// shape (n_tokens, 3 * n_heads * HEAD); bounds[t] and bounds[n_tokens + t] are where the sequence
// of a token begins and ends.

// Heads of up to 64 cells stay in registers.
constexpr int N_UNROLLED = HEAD <= 64 ? HEAD : 4;
#define EACH_CELL _Pragma("unroll (N_UNROLLED)") for (int c = 0; c < HEAD; c++)

__device__ float along(const float* one, const float* other) {
    float total = 0;
    EACH_CELL total += one[c] * other[c];
    return total;
}

// A thread for a token and head, with a running softmax. logs are those of the sums of the weights.
extern "C" __global__ void attend(float* Y, float* logs, const float* QKV, const int* bounds,
        int n_tokens, int n_heads) {
    long long width = n_heads * HEAD, n_pairs = (long long)n_tokens * n_heads;
    float factor = 1 / sqrtf((float)HEAD), q[HEAD], y[HEAD];
    for (long long pair = (long long)blockIdx.x * blockDim.x + threadIdx.x; pair < n_pairs;
            pair += (long long)gridDim.x * blockDim.x) {
        int t = pair % n_tokens;
        const float* of_head = QKV + pair / n_tokens * HEAD;
        EACH_CELL q[c] = of_head[t * 3 * width + c], y[c] = 0;
        float highest = -3.0e38f, sum = 0;
        for (int j = bounds[t]; j < bounds[n_tokens + t]; j++) {
            const float *k = of_head + (3LL * j + 1) * width, *v = k + width;
            float score = factor * along(q, k), kept = 1;
            if (score > highest) {
                kept = expf(highest - score);
                highest = score;
            }
            float power = expf(score - highest);
            sum = kept * sum + power;
            EACH_CELL y[c] = kept * y[c] + power * v[c];
        }
        float* to = Y + t * width + pair / n_tokens * HEAD;
        EACH_CELL to[c] = y[c] / sum;
        logs[pair] = highest + logf(sum);
    }
}

// The gradient of queries (a thread for each), and of keys and values (another one for both).
extern "C" __global__ void backprop_attend(float* dQKV, const float* dY, const float* Y,
        const float* logs, const float* QKV, const int* bounds, int n_tokens, int n_heads) {
    long long width = n_heads * HEAD, n_pairs = (long long)n_tokens * n_heads;
    float factor = 1 / sqrtf((float)HEAD);
    for (long long at = (long long)blockIdx.x * blockDim.x + threadIdx.x; at < 2 * n_pairs;
            at += (long long)gridDim.x * blockDim.x) {
        long long pair = at % n_pairs, start = pair / n_tokens * HEAD;
        int t = pair % n_tokens, stop = bounds[n_tokens + t];
        const float *of_head = QKV + start, *d_of_head = dY + start, *y_of_head = Y + start;
        float* to = dQKV + t * 3 * width + start;
        float one[HEAD], other[HEAD], d_one[HEAD], d_other[HEAD];
        EACH_CELL d_one[c] = d_other[c] = 0;
        if (at < n_pairs) {
            EACH_CELL one[c] = of_head[t * 3 * width + c], other[c] = d_of_head[t * width + c];
            float mean = along(other, y_of_head + t * width);
            for (int j = bounds[t]; j < stop; j++) {
                const float *k = of_head + (3LL * j + 1) * width, *v = k + width;
                float p = expf(factor * along(one, k) - logs[pair]);
                float ds = p * (along(other, v) - mean);
                EACH_CELL d_one[c] += ds * k[c];
            }
            EACH_CELL to[c] = factor * d_one[c];
            continue;
        }
        const float *k = of_head + (3LL * t + 1) * width, *v = k + width;
        EACH_CELL one[c] = k[c], other[c] = v[c];
        for (int i = bounds[t]; i < stop; i++) {
            const float *q = of_head + 3LL * i * width, *d = d_of_head + i * width;
            const float* y = y_of_head + i * width;
            float p = expf(factor * along(one, q) - logs[pair - t + i]), ds = 0;
            EACH_CELL ds += d[c] * (other[c] - y[c]);
            EACH_CELL d_one[c] += p * ds * q[c], d_other[c] += p * d[c];
        }
        EACH_CELL to[width + c] = factor * d_one[c], to[2 * width + c] = d_other[c];
    }
}
