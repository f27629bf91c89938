package audit

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"k8s.io/utils/clock"
)

// Summary of a log whose chain holds.
type Summary struct {
	// Records in the log, and how many of them are of kind recovered.
	Records   uint64 `json:"records"`
	Recovered uint64 `json:"recovered"`
	// Head of the chain. Compare it with one that was kept outside the log.
	Head Head `json:"head"`
	// Checkpoints in the log. Signed is the last line under one whose signature was checked, 0 if none was.
	Checkpoints uint64 `json:"checkpoints"`
	Signed      uint64 `json:"signed"`
	// Adopted is the last line of those that were taken over as they were, 0 if none were: what was signed later says
	// nothing of who wrote them.
	Adopted uint64 `json:"adopted"`
	// Dropped are files that the log says were removed, Labels what people said, Unrecorded decisions without a record.
	Dropped    uint64 `json:"dropped"`
	Labels     uint64 `json:"labels"`
	Unrecorded uint64 `json:"unrecorded"`
}

// What can be at fault with a log.
const (
	// BreakLine: a line is none of this log's lines.
	BreakLine = "line"
	// BreakSequence: a number is not the next one.
	BreakSequence = "sequence"
	// BreakPrevious: a line does not hold the digest of the line before.
	BreakPrevious = "previous"
	// BreakHead: a line is not the one that was noted down.
	BreakHead = "head"
	// BreakTorn: the last line is not finished.
	BreakTorn = "torn"
	// BreakCheckpoint: a line is not the one that a checkpoint, in the log or outside, has signed.
	BreakCheckpoint = "checkpoint"
	// BreakSignature: a signature is not that of its key.
	BreakSignature = "signature"
	// BreakKey: a checkpoint is signed with a key that is not known.
	BreakKey = "key"
	// BreakCut: lines are missing at the end.
	BreakCut = "cut"
	// BreakUnsigned: more lines at the end are without a signature than a gate leaves so.
	BreakUnsigned = "unsigned"
)

// Break says where the chain breaks.
type Break struct {
	// Line counts from 1, Offset is its first byte.
	Line   int64
	Offset int64
	// What is at fault, one of the constants.
	What            string
	Expected, Found string
	// From is the first record that may have been changed, if it can lie before this line; 0 if not.
	From uint64
}

// Error names the place.
func (b *Break) Error() string {
	return fmt.Sprintf("line %d at byte %d: %s: expected %s, found %s", b.Line, b.Offset, b.What, b.Expected, b.Found)
}

// Verify reads a log from its first line and checks that every line is complete, numbered without a gap, and holds the
// digest of the line before. It returns what holds up to there and a *Break where the chain breaks. It cannot see that
// whole lines are missing at the end, or that all of it was written anew: that takes a Verifier.
func Verify(r io.Reader) (Summary, error) { return VerifyFrom(r, Head{}) }

// VerifyFrom is Verify for a part of a log that follows after.
func VerifyFrom(r io.Reader, after Head) (Summary, error) { return VerifyKept(r, after, Head{}) }

// VerifyKept is VerifyFrom that also wants the line with the number of a head that was kept outside the log to have its
// digest still. A log that ends before that line shows in Summary.Head.
func VerifyKept(r io.Reader, after, kept Head) (Summary, error) {
	v := Verifier{strict: true, kept: map[uint64]string{}, total: Summary{Head: after}}
	if kept.Seq > 0 {
		v.kept[kept.Seq] = kept.Digest
	}
	return v.Part(r)
}

// Evidence is what a log is checked against.
type Evidence struct {
	// Heads that were noted down: the lines with these numbers must still have these digests.
	Heads []Head
	// Checkpoints that were kept outside the log.
	Checkpoints []Checkpoint
	// Keys that checkpoints are signed with. Nil: signatures are not checked, and show nothing.
	Keys PublicKeys
	// Now is the time by which records have gone without a signature for too long; the time of NewVerifier by default.
	// For a copy of a log it is when it was copied.
	Now time.Time
}

// How much at the end of a log may be without a signature before that is a break: well over what a gate leaves so when it
// is killed under load.
const (
	MaxUnsigned    = 32768
	MaxUnsignedFor = 10 * time.Minute
)

// Verifier goes through the parts of one chain, oldest first.
type Verifier struct {
	evidence Evidence
	strict   bool // the first line has to follow total.Head
	kept     map[uint64]string
	signedAt map[uint64]Checkpoint // kept outside the log
	furthest Head                  // of what was kept outside

	total  Summary
	anchor Head // what the first line follows, if it is not the beginning
	// isAnchored says that something vouches for the anchor: a record that says that what lies before was dropped, or
	// what was kept outside.
	isAnchored bool
	sure       uint64 // the last line that something beside the chain vouches for
	parts      int
	signedTime time.Time // of the last checkpoint whose signature was checked
	began      time.Time // of the first record
	last       []byte    // line

	// of the part
	part   Summary
	line   int64
	offset int64
}

