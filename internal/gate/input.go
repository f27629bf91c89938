package gate

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"time"

	"github.com/google/uuid"

	review "gatewright.dev/gatewright/api/review/v1alpha1"
	"gatewright.dev/gatewright/internal/policy"
	"gatewright.dev/gatewright/internal/strictjson"
)

// Bounds of a request's fields. A longer tool name or session would be a place to hide text in.
const (
	maxToolName = 256
	maxName     = 253
	maxMessages = 1000
	uidMaxAge   = 300 * time.Second
	// uidMaxAhead is how far a caller's clock may be ahead.
	uidMaxAhead = 60 * time.Second
)

// input is one request, decoded once. Everything that is judged, digested, shown and permitted comes from it.
type input struct {
	caller  policy.Caller
	review  *review.Request
	request policy.Request
	body    [sha256.Size]byte
	started time.Time

	argumentsDigest string
}

// decode reads a body strictly: nothing happens for one that could be read in two ways.
func (g *Gate) decode(body []byte, caller policy.Caller, now time.Time) (*input, *httpError) {
	var r review.ToolCallReview
	if err := strictjson.Decode(body, g.options.Limits, &r); err != nil {
		return nil, decodingError(err)
	}
	if r.APIVersion != review.APIVersion {
		return nil, badRequest(CodeInvalidField, "/apiVersion", "want "+review.APIVersion)
	}
	if r.Kind != review.Kind {
		return nil, badRequest(CodeInvalidField, "/kind", "want "+review.Kind)
	}
	if r.Response != nil {
		return nil, badRequest(CodeInvalidField, "/response", "a request has none: remove it")
	}
	if r.Request == nil {
		return nil, badRequest(CodeInvalidField, "/request", "is required")
	}
	if err := checkFields(r.Request); err != nil {
		return nil, err
	}
	if err := checkUID(r.Request.UID, now); err != nil {
		return nil, err
	}
	in := &input{caller: caller, review: r.Request, body: sha256.Sum256(body), started: now}
	in.build(now)
	var err error
	if in.argumentsDigest, err = strictjson.Digest(in.request.Arguments); err != nil {
		return nil, decodingError(err)
	}
	return in, nil
}

func checkFields(r *review.Request) *httpError {
	for _, f := range []struct {
		field, value string
		limit        int
	}{
		{"/request/tool/name", r.Tool.Name, maxToolName},
		{"/request/tool/server", r.Tool.Server, maxName},
		{"/request/context/session", r.Context.Session, maxName},
		{"/request/context/onBehalfOf", r.Context.OnBehalfOf, maxName},
		{"/request/context/language", r.Context.Language, 35},
		{"/request/approval", r.Approval, maxName},
	} {
		if len(f.value) > f.limit {
			return badRequest(CodeInvalidField, f.field, fmt.Sprintf("is longer than %d bytes", f.limit))
		}
	}
	if r.Tool.Name == "" {
		return badRequest(CodeInvalidField, "/request/tool/name", "is required")
	}
	if r.Arguments == nil {
		return badRequest(CodeInvalidField, "/request/arguments", "is required: an empty object for a tool without arguments")
	}
	if at, twice := strictjson.AmbiguousName(r.Arguments); twice {
		return badRequest(Code(strictjson.KeyNormalization), "/request/arguments"+at, "equals another name of its object but for capitals: a tool may read either, so send one of them")
	}
	if len(r.Context.Messages) > maxMessages {
		return badRequest(CodeInvalidField, "/request/context/messages", fmt.Sprintf("has more than %d messages", maxMessages))
	}
	for i, m := range r.Context.Messages {
		switch m.Role {
		case review.RoleSystem, review.RoleUser, review.RoleAssistant, review.RoleTool:
		default:
			return badRequest(CodeInvalidField, fmt.Sprintf("/request/context/messages/%d/role", i), "want system, user, assistant or tool")
		}
	}
	return nil
}

