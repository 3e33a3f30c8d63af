/*
 * mlx5 HCA: its view of guest memory
 *
 * One PCIe requester a function does all of the DMA. RAM is used in place: a
 * hold is a host pointer that lives within one slice of work. Everything
 * else (other devices' BARs) comes as a buffer.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qemu/atomic.h"
#include "system/memory.h"
#include "system/address-spaces.h"
#include "migration/vmstate.h"
#include "mlx5-dma.h"
#include "mlx5-memic.h"
#include "mlx5-mkey.h"
#include "trace.h"

static const Mlx5DmaVia via_function_0;

/*
 * DMA that reaches a BAR of ours would start work in the middle of work: mark
 * the device busy, and the memory core refuses such an access.
 */
static bool mlx5_dma_enter(Mlx5Hca *h)
{
    bool was = h->guard && h->guard->engaged_in_io;

    if (h->guard) {
        h->guard->engaged_in_io = true;
    }
    return was;
}

static void mlx5_dma_leave(Mlx5Hca *h, bool was)
{
    if (h->guard) {
        h->guard->engaged_in_io = was;
    }
}

static void mlx5_dma_request(PCIeRequest *req, const Mlx5DmaVia *via)
{
    req->pasid = via->pasid;
    req->pasid_valid = via->pasid_valid;
}

/* Device memory is no bus access: one pointer reaches it. */
static Mlx5DmaResult mlx5_dma_hold_memic(Mlx5Hca *h, uint64_t addr,
                                         uint64_t len, bool is_write,
                                         Mlx5Hold *hold)
{
    hold->ptr = mlx5_memic_ptr(h, addr & ~MLX5_DMA_MEMIC, len);
    if (!hold->ptr) {
        return MLX5_DMA_ERROR;
    }
    memory_region_ref(&h->memic_ram);
    hold->len = len;
    hold->is_ram = true;
    hold->dma = (RecoverableDMAHold) {
        .host = hold->ptr,
        .len = len,
        .as = &address_space_memory,
        .is_write = is_write,
    };
    return MLX5_DMA_OK;
}

static Mlx5DmaResult mlx5_dma_hold_req(Mlx5Hca *h, const Mlx5DmaVia *via,
                                       PCIeRequest *req, uint64_t addr,
                                       uint64_t len, bool is_write,
                                       Mlx5Hold *hold)
{
    PCIeRequester *r = h->dma->fn[via->function].r;
    PCIeRequesterResult result;
    bool was;

    hold->ptr = NULL;
    if (!len || addr + len - 1 < addr || !r) {
        return MLX5_DMA_ERROR;
    }
    was = mlx5_dma_enter(h);
    result = pcie_requester_hold(r, req, addr, len, is_write, &hold->dma);
    mlx5_dma_leave(h, was);
    switch (result) {
    case PCIE_REQUESTER_OK:
        hold->ptr = hold->dma.host;
        hold->len = hold->dma.len;
        hold->is_ram = !hold->dma.bounce;
        return MLX5_DMA_OK;
    case PCIE_REQUESTER_PENDING:
        return MLX5_DMA_PENDING;
    default:
        trace_mlx5_dma_error(h->name, via->function, via->pasid, addr, len,
                             is_write);
        return MLX5_DMA_ERROR;
    }
}

Mlx5DmaResult mlx5_dma_hold(Mlx5Hca *h, uint64_t addr, uint64_t len,
                            bool is_write, Mlx5Hold *hold)
{
    PCIeRequest req = { .no_stall = true };

    if (addr & MLX5_DMA_MEMIC) {
        return mlx5_dma_hold_memic(h, addr, len, is_write, hold);
    }
    return mlx5_dma_hold_req(h, &via_function_0, &req, addr, len, is_write,
                             hold);
}

void mlx5_dma_release(Mlx5Hca *h, Mlx5Hold *hold, uint64_t done)
{
    bool was;

    if (!hold->ptr) {
        return;
    }
    was = mlx5_dma_enter(h);
    pcie_requester_release(&hold->dma, done);
    mlx5_dma_leave(h, was);
    hold->ptr = NULL;
}

