/*
 * SMMUv3: an oracle for one transaction, written from Arm IHI 0070
 *
 * What a transaction comes to under an STE, a CD, a stage 1 and a stage 2
 * page descriptor, and which values of each may be in use. A structure that
 * was changed and not invalidated since may be used as it is or as it was
 * (3.21.2 and 3.21.3); descriptors that fault for their valid bit or access
 * flag are not cached. Numbers in comments are sections of IHI 0070; page
 * permissions are those of VMSAv8-64.
 *
 * Nothing here knows a model or a machine: sizes of this little world, the
 * values that may be in use, and the rules.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef ODP_SMMUV3_ORACLE_H
#define ODP_SMMUV3_ORACLE_H

#include "smmuv3-test.h"

#define SSIDSIZE 4
#define CDS 16
#define ROOTS 3
#define PAGES 4           /* input pages, and what they can map to */
#define GLOBAL 3          /* global page (nG=0), the same in all roots */
#define VERSIONS 3
#define FAR (1ull << 40)  /* beyond the 39 bits of the tables */

/* VMIDs: stage 1, nested, stage 2. Each root has an ASID of its own. */
enum { VMID_S1 = 1, VMID_NESTED, VMID_S2, VMIDS };

/*
 * Fields that a TLB may keep (3.21.3) belong to a root or a VMID for good:
 * root 1 has CD.WXN and CD.PAN, root 2 CD.AFFD, VMID_S2 S2AFFD.
 */
static inline bool root_wxn_pan(unsigned root) { return root == 1; }
static inline bool root_affd(unsigned root) { return root == 2; }
static inline bool vmid_s2affd(unsigned vmid) { return vmid == VMID_S2; }

typedef struct Desc {
    bool v, af;
    bool el0, ro, uxn, pxn;     /* stage 1 */
    bool r, w, xn;              /* stage 2 */
    unsigned out;
} Desc;

typedef struct CdVal {
    bool v, s, r, a;
    unsigned root;
} CdVal;

typedef struct SteVal {
    bool v, l1bad, stalld, s2r, s2s;
    unsigned config, cdmax, dss, fmt, eats;
} SteVal;

/* The values that may be in use; the last one is in memory */
#define SET(type) struct { type val[VERSIONS]; unsigned n; }

typedef SET(SteVal) SteSet;
typedef SET(CdVal) CdSet;
typedef SET(Desc) DescSet;

/* Everything that the oracle knows */
typedef struct Known {
    uint32_t sid;
    bool term_model;            /* IDR0.TERM_MODEL */
    uint64_t page[PAGES];
    SteSet ste;
    CdSet cd[CDS];
    DescSet s1[VMIDS][ROOTS][PAGES];    /* GLOBAL: only of root 0 */
    DescSet s2[VMIDS][PAGES];
    /* CMD_TLBI_S2_IPA has been, entries of both stages may be left (4.4.3) */
    bool ipa_gone[PAGES];
} Known;

typedef struct Access {
    int ssid;             /* -1: none */
    unsigned page;        /* PAGES: FAR */
    unsigned offset;
    bool write, priv, inst;
} Access;

typedef struct Outcome {
    unsigned status;
    int out;              /* page, or -1 */
    bool has_event;
    SmmuEvent event;
} Outcome;

static inline DescSet *s1_set(Known *k, unsigned vmid, unsigned root,
                              unsigned page)
{
    return &k->s1[vmid][page == GLOBAL ? 0 : root][page];
}

static inline unsigned ste_vmid(const SteVal *ste)
{
    return ste->config == 5 ? VMID_S1 :
           ste->config == 7 ? VMID_NESTED : VMID_S2;
}

/* -- outcomes ------------------------------------------------------------- */

static inline uint64_t in_addr(const Known *k, const Access *a)
{
    return (a->page < PAGES ? k->page[a->page] : FAR) + a->offset;
}

static inline Outcome pass(unsigned page)
{
    /* nothing answers at FAR: an error of the bus, not the SMMU's */
    return (Outcome) { .status = page < PAGES ? DMA_OK : DMA_ERROR,
                       .out = page < PAGES ? page : -1 };
}

/* Terminated with an abort; @type 0: not recorded */
static inline Outcome refuse(const Known *k, const Access *a, unsigned type)
{
    return (Outcome) {
        .status = DMA_ERROR, .out = -1, .has_event = type,
        .event = { .type = type, .sid = k->sid, .ssv = a->ssid >= 0,
                   .ssid = MAX(a->ssid, 0) },
    };
}

/* 7.3.13 to 7.3.16, 3.12: a fault on the input address */
static inline Outcome fault(const Known *k, const Access *a, unsigned type,
                            bool s2, uint64_t ipa, bool record, bool stall)
{
    /* a stalled fault is recorded whatever R says (5.5) */
    Outcome o = refuse(k, a, record || stall ? type : 0);

    if (stall) {
        o.status = DMA_BUSY;
    }
    o.event.stall = stall;
    o.event.class = CLASS_IN;
    o.event.addr = in_addr(k, a);
    o.event.rnw = !a->write;
    o.event.pnu = a->priv;
    o.event.ind = a->inst && !a->write;     /* writes are data (13.1) */
    o.event.s2 = s2;
    o.event.addr2 = s2 ? ipa & ~0xfffull : 0;
    return o;
}

