/* Peer: MPI collectives, with the sizes of nccl-tests (bytes of the whole array), fp32, sum.
 *
 * usage: mpirun -np N collectives SECONDS    prints one line of JSON for each operation and size: op, bytes, us.
 * A round is a barrier and the operation; its time is that of the slowest rank from the barrier on, and us is that of the middle round.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int ascending(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return x < y ? -1 : x > y;
}

static const char *ops[] = {"all_reduce", "all_gather", "reduce_scatter", "all_to_all"};
static const long sizes[] = {1L << 10, 64L << 10, 1L << 20, 16L << 20, 64L << 20};
enum { LARGEST = 64 << 20, WARMUP = 3, LEAST = 5, MOST = 2000 };

static void call(int op, float *x, float *y, int count, int n) {
  switch (op) {
  case 0: MPI_Allreduce(x, y, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD); break;
  case 1: MPI_Allgather(x, count / n, MPI_FLOAT, y, count / n, MPI_FLOAT, MPI_COMM_WORLD); break;
  case 2: MPI_Reduce_scatter_block(x, y, count / n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD); break;
  case 3: MPI_Alltoall(x, count / n, MPI_FLOAT, y, count / n, MPI_FLOAT, MPI_COMM_WORLD); break;
  }
}

static double middle(int op, float *x, float *y, int count, int n, double seconds, double *times) {
  double begin = MPI_Wtime();
  int k = 0, on = 1;
  for (int round = -WARMUP; on; round++) {
    MPI_Barrier(MPI_COMM_WORLD);
    double t = MPI_Wtime(), mine, slowest;
    call(op, x, y, count, n);
    mine = MPI_Wtime() - t;
    MPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    if (round >= 0)
      times[k++] = slowest;
    on = k < LEAST || (MPI_Wtime() - begin < seconds && k < MOST);
    MPI_Bcast(&on, 1, MPI_INT, 0, MPI_COMM_WORLD);
  }
  qsort(times, k, sizeof *times, ascending);
  return times[k / 2];
}

int main(int argc, char **argv) {
  int rank, n;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &n);
  double seconds = argc > 1 ? atof(argv[1]) : 0.5;
  float *x = malloc(LARGEST), *y = malloc(LARGEST);
  double *times = malloc(MOST * sizeof *times);
  for (long i = 0; i < LARGEST / 4; i++) {
    x[i] = 1;
    y[i] = 0;
  }
  for (int op = 0; op < 4; op++)
    for (int s = 0; s < 5; s++) {
      double t = middle(op, x, y, sizes[s] / 4, n, seconds, times);
      if (rank == 0) {
        printf("{\"op\": \"%s\", \"bytes\": %ld, \"us\": %.3f}\n", ops[op], sizes[s], t * 1e6);
        fflush(stdout);
      }
    }
  MPI_Finalize();
  return 0;
}