static Mlx5DmaResult mlx5_dma_rw(Mlx5Hca *h, const Mlx5DmaVia *via,
                                 uint64_t addr, void *buf, uint32_t len,
                                 bool is_write)
{
    PCIeRequest req = { .no_stall = true };
    PCIeRequester *r = h->dma->fn[via->function].r;
    PCIeRequesterResult result;
    uint64_t done = 0;
    bool was;

    if (!len) {
        return MLX5_DMA_OK;
    }
    if (addr & MLX5_DMA_MEMIC) {
        Mlx5Hold hold;

        if (mlx5_dma_hold_memic(h, addr, len, is_write, &hold) !=
            MLX5_DMA_OK) {
            return MLX5_DMA_ERROR;
        }
        memcpy(is_write ? hold.ptr : buf, is_write ? buf : hold.ptr, len);
        mlx5_dma_release(h, &hold, len);
        return MLX5_DMA_OK;
    }
    if (addr + len - 1 < addr || !r) {
        return MLX5_DMA_ERROR;
    }
    mlx5_dma_request(&req, via);
    was = mlx5_dma_enter(h);
    result = pcie_requester_rw(r, &req, addr, buf, len, is_write, &done);
    mlx5_dma_leave(h, was);
    if (result != PCIE_REQUESTER_OK) {
        trace_mlx5_dma_error(h->name, via->function, via->pasid, addr, len,
                             is_write);
        return MLX5_DMA_ERROR;
    }
    return MLX5_DMA_OK;
}

Mlx5DmaResult mlx5_dma_read(Mlx5Hca *h, uint64_t addr, void *buf, uint32_t len)
{
    return mlx5_dma_rw(h, &via_function_0, addr, buf, len, false);
}

Mlx5DmaResult mlx5_dma_write(Mlx5Hca *h, uint64_t addr, const void *buf,
                             uint32_t len)
{
    return mlx5_dma_rw(h, &via_function_0, addr, (void *)buf, len, true);
}

Mlx5DmaResult mlx5_dma_read_via(Mlx5Hca *h, const Mlx5DmaVia *via,
                                uint64_t addr, void *buf, uint32_t len)
{
    return mlx5_dma_rw(h, via, addr, buf, len, false);
}

Mlx5DmaResult mlx5_dma_write_via(Mlx5Hca *h, const Mlx5DmaVia *via,
                                 uint64_t addr, const void *buf, uint32_t len)
{
    return mlx5_dma_rw(h, via, addr, (void *)buf, len, true);
}

/* Accesses that can wait */

/* Takes @w, which waits, out of the books; how its wait ended comes next. */
static void mlx5_dma_unlist(Mlx5DmaWait *w)
{
    QTAILQ_REMOVE(&w->hca->dma->waits, w, link);
    w->hca = NULL;
}

static void mlx5_dma_ready(PCIeRequest *req, bool ok)
{
    Mlx5DmaWait *w = container_of(req, Mlx5DmaWait, req);
    int64_t ns = qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL) - w->since;

    trace_mlx5_dma_resume(w->hca->name, w->via.function, w->via.pasid,
                          w->via.key, ns, ok);
    mlx5_dma_unlist(w);
    mlx5_faults_end(w->stats, ns);
    if (!ok) {
        mlx5_faults_denied(w->stats, false);
    }
    w->ready(w, ok);
}

void mlx5_dma_cancel(Mlx5DmaWait *w)
{
    if (w->hca) {
        pcie_requester_cancel(w->hca->dma->fn[w->via.function].r, &w->req);
        mlx5_dma_unlist(w);
        mlx5_faults_cancelled(w->stats);
    }
}

/* What waits is refused, without the IOMMU's doing. */
static void mlx5_dma_refuse(Mlx5DmaWait *w)
{
    mlx5_dma_cancel(w);
    mlx5_faults_denied(w->stats, false);
    w->ready(w, false);
}

static Mlx5FaultStats *mlx5_dma_stats(Mlx5FaultStats **p)
{
    if (!*p) {
        *p = g_new0(Mlx5FaultStats, 1);
    }
    return *p;
}

/* Finds who counts this access; keys and queue pairs start to count now. */
static void mlx5_dma_sinks(Mlx5Hca *h, const Mlx5DmaVia *via,
                           Mlx5FaultStats **qp, Mlx5FaultStats **sinks)
{
    Mlx5Mkey *mk = mlx5_mkey_find(h, via->key);

    sinks[0] = &h->dma->fn[via->function].stats;
    sinks[1] = mk ? mlx5_dma_stats(&mk->faults) : NULL;
    sinks[2] = qp ? mlx5_dma_stats(qp) : NULL;
}

