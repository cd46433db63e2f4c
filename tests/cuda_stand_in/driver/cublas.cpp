// libcublas and libcublasLt: handles. Every product of matrices is one of the functions that do nothing.
#include <cstdlib>
#include <cstring>

#include "calls.h"
#include "process.h"

using namespace stand_in;

namespace {

constexpr int not_initialized = 1;

int made_handle(void** handle) {
  static char handles[1 << 12];
  static unsigned next = 0;
  *handle = handles + next++ % sizeof handles;
  return 0;
}

}  // namespace

extern "C" {
#ifdef STAND_IN_CUBLAS_LT
int cublasLtMatmulDescCreate(void** handle, int, int) { ENTRY_POINT(int); return made_handle(handle); }
int cublasLtMatmulPreferenceCreate(void** handle) { ENTRY_POINT(int); return made_handle(handle); }
int cublasLtMatrixLayoutCreate(void** handle, int, uint64_t, uint64_t, int64_t) { ENTRY_POINT(int); return made_handle(handle); }
size_t cublasLtGetVersion() { return 130000; }

// One way to multiply, which wants no workspace.
int cublasLtMatmulAlgoGetHeuristic(void*, void*, void*, void*, void*, void*, void*, int, void* found, int* count) {
  ENTRY_POINT(int);
  constexpr size_t result_bytes = 80;
  memset(found, 0, result_bytes);
  *count = 1;
  return 0;
}
#else
int cublasCreate_v2(void** handle) {
  ENTRY_POINT(int);
  return use_context() ? not_initialized : made_handle(handle);
}
int cublasGetMathMode(void*, int* mode) { ENTRY_POINT(int); *mode = 0; return 0; }
int cublasGetPointerMode_v2(void*, int* mode) { ENTRY_POINT(int); *mode = 0; return 0; }
#endif
}
