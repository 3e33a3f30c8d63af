/*
 * SMMUv3: a million stalls and a million page requests through small queues
 *
 * Everything that goes in comes out: a stall as one record each, a fault
 * that does not stall as a record or, where OVFLG says so, not at all; a page
 * request as a queue entry or an answer of the SMMU's own, or, where OVFLG
 * says so and it is not the last of its group, not at all.
 *
 * ODP_SEED repeats a run; without ODP_LONG=1 it is 1% of it.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "smmuv3-test.h"

#define VA 0x12345000ull
#define SSID 5            /* stalls */
#define SSID_FAULT 6      /* does not */
#define CHANNELS 12       /* more than the queue and the STAGs together */
#define FAULT_CHANNEL CHANNELS
#define LOG2 2
#define MASK ((2u << LOG2) - 1)
#define SLOT (MASK >> 1)

static GRand *seeded(unsigned *n)
{
    const char *env = g_getenv("ODP_SEED");
    uint32_t seed = env ? g_ascii_strtoull(env, NULL, 0) : g_random_int();

    *n = g_getenv("ODP_LONG") ? 1000000 : 10000;
    g_test_message("ODP_SEED=0x%x, %u", seed, *n);
    return g_rand_new_with_seed(seed);
}

static void start_channel(SmmuTest *t, unsigned ch, bool pasid_set)
{
    uint32_t ctl = DMA_WRITE | DMA_PASID;

    if (!pasid_set) {
        dma_start(t, ch, VA + ch * 4096, 8, ctl,
                  ch == FAULT_CHANNEL ? SSID_FAULT : SSID);
        return;
    }
    qtest_writel(t->qts, ch_reg(t, ch, 0x14), 4);
    qtest_writel(t->qts, ch_reg(t, ch, 0), ctl | 1);
}

