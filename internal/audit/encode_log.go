package audit

import "strconv"

// ofTheLog writes what records have that are not about a decision.
func (e *encoder) ofTheLog(r *Record) {
	if t := r.Torn; t != nil {
		mark := e.object("torn")
		e.always("file", t.File)
		e.integer("bytes", t.Bytes)
		e.closeObject(mark)
	}
	if c := r.Checkpoint; c != nil {
		mark := e.object("checkpoint")
		e.head(c.Head)
		e.always("time", c.Time.UTC().Format(timeFormat))
		e.always("kid", c.KID)
		e.always("signature", c.Signature)
		e.closeObject(mark)
	}
	if t := r.Rotated; t != nil {
		mark := e.object("rotated")
		e.always("file", t.File)
		e.through(t.Through)
		e.closeObject(mark)
	}
	if d := r.Dropped; d != nil {
		mark := e.object("dropped")
		e.always("file", d.File)
		e.integer("bytes", d.Bytes)
		e.unsigned("first", d.First)
		e.through(d.Through)
		e.always("why", d.Why)
		e.closeObject(mark)
	}
	if l := r.Label; l != nil {
		mark := e.object("label")
		e.always("decision", l.Decision)
		e.always("outcome", string(l.Outcome))
		e.always("by", l.By)
		e.text("messageDigest", l.MessageDigest)
		e.closeObject(mark)
	}
	if r.Unrecorded != 0 {
		e.unsigned("unrecorded", r.Unrecorded)
	}
}

// asked writes element i of the deciders.
func (e *encoder) asked(i int, a *Asked) {
	mark := e.element("deciders", i)
	e.always("policy", a.Policy)
	e.always("decider", a.Decider)
	if a.Audit {
		e.buf = append(e.buf, `,"audit":true`...)
	}
	e.answers(a.Answers)
	e.text("fingerprint", a.Fingerprint)
	e.text("modelHash", a.ModelHash)
	e.text("promptVersion", a.PromptVersion)
	e.number("ms", a.Milliseconds)
	e.text("error", a.Error)
	e.closeObject(mark)
}

func (e *encoder) through(h Head) {
	mark := e.object("through")
	e.head(h)
	e.closeObject(mark)
}

func (e *encoder) head(h Head) {
	e.unsigned("seq", h.Seq)
	e.always("digest", h.Digest)
}

// object starts a member that is an object.
func (e *encoder) object(name string) (mark int) {
	e.name(name)
	e.buf = append(e.buf, '{')
	return len(e.buf)
}

func (e *encoder) integer(name string, n int64) {
	e.name(name)
	e.buf = strconv.AppendInt(e.buf, n, 10)
}

func (e *encoder) unsigned(name string, n uint64) {
	e.name(name)
	e.buf = strconv.AppendUint(e.buf, n, 10)
}

// checkOfTheLog keeps text out of the places of digests and constants in what is not about a decision.
func (e *encoder) checkOfTheLog(r *Record) {
	for _, a := range r.Deciders {
		if !isConstant(a.Error) {
			e.fail("error of a decider is not a constant")
		}
	}
	if l := r.Label; l != nil && l.MessageDigest != "" && !isDigest(l.MessageDigest) {
		e.fail("messageDigest is not a digest")
	}
	if r.Captured != "" && r.Captured != "Plain" && r.Captured != "Encrypted" {
		e.fail("captured is neither Plain nor Encrypted")
	}
}