// NewVerifier checks the evidence itself: a checkpoint that none of the keys has signed is an error.
func NewVerifier(e Evidence) (*Verifier, error) {
	v := &Verifier{evidence: e, kept: map[uint64]string{}, signedAt: map[uint64]Checkpoint{}, isAnchored: true}
	if e.Now.IsZero() {
		v.evidence.Now = clock.RealClock{}.Now()
	}
	for _, h := range e.Heads {
		v.kept[h.Seq] = h.Digest
		v.reach(h)
	}
	for i := range e.Checkpoints {
		c := &e.Checkpoints[i]
		if e.Keys != nil {
			known, good := c.check(e.Keys)
			if !known {
				return nil, fmt.Errorf("the checkpoint of line %d is signed with key %s, which is not among the keys given", c.Seq, c.KID)
			}
			if !good {
				return nil, fmt.Errorf("the checkpoint of line %d has a signature that is not that of key %s: it was changed or made up", c.Seq, c.KID)
			}
		}
		if had, ok := v.signedAt[c.Seq]; ok && had.Digest != c.Digest {
			return nil, fmt.Errorf("two checkpoints say different things of line %d: they are of two logs", c.Seq)
		}
		v.signedAt[c.Seq] = *c
		v.reach(c.Head)
	}
	return v, nil
}

func (v *Verifier) reach(h Head) {
	if h.Seq > v.furthest.Seq {
		v.furthest = h
	}
}

// Total is what holds of all parts so far.
func (v *Verifier) Total() Summary { return v.total }

// Part reads the next part. After an error the chain is broken.
func (v *Verifier) Part(r io.Reader) (Summary, error) {
	v.part = Summary{Head: v.total.Head}
	v.line, v.offset = 0, 0
	v.parts++
	in := bufio.NewReaderSize(r, MaxRecord+1)
	for {
		line, err := in.ReadSlice('\n')
		if err == io.EOF && len(line) == 0 {
			return v.part, nil
		}
		v.line++
		if err := v.check(line, err); err != nil {
			return v.part, err
		}
		v.offset += int64(len(line))
	}
}

// End says whether all parts together are whole.
func (v *Verifier) End() (Summary, error) {
	v.line, v.offset = 0, 0
	head := v.total.Head
	if !v.isAnchored {
		v.line = 1
		return v.total, v.broken(BreakSequence, "1", strconv.FormatUint(v.anchor.Seq+1, 10))
	}
	if head.Seq < v.furthest.Seq {
		return v.total, v.broken(BreakCut, "at least "+strconv.FormatUint(v.furthest.Seq, 10), strconv.FormatUint(head.Seq, 10))
	}
	return v.total, v.checkSigned()
}

// checkSigned wants the end of the log to be signed up to what a gate may have left. A log in which nothing is signed may
// be as old as that: times that records give themselves are nothing to go by, so the age is by the verifier's clock too.
func (v *Verifier) checkSigned() error {
	if v.evidence.Keys == nil || v.total.Head.Seq == v.total.Signed {
		return nil
	}
	unsigned := v.total.Head.Seq - max(v.total.Signed, v.anchor.Seq)
	last, err := Decode(v.last)
	if err != nil {
		return err
	}
	since := v.signedTime
	if v.total.Signed == 0 {
		since = v.began
	}
	age := v.evidence.Now.Sub(since)
	isLate := last.Time.Sub(since) > MaxUnsignedFor || age > MaxUnsignedFor || v.total.Signed == 0 && age < -MaxUnsignedFor
	if unsigned <= MaxUnsigned && !isLate {
		return nil
	}
	return &Break{What: BreakUnsigned, From: v.sure + 1, Expected: "a checkpoint", Found: fmt.Sprintf("%d records without one", unsigned)}
}

func (v *Verifier) check(line []byte, err error) error {
	switch {
	case errors.Is(err, bufio.ErrBufferFull):
		return v.broken(BreakLine, "at most "+strconv.Itoa(MaxRecord)+" bytes", "more")
	case errors.Is(err, io.EOF):
		return v.broken(BreakTorn, "a line feed", strconv.Itoa(len(line))+" bytes without one")
	case err != nil:
		return fmt.Errorf("reading line %d: %w", v.line, err)
	}
	line = line[:len(line)-1]
	head, ok := parseHead(line)
	if !ok || !json.Valid(line) {
		return v.broken(BreakLine, "an entry of version "+strconv.Itoa(Version), "something else")
	}
	if err := v.follows(head); err != nil {
		return err
	}
	now := Head{Seq: head.seq, Digest: lineDigest(line)}
	if err := v.compare(now); err != nil {
		return err
	}
	if err := v.read(head, line); err != nil {
		return err
	}
	if v.total.Records == 0 {
		first, err := Decode(line)
		if err != nil {
			return v.broken(BreakLine, "an entry of version "+strconv.Itoa(Version), "something else")
		}
		v.began = first.Time
	}
	v.part.Head, v.total.Head = now, now
	v.part.Records++
	v.total.Records++
	v.last = append(v.last[:0], line...)
	return nil
}

