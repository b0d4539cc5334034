// fagen: the table through which a loaded kernel calls the emulator.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Engine.h"

#include "Cta.h"

#include <bit>

namespace fagen::emulator {

namespace {

using device::ptx::ElementType;

int threadIndex() { return static_cast<int>(Cta::current->threadIndex()); }
int ctaIndex() { return static_cast<int>(Cta::current->index()); }
int ctaCount() { return static_cast<int>(Cta::current->count()); }
unsigned clusterRank() { return Cta::current->rank(); }
unsigned clusterSize() { return Cta::current->clusterSize(); }
/// Of the shared memory of the thread's own CTA.
unsigned own(unsigned address) { return Cta::current->addressIn(Cta::current->rank(), address); }
void *sharedBase() { return Cta::current->sharedBase(); }

/// The place in the kernel's code that called the engine's function: Banks.h tells accesses of one line apart by it.
#define FAGEN_CALLER __builtin_extract_return_addr(__builtin_return_address(0))

void loadShared(void *to, unsigned address, unsigned bytes, Site site) {
  Cta::current->passBy(site);
  Cta::current->countBanks(BankAccess::kLoad, address, bytes, site, FAGEN_CALLER);
  Cta::current->loadShared(to, own(address), bytes, site);
}
void storeShared(unsigned address, const void *from, unsigned bytes, Site site) {
  Cta::current->countBanks(BankAccess::kStore, from ? address : kNoAddress, bytes, site, FAGEN_CALLER);
  if (!from)
    return;
  Cta::current->passBy(site);
  Cta::current->storeShared(own(address), from, bytes, site);
}
void loadGlobal(void *to, const void *from, unsigned bytes, Site site) {
  Cta::current->passBy(site);
  Cta::current->loadGlobal(to, from, bytes, site);
}
void loadElement(void *to, const void *tensor, long long index, unsigned bytes, Site site) {
  Cta::current->passBy(site);
  Cta::current->loadElement(to, tensor, index, bytes, site);
}
void storeGlobal(void *to, const void *from, unsigned bytes, Site site) {
  Cta::current->passBy(site);
  Cta::current->storeGlobal(to, from, bytes, site);
}
unsigned atomicInc(unsigned *word, unsigned last, Site site) {
  Cta::current->passBy(site);
  return Cta::current->atomicInc(word, last, site);
}

void divideByZero(long long dividend, Site site) { Cta::current->divideByZero(dividend, site); }

void fenceDevice(Site site) {
  Cta::current->passBy(site);
  Cta::current->fenceDevice(site);
}

void awaitLaunches(Site site) {
  Cta::current->passBy(site);
  Cta::current->awaitLaunches(site);
}

void copyAsync(unsigned target, const void *source, unsigned bytes, bool valid, Site site) {
  Cta::current->passBy(site);
  Cta::current->countBanks(BankAccess::kCopyAsync, target, bytes, site, FAGEN_CALLER);
  Cta::current->issueCopy(own(target), source, bytes, valid, site);
}
void copyCommit(Site site) {
  Cta::current->passBy(site);
  Cta::current->commitCopies(site);
}
void copyWait(unsigned pending, Site site) {
  Cta::current->passBy(site);
  if (!Cta::current->isReplaced(site))
    Cta::current->waitForCopies(pending, site);
}

void loadMatrices(unsigned *words, unsigned address, bool transpose, Site site) {
  Cta::current->passBy(site);
  Cta::current->countBanks(BankAccess::kLdmatrix, address, 16, site, FAGEN_CALLER);
  Cta::current->meet(transpose ? Collective::kLoadMatricesTransposed : Collective::kLoadMatrices,
                     {.result = words, .b0 = own(address)}, site);
}
void multiplyFragments(float *d, const unsigned *a, unsigned b0, unsigned b1, ElementType type, Site site) {
  Cta::current->passBy(site);
  Cta::current->meet(type == ElementType::kF16 ? Collective::kMultiplyF16 : Collective::kMultiplyBf16,
                     {.result = d, .a = a, .b0 = b0, .b1 = b1}, site);
}
void wmmaLoad(unsigned *words, unsigned count, bool isColumn, unsigned address, unsigned stride, Site site) {
  Cta::current->passBy(site);
  Cta::current->countMatrixBanks(BankAccess::kWmmaLoad, address, 2 * stride, 2, site);
  Cta::current->meet(Collective::kWmmaLoad,
                     {.result = words,
                      .b0 = own(address),
                      .b1 = stride,
                      .words = count,
                      .types = {ElementType::kF16, false, isColumn}},
                     site);
}
void wmmaMultiply(void *d, const unsigned *a, const unsigned *b, device::ptx::WmmaTypes types, Site site) {
  Cta::current->passBy(site);
  Cta::current->meet(Collective::kWmmaMultiply, {.result = d, .a = a, .b = b, .types = types}, site);
}
void wmmaStore(unsigned address, const void *d, bool isHalf, unsigned stride, Site site) {
  Cta::current->passBy(site);
  const unsigned elementBytes = isHalf ? 2 : 4;
  Cta::current->countMatrixBanks(BankAccess::kWmmaStore, address, stride * elementBytes, elementBytes, site);
  Cta::current->meet(Collective::kWmmaStore,
                     {.a = static_cast<const unsigned *>(d),
                      .b0 = own(address),
                      .b1 = stride,
                      .types = {ElementType::kF16, isHalf, false}},
                     site);
}
float shuffleXor(float value, int mask, Site site) {
  Cta::current->passBy(site);
  float result;
  Cta::current->meet(Collective::kShuffleXor,
                     {.result = &result, .b0 = std::bit_cast<unsigned>(value), .b1 = static_cast<unsigned>(mask)},
                     site);
  return result;
}

bool voteAny(bool predicate, Site site) {
  Cta::current->passBy(site);
  bool result;
  Cta::current->meet(Collective::kVoteAny, {.result = &result, .b0 = predicate}, site);
  return result;
}

void mbarrierInit(unsigned barrier, int arrivals, Site site) {
  Cta::current->passBy(site);
  Cta::current->initBarrier(own(barrier), arrivals, site);
}
void mbarrierInitFence(Site site) {
  Cta::current->passBy(site);
  if (!Cta::current->isReplaced(site))
    Cta::current->fenceBarrierInit(site);
}
void mbarrierArrive(unsigned barrier, int bytes, Site site) {
  Cta::current->passBy(site);
  if (!Cta::current->isReplaced(site))
    Cta::current->arriveAtBarrier(own(barrier), bytes, site);
}
void mbarrierArriveAt(unsigned barrier, unsigned rank, Site site) {
  Cta::current->passBy(site);
  if (!Cta::current->isReplaced(site))
    Cta::current->arriveAtBarrierOf(rank, barrier, site);
}
void mbarrierWait(unsigned barrier, unsigned parity, Site site) {
  Cta::current->passBy(site);
  if (!Cta::current->isReplaced(site))
    Cta::current->waitAtBarrier(own(barrier), parity, site);
}

void tmaLoad(unsigned target, const device::TensorMap *map, const int *at, int rank, unsigned barrier, unsigned ctas,
             Site site) {
  Cta::current->passBy(site);
  Cta::current->issueLoads(target, map, at, rank, barrier, ctas, site);
}
void tmaStore(const device::TensorMap *map, const int *at, int rank, unsigned source, Site site) {
  Cta::current->passBy(site);
  Cta::current->issueStore(map, at, rank, own(source), site);
}
void tmaCommit(Site site) {
  Cta::current->passBy(site);
  Cta::current->commitStores(site);
}
void tmaWait(unsigned pending, Site site) {
  Cta::current->passBy(site);
  if (!Cta::current->isReplaced(site))
    Cta::current->waitForStores(pending, site);
}
void fenceProxyAsync(Site site) {
  Cta::current->passBy(site);
  if (!Cta::current->isReplaced(site))
    Cta::current->fenceProxy(site);
}

void wgmma(float *d, const unsigned *a, unsigned long long aDescriptor, unsigned long long bDescriptor,
           device::ptx::WgmmaForm form, Site site) {
  Cta::current->passBy(site);
  Cta::current->meet(Collective::kWgmma, {.result = d, .a = a, .descriptors = {aDescriptor, bDescriptor}, .form = form},
                     site);
}
void wgmmaFence(Site site) {
  Cta::current->passBy(site);
  if (!Cta::current->isReplaced(site))
    Cta::current->meet(Collective::kWgmmaFence, {}, site);
}
void wgmmaCommit(Site site) {
  Cta::current->passBy(site);
  Cta::current->meet(Collective::kWgmmaCommit, {}, site);
}
void wgmmaWait(unsigned pending, Site site) {
  Cta::current->passBy(site);
  if (!Cta::current->isReplaced(site))
    Cta::current->meet(Collective::kWgmmaWait, {.b0 = pending}, site);
}
void setmaxnreg(unsigned registers, bool increases, Site site) {
  Cta::current->passBy(site);
  Cta::current->meet(Collective::kSetMaxNReg, {.b0 = registers, .b1 = increases}, site);
}
void storeMatrices(unsigned address, const unsigned *words, bool transpose, Site site) {
  Cta::current->passBy(site);
  Cta::current->meet(transpose ? Collective::kStoreMatricesTransposed : Collective::kStoreMatrices,
                     {.a = words, .b0 = own(address)}, site);
}
bool electOne(Site site) {
  Cta::current->passBy(site);
  bool result;
  Cta::current->meet(Collective::kElectOne, {.result = &result}, site);
  return result;
}

void ctaBarrier(Site site) {
  Cta::current->passBy(site);
  if (!Cta::current->isReplaced(site))
    Cta::current->ctaBarrier(site);
}
void clusterArrive(Site site) {
  Cta::current->passBy(site);
  if (!Cta::current->isReplaced(site))
    Cta::current->meet(Collective::kClusterArrive, {}, site);
}
void clusterWait(Site site) {
  Cta::current->passBy(site);
  if (!Cta::current->isReplaced(site))
    Cta::current->meet(Collective::kClusterWait, {}, site);
}
void namedBarrier(int id, int threads, bool waits, Site site) {
  Cta::current->passBy(site);
  if (!Cta::current->isReplaced(site))
    Cta::current->meet(waits ? Collective::kNamedBarrier : Collective::kNamedBarrierArrive,
                       {.b0 = static_cast<unsigned>(id), .b1 = static_cast<unsigned>(threads)}, site);
}
void warpBarrier(Site site) {
  Cta::current->passBy(site);
  if (!Cta::current->isReplaced(site))
    Cta::current->meet(Collective::kWarpBarrier, {}, site);
}

} // namespace

const device::ptx::Engine kEngine = {
    .version = device::ptx::kEngineVersion,
    .thread_index = threadIndex,
    .cta_index = ctaIndex,
    .cta_count = ctaCount,
    .cluster_rank = clusterRank,
    .cluster_size = clusterSize,
    .shared_base = sharedBase,
    .load_shared = loadShared,
    .store_shared = storeShared,
    .load_global = loadGlobal,
    .load_element = loadElement,
    .store_global = storeGlobal,
    .atomic_inc = atomicInc,
    .fence_device = fenceDevice,
    .await_launches = awaitLaunches,
    .copy_async = copyAsync,
    .copy_commit = copyCommit,
    .copy_wait = copyWait,
    .load_matrices = loadMatrices,
    .multiply = multiplyFragments,
    .wmma_load = wmmaLoad,
    .wmma_multiply = wmmaMultiply,
    .wmma_store = wmmaStore,
    .shuffle_xor = shuffleXor,
    .vote_any = voteAny,
    .mbarrier_init = mbarrierInit,
    .mbarrier_init_fence = mbarrierInitFence,
    .mbarrier_arrive = mbarrierArrive,
    .mbarrier_arrive_at = mbarrierArriveAt,
    .mbarrier_wait = mbarrierWait,
    .tma_load = tmaLoad,
    .tma_store = tmaStore,
    .tma_commit = tmaCommit,
    .tma_wait = tmaWait,
    .fence_proxy_async = fenceProxyAsync,
    .wgmma = wgmma,
    .wgmma_fence = wgmmaFence,
    .wgmma_commit = wgmmaCommit,
    .wgmma_wait = wgmmaWait,
    .setmaxnreg = setmaxnreg,
    .store_matrices = storeMatrices,
    .elect_one = electOne,
    .cta_barrier = ctaBarrier,
    .cluster_arrive = clusterArrive,
    .cluster_wait = clusterWait,
    .warp_barrier = warpBarrier,
    .named_barrier = namedBarrier,
    .divide_by_zero = divideByZero,
};

} // namespace fagen::emulator
