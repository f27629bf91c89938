package audit

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
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
