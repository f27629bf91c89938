// Package strictjson gives untrusted JSON one strict reading: a tree, its
// canonical form (RFC 8785) and its digest. Whatever two readers could
// understand differently is refused, so that what is judged, digested, shown
// and permitted is one parse of the same bytes.
package strictjson

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Limits bounds one document. A field that is zero or negative takes its
// default; MaxDepth is never more than 1000, which bounds recursion.
type Limits struct {
	MaxBytes int // length of the whole body
	MaxDepth int // nested objects and arrays; a lone scalar has depth 0
	MaxKeys  int // member names of all objects together
}

// DefaultLimits are the limits that zero fields take.
var DefaultLimits = Limits{MaxBytes: 1 << 20, MaxDepth: 32, MaxKeys: 4096}

// deepest bounds the recursion of parser and canonicaliser, whatever is asked.
const deepest = 1000

func (l Limits) withDefaults() Limits {
	if l.MaxBytes <= 0 {
		l.MaxBytes = DefaultLimits.MaxBytes
	}
	if l.MaxDepth <= 0 {
		l.MaxDepth = DefaultLimits.MaxDepth
	}
	if l.MaxKeys <= 0 {
		l.MaxKeys = DefaultLimits.MaxKeys
	}
	l.MaxDepth = min(l.MaxDepth, deepest)
	return l
}

// Code says which rule a document broke. Codes are stable reasons.
type Code string

// The codes of an Error.
const (
	DuplicateKey     Code = "DuplicateKey"     // one object names a key twice
	KeyCase          Code = "KeyCase"          // a key differs from a known field only in case
	KeyNormalization Code = "KeyNormalization" // two keys, or a key and a known field, are equal after NFC or NFKC
	UnknownField     Code = "UnknownField"     // a key that the structure does not have
	InvalidUTF8      Code = "InvalidUTF8"      // bytes that are not UTF-8, or half of a surrogate pair
	TooDeep          Code = "TooDeep"          // nested deeper than MaxDepth
	TooManyKeys      Code = "TooManyKeys"      // more member names than MaxKeys
	TooLarge         Code = "TooLarge"         // longer than MaxBytes
	TrailingData     Code = "TrailingData"     // something follows the value
	NumberNotExact   Code = "NumberNotExact"   // the canonical form of the number's double is another decimal
	NotFinite        Code = "NotFinite"        // NaN or Infinity
	Syntax           Code = "Syntax"           // not JSON
	WrongType        Code = "WrongType"        // the field has another type, or its value does not fit
	Empty            Code = "Empty"            // nothing but white space
)

// Error is a refused document. Pointer (RFC 6901, shortened when long) names
// the value or key, Offset its first byte, or -1 where no bytes were at hand.
// Detail names fault and remedy and holds no value of the document.
type Error struct {
	Code    Code
	Pointer string
	Offset  int64
	Detail  string
}

// Error gives place and remedy in one line.
func (e *Error) Error() string {
	var b strings.Builder
	if e.Pointer != "" {
		b.WriteString(strconv.Quote(e.Pointer))
		b.WriteByte(' ')
	}
	if e.Offset >= 0 {
		fmt.Fprintf(&b, "at byte %d", e.Offset)
	}
	where := strings.TrimSuffix(b.String(), " ")
	if where == "" {
		return e.Detail
	}
	return where + ": " + e.Detail
}

// Longest texts of a document that an Error may carry: a pointer that is still
// useful in an answer, and one key.
const (
	maxPointer = 200
	maxKeyEcho = 40
)

func newError(code Code, pointer string, offset int64, format string, args ...any) *Error {
	return &Error{
		Code:    code,
		Pointer: shorten(pointer, maxPointer),
		Offset:  offset,
		Detail:  fmt.Sprintf(format, args...),
	}
}

// shorten cuts s to at most n bytes and an ellipsis, between two runes.
func shorten(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}

// echo quotes a key for a message.
func echo(key string) string { return strconv.Quote(shorten(key, maxKeyEcho)) }
