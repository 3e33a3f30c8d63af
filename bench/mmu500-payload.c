/*
 * `odp bench mmu500`: runs on the bare machine (virt,iommu=mmu500), at EL1
 * with the MMU off. A PCIe exerciser moves a buffer page by page behind the
 * SMMU, many pages at a time. Prints a line for each measurement:
 *
 *   NAME KIB PAGES AVERAGE P99 TOTAL FAULTS      (times in ns)
 *
 * An average or a percentile is over pages: from the doorbell to the end of
 * the page's transfer, as the exerciser's clock, which is the machine's
 * virtual one, says. TOTAL is the time of the whole buffer by the CPU's
 * counter.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include <stdint.h>

#define UART     0x09000000ul
#define SMMU     0x0b000000ul
#define ECAM     0x4010008000ul         /* 00:01.0 */
#define EX       0x10000000ul
#define EX_MEM   0x10100000ul
#define PARAMS   0x48000000ul           /* pages that a fault maps */
#define HEAP     0x50000000ul

#define SMR0     (SMMU + 0x800)
#define S2CR0    (SMMU + 0xc00)
#define TLBIALLNSNH (SMMU + 0x068)
#define CBAR0    (SMMU + 0x1000)
#define CBA2R0   (SMMU + 0x1800)
#define CB0      (SMMU + 64 * 0x1000ul)
#define SCTLR    (CB0 + 0x00)
#define RESUME   (CB0 + 0x08)
#define TCR2     (CB0 + 0x10)
#define TTBR0    (CB0 + 0x20)
#define TCR      (CB0 + 0x30)
#define FSR      (CB0 + 0x58)
#define FAR      (CB0 + 0x60)
#define FSR_SS   (1u << 30)
#define SCTLR_STALL 0xe1u               /* M, CFRE, CFIE, CFCFG */

#define CH(c)    (EX + 0x1000 + (c) * 0x20ul)
#define TOOK(c)  (EX + 0x3000 + (c) * 4ul)

#define PAGE     4096u
#define WINDOW   64u                    /* pages in flight */
#define IOVA     0x40000000ul
#define REGION   65536u                 /* pages that there are tables for */
#define PTE_BITS 0xc43ul                /* a page, AF, nG, unprivileged, RW */

static uint64_t *const l1 = (void *)HEAP;
static uint64_t *const l2 = (void *)(HEAP + 0x1000);
static uint64_t *const l3 = (void *)(HEAP + 0x100000);
static uint8_t *const data = (void *)(HEAP + 0x1000000);
static uint32_t *const took = (void *)(HEAP + 0x2000000);
static uint32_t *const order = (void *)(HEAP + 0x2100000);

static inline uint32_t rd(uint64_t a)
{
    return *(volatile uint32_t *)a;
}

static inline void wr(uint64_t a, uint32_t v)
{
    *(volatile uint32_t *)a = v;
}

static inline void wr64(uint64_t a, uint64_t v)
{
    *(volatile uint64_t *)a = v;
}

static inline uint64_t counter(void)
{
    uint64_t v;

    asm volatile("isb; mrs %0, cntvct_el0" : "=r" (v));
    return v;
}

static void put(const char *s)
{
    while (*s) {
        wr(UART, *s++);
    }
}

static void num(uint64_t v)
{
    char buf[24], *p = buf + 23;

    *p = 0;
    do {
        *--p = '0' + v % 10;
        v /= 10;
    } while (v);
    put(p);
    put(" ");
}

static void off(void)
{
    register uint64_t x0 asm("x0") = 0x84000008;    /* PSCI SYSTEM_OFF */

    asm volatile("hvc #0" : "+r" (x0));
    for (;;) {
    }
}

static void map(uint32_t page)
{
    /* 4 MiB of memory, again and again */
    l3[page] = ((uint64_t)data + (page % 1024) * PAGE) | PTE_BITS;
}

static void setup(void)
{
    uint32_t i;

    wr(ECAM + 0x10, EX);
    wr(ECAM + 0x14, EX_MEM);
    *(volatile uint16_t *)(ECAM + 4) = 6;

    for (i = 0; i < 512; i++) {
        l1[i] = l2[i] = 0;
    }
    l1[IOVA >> 30] = (uint64_t)l2 | 3;
    for (i = 0; i < REGION / 512; i++) {
        l2[i] = (uint64_t)(l3 + i * 512) | 3;
    }
    wr(CBA2R0, 1);
    wr(CBAR0, 1u << 16);
    wr(TCR2, 7u << 15 | 1u << 4 | 5);
    wr(TCR, (64 - 39) | 1u << 23);
    wr64(TTBR0, (uint64_t)l1);
    wr(SCTLR, SCTLR_STALL);
    wr(S2CR0, 0);
    wr(SMR0, 1u << 31 | 8);
    wr(SMMU, 1u << 1 | 1u << 2 | 1u << 4 | 1u << 5 | 1u << 10);

    for (i = 0; i < WINDOW; i++) {
        wr(CH(i) + 0x04, i * PAGE);
        wr(CH(i) + 0x0c, 0);
        wr(CH(i) + 0x10, PAGE);
    }
}

