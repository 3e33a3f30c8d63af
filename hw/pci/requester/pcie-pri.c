/*
 * PCIe requester: page requests
 *
 * A request for a page is a group of its own: one PRG index, one page, Last
 * set. As many are out as the guest has allocated credits for; the rest
 * queue here. A response without PASID is matched by its index.
 *
 * The requests themselves do not migrate: their device asks again. What moves
 * is which responses are owed, so that one that comes late, for the source's
 * request, is not taken for the answer to a new one.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qemu/timer.h"
#include "migration/vmstate.h"
#include "requester-internal.h"
#include "trace.h"

#define PRGI_MAX 512
#define RETRY_NS (1 * SCALE_MS)

struct PCIePri {
    PCIeRequester *r;
    PCIeRequest *group[PRGI_MAX];   /* what a PRG index stands for */
    bool busy[PRGI_MAX];            /* a response is owed */
    uint32_t pasid[PRGI_MAX];       /* for this PASID, where busy */
    uint32_t outstanding;
    uint16_t next;
    QEMUTimer *retry;               /* the IOMMU's queue was full */
};

static void pri_pump(PCIeRequester *r);

static void pri_response(IOMMUPRINotifier *n, IOMMUPRIResponse *resp)
{
    PCIePasid *p = container_of(n, PCIePasid, pri);
    PCIeRequester *r = p->r;
    struct PCIePri *pri = r->pri;
    uint16_t prgi = resp->prgi;
    PCIeRequest *req;

    trace_pcie_pri_response(r->dev->name, p->pasid, prgi, resp->response_code);
    if (prgi >= PRGI_MAX || !pri->busy[prgi]) {
        /* unexpected: PRI Status.UPRGI */
        pci_set_word(r->dev->config + r->dev->exp.pri_cap + PCI_PRI_STATUS,
                     pci_get_word(r->dev->config + r->dev->exp.pri_cap +
                                  PCI_PRI_STATUS) | PCI_PRI_STATUS_UPRGI);
        return;
    }
    req = pri->group[prgi];
    if (p->pasid != PCI_NO_PASID && p->pasid != pri->pasid[prgi]) {
        return;
    }
    pri->busy[prgi] = false;
    pri->group[prgi] = NULL;
    pri->outstanding--;
    if (resp->response_code == IOMMU_PRI_RESP_FAILURE) {
        pci_set_word(r->dev->config + r->dev->exp.pri_cap + PCI_PRI_STATUS,
                     pci_get_word(r->dev->config + r->dev->exp.pri_cap +
                                  PCI_PRI_STATUS) | PCI_PRI_STATUS_RF);
    }
    if (req) {
        req->state = REQUEST_IDLE;
        QTAILQ_REMOVE(&r->pending, req, link);
    }
    pri_pump(r);
    if (req) {
        req->ready(req, resp->response_code == IOMMU_PRI_RESP_SUCCESS);
    }
}

static bool pri_register(PCIeRequester *r, uint32_t pasid)
{
    PCIePasid *p = pcie_requester_pasid(r, pasid);

    if (!p->pri_registered) {
        p->pri.notify = pri_response;
        p->pri_registered = !pci_pri_register_notifier(r->dev, pasid, &p->pri);
    }
    return p->pri_registered;
}

static void pri_retry(void *opaque)
{
    pri_pump(opaque);
}

/* Sends @req; false where there is no credit or the queue is full. */
static bool pri_send(PCIeRequester *r, PCIeRequest *req)
{
    struct PCIePri *pri = r->pri;
    uint16_t prgi;
    int ret;

    if (pri->outstanding >= MIN(pcie_pri_get_req_alloc(r->dev), PRGI_MAX)) {
        return false;
    }
    while (pri->busy[pri->next]) {
        pri->next = (pri->next + 1) % PRGI_MAX;
    }
    prgi = pri->next;
    pri->next = (pri->next + 1) % PRGI_MAX;

    pri->busy[prgi] = true;
    pri->pasid[prgi] = pcie_request_pasid(req);
    pri->group[prgi] = req;
    pri->outstanding++;
    req->prgi = prgi;
    req->state = REQUEST_ASKED;
    QTAILQ_INSERT_TAIL(&r->pending, req, link);
    r->n_page_req++;
    ret = pci_pri_request_page(r->dev, pcie_request_pasid(req), req->priv,
                               req->exec, req->dma.iova & ~0xfffull, true,
                               prgi, true, req->dma.access & IOMMU_WO);
    trace_pcie_pri_request(r->dev->name, pcie_request_pasid(req),
                           req->dma.iova, prgi, ret);
    if (!ret) {
        return true;
    }
    pri->busy[prgi] = false;
    pri->group[prgi] = NULL;
    pri->outstanding--;
    QTAILQ_REMOVE(&r->pending, req, link);
    req->state = REQUEST_IDLE;
    if (ret == -ENOSPC) {
        timer_mod(pri->retry, qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL) +
                  RETRY_NS);
        return false;
    }
    /* no response will come: the access fails */
    req->pri_failed = true;
    return true;
}

static void pri_pump(PCIeRequester *r)
{
    PCIeRequest *req;

    while ((req = QTAILQ_FIRST(&r->pri_queue))) {
        QTAILQ_REMOVE(&r->pri_queue, req, link);
        req->state = REQUEST_IDLE;
        if (!pri_send(r, req)) {
            QTAILQ_INSERT_HEAD(&r->pri_queue, req, link);
            req->state = REQUEST_QUEUED;
            break;
        }
        if (req->pri_failed) {
            req->ready(req, false);
        }
    }
}

