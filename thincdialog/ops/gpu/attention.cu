// Attention of queries to the keys of their sequence, in each head of HEAD cells. The results are
// the same bit for bit for any number of threads in a block. Rows have n_heads * HEAD cells.
// Query t attends to the keys from spans[t] to spans[n + t] (exclusive); of_keys gives the range of
// queries that attend to each key in the same way.

// Heads of up to 64 cells stay in registers.
constexpr int N_UNROLLED = HEAD <= 64 ? HEAD : 4;
#define EACH_CELL _Pragma("unroll (N_UNROLLED)") for (int c = 0; c < HEAD; c++)

__device__ float along(const float* one, const float* other) {
    float total = 0;
    EACH_CELL total += one[c] * other[c];
    return total;
}

// One thread per query and head, with a running softmax. logs: logarithms of the sums of weights.
extern "C" __global__ void attend(float* Y, float* logs, const float* Q, const float* K,
        const float* V, const int* spans, int n_queries, int n_heads, double factor) {
    long long width = n_heads * HEAD, n_pairs = (long long)n_queries * n_heads;
    float q[HEAD], y[HEAD];
    for (long long pair = (long long)blockIdx.x * blockDim.x + threadIdx.x; pair < n_pairs;
            pair += (long long)gridDim.x * blockDim.x) {
        int t = pair % n_queries;
        long long start = pair / n_queries * HEAD;
        EACH_CELL q[c] = Q[t * width + start + c], y[c] = 0;
        float highest = -3.0e38f, sum = 0;
        for (int j = spans[t]; j < spans[n_queries + t]; j++) {
            const float *k = K + j * width + start, *v = V + j * width + start;
            float score = (float)factor * along(q, k), kept = 1;
            if (score > highest) {
                kept = expf(highest - score);
                highest = score;
            }
            float power = expf(score - highest);
            sum = kept * sum + power;
            EACH_CELL y[c] = kept * y[c] + power * v[c];
        }
        float* to = Y + t * width + start;
        EACH_CELL to[c] = sum > 0 ? y[c] / sum : 0.0f;
        logs[pair] = highest + logf(sum);
    }
}

// The gradient of queries: one thread per query and head.
extern "C" __global__ void backprop_queries(float* dQ, const float* dY, const float* Y,
        const float* logs, const float* Q, const float* K, const float* V, const int* spans,
        int n_queries, int n_heads, double factor) {
    long long width = n_heads * HEAD, n_pairs = (long long)n_queries * n_heads;
    float q[HEAD], dy[HEAD], dq[HEAD];
    for (long long pair = (long long)blockIdx.x * blockDim.x + threadIdx.x; pair < n_pairs;
            pair += (long long)gridDim.x * blockDim.x) {
        int t = pair % n_queries;
        long long start = pair / n_queries * HEAD, own = t * width + start;
        EACH_CELL q[c] = Q[t * width + start + c], dy[c] = dY[own + c], dq[c] = 0;
        float mean = along(dy, Y + own);
        for (int j = spans[t]; j < spans[n_queries + t]; j++) {
            const float *k = K + j * width + start, *v = V + j * width + start;
            float p = expf((float)factor * along(q, k) - logs[pair]);
            float ds = p * (along(dy, v) - mean);
            EACH_CELL dq[c] += ds * k[c];
        }
        EACH_CELL dQ[own + c] = (float)factor * dq[c];
    }
}

// The gradients of keys and values: one thread per key and head.
extern "C" __global__ void backprop_keys(float* dK, float* dV, const float* dY, const float* Y,
        const float* logs, const float* Q, const float* K, const float* V, const int* of_keys,
        int n_keys, int n_queries, int n_heads, double factor) {
    long long width = n_heads * HEAD, n_pairs = (long long)n_keys * n_heads;
    float k[HEAD], v[HEAD], dk[HEAD], dv[HEAD];
    for (long long pair = (long long)blockIdx.x * blockDim.x + threadIdx.x; pair < n_pairs;
            pair += (long long)gridDim.x * blockDim.x) {
        int t = pair % n_keys;
        long long head = pair / n_keys, start = head * HEAD;
        EACH_CELL k[c] = K[t * width + start + c], v[c] = V[t * width + start + c];
        EACH_CELL dk[c] = dv[c] = 0;
        for (int i = of_keys[t]; i < of_keys[n_keys + t]; i++) {
            const float *q = Q + i * width + start, *dy = dY + i * width + start;
            const float* y = Y + i * width + start;
            float p = expf((float)factor * along(k, q) - logs[head * n_queries + i]), ds = 0;
            EACH_CELL ds += dy[c] * (v[c] - y[c]);
            EACH_CELL dk[c] += p * ds * q[c], dv[c] += p * dy[c];
        }
        float *to_k = dK + t * width + start, *to_v = dV + t * width + start;
        EACH_CELL to_k[c] = (float)factor * dk[c], to_v[c] = dv[c];
    }
}
