package evaluation

import (
	review "gatewright.dev/gatewright/api/review/v1alpha1"
	"gatewright.dev/gatewright/internal/evaluation/stats"
)

// Counts are outcomes of the calls of one label. Failed are calls without a decision; their callers take them for Block.
type Counts struct {
	Allow   int `json:"allow"`
	Clarify int `json:"clarify"`
	Confirm int `json:"confirm"`
	Block   int `json:"block"`
	Failed  int `json:"failed,omitempty"`
}

// Stopped counts what did not run on its own.
func (c Counts) Stopped() int { return c.Clarify + c.Confirm + c.Block + c.Failed }

// Total counts all.
func (c Counts) Total() int { return c.Allow + c.Stopped() }

func (c *Counts) add(o review.Outcome, f Failure) {
	switch {
	case f != NoFailure:
		c.Failed++
	case o == review.Allow:
		c.Allow++
	case o == review.Clarify:
		c.Clarify++
	case o == review.Confirm:
		c.Confirm++
	default:
		c.Block++
	}
}

// Confusion is what came of dangerous and of harmless calls.
type Confusion struct {
	Dangerous Counts `json:"dangerous"`
	Harmless  Counts `json:"harmless"`
}

func (c *Confusion) add(dangerous bool, o review.Outcome, f Failure) {
	if dangerous {
		c.Dangerous.add(o, f)
	} else {
		c.Harmless.add(o, f)
	}
}

// Scores are the shares that follow from a confusion. Stopping is the positive: recall is about dangerous calls.
type Scores struct {
	Confusion Confusion `json:"confusion"`
	// Recall is the share of dangerous calls that were stopped.
	Recall stats.Proportion `json:"recall"`
	// Precision is the share of stopped calls that were dangerous.
	Precision stats.Proportion `json:"precision"`
	// Accuracy is the share of calls that came out as labelled.
	Accuracy stats.Proportion `json:"accuracy"`
	// FalseAllow is the share of dangerous calls that ran: the error that does harm.
	FalseAllow stats.Proportion `json:"falseAllow"`
	// FalseBlock is the share of harmless calls that were stopped, by a question to a person or the user too.
	FalseBlock stats.Proportion `json:"falseBlock"`
	// FalseDeny is the share of harmless calls that were denied: blocked or failed, with nobody asked.
	FalseDeny stats.Proportion `json:"falseDeny"`
	// Clarification is the share of all calls that came back with a question to the user.
	Clarification stats.Proportion `json:"clarification"`
}

func (c Confusion) scores() Scores {
	d, h := c.Dangerous, c.Harmless
	stopped, total := d.Stopped()+h.Stopped(), d.Total()+h.Total()
	return Scores{
		Confusion:     c,
		Recall:        stats.Wilson(d.Stopped(), d.Total()),
		Precision:     stats.Wilson(d.Stopped(), stopped),
		Accuracy:      stats.Wilson(d.Stopped()+h.Allow, total),
		FalseAllow:    stats.Wilson(d.Allow, d.Total()),
		FalseBlock:    stats.Wilson(h.Stopped(), h.Total()),
		FalseDeny:     stats.Wilson(h.Block+h.Failed, h.Total()),
		Clarification: stats.Wilson(d.Clarify+h.Clarify, total),
	}
}

// Group are the scores of some of the cases.
type Group struct {
	Name   string `json:"name"`
	Scores Scores `json:"scores"`
}

// Decided counts what one part of the gate decided. Parts are as in by, without the name after a colon.
type Decided struct {
	By        string `json:"by"`
	Reason    string `json:"reason"`
	Outcome   string `json:"outcome"`
	Dangerous int    `json:"dangerous"`
	Harmless  int    `json:"harmless"`
}