// checkUID wants a UUIDv7 (RFC 9562), whose first 48 bits are milliseconds since 1970. A uid that is too old could be a
// replay of one that is no longer remembered.
func checkUID(s string, now time.Time) *httpError {
	const field = "/request/uid"
	id, err := uuid.Parse(s)
	if err != nil || len(s) != 36 || id.Version() != 7 || id.Variant() != uuid.RFC4122 {
		return badRequest(CodeInvalidField, field, "want a UUIDv7 in its 36-character form, a new one for each call")
	}
	var ms int64
	for _, b := range id[:6] {
		ms = ms<<8 | int64(b)
	}
	age := now.Sub(time.UnixMilli(ms))
	if age > uidMaxAge || age < -uidMaxAhead {
		return badRequest(CodeStaleUID, field, fmt.Sprintf("was made %d s from now, want at most %d s ago: make a new one for each call, and check the clock",
			int64(math.Round(-age.Seconds())), int64(uidMaxAge.Seconds())))
	}
	return nil
}

// build sorts messages by who wrote them.
func (in *input) build(now time.Time) {
	c := &in.review.Context
	in.request = policy.Request{
		Caller: in.caller, Tool: in.review.Tool.Name, Server: in.review.Tool.Server, Arguments: in.review.Arguments,
		Facts: c.Facts, OnBehalfOf: c.OnBehalfOf, Session: c.Session, Language: c.Language, Attestation: c.Attestation, Now: now,
	}
	for _, m := range c.Messages {
		in.request.Heard(m.Role, m.Content)
	}
	in.request.Asked(c.UserRequest)
}

// words are what a decision goes by as the user's.
type words struct {
	latest     string // turn
	earlier    []string
	onBehalfOf string
	digest     string // of all turns
	claimed    string // digest of the turns as the caller states them
	attestedBy string // a front door; empty: the caller claims all of it
}

func (in *input) words() words {
	r := &in.request
	digest := digestOf(r.UserTurns...)
	return words{latest: last(r.UserTurns), earlier: allButLast(r.UserTurns), onBehalfOf: r.OnBehalfOf, digest: digest, claimed: digest}
}

// attest adds what a front door has signed. What the caller states stays in the digest, because policies that take the
// caller's word have judged by it.
func (w *words) attest(j *policy.Judgement) {
	turns, onBehalfOf, ok := j.Attested()
	if !ok {
		return
	}
	w.latest, w.earlier, w.onBehalfOf, w.attestedBy = last(turns), allButLast(turns), onBehalfOf, j.AttestedBy()
	w.digest = digestOf(w.digest, digestOf(turns...))
}

func last(turns []string) string {
	if len(turns) == 0 {
		return ""
	}
	return turns[len(turns)-1]
}

func allButLast(turns []string) []string { return turns[:max(0, len(turns)-1)] }

// digestOf digests texts so that no two lists of texts have the same digest.
func digestOf(texts ...string) string {
	h := sha256.New()
	var length [8]byte
	for _, t := range texts {
		for i := range length {
			length[i] = byte(uint64(len(t)) >> (8 * i))
		}
		h.Write(length[:])
		h.Write([]byte(t))
	}
	var sum [sha256.Size]byte
	h.Sum(sum[:0])
	return digestText(&sum)
}

// digestText writes a digest with its algorithm, in one allocation.
func digestText(sum *[sha256.Size]byte) string {
	const prefix = "sha256:"
	var text [len(prefix) + 2*sha256.Size]byte
	copy(text[:], prefix)
	hex.Encode(text[len(prefix):], sum[:])
	return string(text[:])
}

// stateDigest identifies everything that a decision about this call rests on, apart from policies and the model: the
// whole call with its context, but not its uid.
func (in *input) stateDigest() string {
	return stateDigest(in.caller.String(), in.review, in.argumentsDigest)
}

func stateDigest(caller string, r *review.Request, argumentsDigest string) string {
	c := &r.Context
	texts := []string{caller, r.Tool.Name, r.Tool.Server, argumentsDigest, c.UserRequest, c.Session, c.OnBehalfOf, c.Language, c.Attestation}
	for _, m := range c.Messages {
		texts = append(texts, string(m.Role), m.Name, m.Content)
	}
	if c.Facts != nil {
		facts, err := strictjson.Digest(c.Facts)
		if err != nil {
			facts = "unreadable" // cannot be: the facts are a tree that was just parsed
		}
		texts = append(texts, facts)
	}
	return digestOf(texts...)
}