/* -- page descriptors ----------------------------------------------------- */

static inline bool s1_allows(const Desc *d, unsigned root, const Access *a)
{
    bool el0_w = d->el0 && !d->ro, el1_w = !d->ro;
    bool wxn = root_wxn_pan(root), pan = root_wxn_pan(root);

    if (a->inst && !a->write) {
        /* what EL0 can write EL1 does not execute; PAN is about data */
        return a->priv ? !d->pxn && !el0_w && !(wxn && el1_w)
                       : !d->uxn && !(wxn && el0_w);
    }
    if (a->priv) {
        return !(pan && d->el0) && (!a->write || el1_w);
    }
    return a->write ? el0_w : d->el0;
}

/* The fault of a stage 1 page descriptor (NULL: no such address), or 0 */
static inline unsigned s1_fault(const Desc *d, unsigned root, const Access *a)
{
    if (!d || !d->v) {
        return F_TRANSLATION;
    }
    if (!d->af && !root_affd(root)) {
        return F_ACCESS;
    }
    return s1_allows(d, root, a) ? 0 : F_PERMISSION;
}

static inline unsigned s2_fault(const Desc *d, unsigned vmid, const Access *a)
{
    if (!d || !d->v) {
        return F_TRANSLATION;
    }
    if (!d->af && !vmid_s2affd(vmid)) {
        return F_ACCESS;
    }
    /* execute-only is possible: a fetch does not need the right to read */
    if (a->write ? !d->w : a->inst ? d->xn : !d->r) {
        return F_PERMISSION;
    }
    return 0;
}

/* -- configuration -------------------------------------------------------- */

/* 5.2: is it ILLEGAL? STALL_MODEL is 0b00, ATS is there. */
static inline bool ste_illegal(const SteVal *s)
{
    if (!s->v) {
        return true;
    }
    if (!(s->config & 4)) {
        return false;               /* nothing else is looked at */
    }
    if ((s->config & 1) && s->cdmax > SSIDSIZE) {
        return true;
    }
    /* full ATS would show stage 2 faults to the endpoint only */
    return (s->config & 2) && s->s2s && s->eats == 1;
}

/* 5.5, as far as this world has it */
static inline bool cd_illegal(const Known *k, const SteVal *s, const CdVal *c)
{
    return !c->v || (c->s && s->stalld) || (k->term_model && !c->a);
}

/*
 * 3.9, 5.2 (S1DSS), 7.3.7, 7.3.9: what becomes of the SubstreamID.
 * Returns the event, or 0 and in @cd the CD to use, -1 without stage 1.
 */
static inline unsigned substream(const SteVal *s, int ssid, int *cd)
{
    bool s1 = s->config & 1;

    *cd = -1;
    if (!s1 || s->cdmax == 0) {
        if (ssid >= 0) {
            return C_BAD_SUBSTREAMID;
        }
        *cd = s1 ? 0 : -1;
        return 0;
    }
    if (ssid >= 1 << s->cdmax) {
        return C_BAD_SUBSTREAMID;
    }
    if (ssid < 0) {
        switch (s->dss) {
        case 1:
            return 0;
        case 2:
            break;
        default:                    /* 0b11 is reserved, as 0b00 */
            return F_STREAM_DISABLED;
        }
    }
    if (ssid == 0 && s->dss == 2) {
        return F_STREAM_DISABLED;
    }
    *cd = MAX(ssid, 0);
    return s->fmt && s->l1bad ? C_BAD_SUBSTREAMID : 0;
}

/* -- all that may happen --------------------------------------------------- */

typedef bool Visit(const Known *k, const Outcome *o, void *opaque);

static inline bool visit_s2(Known *k, const Access *a, const SteVal *ste,
                            unsigned page, Visit *visit, void *opaque)
{
    unsigned vmid = ste_vmid(ste);
    unsigned n = page < PAGES ? k->s2[vmid][page].n : 1;

    for (unsigned i = 0; i < n; i++) {
        const Desc *d = page < PAGES ? &k->s2[vmid][page].val[i] : NULL;
        unsigned type = s2_fault(d, vmid, a);
        Outcome o = type ? fault(k, a, type, true,
                                 page < PAGES ? k->page[page] : in_addr(k, a),
                                 ste->s2r, ste->s2s)
                         : pass(d->out);

        if (visit(k, &o, opaque)) {
            return true;
        }
    }
    return false;
}