/* What the kernel's handler would be: maps the page, has it tried again. */
static uint32_t fault(uint32_t around)
{
    uint32_t page, i;

    if (!(rd(FSR) & FSR_SS)) {
        return 0;
    }
    page = (*(volatile uint64_t *)FAR - IOVA) / PAGE & ~(around - 1);
    for (i = 0; i < around; i++) {
        map(page + i);
    }
    asm volatile("dsb sy" ::: "memory");
    wr(FSR, rd(FSR));
    wr(RESUME, 0);
    return 1;
}

static void sift(uint32_t *a, uint32_t at, uint32_t n)
{
    for (;;) {
        uint32_t big = 2 * at + 1, v = a[at];

        if (big >= n) {
            return;
        }
        big += big + 1 < n && a[big + 1] > a[big];
        if (a[big] <= v) {
            return;
        }
        a[at] = a[big];
        a[big] = v;
        at = big;
    }
}

static void sort(uint32_t *a, uint32_t n)
{
    uint32_t i;

    for (i = n / 2; i--;) {
        sift(a, i, n);
    }
    for (i = n; --i;) {
        uint32_t v = a[0];

        a[0] = a[i];
        a[i] = v;
        sift(a, 0, i);
    }
}

static void measure(const char *name, uint32_t pages, int mapped,
                    uint32_t around, int random)
{
    uint32_t i, c, issued = 0, done = 0, faults = 0, seed = 2463534242u;
    uint64_t start, end, sum = 0;
    uint64_t busy = 0;

    for (i = 0; i < REGION; i++) {
        if (mapped) {
            map(i);
        } else {
            l3[i] = 0;
        }
    }
    for (i = 0; i < pages; i++) {
        seed ^= seed << 13;
        seed ^= seed >> 17;
        seed ^= seed << 5;
        order[i] = random ? seed % REGION : i;
    }
    asm volatile("dsb sy" ::: "memory");
    wr(TLBIALLNSNH, 0);

    start = counter();
    while (done < pages) {
        for (c = 0; c < WINDOW; c++) {
            if (!mapped) {
                faults += fault(around);
            }
            if (busy >> c & 1) {
                if (rd(CH(c)) & 1) {
                    continue;
                }
                if (rd(CH(c) + 0x14) & 3) {
                    put("error ");
                }
                busy &= ~(1ul << c);
                took[done++] = rd(TOOK(c));
            }
            if (issued < pages) {
                wr(CH(c) + 0x08, IOVA + (uint64_t)order[issued++] * PAGE);
                wr(CH(c), 0x11);
                busy |= 1ul << c;
            }
        }
    }
    end = counter();

    for (i = 0; i < pages; i++) {
        sum += took[i];
    }
    sort(took, pages);
    put(name);
    put(" ");
    num(pages * PAGE / 1024);
    num(pages);
    num(sum / pages);
    num(took[pages * 99 / 100]);
    num(end - start);
    num(faults);
    put("\n");
}

void payload(void)
{
    static const uint32_t kib[] = { 256, 1024, 4096 };
    uint32_t around = rd(PARAMS), i;

    setup();
    for (i = 0; i < 3; i++) {
        measure("pinned", kib[i] / 4, 1, 1, 0);
    }
    for (i = 0; i < 3; i++) {
        measure("fault", kib[i] / 4, 0, 1, 0);
    }
    for (i = 0; i < 3; i++) {
        measure("fault-around", kib[i] / 4, 0, around, 0);
    }
    measure("random", 1024, 1, 1, 1);
    put("end\n");
    off();
}

asm(".section .text.start, \"ax\"\n"
    ".globl _start\n"
    "_start:\n"
    "   mov x0, #0x300000\n"            /* floating point: the compiler may */
    "   msr cpacr_el1, x0\n"
    "   isb\n"
    "   ldr x0, =0x48100000\n"
    "   mov sp, x0\n"
    "   bl payload\n");