static void test_stalls(void)
{
    unsigned n, in = 0, out = 0, faults = 0, recorded = 0, lost = 0;
    GRand *rand = seeded(&n);
    SmmuTest *t = smmu_boot("ssidsize=8,stall-model=stall,stall-max=6", NULL);
    Cd cd = { .s = true };
    Ste ste = { .config = 5, .s1cdmax = 3, .s1dss = 2 };
    bool busy[CHANNELS] = { }, set[CHANNELS + 1] = { };
    struct { bool used; unsigned ch; } *stag = g_new0(typeof(*stag), 0x10000);
    unsigned stags = 0;
    bool ovf = false;

    smmu_setup_sized(t, LOG2, 4, CR0_SMMUEN | CR0_EVENTQEN | CR0_CMDQEN);
    pasid_enable(t);
    cd.ttb = smmu_pages(t, 1);
    ste.cd = smmu_pages(t, 1);
    cd_write(t, ste.cd + SSID * 64, &cd);
    cd.s = false;
    cd_write(t, ste.cd + SSID_FAULT * 64, &cd);
    ste_write(t, t->sid, &ste);

    while (in < n || out < in) {
        uint32_t prod, cons;
        uint64_t queue[4 << LOG2], cmd[2 * CHANNELS];
        unsigned cmds = 0, take;

        for (unsigned ch = 0; ch < CHANNELS && in < n; ch++) {
            if (!busy[ch] && g_rand_boolean(rand)) {
                start_channel(t, ch, set[ch]);
                busy[ch] = set[ch] = true;
                in++;
            }
        }
        prod = smmu_r(t, SMMU_EVENTQ_PROD);
        cons = smmu_r(t, SMMU_EVENTQ_CONS);
        if (g_rand_int_range(rand, 0, 4) == 0) {
            bool full = ((prod - cons) & MASK) == 1u << LOG2;

            start_channel(t, FAULT_CHANNEL, set[FAULT_CHANNEL]);
            set[FAULT_CHANNEL] = true;
            g_assert_cmpuint(dma_status(t, FAULT_CHANNEL), ==, DMA_ERROR);
            faults++;
            lost += full;
            ovf |= full;
            prod = smmu_r(t, SMMU_EVENTQ_PROD);
        }
        g_assert_cmpint(!!((prod ^ cons) & Q_OVF), ==, ovf);

        qtest_bufread(t->qts, t->eventq, queue, sizeof(queue));
        take = (prod - cons) & MASK;
        take = take ? g_rand_int_range(rand, 0, take + 1) : 0;
        for (unsigned i = 0; i < take; i++) {
            uint64_t *e = &queue[((cons + i) & SLOT) * 4];
            unsigned ch = (e[2] - VA) / 4096, tag = e[1] & 0xffff;
            bool retry;

            g_assert_cmphex(e[0], ==, F_TRANSLATION | 1 << 11 |
                            (ch == FAULT_CHANNEL ? SSID_FAULT : SSID) << 12 |
                            (uint64_t)t->sid << 32);
            g_assert_cmphex(e[2], ==, VA + ch * 4096);
            g_assert_cmpint(e[1] >> 31 & 1, ==, ch != FAULT_CHANNEL);
            if (ch == FAULT_CHANNEL) {
                recorded++;
                continue;
            }
            g_assert_cmpuint(ch, <, CHANNELS);
            g_assert_true(busy[ch]);
            g_assert_false(stag[tag].used);
            stag[tag].used = true;
            stag[tag].ch = ch;
            stags++;
            g_assert_cmpuint(stags, <=, 6);
            out++;
            /* some are answered later than others */
            if (g_rand_int_range(rand, 0, 4) == 0 && stags < 6) {
                continue;
            }
            retry = in < n && g_rand_int_range(rand, 0, 4) == 0;
            cmd[cmds * 2] = cmd_resume_lo(t->sid, retry ? RESUME_RETRY
                                                       : RESUME_ABORT);
            cmd[cmds++ * 2 + 1] = tag;
            stag[tag].used = false;
            stags--;
            in += retry; /* it faults again */
            busy[ch] = retry;
        }
        /* late answers, when nothing else is to be done */
        if (!take && stags) {
            for (unsigned tag = 0; tag < 0x10000 && cmds < CHANNELS; tag++) {
                if (stag[tag].used) {
                    cmd[cmds * 2] = cmd_resume_lo(t->sid, RESUME_ABORT);
                    cmd[cmds++ * 2 + 1] = tag;
                    stag[tag].used = false;
                    busy[stag[tag].ch] = false;
                    stags--;
                }
            }
        }
        cons = ((cons + take) & MASK) | (prod & Q_OVF);
        ovf = false;
        smmu_w(t, SMMU_EVENTQ_CONS, cons);
        for (unsigned i = 0; i < cmds; i++) {
            uint32_t p = smmu_r(t, SMMU_CMDQ_PROD);
            unsigned room = MIN(cmds - i, 64 - (p & 63));

            qtest_bufwrite(t->qts, t->cmdq + (p & 63) * 16, &cmd[i * 2],
                           room * 16);
            smmu_w(t, SMMU_CMDQ_PROD, (p + room) & 127);
            i += room - 1;
        }
    }
    /* what is left are faults that do not stall, and late answers */
    while (smmu_events(t)) {
        SmmuEvent e;

        smmu_pop_event(t, &e);
        g_assert_false(e.stall);
        recorded++;
    }
    for (unsigned tag = 0; tag < 0x10000; tag++) {
        if (stag[tag].used) {
            CMD_RESUME(t, t->sid, tag, RESUME_ABORT);
        }
    }
    for (unsigned ch = 0; ch < CHANNELS; ch++) {
        g_assert_cmpuint(dma_status(t, ch), !=, DMA_BUSY);
    }
    g_test_message("%u stalls in, %u out; %u faults in, %u recorded, %u lost",
                   in, out, faults, recorded, lost);
    g_assert_cmpuint(in, ==, out);
    g_assert_cmpuint(faults, ==, recorded + lost);
    g_assert_cmpuint(lost, >, 0);
    g_assert_true(smmu_cmdq_idle(t));
    g_assert_cmphex(smmu_r(t, SMMU_GERROR), ==, 0);
    g_rand_free(rand);
    g_free(stag);
    smmu_quit(t);
}

enum {
    PPR_R = 1 << 16, PPR_LAST = 1 << 18, PPR_PASID = 1 << 19,
};

