"""Somebody else on a card: takes and gives back memory as standard input says. Knows no torch, so it starts at once.

in   take <device> <bytes>    give back    in   context <device>
out  a CUDA error number after each line, 0 for success
"""

import ctypes
import sys


def main() -> None:
    runtime = ctypes.CDLL("libcudart.so.13")
    held: list[ctypes.c_void_p] = []
    for line in sys.stdin:
        error = obey(runtime, held, line.split())
        sys.stdout.write(f"{error}\n")
        sys.stdout.flush()


def obey(runtime: ctypes.CDLL, held: list[ctypes.c_void_p], words: list[str]) -> int:
    if words[0] == "give":
        errors = [runtime.cudaFree(pointer) for pointer in held]
        held.clear()
        return max(errors, default=0)
    error = runtime.cudaSetDevice(int(words[1]))
    if error or words[0] == "context":
        return error
    pointer = ctypes.c_void_p()
    error = runtime.cudaMalloc(ctypes.byref(pointer), ctypes.c_size_t(int(words[2])))
    if not error:
        held.append(pointer)
    return error


if __name__ == "__main__":
    main()
