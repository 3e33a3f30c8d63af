/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * odp-sva: RDMA through the SVA portals of an mlx5-hca, on memory that nobody
 * registered. Every byte is checked; the exit status is 0 when all was right.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "sva.h"

static const struct {
    const char *name;
    int (*run)(const struct options *opt);
    const char *help;
} modes[] = {
    { "traffic", mode_traffic, "random requests on memory of all kinds" },
    { "count", mode_count, "faults = distinct absent pages, exactly" },
    { "perm", mode_perm, "what must be refused, and how" },
    { "owner", mode_owner, "keys whose portal or process has gone" },
    { "isolate", mode_isolate, "attempts to reach another process" },
    { "kill", mode_kill, "owners killed in mid-fault" },
    { "unbind", mode_unbind, "the driver taken away in mid-fault" },
    { "pending", mode_pending, "accesses held until --release" },
    { "denied", mode_denied, "page requests that the kernel denies" },
    { "bench", mode_bench, "what faults cost, beside pinned memory" },
    { "giant", mode_giant, "a page of 1 GiB" },
    { "dmabuf", mode_dmabuf, "keys for a dma-buf (needs no portal)" },
    { "limit", mode_limit, "a buffer that does not fit into memory" },
};

void portal_or_die(struct sva_portal *p, const char *pci)
{
    if (!pci) {
        die("this mode wants more --portal");
    }
    if (sva_portal_open(p, pci)) {
        die("portal %s: %s", pci, p->error);
    }
}

uint32_t key_or_die(struct sva_portal *p, struct ibv_pd *pd, unsigned access)
{
    uint32_t key;

    if (sva_key_make(p, pd, access, NULL, 0, &key)) {
        die("%s", p->error);
    }
    return key;
}

void *fresh(size_t len)
{
    void *mem = mmap(NULL, len, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (mem == MAP_FAILED) {
        die_errno("mmap");
    }
    return mem;
}

void *fresh_aligned(size_t len, size_t align)
{
    uint8_t *all = fresh(len + align);
    uint8_t *mem = (uint8_t *)(((uintptr_t)all + align - 1) &
                               -(uintptr_t)align);
    size_t head = mem - all;

    if ((head && munmap(all, head)) || munmap(mem + len, align - head)) {
        die_errno("munmap");
    }
    return mem;
}

static void usage(void)
{
    printf("usage: odp-sva MODE --portal PCI [--portal PCI] [OPTION...]\n"
           "  --device NAME  HCA of the portals (default: the first)\n"
           "  --peer NAME    another HCA, to be the other end\n"
           "  --iters N, --threads N, --seed N, --kib N\n"
           "  --disturb      fork, reclaim and collapse under traffic\n"
           "  --huge         transparent huge pages\n"
           "  --stalls N     count: a fault stalls N times until it is served\n"
           "  --release FILE pending: ends when this file is there\n"
           "  --list FILE    isolate: PASID and address of what the IOMMU has "
           "to stop\nMODE:\n");
    for (unsigned i = 0; i < ARRAY_SIZE(modes); i++) {
        printf("  %-10s %s\n", modes[i].name, modes[i].help);
    }
    exit(2);
}

int main(int argc, char **argv)
{
    static const struct option longs[] = {
        { "device", required_argument, NULL, 'd' },
        { "peer", required_argument, NULL, 'p' },
        { "portal", required_argument, NULL, 'P' },
        { "iters", required_argument, NULL, 'n' },
        { "threads", required_argument, NULL, 't' },
        { "seed", required_argument, NULL, 's' },
        { "kib", required_argument, NULL, 'k' },
        { "disturb", no_argument, NULL, 'D' },
        { "huge", no_argument, NULL, 'H' },
        { "stalls", required_argument, NULL, 'S' },
        { "release", required_argument, NULL, 'r' },
        { "list", required_argument, NULL, 'l' },
        { 0 }
    };
    struct options opt = { .iters = 200, .threads = 1, .seed = 1,
                           .kib = 1024, .stalls = 1 };
    unsigned portals = 0;
    int c;

    setvbuf(stdout, NULL, _IOLBF, 0);
    while ((c = getopt_long(argc, argv, "", longs, NULL)) != -1) {
        switch (c) {
        case 'd':
            opt.device = optarg;
            break;
        case 'p':
            opt.peer = optarg;
            break;
        case 'P':
            if (portals == ARRAY_SIZE(opt.portal)) {
                usage();
            }
            opt.portal[portals++] = optarg;
            break;
        case 'n':
            opt.iters = strtoul(optarg, NULL, 0);
            break;
        case 't':
            opt.threads = strtoul(optarg, NULL, 0);
            break;
        case 's':
            opt.seed = strtoull(optarg, NULL, 0);
            break;
        case 'k':
            opt.kib = strtoul(optarg, NULL, 0);
            break;
        case 'D':
            opt.disturb = true;
            break;
        case 'H':
            opt.huge = true;
            break;
        case 'S':
            opt.stalls = strtoul(optarg, NULL, 0);
            break;
        case 'r':
            opt.release = optarg;
            break;
        case 'l':
            opt.list = optarg;
            break;
        default:
            usage();
        }
    }
    if (optind + 1 != argc) {
        usage();
    }
    for (unsigned i = 0; i < ARRAY_SIZE(modes); i++) {
        if (!strcmp(argv[optind], modes[i].name)) {
            printf("%s: seed %llu\n", modes[i].name,
                   (unsigned long long)opt.seed);
            return modes[i].run(&opt);
        }
    }
    usage();
}