static void test_page_requests(void)
{
    unsigned n, in = 0, out = 0, out_last = 0, dropped = 0, autos = 0;
    unsigned due = 0;
    GRand *rand = seeded(&n);
    SmmuTest *t = smmu_boot("ssidsize=8,ats=on,pri=on", NULL);
    unsigned fill = 0, head = 0;
    uint16_t expect[1 << LOG2];
    bool ovf = false;

    smmu_setup_sized(t, 6, LOG2, CR0_SMMUEN | CR0_EVENTQEN | CR0_CMDQEN |
                     CR0_PRIQEN);
    pasid_enable(t);
    ats_enable(t, true);
    pri_enable(t, 512);
    qtest_writel(t->qts, t->regs + 0x10, VA);
    qtest_writel(t->qts, t->regs + 0x14, 0);
    qtest_writel(t->qts, t->regs + 0x20, SSID);

    while (in < n || fill) {
        unsigned burst = in < n ? g_rand_int_range(rand, 0, 8) : 0;
        uint64_t queue[2 << LOG2], cmd[2 << LOG2];
        unsigned take, cmds = 0;
        uint32_t prod;

        for (unsigned i = 0; i < burst; i++, in++) {
            unsigned prgi = in & 0x1ff;
            bool last = g_rand_boolean(rand);
            bool pasid = g_rand_boolean(rand);

            qtest_writel(t->qts, t->regs + 0x90, prgi | PPR_R |
                         (last ? PPR_LAST : 0) | (pasid ? PPR_PASID : 0));
            if (!ovf && fill < 1 << LOG2) {
                expect[(head + fill++) & SLOT] = prgi | last << 9 |
                                                 pasid << 10;
            } else {
                ovf = true;
                autos += last;
                due += last;
                dropped += !last;
            }
        }
        prod = smmu_r(t, SMMU_PRIQ_PROD);
        g_assert_cmpuint((prod - head) & MASK, ==, fill);
        g_assert_cmpint(!!((prod ^ smmu_r(t, SMMU_PRIQ_CONS)) & Q_OVF), ==,
                        ovf);
        take = fill ? g_rand_int_range(rand, 0, fill + 1) : 0;
        if (take) {
            qtest_bufread(t->qts, t->priq, queue, sizeof(queue));
        }
        for (unsigned i = 0; i < take; i++) {
            uint64_t *e = &queue[(head & SLOT) * 2];
            unsigned want = expect[head & SLOT];
            bool last = want >> 9 & 1, pasid = want >> 10 & 1;

            g_assert_cmphex(e[0], ==, t->sid | 1ull << 60 |
                            (uint64_t)last << 62 | (uint64_t)pasid << 63 |
                            (pasid ? (uint64_t)SSID << 32 : 0));
            g_assert_cmphex(e[1], ==, VA | (want & 0x1ff));
            out++;
            if (last) {
                cmd[cmds * 2] = cmd_ssid(0x41, t->sid, pasid ? SSID : -1);
                cmd[cmds++ * 2 + 1] = 2 << 12 | (want & 0x1ff);
                out_last++;
                due++;
            }
            head = (head + 1) & MASK;
            fill--;
        }
        /* software acknowledges an overflow now and then */
        if (ovf && g_rand_boolean(rand)) {
            ovf = false;
            smmu_w(t, SMMU_PRIQ_CONS, head | (prod & Q_OVF));
        } else if (take) {
            smmu_w(t, SMMU_PRIQ_CONS, head |
                   ((ovf ? ~prod : prod) & Q_OVF));
        }
        for (unsigned i = 0; i < cmds; i++) {
            uint32_t p = smmu_r(t, SMMU_CMDQ_PROD);
            unsigned room = MIN(cmds - i, 64 - (p & 63));

            qtest_bufwrite(t->qts, t->cmdq + (p & 63) * 16, &cmd[i * 2],
                           room * 16);
            smmu_w(t, SMMU_CMDQ_PROD, (p + room) & 127);
            i += room - 1;
        }
    }
    qtest_clock_step(t->qts, 1000000);
    g_test_message("%u in: %u queued (%u last), %u answered by the SMMU, "
                   "%u dropped", in, out, out_last, autos, dropped);
    g_assert_cmpuint(in, ==, out + autos + dropped);
    g_assert_cmpuint(qtest_readl(t->qts, t->regs + 0x98), ==, due);
    g_assert_cmpuint(autos, >, 0);
    g_assert_cmpuint(dropped, >, 0);
    g_assert_true(smmu_cmdq_idle(t));
    g_assert_cmphex(smmu_r(t, SMMU_GERROR), ==, 0);
    g_rand_free(rand);
    smmu_quit(t);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    qtest_add_func("smmuv3/million/stalls", test_stalls);
    qtest_add_func("smmuv3/million/page-requests", test_page_requests);
    return g_test_run();
}
