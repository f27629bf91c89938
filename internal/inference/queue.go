package inference

import (
	"context"
	"sync"
)

// queue hands out a bounded number of slots. Who waits is served in turn by tenant, so that a tenant with many waiting
// calls delays its own and not those of others.
type queue struct {
	perTenant, total int

	mu      sync.Mutex
	free    int
	waiting int
	tenants map[string][]*waiter
	turn    []string // tenants with waiters, next first
}

// waiter is told once: ready is closed when it has a slot or was pushed out.
type waiter struct {
	ready     chan struct{}
	pushedOut bool
}

func newQueue(slots, perTenant, total int) *queue {
	return &queue{free: slots, perTenant: perTenant, total: total, tenants: map[string][]*waiter{}}
}

// acquire returns nil once the caller has a slot, which it must release.
func (q *queue) acquire(ctx context.Context, tenant string) *Error {
	w, err := q.enter(tenant)
	if w == nil {
		return err
	}
	select {
	case <-w.ready:
		if w.pushedOut {
			return fail(QueueFull, "made room for a tenant with fewer waiting calls")
		}
		return nil
	case <-ctx.Done():
		q.abandon(tenant, w)
		return asError(ctx, ctx.Err())
	}
}

// enter takes a free slot, or a place in the queue, or neither.
func (q *queue) enter(tenant string) (*waiter, *Error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.free > 0 {
		q.free--
		return nil, nil
	}
	if len(q.tenants[tenant]) >= q.perTenant {
		return nil, fail(QueueFull, "%d calls of this tenant are waiting", q.perTenant)
	}
	if q.waiting >= q.total && !q.makeRoom(tenant) {
		return nil, fail(QueueFull, "%d calls are waiting", q.total)
	}
	w := &waiter{ready: make(chan struct{})}
	if len(q.tenants[tenant]) == 0 {
		q.turn = append(q.turn, tenant)
	}
	q.tenants[tenant] = append(q.tenants[tenant], w)
	q.waiting++
	return w, nil
}

// makeRoom pushes out the newest call of the tenant with most waiting, if that leaves it no worse off than the newcomer.
func (q *queue) makeRoom(newcomer string) bool {
	longest := ""
	for _, tenant := range q.turn {
		if longest == "" || len(q.tenants[tenant]) > len(q.tenants[longest]) {
			longest = tenant
		}
	}
	all := q.tenants[longest]
	if len(all) < len(q.tenants[newcomer])+2 {
		return false
	}
	w := all[len(all)-1]
	q.tenants[longest] = all[:len(all)-1]
	q.waiting--
	w.pushedOut = true
	close(w.ready)
	return true
}

// release gives the slot to the first waiter of the tenant whose turn it is.
func (q *queue) release() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.waiting == 0 {
		q.free++
		return
	}
	tenant := q.turn[0]
	q.turn = q.turn[1:]
	w := q.tenants[tenant][0]
	q.keep(tenant, q.tenants[tenant][1:])
	if len(q.tenants[tenant]) > 0 {
		q.turn = append(q.turn, tenant)
	}
	q.waiting--
	close(w.ready)
}

// abandon gives up a place. If a slot was handed over at the same moment, it goes on to the next.
func (q *queue) abandon(tenant string, w *waiter) {
	q.mu.Lock()
	for i, other := range q.tenants[tenant] {
		if other != w {
			continue
		}
		rest := append(q.tenants[tenant][:i:i], q.tenants[tenant][i+1:]...)
		q.keep(tenant, rest)
		q.waiting--
		if len(rest) == 0 {
			q.leave(tenant)
		}
		q.mu.Unlock()
		return
	}
	pushedOut := w.pushedOut
	q.mu.Unlock()
	if !pushedOut {
		q.release()
	}
}

func (q *queue) keep(tenant string, waiters []*waiter) {
	if len(waiters) == 0 {
		delete(q.tenants, tenant)
		return
	}
	q.tenants[tenant] = waiters
}

func (q *queue) leave(tenant string) {
	for i, other := range q.turn {
		if other == tenant {
			q.turn = append(q.turn[:i:i], q.turn[i+1:]...)
			return
		}
	}
}