/* May this access wait? false: one of the limits is reached. */
static bool mlx5_dma_may_wait(Mlx5Hca *h, const Mlx5DmaVia *via,
                              const Mlx5DmaWait *w, uint64_t addr, bool dir)
{
    const Mlx5FaultStats *fn = &h->dma->fn[via->function].stats;
    uint32_t limit = h->conf.max_faults_per_key;

    if (w->tries[dir] > h->conf.fault_retries && w->at[dir] == addr) {
        return false;
    }
    if (via->pasid_valid && h->conf.max_faults_per_pasid &&
        fn->pending >= h->conf.max_faults_per_pasid) {
        return false;
    }
    if (limit && fn->pending >= limit) {
        const Mlx5Mkey *mk = mlx5_mkey_find(h, via->key);

        return !mk || !mk->faults || mk->faults->pending < limit;
    }
    return true;
}

Mlx5DmaResult mlx5_dma_hold_via(Mlx5Hca *h, const Mlx5DmaVia *via,
                                Mlx5DmaWait *w, Mlx5FaultStats **qp,
                                uint64_t addr, uint64_t len, bool is_write,
                                Mlx5Hold *hold)
{
    Mlx5FaultStats *sinks[MLX5_FAULT_SINKS];
    Mlx5DmaResult r;
    bool may;

    if (addr & MLX5_DMA_MEMIC) {
        return mlx5_dma_hold_memic(h, addr, len, is_write, hold);
    }
    may = mlx5_dma_may_wait(h, via, w, addr, is_write);
    mlx5_dma_request(&w->req, via);
    w->req.ready = mlx5_dma_ready;
    w->req.no_stall = !may;
    r = mlx5_dma_hold_req(h, via, &w->req, addr, len, is_write, hold);
    if (likely(r == MLX5_DMA_OK && !w->resumed[is_write])) {
        return r;
    }

    mlx5_dma_sinks(h, via, qp, sinks);
    switch (r) {
    case MLX5_DMA_OK:
        w->resumed[is_write] = false;
        mlx5_faults_resolved(sinks, hold->dma.page);
        break;
    case MLX5_DMA_ERROR:
        mlx5_faults_denied(sinks, !may);
        break;
    case MLX5_DMA_PENDING:
        if (w->at[is_write] != addr) {
            w->at[is_write] = addr;
            w->tries[is_write] = 0;
        }
        w->tries[is_write]++;
        w->resumed[is_write] = true;
        w->hca = h;
        w->via = *via;
        w->since = qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL);
        memcpy(w->stats, sinks, sizeof(w->stats));
        QTAILQ_INSERT_TAIL(&h->dma->waits, w, link);
        mlx5_faults_wait(sinks, pcie_request_asks_page(&w->req));
        trace_mlx5_dma_wait(h->name, via->function, via->pasid, via->key, addr,
                            is_write, w->tries[is_write]);
        break;
    }
    return r;
}

void mlx5_dma_end_key(Mlx5Hca *h, uint32_t key)
{
    Mlx5DmaWait *w, *next;

    /* ready(false) starts nothing, so that the list only gets shorter. */
    QTAILQ_FOREACH_SAFE(w, &h->dma->waits, link, next) {
        if (w->via.key >> 8 == key >> 8) {
            mlx5_dma_refuse(w);
        }
    }
}

void mlx5_dma_end_function(Mlx5Hca *h, unsigned function)
{
    Mlx5DmaWait *w, *next;

    QTAILQ_FOREACH_SAFE(w, &h->dma->waits, link, next) {
        if (w->via.function == function) {
            mlx5_dma_refuse(w);
        }
    }
}

static uint64_t mlx5_atomic_ptr(void *ptr, unsigned size,
                                uint64_t (*fn)(uint64_t old, void *opaque),
                                void *opaque)
{
    if (size == 8) {
        uint64_t was, old = qatomic_read__nocheck((uint64_t *)ptr);

        while ((was = qatomic_cmpxchg__nocheck((uint64_t *)ptr, old,
                                               fn(old, opaque))) != old) {
            old = was;
        }
        return old;
    } else {
        uint32_t was, old = qatomic_read((uint32_t *)ptr);

        while ((was = qatomic_cmpxchg((uint32_t *)ptr, old,
                                      (uint32_t)fn(old, opaque))) != old) {
            old = was;
        }
        return old;
    }
}

