package serve

import (
	"context"
	"errors"
	"fmt"
	"time"

	review "gatewright.dev/gatewright/api/review/v1alpha1"
	"gatewright.dev/gatewright/internal/approval"
	"gatewright.dev/gatewright/internal/audit"
	"gatewright.dev/gatewright/internal/gate"
	"gatewright.dev/gatewright/internal/policy"
)

// errLostEnd says that the log of approvals no longer has what the audit log says became of one.
var errLostEnd = errors.New("the log of approvals has lost its end, or is an older copy")

// checkLostEnd holds the log of approvals against the audit log. No seal can show that lines are missing at the end, but
// each use and each rejection that was answered stands in the audit log too, which was durable before the answer left and
// whose own end is signed. An approval that is open here and was used or rejected there would count again. Where the audit
// log is in no file there is nothing to hold it against.
func checkLostEnd(ctx context.Context, path string, approvals *approval.File, now time.Time) error {
	if path == "" {
		return nil
	}
	open, since, err := openApprovals(ctx, approvals, now)
	if err != nil || len(open) == 0 {
		return err
	}
	return audit.QueryApprovals(ctx, path, since, func(e audit.Entry) error {
		a, ok := open[e.Approval.Name]
		if !ok || !hasEnded(&e) || e.Time.Before(a.Call.RaisedAt) { // a name may come again for another
			return nil
		}
		return fmt.Errorf("%w: record %d of the audit log says that %s was %s, and here it is still %s: find out what happened; to go on, move the log of approvals away, and people are asked again",
			errLostEnd, e.Seq, a.Name, map[bool]string{true: "used", false: "rejected"}[e.Outcome == review.Allow], a.State)
	})
}

// openApprovals are those that can still be used, by name, with the time at which the first of them was raised.
func openApprovals(ctx context.Context, approvals *approval.File, now time.Time) (open map[string]*approval.Approval, since time.Time, err error) {
	all, err := approvals.List(ctx)
	if err != nil {
		return nil, time.Time{}, err
	}
	open, since = map[string]*approval.Approval{}, now
	for i := range all {
		a := &all[i]
		if a.State != approval.Pending && a.State != approval.Approved {
			continue
		}
		open[a.Name] = a
		if a.Call.RaisedAt.Before(since) {
			since = a.Call.RaisedAt
		}
	}
	return open, since, nil
}

// hasEnded says whether a record tells of a use or of a rejection. A dry run uses nothing.
func hasEnded(e *audit.Entry) bool {
	used := e.Outcome == review.Allow && e.Reason == string(policy.ReasonApproved) && !e.DryRun
	return used || e.Reason == string(gate.ReasonApprovalRejected)
}
