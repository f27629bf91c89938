package audit

import (
	"path/filepath"
	"testing"
	"time"
)

func BenchmarkEncode(b *testing.B) {
	r := full()
	b.ReportAllocs()
	for b.Loop() {
		e, err := newEntry(r)
		if err != nil {
			b.Fatal(err)
		}
		e.encoder.release()
	}
}

func BenchmarkAppend(b *testing.B) {
	f, err := Open(filepath.Join(b.TempDir(), "audit.log"), Options{})
	if err != nil {
		b.Fatal(err)
	}
	r := full()
	b.ReportAllocs()
	for b.Loop() {
		if err := f.Append(b.Context(), r); err != nil {
			b.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		b.Fatal(err)
	}
}

func BenchmarkAppendParallel(b *testing.B) {
	f, err := Open(filepath.Join(b.TempDir(), "audit.log"), Options{})
	if err != nil {
		b.Fatal(err)
	}
	ctx := b.Context()
	b.SetParallelism(64)
	b.ReportAllocs()
	started := time.Now()
	b.RunParallel(func(pb *testing.PB) {
		r := full()
		for pb.Next() {
			if err := f.Append(ctx, r); err != nil {
				b.Error(err)
				return
			}
		}
	})
	s := f.Stats()
	b.ReportMetric(float64(s.Records)/time.Since(started).Seconds(), "records/s")
	b.ReportMetric(float64(s.Records)/float64(s.Batches), "records/batch")
	if err := f.Close(); err != nil {
		b.Fatal(err)
	}
}

// TestEncodeAllocates pins what encoding costs once the pools are warm: the entry.
func TestEncodeAllocates(t *testing.T) {
	r := full()
	if got := testing.AllocsPerRun(1000, func() {
		e, err := newEntry(r)
		if err != nil {
			t.Fatal(err)
		}
		e.encoder.release()
	}); got > 2 && !raceEnabled {
		t.Errorf("%v allocations, want at most 2", got)
	}
}
