package objects_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/utils/clock"

	"gatewright.dev/gatewright/internal/approval"
	"gatewright.dev/gatewright/internal/kubetest"
)

// manyVariable set to 1 runs the measurement below, which takes some minutes.
const manyVariable = "GATEWRIGHT_MANY_APPROVALS"

// Ten thousand calls that wait in ten namespaces: as many as the limits allow. The limits hold, and what it costs is
// printed.
func TestTenThousandCallsWait(t *testing.T) {
	if os.Getenv(manyVariable) != "1" {
		t.Skip("measured only with " + manyVariable + "=1")
	}
	cluster := newCluster(t, kubetest.Own(t))
	store := cluster.open(t, clock.RealClock{}, seals(t, clock.RealClock{}))
	const namespaces, callers = 10, approval.MaxPendingPerNamespace / approval.MaxPendingPerCaller
	of := func(namespace, caller, n int) approval.Call {
		return live(fmt.Sprintf("orders.refund-%d", n), func(c *approval.Call) {
			c.Caller = fmt.Sprintf("many-%d/agent-%d", namespace, caller)
			c.ExpiresAt = c.RaisedAt.Add(time.Hour)
			c.UserRequest, c.ToolDescription = strings.Repeat("Please give back what was paid. ", 30), strings.Repeat("Gives money back. ", 20)
		})
	}
	before := heap()
	var group errgroup.Group
	group.SetLimit(16)
	took := make(chan time.Duration, namespaces*approval.MaxPendingPerNamespace)
	for namespace := range namespaces {
		cluster.EnsureNamespace(t, fmt.Sprintf("many-%d", namespace))
		for i := range approval.MaxPendingPerNamespace {
			group.Go(func() error {
				start := time.Now()
				_, err := store.Raise(t.Context(), of(namespace, i%callers, i))
				took <- time.Since(start)
				return err
			})
		}
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	close(took)
	report(t, "raising, 16 at once", slices.Collect(channel(took)))
	for namespace := range namespaces {
		for _, caller := range []int{0, callers} {
			time.Sleep(time.Second)
			if _, err := store.Raise(t.Context(), of(namespace, caller, -1)); !errors.Is(err, approval.ErrTooManyPending) {
				t.Errorf("one more of caller %d in namespace %d: %v, want ErrTooManyPending", caller, namespace, err)
			}
		}
	}
	t.Logf("etcd holds %s; a gate's heap grew by %d MB", etcdSize(t, cluster), (heap()-before)>>20)
	all, err := store.List(t.Context())
	if err != nil || len(all) != namespaces*approval.MaxPendingPerNamespace {
		t.Fatalf("List = %d, %v", len(all), err)
	}
	report(t, "List", repeat(t, 20, func(int) error { _, err := store.List(t.Context()); return err }))
	report(t, "Find of a call that nothing stands for", repeat(t, 1000, func(i int) error { _, err := store.Find(t.Context(), of(1, 1, -i-2).Binding); return err }))
	report(t, "Find of a call that waits", repeat(t, 200, func(i int) error { _, err := store.Find(t.Context(), all[i*7].Call.Binding); return err }))
	report(t, "Get", repeat(t, 100, func(i int) error { _, err := store.Get(t.Context(), all[i*7].Name); return err }))
	start := time.Now()
	cluster.open(t, clock.RealClock{}, seals(t, clock.RealClock{}))
	t.Logf("another gate's cache was filled after %s", time.Since(start).Round(time.Millisecond))
}

func channel[T any](c <-chan T) func(yield func(T) bool) {
	return func(yield func(T) bool) {
		for v := range c {
			if !yield(v) {
				return
			}
		}
	}
}

func repeat(t *testing.T, n int, do func(i int) error) []time.Duration {
	t.Helper()
	var took []time.Duration
	for i := range n {
		start := time.Now()
		if err := do(i); err != nil {
			t.Fatal(err)
		}
		took = append(took, time.Since(start))
	}
	return took
}

func report(t *testing.T, what string, took []time.Duration) {
	t.Helper()
	slices.Sort(took)
	t.Logf("%s: median %s, 99 %% under %s (%d)", what, took[len(took)/2], took[len(took)*99/100], len(took))
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func etcdSize(t *testing.T, cluster *cluster) string {
	t.Helper()
	answer, err := http.Get(cluster.EtcdURL() + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		if value, ok := strings.CutPrefix(line, "etcd_mvcc_db_total_size_in_use_in_bytes "); ok {
			return strings.TrimSpace(value) + " bytes"
		}
	}
	t.Fatal("etcd does not say how much it holds")
	return ""
}
