# fagen: attention and its gradients over an exchange of heads: a chunk of heads is computed while others travel.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import torch


def reserve(exchange, chunks, batch, row_bytes, key_bytes, device):
    """Takes as much memory as a pass over the chunks holds at most, and lets it go to the allocator's cache: a rank without it says so before
    others wait for what it sends. row_bytes, key_bytes: of a query head's row and of a K/V head's key, of all tensors that travel."""
    rank = exchange.rank
    held = sum(sum(exchange.rows) * (chunk[rank].heads[1] - chunk[rank].heads[0]) * row_bytes
               + sum(exchange.keys) * len(chunk[rank].kv_heads) * key_bytes for chunk in chunks)
    sent = sum(exchange.rows[rank] * sum(share.heads[1] - share.heads[0] for share in chunk) * row_bytes
               + exchange.keys[rank] * sum(len(share.kv_heads) for share in chunk) * key_bytes for chunk in chunks)
    torch.empty(batch * (2 * held + sent), dtype=torch.uint8, device=device)  # twice: a message may arrive elsewhere than it belongs


class _Pass:
    """Of the chunks of an exchange, one after the other."""

    def __init__(self, exchange, chunks):
        self.exchange, self.chunks = exchange, chunks

    def run(self):
        """The next chunk's heads travel while one is computed, and the last one's rows go back. What fails is raised at the end, after the
        others have got something in its place."""
        failed, back = None, []
        coming = self.begin(0)
        for number in range(len(self.chunks)):
            following = self.begin(number + 1) if number + 1 < len(self.chunks) else None
            tensors = self.exchange.finish(coming)
            try:
                made = self.compute(number, *tensors)
            except Exception as error:  # of whatever kind: raised below
                failed = failed or error
                made = self.nothing(number, *tensors)
            back.append(self.begin_back(number, *made))
            coming = following
        for begun in back:
            self.finish_back(begun)
        self.exchange.transfers.close()
        if failed is not None:
            raise failed

    def head0(self, number):
        """The first head of this rank's in a chunk."""
        return self.chunks[number][self.exchange.rank].heads[0]


def by_rows(lse):
    """[batch, heads, rows] as tensors of rows are: [batch, rows, heads, 1]."""
    return lse.transpose(1, 2)[..., None]


class Forward(_Pass):
    """attend(q, k, v, o, lse, first head) writes into o and lse. kept: a list to which the tensors of each chunk are added, or None."""

    def __init__(self, exchange, chunks, attend, inputs, o, lse, kept=None):
        super().__init__(exchange, chunks)
        self.attend, self.inputs, self.o, self.lse, self.kept = attend, inputs, o, lse, kept

    def begin(self, number):
        q, k, v = self.inputs
        return self.exchange.begin(self.chunks[number], [q], [k, v])

    def nothing(self, number, q, k, v):
        return q.new_zeros((*q.shape[:3], v.shape[3]), dtype=self.o.dtype), torch.zeros((q.shape[0], q.shape[2], q.shape[1]), dtype=torch.float32, device=q.device)

    def compute(self, number, q, k, v):
        o = torch.empty((*q.shape[:3], v.shape[3]), dtype=self.o.dtype, device=q.device)
        lse = torch.empty((q.shape[0], q.shape[2], q.shape[1]), dtype=torch.float32, device=q.device)
        self.attend(q, k, v, o, lse, self.head0(number))
        if self.kept is not None:
            self.kept += [q, k, v, o, lse]
        return o, lse

    def begin_back(self, number, o, lse):
        return self.exchange.begin_back(self.chunks[number], [o, by_rows(lse)], [self.o, by_rows(self.lse)])

    def finish_back(self, begun):
        self.exchange.finish(begun)


class Backward(_Pass):
    """differentiate(q, k, v, o, lse, grad, grad_lse, first head) gives dq, dk and dv of a chunk, in a wide type. dq is written, dk and dv are
    added to. kept: what the forward has."""

    def __init__(self, exchange, chunks, differentiate, kept, grad, grad_lse, dq, dk, dv):
        super().__init__(exchange, chunks)
        self.differentiate, self.grad, self.grad_lse, self.dq, self.sums = differentiate, grad, grad_lse, dq, (dk, dv)
        self.kept = [kept[i:i + 5] for i in range(0, len(kept), 5)]
        heads = [head for chunk in chunks for share in chunk for head in share.kv_heads]
        self.has_copies = len(heads) > len(set(heads))

    def begin(self, number):
        return self.exchange.begin(self.chunks[number], [self.grad] if self.grad_lse is None else [self.grad, by_rows(self.grad_lse)])

    def nothing(self, number, *_):
        q, k, v, _, _ = self.kept[number]
        return torch.zeros_like(q), *(torch.zeros_like(t, dtype=self._type(t)) for t in (k, v))

    def compute(self, number, grad, grad_lse=None):
        q, k, v, o, lse = self.kept[number]
        grad_lse = None if grad_lse is None else grad_lse[..., 0].transpose(1, 2)
        dq, dk, dv = self.differentiate(q, k, v, o, lse, grad, grad_lse, self.head0(number))
        return dq.to(q.dtype), dk.to(self._type(k)), dv.to(self._type(v))

    def _type(self, tensor):
        """Of gradients of keys that travel: sums of parts are rounded once, after they are summed."""
        return self.sums[0].dtype if self.has_copies else tensor.dtype

    def begin_back(self, number, dq, dk, dv):
        chunk = self.chunks[number]
        return self.exchange.begin_back(chunk, [dq], [self.dq]), self.exchange.begin_sums(chunk, [dk, dv], self.sums)

    def finish_back(self, begun):
        self.exchange.finish(begun[0])
        self.exchange.finish_sums(begun[1])
