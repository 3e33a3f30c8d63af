/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * odp-stress: verbs traffic against memory that comes and goes, every byte
 * checked. Exits with 1 on a wrong byte, a dead queue pair or a completion
 * that does not come.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "op.h"

static const struct {
    const char *name;
    int (*run)(struct vdev *v, const struct options *opt);
    const char *what;
} modes[] = {
    { "dontneed", mode_traffic, "RC, pages dropped (MADV_DONTNEED) in "
      "mid-traffic; an iteration is a drop" },
    { "mix", mode_traffic, "RC, UC, UD; pages dropped, mapped anew, made read "
      "only, copied on write by forks" },
    { "perm", mode_perm, "read-only and unmapped memory: the right error and "
      "nothing else" },
    { "dereg", mode_dereg, "deregistration, unmapping, destruction, errors "
      "and kill in mid-fault" },
    { "storm", mode_storm, "all queue pairs fault on one page" },
    { "pending", mode_pending, "holds --pending faults until told, then "
      "checks that all complete, once" },
};

static void usage(void)
{
    printf("usage: odp-stress [OPTION...]\n\n"
           "  --dev NAME       RDMA device (the first)\n"
           "  --gid N          GID index (chosen)\n"
           "  --mode M         what to do (dontneed):\n");
    for (unsigned i = 0; i < ARRAY_SIZE(modes); i++) {
        printf("                     %-9s %s\n", modes[i].name, modes[i].what);
    }
    printf("  --iters N        how often (1000)\n"
           "  --threads N      worker threads (2)\n"
           "  --qps N          pairs of queue pairs a thread (4)\n"
           "  --depth N        operations under way on each (8)\n"
           "  --sge N          pieces of a buffer, at most 4 (4)\n"
           "  --seed N         of all that is random (by the clock)\n"
           "  --timeout S      nothing completes for so long: lost (60)\n"
           "  --min-faulted P  per cent of operations that must fault (0)\n"
           "  --events         sleep on completion events, do not poll\n"
           "  --rc             RC only\n"
           "  --no-odp         pinned memory only\n"
           "  --no-implicit    no implicit MRs\n"
           "  --pending N      faults held at a time (64)\n"
           "  --release FILE   mode pending: release them when FILE exists "
           "(at once)\n"
           "  --uffd           mode pending: held by userfaultfd, not by a "
           "FUSE server\n"
           "                   (Linux 7.3 and later)\n");
}

enum { O_DEV = 1000, O_GID, O_MODE, O_ITERS, O_THREADS, O_QPS, O_DEPTH, O_SGE,
       O_SEED, O_TIMEOUT, O_FAULTED, O_EVENTS, O_RC, O_NO_ODP, O_NO_IMPLICIT,
       O_PENDING, O_RELEASE, O_UFFD, O_HELP };

static const struct option longs[] = {
    { "dev", required_argument, NULL, O_DEV },
    { "gid", required_argument, NULL, O_GID },
    { "mode", required_argument, NULL, O_MODE },
    { "iters", required_argument, NULL, O_ITERS },
    { "threads", required_argument, NULL, O_THREADS },
    { "qps", required_argument, NULL, O_QPS },
    { "depth", required_argument, NULL, O_DEPTH },
    { "sge", required_argument, NULL, O_SGE },
    { "seed", required_argument, NULL, O_SEED },
    { "timeout", required_argument, NULL, O_TIMEOUT },
    { "min-faulted", required_argument, NULL, O_FAULTED },
    { "events", no_argument, NULL, O_EVENTS },
    { "rc", no_argument, NULL, O_RC },
    { "no-odp", no_argument, NULL, O_NO_ODP },
    { "no-implicit", no_argument, NULL, O_NO_IMPLICIT },
    { "pending", required_argument, NULL, O_PENDING },
    { "release", required_argument, NULL, O_RELEASE },
    { "uffd", no_argument, NULL, O_UFFD },
    { "help", no_argument, NULL, O_HELP },
    { 0 }
};

static unsigned number(const char *name, unsigned low, unsigned high)
{
    char *end;
    unsigned long n = strtoul(optarg, &end, 0);

    if (*end || end == optarg || n < low || n > high) {
        die("--%s %s: a number from %u to %u", name, optarg, low, high);
    }
    return n;
}

static void set_option(struct options *o, int c)
{
    switch (c) {
    case O_DEV: o->device = optarg; break;
    case O_GID: o->gid_index = number("gid", 0, 255); break;
    case O_MODE: o->mode = optarg; break;
    case O_ITERS: o->iters = number("iters", 0, 1u << 30); break;
    case O_THREADS: o->threads = number("threads", 1, 64); break;
    case O_QPS: o->qps = number("qps", 1, 256); break;
    case O_DEPTH: o->depth = number("depth", 1, 64); break;
    case O_SGE: o->sge = number("sge", 1, MAX_SEGS); break;
    case O_SEED: o->seed = strtoull(optarg, NULL, 0); break;
    case O_TIMEOUT: o->timeout = number("timeout", 1, 86400); break;
    case O_FAULTED: o->min_faulted = number("min-faulted", 0, 100); break;
    case O_EVENTS: o->events = true; break;
    case O_RC: o->rc_only = true; break;
    case O_NO_ODP: o->no_odp = true; break;
    case O_NO_IMPLICIT: o->no_implicit = true; break;
    case O_PENDING: o->pending = number("pending", 1, 256); break;
    case O_RELEASE: o->flag_file = optarg; break;
    case O_UFFD: o->uffd = true; break;
    case O_HELP: usage(); exit(0);
    default: exit(2);
    }
}

int main(int argc, char **argv)
{
    struct options opt = {
        .mode = "dontneed", .gid_index = -1, .iters = 1000, .threads = 2,
        .qps = 4, .depth = 8, .sge = 4, .pending = 64, .timeout = 60,
    };
    int (*run)(struct vdev *v, const struct options *opt) = NULL;
    struct vdev v;
    int c, bad;

    opt.seed = (uint64_t)(now() * 1e6);
    while ((c = getopt_long(argc, argv, "", longs, NULL)) != -1) {
        set_option(&opt, c);
    }
    for (unsigned i = 0; i < ARRAY_SIZE(modes); i++) {
        if (!strcmp(modes[i].name, opt.mode)) {
            run = modes[i].run;
        }
    }
    if (!run || optind != argc) {
        die("%s %s: see --help", run ? "argument" : "--mode",
            run ? argv[optind] : opt.mode);
    }
    opt.rc_only |= !strcmp(opt.mode, "dontneed");
    setlinebuf(stdout);
    vdev_open(&v, opt.device, opt.gid_index);
    printf("odp-stress on %s: mode %s, iters %u, threads %u, qps %u, depth "
           "%u, seed %llu, odp %s, implicit %s\n",
           v.ctx->device->name, opt.mode, opt.iters, opt.threads, opt.qps,
           opt.depth, (unsigned long long)opt.seed,
           vdev_has_odp(&v) ? "yes" : "no",
           vdev_has_implicit(&v) ? "yes" : "no");
    bad = run(&v, &opt);
    vdev_close(&v);
    printf("odp-stress %s: %s\n", opt.mode, bad ? "FAIL" : "ok");
    return bad;
}
