package audit

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Head is the end of the chain: the number of the last line and its digest.
// Kept outside the log it shows that lines were cut off, or that the whole log
// was written anew, which the chain alone cannot show.
type Head struct {
	Seq uint64 `json:"seq"`
	// Digest of the line, without its line feed.
	Digest string `json:"digest"`
}

// String gives the form to note down, as in 7:sha256:9f86...
func (h Head) String() string { return strconv.FormatUint(h.Seq, 10) + ":" + h.Digest }

// ParseHead reads what String gives.
func ParseHead(s string) (Head, error) {
	digits, digest, _ := strings.Cut(s, ":")
	seq, err := strconv.ParseUint(digits, 10, 64)
	if err != nil || seq == 0 || len(digest) != len(noDigest) || !strings.HasPrefix(digest, "sha256:") || !isDigest(digest) {
		return Head{}, errors.New("want a number, a colon and a digest, as in 7:sha256:... with 64 hexadecimal digits")
	}
	return Head{Seq: seq, Digest: digest}, nil
}

// noDigest is what the first line has as prev.
const noDigest = "sha256:0000000000000000000000000000000000000000000000000000000000000000"

const (
	headStart = `{"v":1,"seq":`
	headPrev  = `,"prev":"`
	headEnd   = `",`
	kindStart = `"kind":"`
	// maxHead: no head is longer; a sequence number has at most 20 digits.
	maxHead = len(headStart) + 20 + len(headPrev) + len(noDigest) + len(headEnd)
)

// appendHead starts a line; the members of the record follow.
func appendHead(dst []byte, seq uint64, prev string) []byte {
	dst = append(dst, headStart...)
	dst = strconv.AppendUint(dst, seq, 10)
	dst = append(dst, headPrev...)
	dst = append(dst, prev...)
	return append(dst, headEnd...)
}

type lineHead struct {
	seq  uint64
	prev string
	kind string
}

// parseHead reads what appendHead wrote, in exactly that form. It does not look
// at the rest of the line.
func parseHead(line []byte) (lineHead, bool) {
	rest, ok := bytes.CutPrefix(line, []byte(headStart))
	if !ok {
		return lineHead{}, false
	}
	digits, rest, ok := bytes.Cut(rest, []byte(headPrev))
	if !ok {
		return lineHead{}, false
	}
	seq, err := strconv.ParseUint(string(digits), 10, 64)
	if err != nil || seq == 0 || strconv.FormatUint(seq, 10) != string(digits) {
		return lineHead{}, false
	}
	prev, rest, ok := bytes.Cut(rest, []byte(headEnd))
	if !ok || len(prev) != len(noDigest) || !isDigest(string(prev)) {
		return lineHead{}, false
	}
	rest, ok = bytes.CutPrefix(rest, []byte(kindStart))
	if !ok {
		return lineHead{}, false
	}
	kind, _, ok := bytes.Cut(rest, []byte{'"'})
	return lineHead{seq: seq, prev: string(prev), kind: string(kind)}, ok
}

// isEntry says whether a complete line is one of ours.
func isEntry(line []byte) bool {
	_, ok := parseHead(line)
	return ok && json.Valid(line)
}

func lineDigest(line []byte) string {
	sum := sha256.Sum256(line)
	var text [len(noDigest)]byte
	copy(text[:], "sha256:")
	hex.Encode(text[len("sha256:"):], sum[:])
	return string(text[:])
}

// Summary of a log whose chain holds.
type Summary struct {
	// Records in the log, and how many of them are of kind recovered.
	Records   uint64 `json:"records"`
	Recovered uint64 `json:"recovered"`
	// Head of the chain. Compare it with one that was kept outside the log.
	Head Head `json:"head"`
}

// Break says where the chain breaks.
type Break struct {
	// Line counts from 1, Offset is its first byte.
	Line   int64
	Offset int64
	// What is at fault: line, sequence, previous, head or torn.
	What            string
	Expected, Found string
}

// Error names the place.
func (b *Break) Error() string {
	return fmt.Sprintf("line %d at byte %d: %s: expected %s, found %s", b.Line, b.Offset, b.What, b.Expected, b.Found)
}

// Verify reads a log from its first line and checks that every line is
// complete, numbered without a gap, and holds the digest of the line before. It
// returns what holds up to there and a *Break where the chain breaks. It cannot
// see that whole lines are missing at the end: compare Summary.Head.
func Verify(r io.Reader) (Summary, error) { return VerifyFrom(r, Head{}) }

// VerifyFrom is Verify for a part of a log that follows after.
func VerifyFrom(r io.Reader, after Head) (Summary, error) { return VerifyKept(r, after, Head{}) }

// VerifyKept is VerifyFrom that also wants the line with the number of a head that was kept outside the log to have its
// digest still. A log that ends before that line shows in Summary.Head.
func VerifyKept(r io.Reader, after, kept Head) (Summary, error) {
	v := verifier{summary: Summary{Head: after}, kept: kept}
	if after == (Head{}) {
		v.summary.Head.Digest = noDigest
	}
	in := bufio.NewReaderSize(r, MaxRecord+1)
	for {
		line, err := in.ReadSlice('\n')
		if err == io.EOF && len(line) == 0 {
			return v.done(after), nil
		}
		v.line++
		if err := v.check(line, err); err != nil {
			return v.done(after), err
		}
		v.offset += int64(len(line))
	}
}

type verifier struct {
	summary Summary
	kept    Head
	line    int64
	offset  int64
}

func (v *verifier) done(after Head) Summary {
	if v.summary.Records == 0 {
		v.summary.Head = after
	}
	return v.summary
}

func (v *verifier) check(line []byte, err error) error {
	switch {
	case errors.Is(err, bufio.ErrBufferFull):
		return v.broken("line", "at most "+strconv.Itoa(MaxRecord)+" bytes", "more")
	case errors.Is(err, io.EOF):
		return v.broken("torn", "a line feed", strconv.Itoa(len(line))+" bytes without one")
	case err != nil:
		return fmt.Errorf("reading line %d: %w", v.line, err)
	}
	line = line[:len(line)-1]
	head, ok := parseHead(line)
	if !ok || !json.Valid(line) {
		return v.broken("line", "an entry of version "+strconv.Itoa(Version), "something else")
	}
	if want := v.summary.Head.Seq + 1; head.seq != want {
		return v.broken("sequence", strconv.FormatUint(want, 10), strconv.FormatUint(head.seq, 10))
	}
	if want := v.summary.Head.Digest; head.prev != want {
		return v.broken("previous", want, head.prev)
	}
	digest := lineDigest(line)
	if v.kept.Seq == head.seq && v.kept.Digest != digest {
		return v.broken("head", v.kept.Digest, digest)
	}
	v.summary.Head = Head{Seq: head.seq, Digest: digest}
	v.summary.Records++
	if head.kind == KindRecovered {
		v.summary.Recovered++
	}
	return nil
}

func (v *verifier) broken(what, expected, found string) error {
	return &Break{Line: v.line, Offset: v.offset, What: what, Expected: expected, Found: found}
}
