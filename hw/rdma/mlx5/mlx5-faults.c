/*
 * mlx5 HCA: counters of accesses that the IOMMU suspended or refused
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qemu/host-utils.h"
#include "qemu/units.h"
#include "qapi/visitor.h"
#include "migration/vmstate.h"
#include "mlx5-dma.h"
#include "mlx5-mkey.h"
#include "mlx5-qp.h"

/* Counters by name, in the order of a portal's BAR. */
static const struct {
    const char *name;
    size_t at;
} words[] = {
    { "stalls", offsetof(Mlx5FaultStats, stalls) },
    { "page-requests", offsetof(Mlx5FaultStats, page_requests) },
    { "resolved", offsetof(Mlx5FaultStats, resolved) },
    { "denied", offsetof(Mlx5FaultStats, denied) },
    { "pending", offsetof(Mlx5FaultStats, pending) },
    { "latency-sum", offsetof(Mlx5FaultStats, latency_sum) },
    { "latency-max", offsetof(Mlx5FaultStats, latency_max) },
    { "resolved-small", offsetof(Mlx5FaultStats, resolved_small) },
    { "resolved-large", offsetof(Mlx5FaultStats, resolved_large) },
    { "over-limit", offsetof(Mlx5FaultStats, over_limit) },
};

enum { HISTOGRAM_AT = 0x80 };     /* in a portal's BAR */

static uint64_t fault_word(const Mlx5FaultStats *s, unsigned i)
{
    return *(const uint64_t *)((const uint8_t *)s + words[i].at);
}

void mlx5_faults_wait(Mlx5FaultStats *const *sinks, bool page_request)
{
    for (int i = 0; i < MLX5_FAULT_SINKS; i++) {
        if (sinks[i]) {
            sinks[i]->pending++;
            sinks[i]->stalls += !page_request;
            sinks[i]->page_requests += page_request;
        }
    }
}

void mlx5_faults_end(Mlx5FaultStats *const *sinks, int64_t ns)
{
    uint64_t us = MAX(ns, 0) / SCALE_US;
    unsigned bucket = us ? MIN(64 - clz64(us), MLX5_FAULT_HISTOGRAM - 1) : 0;

    for (int i = 0; i < MLX5_FAULT_SINKS; i++) {
        if (sinks[i]) {
            sinks[i]->pending--;
            sinks[i]->latency_sum += ns;
            sinks[i]->latency_max = MAX(sinks[i]->latency_max, ns);
            sinks[i]->latency[bucket]++;
        }
    }
}

void mlx5_faults_cancelled(Mlx5FaultStats *const *sinks)
{
    for (int i = 0; i < MLX5_FAULT_SINKS; i++) {
        if (sinks[i]) {
            sinks[i]->pending--;
        }
    }
}

void mlx5_faults_resolved(Mlx5FaultStats *const *sinks, uint64_t page)
{
    for (int i = 0; i < MLX5_FAULT_SINKS; i++) {
        if (sinks[i]) {
            sinks[i]->resolved++;
            sinks[i]->resolved_small += page < 2 * MiB;
            sinks[i]->resolved_large += page >= 2 * MiB;
        }
    }
}

void mlx5_faults_denied(Mlx5FaultStats *const *sinks, bool limit)
{
    for (int i = 0; i < MLX5_FAULT_SINKS; i++) {
        if (sinks[i]) {
            sinks[i]->denied++;
            sinks[i]->over_limit += limit;
        }
    }
}

uint64_t mlx5_faults_word(const Mlx5FaultStats *s, unsigned off)
{
    unsigned i = off / 8;

    if (i < ARRAY_SIZE(words)) {
        return fault_word(s, i);
    }
    i -= HISTOGRAM_AT / 8;
    return i < MLX5_FAULT_HISTOGRAM ? s->latency[i] : 0;
}

/* The property */

static void visit_u64(Visitor *v, const char *name, uint64_t value)
{
    visit_type_uint64(v, name, &value, &error_abort);
}

