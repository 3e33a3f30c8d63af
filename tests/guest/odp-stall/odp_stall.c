// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A page-fault handler for DMA masters behind an MMU-500, in the manner of
 * ExaNeSt's: the master's addresses are those of a process, nothing is pinned,
 * and a page is mapped when the master faults on it.
 *
 * The driver binds PCI functions (the PCIe exerciser, SVA portals of the
 * HCA), puts each in an unmanaged domain and turns stalling on (SCTLR.CFCFG) in
 * its context bank, which Linux's arm-smmu leaves off. Whoever opens
 * /dev/odp-stall-BUS:DEV.FN and writes "ADDRESS LENGTH" to it lends that range
 * of its memory to the master; all of the address space will do. An MMU
 * interval notifier takes pages back when the process's mapping changes.
 *
 * A fault: arm-smmu's interrupt handler calls fault_handler(), which masks the
 * bank's interrupt (FSR.SS holds the line up until RESUME) and leaves the rest
 * to a worker, that may sleep: so one CPU is enough. The worker has the page
 * brought in, maps it (2 MiB where the process's mapping has that size),
 * writes RESUME and unmasks. Each stall is one interrupt and one turn of the
 * worker.
 *
 * Reading the node gives the counters.
 */
#include <linux/delay.h>
#include <linux/hmm.h>
#include <linux/io.h>
#include <linux/iommu.h>
#include <linux/miscdevice.h>
#include <linux/mm.h>
#include <linux/mmu_notifier.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/platform_device.h>
#include <linux/sched/mm.h>
#include <linux/uaccess.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>

/* SMMUv2 (Arm IHI 0062), with pages of 4 KiB */
#define IDR0_NUMSMRG(v)	((v) & 0xff)
#define SMR(n)		(0x800 + 4 * (n))
#define SMR_VALID	BIT(31)
#define S2CR(n)		(0xc00 + 4 * (n))
#define SCTLR		0x00
#define SCTLR_CFIE	BIT(6)
#define SCTLR_CFCFG	BIT(7)
#define RESUME		0x08
#define RESUME_RETRY	0
#define RESUME_TERMINATE 1
#define FSR		0x58
#define FSR_SS		BIT(30)
#define FSR_BITS	0x800001feu
#define FAR		0x60
#define FSYNR0		0x68
#define FSYNR0_WNR	BIT(4)

struct stall {
	struct pci_dev *pdev;
	struct iommu_domain *domain;
	void __iomem *cb;		/* the bank's registers */
	int bank;
	struct work_struct work;
	struct miscdevice misc;
	atomic_t opened;

	/* held while a fault is served, and while the process changes */
	struct mutex serving;
	/* what follows; the innermost: the notifier takes it */
	struct mutex lock;
	struct mmu_interval_notifier notifier;
	struct mm_struct *mm;		/* NULL: nothing is lent */
	unsigned long start, end;

	/* The order of what is mapped, by its page's number. */
	struct xarray present;

	unsigned long faults;		/* calls of the fault handler */
	unsigned long served;		/* turns of the worker for a fault */
	unsigned long mapped, large, upgraded, refused, again, taken_back;
};

/* Tables are made under the lock that reclaim takes, too. */
#define NO_RECLAIM	(GFP_ATOMIC | __GFP_NOWARN)
#define LARGE		(PMD_SHIFT - PAGE_SHIFT)

/* Takes the range's pages from the master: how many. Under s->lock. */
static unsigned long take_back(struct stall *s, unsigned long start,
			       unsigned long end)
{
	unsigned long index, n = 0;
	void *entry;

	/* A large page may begin before the range. */
	xa_for_each_range(&s->present, index, entry,
			  ALIGN_DOWN(start, PMD_SIZE) >> PAGE_SHIFT,
			  (end - 1) >> PAGE_SHIFT) {
		unsigned long addr = index << PAGE_SHIFT;
		size_t size = PAGE_SIZE << xa_to_value(entry);

		if (addr + size <= start)
			continue;
		iommu_unmap(s->domain, addr, size);
		xa_erase(&s->present, index);
		n++;
	}
	return n;
}

static bool invalidate(struct mmu_interval_notifier *mni,
		       const struct mmu_notifier_range *range,
		       unsigned long seq)
{
	struct stall *s = container_of(mni, struct stall, notifier);

	if (mmu_notifier_range_blockable(range))
		mutex_lock(&s->lock);
	else if (!mutex_trylock(&s->lock))
		return false;
	mmu_interval_set_seq(mni, seq);
	s->taken_back += take_back(s, max(range->start, s->start),
				   min(range->end, s->end));
	mutex_unlock(&s->lock);
	return true;
}

static const struct mmu_interval_notifier_ops notifier_ops = {
	.invalidate = invalidate,
};

/* Maps what hmm_range_fault() found at @addr. Under s->lock. */
static int map(struct stall *s, unsigned long addr, unsigned long found,
	       bool write)
{
	int prot = IOMMU_READ | (write ? IOMMU_WRITE : 0);
	struct page *page = hmm_pfn_to_page(found);
	phys_addr_t phys = page_to_phys(page);
	unsigned long base = ALIGN_DOWN(addr, PMD_SIZE);
	unsigned int order = 0;
	int ret;

	if (hmm_pfn_to_map_order(found) >= LARGE && base >= s->start &&
	    base + PMD_SIZE <= s->end) {
		order = LARGE;
		addr = base;
		phys = ALIGN_DOWN(phys, PMD_SIZE);
	}
	/* Perhaps it was read-only until now. */
	s->upgraded += !!take_back(s, addr, addr + (PAGE_SIZE << order));
	ret = xa_err(xa_store(&s->present, addr >> PAGE_SHIFT,
			      xa_mk_value(order), NO_RECLAIM));
	if (ret)
		return ret;
	ret = iommu_map(s->domain, addr, phys, PAGE_SIZE << order, prot,
			NO_RECLAIM);
	if (ret) {
		xa_erase(&s->present, addr >> PAGE_SHIFT);
		return ret;
	}
	/* Not pinned: the notifier tells us when it goes. */
	if (write)
		set_page_dirty(page);
	s->mapped++;
	s->large += !!order;
	return 0;
}

/* Maps the page at @addr; 0: try again, else the access is refused. */
static int serve(struct stall *s, unsigned long addr, bool write)
{
	unsigned long found;
	struct hmm_range range = {
		.notifier = &s->notifier,
		.start = addr,
		.end = addr + PAGE_SIZE,
		.hmm_pfns = &found,
		.default_flags = HMM_PFN_REQ_FAULT |
				 (write ? HMM_PFN_REQ_WRITE : 0),
	};
	struct mm_struct *mm = s->mm;
	int ret;

	if (!mm || addr < s->start || addr >= s->end)
		return -EFAULT;
	if (!mmget_not_zero(mm))
		return -ESRCH;
	for (;;) {
		found = 0;
		range.notifier_seq = mmu_interval_read_begin(&s->notifier);
		mmap_read_lock(mm);
		ret = hmm_range_fault(&range);
		mmap_read_unlock(mm);
		if (ret && ret != -EBUSY)
			break;
		mutex_lock(&s->lock);
		if (ret || mmu_interval_read_retry(&s->notifier,
						   range.notifier_seq))
			ret = -EBUSY;
		else
			ret = map(s, addr, found, write);
		mutex_unlock(&s->lock);
		if (ret == -ENOMEM)
			msleep(1);
		else if (ret != -EBUSY)
			break;
		s->again++;
	}
	mmput_async(mm);
	return ret;
}

static void work(struct work_struct *work)
{
	struct stall *s = container_of(work, struct stall, work);
	u32 fsr = readl(s->cb + FSR);

	if (fsr & FSR_SS) {
		unsigned long addr = readq(s->cb + FAR) & PAGE_MASK;
		bool write = readl(s->cb + FSYNR0) & FSYNR0_WNR;
		int ret;

		mutex_lock(&s->serving);
		ret = serve(s, addr, write);
		mutex_unlock(&s->serving);
		s->served++;
		s->refused += !!ret;
		writel(FSR_BITS, s->cb + FSR);
		writel(ret ? RESUME_TERMINATE : RESUME_RETRY, s->cb + RESUME);
	}
	writel(readl(s->cb + SCTLR) | SCTLR_CFIE, s->cb + SCTLR);
}

/*
 * In arm-smmu's interrupt handler. Newer kernels write RESUME themselves and
 * try again on -EAGAIN: what stalls then is found by the worker, so that each
 * fault is one call here, one turn of the worker, and two stalls.
 */
static int fault_handler(struct iommu_domain *domain, struct device *dev,
			 unsigned long iova, int flags, void *token)
{
	struct stall *s = token;

	s->faults++;
	writel(readl(s->cb + SCTLR) & ~SCTLR_CFIE, s->cb + SCTLR);
	schedule_work(&s->work);
	return -EAGAIN;
}

/* Under s->serving. */
static void give_back(struct stall *s)
{
	struct mm_struct *mm = s->mm;

	if (!mm)
		return;
	mmu_interval_notifier_remove(&s->notifier);
	mutex_lock(&s->lock);
	s->mm = NULL;
	s->taken_back += take_back(s, s->start, s->end);
	mutex_unlock(&s->lock);
	mmdrop(mm);
}

static struct stall *of_file(struct file *file)
{
	return container_of(file->private_data, struct stall, misc);
}

static int stall_open(struct inode *inode, struct file *file)
{
	return atomic_cmpxchg(&of_file(file)->opened, 0, 1) ? -EBUSY : 0;
}

static int stall_release(struct inode *inode, struct file *file)
{
	struct stall *s = of_file(file);

	mutex_lock(&s->serving);
	give_back(s);
	mutex_unlock(&s->serving);
	atomic_set(&s->opened, 0);
	return 0;
}

static ssize_t stall_write(struct file *file, const char __user *buf,
			   size_t len, loff_t *pos)
{
	struct stall *s = of_file(file);
	unsigned long start, size;
	char text[64];
	int ret;

	if (len >= sizeof(text) || copy_from_user(text, buf, len))
		return -EFAULT;
	text[len] = 0;
	if (sscanf(text, "%lx %lx", &start, &size) != 2 || !size ||
	    !PAGE_ALIGNED(start) || !PAGE_ALIGNED(size) ||
	    start + size <= start)
		return -EINVAL;

	mutex_lock(&s->serving);
	give_back(s);
	s->start = start;
	s->end = start + size;
	ret = mmu_interval_notifier_insert(&s->notifier, current->mm, start,
					   size, &notifier_ops);
	if (!ret) {
		mmgrab(current->mm);
		s->mm = current->mm;
	}
	mutex_unlock(&s->serving);
	return ret ?: len;
}

static ssize_t stall_read(struct file *file, char __user *buf, size_t len,
			  loff_t *pos)
{
	struct stall *s = of_file(file);
	char text[256];
	int n = scnprintf(text, sizeof(text),
			  "bank %d faults %lu served %lu mapped %lu large %lu "
			  "upgraded %lu refused %lu again %lu taken-back %lu\n",
			  s->bank, s->faults, s->served, s->mapped, s->large,
			  s->upgraded, s->refused, s->again, s->taken_back);

	return simple_read_from_buffer(buf, len, pos, text, n);
}

static const struct file_operations stall_fops = {
	.owner = THIS_MODULE,
	.open = stall_open,
	.release = stall_release,
	.read = stall_read,
	.write = stall_write,
};

/* Finds the bank that the function's StreamID is mapped to. */
static int find_bank(struct stall *s)
{
	struct iommu_fwspec *fwspec = dev_iommu_fwspec_get(&s->pdev->dev);
	struct device *smmu = NULL;
	struct resource *res;
	void __iomem *gr0;
	u32 i, sid;
	int ret = -ENODEV;

	if (fwspec && fwspec->num_ids)
		smmu = bus_find_device_by_fwnode(&platform_bus_type,
						 fwspec->iommu_fwnode);
	if (!smmu)
		return -ENODEV;
	res = platform_get_resource(to_platform_device(smmu), IORESOURCE_MEM,
				    0);
	gr0 = res ? ioremap(res->start, 0x1000) : NULL;
	if (!gr0)
		goto out;
	sid = fwspec->ids[0] & 0x7fff;
	for (i = 0; i < IDR0_NUMSMRG(readl(gr0 + 0x20)); i++) {
		u32 smr = readl(gr0 + SMR(i));

		if ((smr & SMR_VALID) &&
		    !((smr ^ sid) & 0x7fff & ~(smr >> 16))) {
			s->bank = readl(gr0 + S2CR(i)) & 0xff;
			s->cb = ioremap(res->start + resource_size(res) / 2 +
					s->bank * 0x1000, 0x1000);
			ret = s->cb ? 0 : -ENOMEM;
			break;
		}
	}
	iounmap(gr0);
out:
	put_device(smmu);
	return ret;
}

static int stall_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	struct stall *s = devm_kzalloc(&pdev->dev, sizeof(*s), GFP_KERNEL);
	int ret;

	if (!s)
		return -ENOMEM;
	s->pdev = pdev;
	mutex_init(&s->serving);
	mutex_init(&s->lock);
	xa_init(&s->present);
	INIT_WORK(&s->work, work);
	ret = pcim_enable_device(pdev);
	if (ret)
		return ret;

	s->domain = iommu_paging_domain_alloc(&pdev->dev);
	if (IS_ERR(s->domain))
		return PTR_ERR(s->domain);
	iommu_set_fault_handler(s->domain, fault_handler, s);
	ret = iommu_attach_device(s->domain, &pdev->dev);
	if (ret)
		goto free;
	ret = find_bank(s);
	if (ret)
		goto detach;
	writel(readl(s->cb + SCTLR) | SCTLR_CFCFG, s->cb + SCTLR);

	s->misc.minor = MISC_DYNAMIC_MINOR;
	s->misc.name = devm_kasprintf(&pdev->dev, GFP_KERNEL, "odp-stall-%s",
				      pci_name(pdev));
	s->misc.fops = &stall_fops;
	s->misc.parent = &pdev->dev;
	ret = s->misc.name ? misc_register(&s->misc) : -ENOMEM;
	if (ret)
		goto unmap;
	pci_set_master(pdev);
	pci_set_drvdata(pdev, s);
	pci_info(pdev, "faults of bank %d are served\n", s->bank);
	return 0;

unmap:
	iounmap(s->cb);
detach:
	iommu_detach_device(s->domain, &pdev->dev);
free:
	iommu_domain_free(s->domain);
	return ret;
}