/* The target is not RAM: reading and writing are two accesses. */
static Mlx5DmaResult mlx5_atomic_device(Mlx5Hca *h, const Mlx5DmaVia *via,
                                        uint64_t addr, unsigned size,
                                        uint64_t (*fn)(uint64_t, void *),
                                        void *opaque, uint64_t *old)
{
    union {
        uint64_t q;
        uint32_t l;
    } v;

    if (mlx5_dma_read_via(h, via, addr, &v, size) != MLX5_DMA_OK) {
        return MLX5_DMA_ERROR;
    }
    if (size == 8) {
        *old = v.q;
        v.q = fn(v.q, opaque);
    } else {
        *old = v.l;
        v.l = fn(v.l, opaque);
    }
    return mlx5_dma_write_via(h, via, addr, &v, size);
}

Mlx5DmaResult mlx5_dma_atomic(Mlx5Hca *h, const Mlx5DmaVia *via,
                              Mlx5DmaWait *w, Mlx5FaultStats **qp,
                              uint64_t addr, unsigned size,
                              uint64_t (*fn)(uint64_t old, void *opaque),
                              void *opaque, uint64_t *old)
{
    Mlx5DmaResult r;
    Mlx5Hold hold;

    if ((size != 4 && size != 8) || addr & (size - 1)) {
        return MLX5_DMA_ERROR;
    }
    r = mlx5_dma_hold_via(h, via, w, qp, addr, size, true, &hold);
    if (r != MLX5_DMA_OK) {
        return r;
    }
    if (hold.len < size) {
        mlx5_dma_release(h, &hold, 0);
        return MLX5_DMA_ERROR;
    }
    if (!hold.is_ram) {
        mlx5_dma_release(h, &hold, 0);
        return mlx5_atomic_device(h, via, addr, size, fn, opaque, old);
    }
    *old = mlx5_atomic_ptr(hold.ptr, size, fn, opaque);
    mlx5_dma_release(h, &hold, size);
    return MLX5_DMA_OK;
}

/* Life */

void mlx5_dma_attach(Mlx5Hca *h, unsigned function, PCIeRequester *r)
{
    assert(function <= MLX5_MAX_PORTALS && !h->dma->fn[function].r);
    h->dma->fn[function].r = r;
}

void mlx5_dma_detach(Mlx5Hca *h, unsigned function)
{
    mlx5_dma_end_function(h, function);
    h->dma->fn[function].r = NULL;
}

void mlx5_dma_init(Mlx5Hca *h, PCIeRequester *r)
{
    h->dma = g_new0(Mlx5DmaState, 1);
    QTAILQ_INIT(&h->dma->waits);
    mlx5_dma_attach(h, 0, r);
    mlx5_faults_add_property(h);
}

void mlx5_dma_fini(Mlx5Hca *h)
{
    mlx5_faults_del_property(h);
    mlx5_dma_detach(h, 0);
    g_free(h->dma);
    h->dma = NULL;
}

/* Migration: counters only; what waits is issued again. */

static const VMStateDescription vmstate_mlx5_dma_function = {
    .name = "mlx5/dma/function",
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (const VMStateField[]) {
        VMSTATE_STRUCT(stats, Mlx5DmaFunction, 1, vmstate_mlx5_faults,
                       Mlx5FaultStats),
        VMSTATE_END_OF_LIST()
    }
};

static const VMStateDescription vmstate_mlx5_dma_state = {
    .name = "mlx5/dma/state",
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (const VMStateField[]) {
        VMSTATE_STRUCT_ARRAY(fn, Mlx5DmaState, 1 + MLX5_MAX_PORTALS, 1,
                             vmstate_mlx5_dma_function, Mlx5DmaFunction),
        VMSTATE_END_OF_LIST()
    }
};

const VMStateDescription vmstate_mlx5_dma = {
    .name = "mlx5/dma",
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (const VMStateField[]) {
        VMSTATE_STRUCT_POINTER(dma, Mlx5Hca, vmstate_mlx5_dma_state,
                               Mlx5DmaState),
        VMSTATE_END_OF_LIST()
    }
};