// follows says whether a line comes behind the one before. The first of all may begin anywhere, if something vouches for
// what it follows.
func (v *Verifier) follows(head lineHead) error {
	before := v.total.Head
	if before == (Head{}) {
		before.Digest = noDigest
	}
	if v.total.Records == 0 && !v.strict && head.seq > 1 {
		v.anchor = Head{Seq: head.seq - 1, Digest: head.prev}
		c := v.signedAt[v.anchor.Seq]
		v.isAnchored = v.kept[v.anchor.Seq] == head.prev || c.Digest == head.prev
		v.sure = v.anchor.Seq
		if c.Digest == head.prev {
			v.vouch(c.Seq, c.Time)
		}
		return nil
	}
	switch {
	case head.seq != before.Seq+1 && !v.strict && !v.isAnchored && v.line == 1:
		return v.broken(BreakSequence, "1", strconv.FormatUint(v.anchor.Seq+1, 10))
	case head.seq != before.Seq+1:
		return v.broken(BreakSequence, strconv.FormatUint(before.Seq+1, 10), strconv.FormatUint(head.seq, 10))
	case head.prev != before.Digest:
		return v.broken(BreakPrevious, before.Digest, head.prev)
	}
	return nil
}

// compare holds a line against what was kept outside the log.
func (v *Verifier) compare(now Head) error {
	if want, ok := v.kept[now.Seq]; ok {
		if want != now.Digest {
			return v.rewritten(BreakHead, want, now.Digest)
		}
		v.sure = now.Seq
	}
	if want, ok := v.signedAt[now.Seq]; ok {
		if want.Digest != now.Digest {
			return v.rewritten(BreakCheckpoint, want.Digest, now.Digest)
		}
		v.vouch(now.Seq, want.Time)
	}
	return nil
}

// read looks into the records of the log itself.
func (v *Verifier) read(head lineHead, line []byte) error {
	switch head.kind {
	case KindRecovered:
		v.part.Recovered++
		v.total.Recovered++
		return nil
	case KindAdopted:
		v.part.Adopted, v.total.Adopted = head.seq-1, head.seq-1
		return nil
	case KindCheckpoint, KindDropped, KindUnrecorded, KindLabel:
	default:
		return nil
	}
	e, err := Decode(line)
	if err != nil {
		return v.broken(BreakLine, "a record of kind "+head.kind, "something else")
	}
	switch {
	case head.kind == KindCheckpoint && e.Checkpoint != nil:
		return v.checkpoint(&e)
	case head.kind == KindDropped && e.Dropped != nil:
		v.part.Dropped++
		v.total.Dropped++
		v.isAnchored = v.isAnchored || e.Dropped.Through == v.anchor
	case head.kind == KindUnrecorded:
		v.part.Unrecorded += e.Unrecorded
		v.total.Unrecorded += e.Unrecorded
	case head.kind == KindLabel:
		v.part.Labels++
		v.total.Labels++
	}
	return nil
}

func (v *Verifier) checkpoint(e *Entry) error {
	c := e.Checkpoint
	v.part.Checkpoints++
	v.total.Checkpoints++
	if want := (Head{Seq: e.Seq - 1, Digest: e.Prev}); c.Head != want {
		return v.rewritten(BreakCheckpoint, c.Head.String(), want.String())
	}
	if v.evidence.Keys == nil {
		return nil
	}
	known, good := c.check(v.evidence.Keys)
	switch {
	case !known:
		return v.rewritten(BreakKey, "a key that was given", "key "+c.KID)
	case !good:
		return v.rewritten(BreakSignature, "the signature of key "+c.KID, "another one")
	}
	v.vouch(e.Seq, c.Time)
	return nil
}

// vouch notes that a checkpoint stands for all lines up to seq. Without keys its time says nothing.
func (v *Verifier) vouch(seq uint64, at time.Time) {
	v.sure = seq
	if v.evidence.Keys != nil {
		v.signedTime = at
		v.part.Signed, v.total.Signed = seq, seq
	}
}

func (v *Verifier) broken(what, expected, found string) *Break {
	return &Break{Line: v.line, Offset: v.offset, What: what, Expected: expected, Found: found}
}

// rewritten is a break whose cause may lie anywhere behind the last line that something vouches for.
func (v *Verifier) rewritten(what, expected, found string) *Break {
	b := v.broken(what, expected, found)
	b.From = v.sure + 1
	return b
}
