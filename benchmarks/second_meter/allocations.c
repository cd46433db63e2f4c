/* Follows each block of memory that PyTorch's CPU allocator asks the C library for, and when it is given back.

   Preloaded into a training (LD_PRELOAD). It counts what comes from libc10.so alone, so oneDNN's and Python's own memory
   stays out of it. `sitecustomize.py` beside it says when to begin and what the numbers mean. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define SLOTS (1u << 20)
#define GONE ((void *)1)

enum kind { LIVE, LOADED };

static struct slot { void *at; size_t bytes; enum kind kind; } slots[SLOTS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile int counting, loading;
static long long live, peak, beside;

static int (*next_memalign)(void **, size_t, size_t);
static void (*next_free)(void *);

static unsigned place(void *at) { return (unsigned)(((uintptr_t)at >> 6) * 2654435761u) & (SLOTS - 1); }

static struct slot *find(void *at) {
  for (unsigned i = place(at), n = 0; n < SLOTS && slots[i].at; i = (i + 1) & (SLOTS - 1), n++)
    if (slots[i].at == at) return &slots[i];
  return NULL;
}

static void add(void *at, size_t bytes, enum kind kind) {
  unsigned i = place(at);
  while (slots[i].at && slots[i].at != GONE) i = (i + 1) & (SLOTS - 1);
  slots[i] = (struct slot){at, bytes, kind};
}

static void drop(struct slot *found) {
  struct slot *after = found + 1 < slots + SLOTS ? found + 1 : slots;
  found->at = after->at ? GONE : NULL;
}

static void count(long long bytes) {
  live += bytes;
  if (live + beside > peak) peak = live + beside;
}

static int is_torchs(void *caller) {
  static uintptr_t known[2][256]; /* pages of code, by the answer: dladdr looks through a library's symbols */
  uintptr_t page = (uintptr_t)caller >> 12;
  for (int answer = 0; answer < 2; answer++)
    if (known[answer][page & 255] == page) return answer;
  Dl_info info;
  int answer = dladdr(caller, &info) && info.dli_fname && strstr(info.dli_fname, "libc10.so");
  known[answer][page & 255] = page;
  return answer;
}

int posix_memalign(void **at, size_t alignment, size_t bytes) {
  if (!next_memalign) next_memalign = dlsym(RTLD_NEXT, "posix_memalign");
  int failed = next_memalign(at, alignment, bytes);
  if (!counting || failed || !is_torchs(__builtin_return_address(0))) return failed;
  pthread_mutex_lock(&lock);
  add(*at, bytes, loading ? LOADED : LIVE);
  if (!loading) count(bytes);
  pthread_mutex_unlock(&lock);
  return 0;
}

void free(void *at) {
  if (!next_free) next_free = dlsym(RTLD_NEXT, "free");
  if (counting && at && !((uintptr_t)at & 63)) {
    pthread_mutex_lock(&lock);
    struct slot *found = find(at);
    if (found) {
      if (found->kind == LIVE) live -= found->bytes;
      drop(found);
    }
    pthread_mutex_unlock(&lock);
  }
  next_free(at);
}

/* What exists already and belongs to the training: parameters, buffers, gradients, optimizer state. */
void meter_holds(void *at, size_t bytes) {
  if (at && !find(at)) add(at, bytes, LIVE), live += bytes;
}

void meter_begins(void) { peak = live, counting = 1; }
void meter_ends(void) { counting = 0; }
void meter_loads(int is_loading) { loading = is_loading; }

/* A block that was made while the data was loaded is handed to the training. Returns whether the block is followed. */
int meter_gives(void *at) {
  pthread_mutex_lock(&lock);
  struct slot *found = find(at);
  if (found && found->kind == LOADED) found->kind = LIVE, count(found->bytes);
  pthread_mutex_unlock(&lock);
  return found != NULL;
}

/* Inputs that live in memory of another kind, as a batch from a worker: a device would have a copy of them. */
void meter_beside(long long bytes) {
  pthread_mutex_lock(&lock);
  beside = bytes;
  count(0);
  pthread_mutex_unlock(&lock);
}

long long meter_peak(void) { return peak; }
