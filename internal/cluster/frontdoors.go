package cluster

import (
	"context"
	"log/slog"
	"net/http"

	"k8s.io/utils/clock"

	"gatewright.dev/gatewright/internal/approval"
	"gatewright.dev/gatewright/internal/approverapi"
	"gatewright.dev/gatewright/internal/shares"
)

// maxVerdicts bounds how many decisions of front doors the API server is asked about at once. A namespace gets half of them.
const maxVerdicts = 16

// KnownApprovals are approvals that a cache knows before the API server is asked.
type KnownApprovals interface {
	approverapi.Approvals
	// Known gives a sealed approval as the cache has it, a moment late, or ErrNotFound.
	Known(name string) (approval.Approval, error)
}

// FrontDoors decides approvals for users that the API server does not know, by what their front doors have signed, and by
// nothing else: no token of a caller decides. The signature is verified here and again when the approval is used. Until it
// was, nothing is asked of the API server and no place is taken, however slowly a request comes in. Who may send a request is
// for whoever serves it to say.
func FrontDoors(all KnownApprovals, c clock.PassiveClock, log *slog.Logger) http.Handler {
	if c == nil {
		c = clock.RealClock{}
	}
	places := shares.New(maxVerdicts)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		one := &signed{KnownApprovals: all, places: places, clock: c}
		approverapi.New(approverapi.Options{Approvals: one, Clock: c, Log: log}).Decide(w, r)
	})
}

// signed is how one request sees approvals: as the cache has them until it has decided one, and then as that has become.
type signed struct {
	KnownApprovals
	places  *shares.Shares
	clock   clock.PassiveClock
	decided *approval.Approval
}

// Get implements approverapi.Approvals.
func (s *signed) Get(_ context.Context, name string) (approval.Approval, error) {
	if s.decided != nil {
		return *s.decided, nil
	}
	return s.Known(name)
}

// Decide implements approverapi.Approvals. The decision has been read from evidence that holds.
func (s *signed) Decide(ctx context.Context, name string, d approval.Decision) error {
	known, err := s.Known(name)
	switch {
	case err != nil:
		return err
	case known.State == approval.Expired:
		return approval.ErrExpired
	case known.State != approval.Pending:
		return approval.ErrDecided
	}
	if err := known.Call.Approvers.Check(known.ID, &known.Call, &d, s.clock.Now()); err != nil {
		return err
	}
	namespace, _ := known.Call.Namespace()
	if !s.places.Take(namespace) {
		return approverapi.ErrOverloaded
	}
	defer s.places.Give(namespace)
	if err := s.KnownApprovals.Decide(ctx, name, d); err != nil {
		return err
	}
	after, err := s.KnownApprovals.Get(ctx, name)
	if err == nil {
		s.decided = &after
	}
	return err
}