bool pcie_pri_ask(PCIeRequester *r, PCIeRequest *req, hwaddr addr,
                  IOMMUAccessFlags access)
{
    if (!pcie_pri_enabled(r->dev) || !pcie_pri_get_req_alloc(r->dev)) {
        return false;
    }
    if (!pri_register(r, pcie_request_pasid(req))) {
        return false;
    }
    /* responses may come without PASID */
    pri_register(r, PCI_NO_PASID);

    req->dma.iova = addr;
    req->dma.access = access;
    req->pri_failed = false;
    if (QTAILQ_EMPTY(&r->pri_queue) && pri_send(r, req)) {
        return !req->pri_failed;
    }
    req->state = REQUEST_QUEUED;
    QTAILQ_INSERT_TAIL(&r->pri_queue, req, link);
    return true;
}

bool pcie_request_asks_page(const PCIeRequest *req)
{
    return req->state == REQUEST_ASKED || req->state == REQUEST_QUEUED;
}

uint32_t pcie_requester_prg_pending(const PCIeRequester *r)
{
    return r->pri->outstanding;
}

void pcie_pri_forget(PCIeRequester *r, PCIeRequest *req)
{
    /* the index stays busy until the response that is still owed */
    r->pri->group[req->prgi] = NULL;
}

void pcie_pri_enable_changed(PCIeRequester *r)
{
    uint8_t *status = r->dev->config + r->dev->exp.pri_cap + PCI_PRI_STATUS;
    PCIeRequest *req, *next;

    if (pcie_pri_enabled(r->dev)) {
        pci_set_word(status, pci_get_word(status) & ~PCI_PRI_STATUS_STOPPED);
        return;
    }
    pci_set_word(status, pci_get_word(status) | PCI_PRI_STATUS_STOPPED);
    timer_del(r->pri->retry);
    memset(r->pri->busy, 0, sizeof(r->pri->busy));
    memset(r->pri->group, 0, sizeof(r->pri->group));
    r->pri->outstanding = 0;
    QTAILQ_FOREACH_SAFE(req, &r->pri_queue, link, next) {
        QTAILQ_REMOVE(&r->pri_queue, req, link);
        req->state = REQUEST_ASKED;
        QTAILQ_INSERT_TAIL(&r->pending, req, link);
    }
    for (;;) {
        QTAILQ_FOREACH(req, &r->pending, link) {
            if (req->state == REQUEST_ASKED) {
                break;
            }
        }
        if (!req) {
            break;
        }
        /* without the service: another attempt goes untranslated */
        QTAILQ_REMOVE(&r->pending, req, link);
        req->state = REQUEST_IDLE;
        req->ready(req, true);
    }
}

void pcie_pri_requester_init(PCIeRequester *r)
{
    r->pri = g_new0(struct PCIePri, 1);
    r->pri->r = r;
    r->pri->retry = timer_new_ns(QEMU_CLOCK_VIRTUAL, pri_retry, r);
}

void pcie_pri_requester_exit(PCIeRequester *r)
{
    timer_free(r->pri->retry);
    g_free(r->pri);
    r->pri = NULL;
}

/* Migration */

static bool pri_needed(void *opaque)
{
    PCIeRequester *r = opaque;

    return r->pri->outstanding || r->pri->next;
}

static int pri_post_load(void *opaque, int version_id)
{
    PCIeRequester *r = opaque;
    struct PCIePri *pri = r->pri;

    pri->next %= PRGI_MAX;
    pri->outstanding = 0;
    for (unsigned i = 0; i < PRGI_MAX; i++) {
        pri->group[i] = NULL;
        if (!pri->busy[i]) {
            continue;
        }
        if (pri->pasid[i] != PCI_NO_PASID && pri->pasid[i] >> 20) {
            return -EINVAL;
        }
        if (!pcie_pri_enabled(r->dev) || !pri_register(r, pri->pasid[i])) {
            pri->busy[i] = false;
            continue;
        }
        pri_register(r, PCI_NO_PASID);
        pri->outstanding++;
    }
    return 0;
}

static const VMStateDescription vmstate_pcie_pri_state = {
    .name = "pcie-requester/pri/state",
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (const VMStateField[]) {
        VMSTATE_BOOL_ARRAY(busy, struct PCIePri, PRGI_MAX),
        VMSTATE_UINT32_ARRAY(pasid, struct PCIePri, PRGI_MAX),
        VMSTATE_UINT16(next, struct PCIePri),
        VMSTATE_END_OF_LIST()
    }
};

static const VMStateDescription vmstate_pcie_pri = {
    .name = "pcie-requester/pri",
    .version_id = 1,
    .minimum_version_id = 1,
    .needed = pri_needed,
    .post_load = pri_post_load,
    .fields = (const VMStateField[]) {
        VMSTATE_STRUCT_POINTER(pri, PCIeRequester, vmstate_pcie_pri_state,
                               struct PCIePri),
        VMSTATE_END_OF_LIST()
    }
};

const VMStateDescription vmstate_pcie_requester = {
    .name = "pcie-requester",
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (const VMStateField[]) {
        VMSTATE_END_OF_LIST()
    },
    .subsections = (const VMStateDescription * const []) {
        &vmstate_pcie_pri,
        NULL
    }
};
