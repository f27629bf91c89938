package serve

import (
	"context"

	"k8s.io/utils/clock"

	"gatewright.dev/gatewright/internal/approval"
	"gatewright.dev/gatewright/internal/console"
	"gatewright.dev/gatewright/internal/records"
)

// openConsole puts the web page on the desk: who may decide there is who may decide here. It ends with the context, before
// the server does, which would wait for its streams.
func (d *desk) openConsole(ctx context.Context, r *records.Records) error {
	o := console.Options{Approvals: d.approvals, Identify: d.identify, Decided: d.metrics.decision, Clock: clock.RealClock{}, Log: d.log}
	if r.Path != "" { // a log in a stream, or on standard output, cannot be read back here
		o.Records, o.Label = console.FileRecords{Path: r.Path, End: r.Head}, d.labels.labeler.Give
	}
	page, err := console.New(o)
	if err != nil {
		return err
	}
	context.AfterFunc(ctx, page.Close)
	d.page = page
	return nil
}

// identify names who holds a secret.
func (d *desk) identify(secret string) (approval.Approver, bool) {
	name, ok := d.approvers.find(secret)
	return approval.Approver{Type: approval.LocalSecret, Name: name}, ok
}
