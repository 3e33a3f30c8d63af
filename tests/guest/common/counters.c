/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "counters.h"
#include "util.h"

struct odp_counters odp_counters_read(const char *device)
{
    static const char sep[] = " \t\n";
    struct odp_counters sum = { 0 };
    bool ours = false;      /* a region's counters take several lines */
    char line[1024];
    FILE *rdma;

    rdma = popen("rdma statistic show mr", "r");
    if (!rdma) {
        die_errno("rdma statistic");
    }
    while (fgets(line, sizeof(line), rdma)) {
        char *save, *name = strtok_r(line, sep, &save);

        while (name) {
            char *value = strtok_r(NULL, sep, &save);

            if (!value) {
                break;
            }
            if (!strcmp(name, "dev")) {
                ours = !strcmp(value, device);
            } else if (ours && !strcmp(name, "page_faults")) {
                sum.valid = true;
                sum.faults += strtoull(value, NULL, 10);
            } else if (ours && !strcmp(name, "page_invalidations")) {
                sum.invalidations += strtoull(value, NULL, 10);
            } else if (ours && !strcmp(name, "page_prefetch")) {
                sum.prefetches += strtoull(value, NULL, 10);
            }
            name = strtok_r(NULL, sep, &save);
        }
    }
    pclose(rdma);
    return sum;
}
