package objects

import (
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
)

// What the manager needs to mirror and to clean up.

// UseLease is the name of the Lease by which the approval of a call was used.
func UseLease(callID string) string { return useName(callID) }

// UsedAt says when the approval was used whose Lease this is; nil without a Lease.
func UsedAt(l *coordinationv1.Lease) *time.Time { return madeAt(l) }

// LeaseGoesAt says when a Lease stands for nothing any more and can be deleted.
func LeaseGoesAt(l *coordinationv1.Lease) time.Time { return until(l).Add(leaseRetention) }
