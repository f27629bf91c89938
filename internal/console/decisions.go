package console

import (
	"context"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	review "gatewright.dev/gatewright/api/review/v1alpha1"
	"gatewright.dev/gatewright/internal/audit"
)

const (
	// maxReaders is how many read the record at the same time. A reader holds a processor for as long as it looks.
	maxReaders = 2
	// maxLooked is how many entries one page looks through, and lookFor how long it may take.
	maxLooked = 20_000
	lookFor   = 3 * time.Second
	// pageRows is how many decisions one page lists.
	pageRows = 50
	// maxOffered bounds what a field of the filter offers to choose from.
	maxOffered = 100
)

// filter is what the person has asked to see.
type filter struct {
	audit.Filter
	// Text that stands somewhere in the entry, whatever its case.
	Text string
	// Before is the number of an entry: only older ones are listed. 0: all.
	Before uint64
	// Problem says what is wrong with it.
	Problem string
}

func readFilter(q url.Values) filter {
	get := func(name string) string { return strings.TrimSpace(q.Get(name)) }
	f := filter{Filter: audit.Filter{
		Tool: get("tool"), Caller: get("caller"), Reason: get("reason"), Class: get("class"), By: get("by"), Kind: audit.KindDecision,
	}, Text: get("text")}
	for _, o := range q["outcome"] {
		f.Outcomes = append(f.Outcomes, review.Outcome(o))
	}
	if before := get("before"); before != "" {
		n, err := strconv.ParseUint(before, 10, 64)
		if err != nil {
			f.Problem = "before is the number of a record"
		}
		f.Before = n
	}
	if err := f.Validate(); err != nil {
		f.Problem = err.Error()
	}
	return f
}

// Has says whether an outcome was asked for by name.
func (f filter) Has(o string) bool { return slices.Contains(f.Outcomes, review.Outcome(o)) }

func (f *filter) matches(e *audit.Entry) bool {
	if !f.Matches(e) {
		return false
	}
	if f.Text == "" {
		return true
	}
	text := strings.ToLower(f.Text)
	approvalName := ""
	if e.Approval != nil {
		approvalName = e.Approval.Name + "\n" + e.Approval.By
	}
	all := strings.Join([]string{
		e.ID, e.UID, e.Tool, e.Server, e.Reason, e.By, e.OnBehalfOf, e.Session, e.Class, e.Decider, e.DeciderError, e.ArgumentsDigest,
		e.Caller.Namespace + "/" + e.Caller.ServiceAccount, strings.Join(e.Policies, "\n"), approvalName,
	}, "\n")
	return strings.Contains(strings.ToLower(all), text)
}

// query is the filter as a query, to go on from an entry. Every part of it is escaped.
func (f *filter) query(before uint64) template.URL {
	q := url.Values{}
	for name, v := range map[string]string{"tool": f.Tool, "caller": f.Caller, "reason": f.Reason, "class": f.Class, "by": f.By, "text": f.Text} {
		if v != "" {
			q.Set(name, v)
		}
	}
	for _, o := range f.Outcomes {
		q.Add("outcome", string(o))
	}
	q.Set("before", strconv.FormatUint(before, 10))
	return template.URL(q.Encode()) //nolint:gosec // Encode leaves nothing that ends an attribute or a query
}

type decisionsPage struct {
	Filter   filter
	Outcomes []string
	Rows     []audit.Entry
	// Older is the query for the next page, if there is one.
	Older template.URL
	// Looked is how many entries were looked at, back to Since; IsPartial says that there are more in the log.
	Looked    int
	Since     time.Time
	IsPartial bool
	Matching  int
	Charts    charts
	Offers    offers
}

// mayReadNow takes a place among those who read the record. Where there is none it says so.
func (h *Handler) mayReadNow(w http.ResponseWriter, r *http.Request) (done func(), ok bool) {
	select {
	case h.reading <- struct{}{}:
		return func() { <-h.reading }, true
	default:
		h.fail(w, r, http.StatusServiceUnavailable, "Others are reading the record just now. Try again in a moment.")
		return nil, false
	}
}

// offers are values of the entries that were looked at, for the fields of the filter.
type offers struct{ Tools, Callers, Reasons, Classes []string }

func (h *Handler) decisions(w http.ResponseWriter, r *http.Request) {
	if h.hidesRecords(w, r) {
		return
	}
	f := readFilter(r.URL.Query())
	page := decisionsPage{Filter: f, Outcomes: []string{string(review.Allow), string(review.Clarify), string(review.Confirm), string(review.Block)}}
	if f.Problem == "" {
		done, ok := h.mayReadNow(w, r)
		if !ok {
			return
		}
		defer done()
		if err := h.look(r.Context(), &page); err != nil {
			h.unreadable(w, r, "the decision record", err)
			return
		}
	}
	h.show(w, r, http.StatusOK, "decisions", frame{Title: "Decisions", Here: "decisions", Problem: f.Problem, Body: page})
}

// look goes through the newest entries and keeps what the page shows.
func (h *Handler) look(ctx context.Context, p *decisionsPage) error {
	started := h.Clock.Now()
	var found []measured
	seen := map[string]map[string]bool{"tool": {}, "caller": {}, "reason": {}, "class": {}}
	err := h.Records.Newest(ctx, func(e audit.Entry) bool {
		if p.Looked == maxLooked || p.Looked%256 == 255 && h.Clock.Since(started) > lookFor {
			p.IsPartial = true
			return false
		}
		p.Looked++
		p.Since = e.Time
		if e.Kind != audit.KindDecision {
			return true
		}
		for name, v := range map[string]string{"tool": e.Tool, "caller": e.Caller.Namespace + "/" + e.Caller.ServiceAccount, "reason": e.Reason, "class": e.Class} {
			if v != "" && len(seen[name]) < maxOffered {
				seen[name][v] = true
			}
		}
		if !p.Filter.matches(&e) {
			return true
		}
		found = append(found, measured{e.Time, e.Outcome, e.Milliseconds})
		switch {
		case p.Filter.Before != 0 && e.Seq >= p.Filter.Before:
		case len(p.Rows) < pageRows:
			p.Rows = append(p.Rows, e)
		case p.Older == "":
			p.Older = p.Filter.query(p.Rows[len(p.Rows)-1].Seq)
		}
		return true
	})
	p.Matching = len(found)
	p.Charts = draw(found)
	p.Offers = offers{sortedKeys(seen["tool"]), sortedKeys(seen["caller"]), sortedKeys(seen["reason"]), sortedKeys(seen["class"])}
	return err
}

func sortedKeys(m map[string]bool) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}