/* One element of a list: what it is, its counters, and a function's cache. */
static void visit_stats(Visitor *v, const char *id, uint64_t number,
                        const Mlx5FaultStats *s, PCIeRequester *r)
{
    visit_start_struct(v, NULL, NULL, 0, &error_abort);
    visit_u64(v, id, number);
    for (unsigned i = 0; i < ARRAY_SIZE(words); i++) {
        visit_u64(v, words[i].name, fault_word(s, i));
    }
    if (r) {
        visit_u64(v, "atc-hits", r->n_atc_hit);
        visit_u64(v, "atc-misses", r->n_atc_miss);
        visit_u64(v, "atc-invalidations", r->n_atc_inv);
        visit_u64(v, "prg-pending", pcie_requester_prg_pending(r));
    }
    visit_start_list(v, "latency", NULL, 0, &error_abort);
    for (unsigned i = 0; i < MLX5_FAULT_HISTOGRAM; i++) {
        visit_u64(v, NULL, s->latency[i]);
    }
    visit_end_list(v, NULL);
    visit_end_struct(v, NULL);
}

static void faults_get(Object *obj, Visitor *v, const char *name, void *opaque,
                       Error **errp)
{
    Mlx5Hca *h = opaque;
    Mlx5Obj *o;

    if (!visit_start_struct(v, name, NULL, 0, errp)) {
        return;
    }
    visit_start_list(v, "functions", NULL, 0, &error_abort);
    for (unsigned i = 0; i < ARRAY_SIZE(h->dma->fn); i++) {
        if (h->dma->fn[i].r) {
            visit_stats(v, "function", i, &h->dma->fn[i].stats,
                        h->dma->fn[i].r);
        }
    }
    visit_end_list(v, NULL);
    visit_start_list(v, "keys", NULL, 0, &error_abort);
    QTAILQ_FOREACH(o, &h->mkeys.all, next) {
        Mlx5Mkey *mk = (Mlx5Mkey *)o;

        if (mk->faults) {
            visit_stats(v, "key", o->id << 8 | mk->variant, mk->faults, NULL);
        }
    }
    visit_end_list(v, NULL);
    visit_start_list(v, "qps", NULL, 0, &error_abort);
    QTAILQ_FOREACH(o, &h->qps.all, next) {
        if (((Mlx5Qp *)o)->faults) {
            visit_stats(v, "qpn", o->id, ((Mlx5Qp *)o)->faults, NULL);
        }
    }
    visit_end_list(v, NULL);
    visit_check_struct(v, &error_abort);
    visit_end_struct(v, NULL);
}

void mlx5_faults_add_property(Mlx5Hca *h)
{
    object_property_add(OBJECT(h->dev), "fault-counters", "Mlx5FaultCounters",
                        faults_get, NULL, NULL, h);
}

void mlx5_faults_del_property(Mlx5Hca *h)
{
    object_property_del(OBJECT(h->dev), "fault-counters");
}

/* What waits is issued again and counts again: not pending. */
const VMStateDescription vmstate_mlx5_faults = {
    .name = "mlx5/faults",
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT64(stalls, Mlx5FaultStats),
        VMSTATE_UINT64(page_requests, Mlx5FaultStats),
        VMSTATE_UINT64(resolved, Mlx5FaultStats),
        VMSTATE_UINT64(denied, Mlx5FaultStats),
        VMSTATE_UINT64(latency_sum, Mlx5FaultStats),
        VMSTATE_UINT64(latency_max, Mlx5FaultStats),
        VMSTATE_UINT64(resolved_small, Mlx5FaultStats),
        VMSTATE_UINT64(resolved_large, Mlx5FaultStats),
        VMSTATE_UINT64(over_limit, Mlx5FaultStats),
        VMSTATE_UINT64_ARRAY(latency, Mlx5FaultStats, MLX5_FAULT_HISTOGRAM),
        VMSTATE_END_OF_LIST()
    }
};
