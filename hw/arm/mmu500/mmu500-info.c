/*
 * MMU-500: what the host sees, as QOM properties
 *
 *   qom-get /machine/mmu500 stats       counters since reset
 *   qom-get /machine/mmu500 streams     stream mapping in use
 *   qom-get /machine/mmu500 contexts    context banks in use
 *   qom-get /machine/mmu500 stalls      suspended transactions
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qapi/visitor.h"
#include "mmu500-internal.h"

static const struct {
    const char *name;
    size_t ofs;
} stats[] = {
#define STAT(field, name) { name, offsetof(MMU500Stats, field) }
    STAT(transactions, "transactions"),
    STAT(bypassed, "bypassed"),
    STAT(utlb_hits, "utlb-hits"),
    STAT(utlb_misses, "utlb-misses"),
    STAT(mtlb_hits, "mtlb-hits"),
    STAT(mtlb_misses, "mtlb-misses"),
    STAT(walks, "walks"),
    STAT(descriptors, "descriptors"),
    STAT(walk_cache_hits, "walk-cache-hits"),
    STAT(ipa_cache_hits, "ipa-cache-hits"),
    STAT(ipa_cache_misses, "ipa-cache-misses"),
    STAT(prefetches, "prefetches"),
    STAT(prefetch_hits, "prefetch-hits"),
    STAT(tlb_invalidations, "tlb-invalidations"),
    STAT(context_faults, "context-faults"),
    STAT(global_faults, "global-faults"),
    STAT(stalls, "stalls"),
    STAT(held, "held"),
    STAT(retries, "retries"),
    STAT(terminations, "terminations"),
    STAT(stalled_peak, "stalled-peak"),
    STAT(outstanding_peak, "outstanding-peak"),
    STAT(outstanding_waits, "outstanding-waits"),
    STAT(timed, "timed"),
    STAT(latency_ns, "latency-ns"),
    STAT(queue_peak, "queue-peak"),
    STAT(queue_waits, "queue-waits"),
    STAT(queue_wait_ns, "queue-wait-ns"),
    STAT(walks_peak, "walks-peak"),
    STAT(walk_waits, "walk-waits"),
    STAT(walk_wait_ns, "walk-wait-ns"),
#undef STAT
};

static void get_stats(Object *obj, Visitor *v, const char *name, void *opaque,
                      Error **errp)
{
    MMU500State *s = ARM_MMU500(obj);
    MMU500Stats copy;
    size_t i;

    WITH_QEMU_LOCK_GUARD(&s->lock) {
        copy = s->stats;
    }
    if (!visit_start_struct(v, name, NULL, 0, errp)) {
        return;
    }
    for (i = 0; i < ARRAY_SIZE(stats); i++) {
        uint64_t *val = (void *)&copy + stats[i].ofs;

        if (!visit_type_uint64(v, stats[i].name, val, errp)) {
            break;
        }
    }
    visit_end_struct(v, NULL);
}

static char *get_streams(Object *obj, Error **errp)
{
    static const char *const type[] = {
        "translate", "bypass", "fault", "reserved",
    };
    MMU500State *s = ARM_MMU500(obj);
    bool exid = FIELD_EX32(s->cr0, CR0, EXIDENABLE);
    GString *out = g_string_new(NULL);
    unsigned i;

    QEMU_LOCK_GUARD(&s->lock);
    for (i = 0; i < s->num_smrg; i++) {
        uint32_t smr = s->smr[i], s2cr = s->s2cr[i];

        if (exid ? !FIELD_EX32(s2cr, S2CR0, EXIDVALID)
                 : !FIELD_EX32(smr, SMR0, VALID)) {
            continue;
        }
        g_string_append_printf(out, "group %u: id 0x%04x mask 0x%04x %s", i,
                               extract32(smr, 0, exid ? 16 : 15),
                               extract32(smr, 16, exid ? 16 : 15),
                               type[FIELD_EX32(s2cr, S2CR0, TYPE)]);
        if (FIELD_EX32(s2cr, S2CR0, TYPE) == S2CR_TYPE_TRANSLATE) {
            g_string_append_printf(out, " bank %u",
                                   FIELD_EX32(s2cr, S2CR0, CBNDX));
        }
        g_string_append_c(out, '\n');
    }
    return g_string_free(out, false);
}

static char *get_contexts(Object *obj, Error **errp)
{
    static const char *const type[] = {
        "stage 2", "stage 1", "stage 1, stage 2 faults", "nested",
    };
    MMU500State *s = ARM_MMU500(obj);
    GString *out = g_string_new(NULL);
    unsigned i;

    QEMU_LOCK_GUARD(&s->lock);
    for (i = 0; i < s->num_cb; i++) {
        MMU500ContextBank *b = &s->cb[i];

        if (!FIELD_EX32(b->sctlr, SCTLR, M) && !b->fsr) {
            continue;
        }
        g_string_append_printf(out, "bank %u: %s, %s, vmid %u, sctlr 0x%x, "
                               "tcr 0x%x, ttbr0 0x%" PRIx64
                               ", ttbr1 0x%" PRIx64 ", fsr 0x%x, far 0x%"
                               PRIx64 "\n", i,
                               type[FIELD_EX32(b->cbar, CBAR0, TYPE)],
                               mmu500_cb_va64(s, i) ? "AArch64" : "AArch32",
                               mmu500_cb_vmid(s, i), b->sctlr, b->tcr,
                               b->ttbr[0], b->ttbr[1], b->fsr, b->far);
    }
    return g_string_free(out, false);
}

static char *get_stalls(Object *obj, Error **errp)
{
    MMU500State *s = ARM_MMU500(obj);
    GString *out = g_string_new(NULL);
    RecoverableDMAReq *req;
    unsigned i;

    QEMU_LOCK_GUARD(&s->lock);
    for (i = 0; i < s->num_tbu; i++) {
        QTAILQ_FOREACH(req, &s->tbu[i].input, link) {
            g_string_append_printf(out, "TBU %u: 0x%" HWADDR_PRIx
                                   " not accepted\n", i, req->iova);
        }
    }
    QTAILQ_FOREACH(req, &s->timed, link) {
        g_string_append_printf(out, "TBU %u: 0x%" HWADDR_PRIx
                               " until %" PRId64 " ns\n", REQ_TBU(req),
                               req->iova, req->due);
    }
    for (i = 0; i < s->num_cb; i++) {
        MMU500ContextBank *b = &s->cb[i];
        bool recorded = FIELD_EX32(b->fsr, FSR, SS) && !b->stall_orphan;

        if (FIELD_EX32(b->fsr, FSR, SS) && b->stall_orphan) {
            g_string_append_printf(out, "bank %u: 0x%" PRIx64
                                   " recorded, its device gave it up\n", i,
                                   b->far);
        }
        QTAILQ_FOREACH(req, &b->stalled, link) {
            g_string_append_printf(out, "bank %u: 0x%" HWADDR_PRIx " %s%s\n",
                                   i, req->iova,
                                   req->access & IOMMU_WO ? "write" : "read",
                                   recorded ? ", recorded" : ", held");
            recorded = false;
        }
    }
    return g_string_free(out, false);
}

void mmu500_info_class_init(ObjectClass *klass)
{
    object_class_property_add(klass, "stats", "MMU500Stats", get_stats,
                              NULL, NULL, NULL);
    object_class_property_set_description(klass, "stats",
                                          "Counters since reset");
    object_class_property_add_str(klass, "streams", get_streams, NULL);
    object_class_property_set_description(klass, "streams",
                                          "Stream mapping in use");
    object_class_property_add_str(klass, "contexts", get_contexts, NULL);
    object_class_property_set_description(klass, "contexts",
                                          "Context banks in use");
    object_class_property_add_str(klass, "stalls", get_stalls, NULL);
    object_class_property_set_description(klass, "stalls",
                                          "Suspended transactions");
}
