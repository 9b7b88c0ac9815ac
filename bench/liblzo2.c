/* The C library's LZO1X for the bench `codecs`: requests on standard input, answers on standard output. The bench and
 * this talk little-endian. Built and named by the script `codecs` beside this file.
 *
 * A request is a direction ('c' or 'd'), a u32 limit, a u32 length and so many bytes. An answer is a u32 status (0 is
 * good), a u64 of nanoseconds (the shortest of three tries), a u32 length and so many bytes. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

int lzo1x_1_compress(const uint8_t *in, size_t len, uint8_t *out, size_t *out_len, void *work);
int lzo1x_decompress_safe(const uint8_t *in, size_t len, uint8_t *out, size_t *out_len, void *work);

static uint64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void *memory(size_t len)
{
    void *p = malloc(len ? len : 1);
    if (!p) exit(1);
    return p;
}

int main(void)
{
    void *work = memory(16384 * sizeof(void *));
    uint8_t direction;
    while (fread(&direction, 1, 1, stdin) == 1) {
        uint32_t limit, len;
        if (fread(&limit, 4, 1, stdin) != 1 || fread(&len, 4, 1, stdin) != 1) return 1;
        uint8_t *in = memory(len), *out = memory(limit);
        if (fread(in, 1, len, stdin) != len) return 1;
        uint64_t best = UINT64_MAX;
        size_t out_len = 0;
        uint32_t status = 0;
        for (int i = 0; i < 3; i++) {
            out_len = limit;
            uint64_t start = now();
            status = (uint32_t)(direction == 'c' ? lzo1x_1_compress(in, len, out, &out_len, work)
                                                 : lzo1x_decompress_safe(in, len, out, &out_len, NULL));
            uint64_t took = now() - start;
            if (took < best) best = took;
        }
        uint32_t size = (uint32_t)out_len;
        fwrite(&status, 4, 1, stdout);
        fwrite(&best, 8, 1, stdout);
        fwrite(&size, 4, 1, stdout);
        fwrite(out, 1, size, stdout);
        fflush(stdout);
        free(in);
        free(out);
    }
    return 0;
}
