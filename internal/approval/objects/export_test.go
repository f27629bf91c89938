package objects

import "time"

// GuardLag is how much older than an approval the admission policy has to be.
const GuardLag = guardLag

// WithGuardLag lets a test wait for less than GuardLag.
func (s *Store) WithGuardLag(lag time.Duration) *Store {
	s.guard.lag = lag
	return s
}

// Normal is a call as an object holds it.
var Normal = normal

// HasSeenRejection says whether the cache has the Lease of a rejection.
func (s *Store) HasSeenRejection(callKey string) bool {
	return len(s.seen.rejections(callKey, s.now())) > 0
}
