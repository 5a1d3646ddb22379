// Single-precision GEMM of a BLAS peer, one line of JSON per shape.
//
// usage: gemm SECONDS OP:M:N:K...        OP is nn, nt or tn; C[M N] = A[M K] B[K N], row-major, nt holds B as [N K], tn holds A as [K M]
//
// Build with -DUSE_OPENBLAS and libopenblas.so.0, or with -DUSE_ONEDNN and libdnnl.so. Threads and kernels are chosen by the caller's environment
// (OMP_NUM_THREADS, OPENBLAS_NUM_THREADS, OPENBLAS_CORETYPE). Every buffer is 64-byte aligned and asks for huge pages.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

// The two functions are declared here, so that the libraries' headers need not be installed.
#if defined(USE_OPENBLAS)
extern void cblas_sgemm(int order, int ta, int tb, int m, int n, int k, float alpha, const float *a, int lda, const float *b, int ldb,
                        float beta, float *c, int ldc);
static void gemm(int ta, int tb, long m, long n, long k, const float *a, const float *b, float *c) {
  enum { row_major = 101, plain = 111, transposed = 112 };
  cblas_sgemm(row_major, ta ? transposed : plain, tb ? transposed : plain, m, n, k, 1, a, ta ? m : k, b, tb ? k : n, 0, c, n);
}
#elif defined(USE_ONEDNN)
extern int dnnl_sgemm(char ta, char tb, int64_t m, int64_t n, int64_t k, float alpha, const float *a, int64_t lda, const float *b,
                      int64_t ldb, float beta, float *c, int64_t ldc);
static void gemm(int ta, int tb, long m, long n, long k, const float *a, const float *b, float *c) {
  if (dnnl_sgemm(ta ? 'T' : 'N', tb ? 'T' : 'N', m, n, k, 1, a, ta ? m : k, b, tb ? k : n, 0, c, n) != 0) {
    fprintf(stderr, "gemm: dnnl_sgemm failed\n");
    exit(1);
  }
}
#else
#error "define USE_OPENBLAS or USE_ONEDNN"
#endif

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + t.tv_nsec * 1e-9;
}

static float *matrix(long elements) {
  const size_t huge = 2u << 20;
  size_t size = (elements * sizeof(float) + huge - 1) / huge * huge;
  float *p;
  if (posix_memalign((void **)&p, huge, size)) {
    fprintf(stderr, "gemm: out of memory\n");
    exit(1);
  }
  madvise(p, size, MADV_HUGEPAGE);
  for (long i = 0; i < elements; i++) p[i] = (float)(i % 17) * 0.25f - 2;
  return p;
}

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

// check returns the largest error of a few entries of C against a plain loop in double precision.
static double check(int ta, int tb, long m, long n, long k, const float *a, const float *b, const float *c) {
  double worst = 0;
  for (long s = 0; s < 16; s++) {
    long i = s * 7919 % m, j = s * 104729 % n;
    double want = 0;
    for (long p = 0; p < k; p++) want += (double)(ta ? a[p * m + i] : a[i * k + p]) * (tb ? b[j * k + p] : b[p * n + j]);
    double d = want - c[i * n + j];
    if (d < 0) d = -d;
    if (d > worst) worst = d;
  }
  return worst;
}

int main(int argc, char **argv) {
  double budget = argc > 1 ? atof(argv[1]) : 0;
  if (budget <= 0 || argc < 3) {
    fprintf(stderr, "usage: gemm SECONDS OP:M:N:K...\n");
    return 2;
  }
  for (int s = 2; s < argc; s++) {
    char op[3];
    long m, n, k;
    if (sscanf(argv[s], "%2[nt]:%ld:%ld:%ld", op, &m, &n, &k) != 4 || m < 1 || n < 1 || k < 1 || !strcmp(op, "tt")) {
      fprintf(stderr, "gemm: shape %s is not OP:M:N:K with OP nn, nt or tn\n", argv[s]);
      return 2;
    }
    int ta = op[0] == 't', tb = op[1] == 't', calls = 0;
    float *a = matrix(m * k), *b = matrix(k * n), *c = matrix(m * n);
    static double times[4096];
    gemm(ta, tb, m, n, k, a, b, c);
    double worst = check(ta, tb, m, n, k, a, b, c);
    if (worst > 1e-3 * k) {
      fprintf(stderr, "gemm: %s is wrong by %g\n", argv[s], worst);
      return 1;
    }
    for (double start = now(); calls < 3 || (calls < 4096 && now() - start < budget); calls++) {
      double t = now();
      gemm(ta, tb, m, n, k, a, b, c);
      times[calls] = now() - t;
    }
    qsort(times, calls, sizeof *times, by_value);
    double flops = 2.0 * m * n * k;
    printf("{\"op\":\"%s\",\"m\":%ld,\"n\":%ld,\"k\":%ld,\"gflops\":%.2f,\"best_gflops\":%.2f,\"calls\":%d}\n", op, m, n, k,
           flops / times[calls / 2] / 1e9, flops / times[0] / 1e9, calls);
    fflush(stdout);
    free(a), free(b), free(c);
  }
  return 0;
}