static inline bool visit_s1(Known *k, const Access *a, const SteVal *ste,
                            const CdVal *cd, Visit *visit, void *opaque)
{
    DescSet *set = a->page < PAGES
        ? s1_set(k, ste_vmid(ste), cd->root, a->page) : NULL;

    for (unsigned i = 0; i < (set ? set->n : 1); i++) {
        const Desc *d = set ? &set->val[i] : NULL;

        for (unsigned r = 0; r < ROOTS; r++) {
            unsigned type;
            Outcome o;

            /* a global entry may have come by any of the roots */
            if (r != cd->root && a->page != GLOBAL) {
                continue;
            }
            type = s1_fault(d, r, a);
            if (!type && (ste->config & 2)) {
                if (visit_s2(k, a, ste, d->out, visit, opaque)) {
                    return true;
                }
                continue;
            }
            o = type ? fault(k, a, type, false, 0, cd->r, cd->s)
                     : pass(d->out);
            if (visit(k, &o, opaque)) {
                return true;
            }
        }
    }
    return false;
}

/* Calls @visit with every permitted outcome until it says true. */
static inline bool outcomes(Known *k, const Access *a, Visit *visit,
                            void *opaque)
{
    for (unsigned i = 0; i < k->ste.n; i++) {
        const SteVal *ste = &k->ste.val[i];
        unsigned type = 0;
        int cd = -1;
        Outcome o;

        if (ste_illegal(ste)) {
            type = C_BAD_STE;
        } else if (ste->config & 4) {
            type = substream(ste, a->ssid, &cd);
        }
        if (type || !(ste->config & 4)) {
            o = refuse(k, a, type);         /* Config=0b0xx: silently */
        } else if (cd < 0 && !(ste->config & 2)) {
            o = pass(a->page);
        } else if (cd < 0) {
            if (visit_s2(k, a, ste, a->page, visit, opaque)) {
                return true;
            }
            continue;
        } else {
            for (unsigned j = 0; j < k->cd[cd].n; j++) {
                const CdVal *c = &k->cd[cd].val[j];

                if (cd_illegal(k, ste, c)) {
                    o = refuse(k, a, C_BAD_CD);
                    if (visit(k, &o, opaque)) {
                        return true;
                    }
                } else if (visit_s1(k, a, ste, c, visit, opaque)) {
                    return true;
                }
            }
            continue;
        }
        if (visit(k, &o, opaque)) {
            return true;
        }
    }
    return false;
}

/* -- changes and invalidations -------------------------------------------- */

#define LAST(set) (&(set)->val[(set)->n - 1])

/* Only the value in memory is left. */
#define COLLAPSE(set) do { \
        (set)->val[0] = *LAST(set); \
        (set)->n = 1; \
    } while (0)

/* One more value; one that is never cached is forgotten when replaced. */
static inline void push_desc(DescSet *set, bool affd, Desc d)
{
    if (!LAST(set)->v || (!LAST(set)->af && !affd)) {
        set->n--;
    }
    g_assert_cmpuint(set->n, <, VERSIONS);
    set->val[set->n++] = d;
}

static inline void push_s1(Known *k, unsigned root, unsigned page, Desc d)
{
    for (unsigned vmid = 1; vmid < VMIDS; vmid++) {
        push_desc(s1_set(k, vmid, root, page),
                  page == GLOBAL || root_affd(root), d);
    }
}

static inline void push_s2(Known *k, unsigned page, Desc d)
{
    for (unsigned vmid = 1; vmid < VMIDS; vmid++) {
        push_desc(&k->s2[vmid][page], vmid_s2affd(vmid), d);
    }
    k->ipa_gone[page] = false;
}

/* 4.3: CFGI_STE and CFGI_ALL (@cd -1, @ste), CFGI_CD_ALL, CFGI_CD */
static inline void forget_config(Known *k, bool ste, int cd)
{
    if (ste) {
        COLLAPSE(&k->ste);
    }
    for (int i = 0; i < CDS; i++) {
        if (cd < 0 || cd == i) {
            COLLAPSE(&k->cd[i]);
        }
    }
}

/*
 * 4.4: stage 1 of a VMID; @root -1: every ASID, and global entries. A VA
 * (@page) reaches global entries by any ASID, an ASID alone does not.
 */
static inline void forget_s1(Known *k, unsigned vmid, int root, int page)
{
    for (int r = 0; r < ROOTS; r++) {
        for (int p = 0; p < PAGES; p++) {
            if (page >= 0 && page != p) {
                continue;
            }
            if (p == GLOBAL ? root < 0 || page >= 0 : root < 0 || root == r) {
                COLLAPSE(s1_set(k, vmid, r, p));
            }
        }
    }
    if (root < 0 && page < 0) {
        for (int p = 0; p < PAGES; p++) {
            /* what S2_IPA left were the entries of both stages */
            if (vmid == VMID_NESTED && k->ipa_gone[p]) {
                COLLAPSE(&k->s2[vmid][p]);
            }
        }
    }
}

static inline void forget_s12(Known *k, unsigned vmid)
{
    forget_s1(k, vmid, -1, -1);
    for (int p = 0; p < PAGES; p++) {
        COLLAPSE(&k->s2[vmid][p]);
    }
}

static inline void forget_ipa(Known *k, unsigned vmid, unsigned page)
{
    if (vmid == VMID_S2) {
        COLLAPSE(&k->s2[vmid][page]);
    } else if (vmid == VMID_NESTED) {
        k->ipa_gone[page] = true;
    }
}

#endif
