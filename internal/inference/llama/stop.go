package llama

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"unsafe"
)

// isUpAddress is where the function lies that native code calls. It is set in assembly, and only on the processors that the
// library is built for.
var isUpAddress uintptr

// stopSign is how native code learns that nobody waits any longer for what it computes. It asks before each step, some
// hundred times in a piece, and reads the sign without Go: a call back into Go each time would let the scheduler wake other
// threads, which look for work and find none. That took 3 to 6 % of all processor time.
type stopSign struct {
	up  *atomic.Uint32 // 0 or 1
	pin runtime.Pinner // native code keeps the address
}

func newStopSign() (*stopSign, error) {
	if isUpAddress == 0 {
		return nil, errors.New("there is no library for this kind of processor")
	}
	s := &stopSign{up: new(atomic.Uint32)}
	s.pin.Pin(s.up)
	return s, nil
}

func (s *stopSign) address() uintptr {
	return uintptr(unsafe.Pointer(s.up)) //nolint:gosec // it is pinned
}

// watch puts the sign up when the context ends, until done is called.
func (s *stopSign) watch(ctx context.Context) (done func()) {
	finished := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		s.up.Store(1)
		close(finished)
	})
	return func() {
		if !stop() {
			<-finished // or it would be put up for the next request
		}
		s.up.Store(0)
	}
}

// free may be called when no native code has the address any longer.
func (s *stopSign) free() { s.pin.Unpin() }