static void stall_remove(struct pci_dev *pdev)
{
	struct stall *s = pci_get_drvdata(pdev);

	misc_deregister(&s->misc);
	pci_clear_master(pdev);
	/* Nobody is served any more: what is stalled ends with an error. */
	writel(readl(s->cb + SCTLR) & ~(SCTLR_CFCFG | SCTLR_CFIE),
	       s->cb + SCTLR);
	cancel_work_sync(&s->work);
	if (readl(s->cb + FSR) & FSR_SS) {
		writel(FSR_BITS, s->cb + FSR);
		writel(RESUME_TERMINATE, s->cb + RESUME);
	}
	iounmap(s->cb);
	iommu_detach_device(s->domain, &pdev->dev);
	iommu_domain_free(s->domain);
	xa_destroy(&s->present);
}

static const struct pci_device_id stall_ids[] = {
	{ PCI_DEVICE(0x13b5, 0xed01) },		/* PCIe exerciser */
	{ PCI_DEVICE(0x15b3, 0x7f5a) },		/* SVA portal */
	{ }
};
MODULE_DEVICE_TABLE(pci, stall_ids);

static struct pci_driver stall_driver = {
	.name = "odp-stall",
	.id_table = stall_ids,
	.probe = stall_probe,
	.remove = stall_remove,
	.driver_managed_dma = true,
};
module_pci_driver(stall_driver);

MODULE_DESCRIPTION("Serves stalled DMA of PCI functions behind an MMU-500");
MODULE_LICENSE("GPL");
