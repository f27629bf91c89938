package objects

import (
	"context"
	"time"

	"gatewright.dev/gatewright/internal/approval"
)

// List gives the approvals of one namespace or, if that is empty, of all, as they stand in the API server. An object that
// is no approval of its namespace is left out: no gate goes by it.
func (c *Client) List(ctx context.Context, namespace string, now time.Time) ([]approval.Approval, error) {
	items, err := c.list(ctx, namespace, "", "")
	if err != nil {
		return nil, err
	}
	out := make([]approval.Approval, 0, len(items))
	for i := range items {
		if a, err := read(&items[i], nil, now); err == nil {
			out = append(out, a)
		}
	}
	return out, nil
}
