package console

import (
	"net"
	"strings"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// Attempts to sign in that fail: a burst from one address and then one in 12 s; a burst from everywhere and then one a
// second. A secret has at least 32 characters, so this keeps the log readable more than it keeps guesses out.
const (
	burstOfOne   = 5
	everyOfOne   = 12 * time.Second
	burstOfAll   = 60
	everyOfAll   = time.Second
	maxAddresses = 1024
)

// limiter bounds how often somebody may try to sign in.
type limiter struct {
	clock clock.PassiveClock
	mu    sync.Mutex
	all   bucket
	each  map[string]*bucket
}

// bucket holds attempts. It is full at first and fills up again, one in every interval.
type bucket struct {
	used  float64
	since time.Time
}

func newLimiter(c clock.PassiveClock) *limiter {
	return &limiter{clock: c, each: map[string]*bucket{}}
}

// take takes one attempt of an address. Not ok: wait says how long until there is one.
func (l *limiter) take(address string) (wait time.Duration, ok bool) {
	now := l.clock.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	own := l.of(address, now)
	l.all.drain(now, everyOfAll)
	own.drain(now, everyOfOne)
	wait = max(l.all.wait(burstOfAll, everyOfAll), own.wait(burstOfOne, everyOfOne))
	if wait > 0 {
		return wait, false
	}
	l.all.used++
	own.used++
	return 0, true
}

// giveBack gives back what take took: the attempt was no failure.
func (l *limiter) giveBack(address string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all.used = max(0, l.all.used-1)
	if b := l.each[address]; b != nil {
		b.used = max(0, b.used-1)
	}
}

// of finds the bucket of an address. When there are too many, those that are full again go; if none is, the address
// counts as all others that found no place.
func (l *limiter) of(address string, now time.Time) *bucket {
	if b := l.each[address]; b != nil {
		return b
	}
	if len(l.each) >= maxAddresses {
		for a, b := range l.each {
			if b.drain(now, everyOfOne); b.used == 0 {
				delete(l.each, a)
			}
		}
	}
	if len(l.each) >= maxAddresses {
		address = ""
		if b := l.each[address]; b != nil {
			return b
		}
	}
	b := &bucket{since: now}
	l.each[address] = b
	return b
}

func (b *bucket) drain(now time.Time, every time.Duration) {
	b.used = max(0, b.used-float64(now.Sub(b.since))/float64(every))
	b.since = now
}

func (b *bucket) wait(burst float64, every time.Duration) time.Duration {
	return time.Duration(max(0, b.used+1-burst) * float64(every))
}

// addressOf is a request's other end, without its port.
func addressOf(remote string) string {
	host, _, err := net.SplitHostPort(remote)
	if err != nil {
		return remote
	}
	return host
}

func hostName(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return name
	}
	return strings.Trim(host, "[]")
}
