package proxy

import (
	"errors"
	"fmt"
	"net/http"
	"path"
	"slices"
	"strings"

	"gatewright.dev/gatewright/internal/strictjson"
	"gatewright.dev/gatewright/permit"
)

// toolSegment stands in a pattern for the name of the tool.
const toolSegment = "{tool}"

// route is a method and a path of a pattern.
type route struct {
	method   string
	segments []string
	// isTree: everything below the path, too.
	isTree bool
}

// parseRoute reads "METHOD /path", with {tool} as one of the segments of a call, or "METHOD /path/*" for what passes.
func parseRoute(s string, isCall bool) (route, error) {
	method, target, ok := strings.Cut(s, " ")
	if !ok || method == "" || strings.ToUpper(method) != method || !strings.HasPrefix(target, "/") {
		return route{}, fmt.Errorf("%q is no METHOD /path", s)
	}
	r := route{method: method}
	if tree, cut := strings.CutSuffix(target, "/*"); cut {
		if isCall {
			return route{}, fmt.Errorf("%q: the path of a call has no *", s)
		}
		r.isTree, target = true, tree
		if target == "" {
			return r, nil // everything
		}
	}
	plain := target
	if isCall {
		plain = strings.Replace(target, toolSegment, "tool", 1)
	}
	if !isPlainPath(plain) || path.Clean(plain) != strings.TrimSuffix(plain, "/") && plain != "/" {
		return route{}, fmt.Errorf("%q: the path is not in its plain form", s)
	}
	r.segments = strings.Split(target, "/")[1:]
	if isCall && strings.Contains(target, toolSegment) && !slices.Contains(r.segments, toolSegment) {
		return route{}, fmt.Errorf("%q: %s has to be a segment of its own", s, toolSegment)
	}
	return r, nil
}

// tool gives the tool's name of a path that matches, empty if the pattern has none.
func (r *route) tool(segments []string, same func(a, b string) bool) (name string, ok bool) {
	if len(segments) < len(r.segments) || len(segments) > len(r.segments) && !r.isTree {
		return "", false
	}
	for i, want := range r.segments {
		switch {
		case want == toolSegment:
			name = segments[i]
		case !same(want, segments[i]):
			return "", false
		}
	}
	return name, true
}

// overlaps says whether a request that passes by p could be a call by r to a server that does not tell capitals apart or
// takes a slash at the end for nothing.
func (r *route) overlaps(p *route) bool {
	if r.method != p.method {
		return false
	}
	mine, theirs := trimmed(r.segments), trimmed(p.segments)
	if len(theirs) > len(mine) || len(theirs) < len(mine) && !p.isTree {
		return false
	}
	for i, segment := range theirs {
		if mine[i] != toolSegment && !strings.EqualFold(mine[i], segment) {
			return false
		}
	}
	return true
}

// trimmed leaves an empty segment at the end away.
func trimmed(segments []string) []string {
	if n := len(segments); n > 0 && segments[n-1] == "" {
		return segments[:n-1]
	}
	return segments
}

// plainHTTP is a wire of JSON bodies: the tool in the path and its arguments as the body, or both in the body.
type plainHTTP struct {
	calls, passes []route
	// toolField and argumentsField of a body whose path names no tool.
	toolField, argumentsField string
	// isPermitted says that a call has to come with a permit, so that one without need not be read.
	isPermitted bool
}

var _ wire = (*plainHTTP)(nil)

func newPlainHTTP(calls, passes []string, toolField, argumentsField string, isPermitted bool) (*plainHTTP, error) {
	h := &plainHTTP{toolField: toolField, argumentsField: argumentsField, isPermitted: isPermitted}
	var errs []error
	add := func(list *[]route, patterns []string, isCall bool) {
		for _, s := range patterns {
			r, err := parseRoute(s, isCall)
			errs = append(errs, err)
			*list = append(*list, r)
		}
	}
	add(&h.calls, calls, true)
	add(&h.passes, passes, false)
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	for j := range h.passes {
		if slices.ContainsFunc(h.calls, func(c route) bool { return c.overlaps(&h.passes[j]) }) {
			return nil, fmt.Errorf("%q would let calls pass: they are at %q", passes[j], calls)
		}
	}
	return h, nil
}

func (h *plainHTTP) isStream(*http.Request) bool { return false }

func (h *plainHTTP) read(r *http.Request, body bodyReader) (*request, *denial) {
	segments := strings.Split(r.URL.Path, "/")[1:]
	exact := func(a, b string) bool { return a == b }
	for i := range h.calls {
		if name, ok := h.calls[i].tool(segments, exact); ok && h.calls[i].method == r.Method {
			return h.readCall(r, &h.calls[i], name, body)
		}
	}
	// The path of a call passes under no other method and in no other spelling.
	for i := range h.calls {
		if _, ok := h.calls[i].tool(trimmed(segments), strings.EqualFold); ok {
			return nil, notListed()
		}
	}
	for i := range h.passes {
		if _, ok := h.passes[i].tool(segments, exact); ok && h.passes[i].method == r.Method {
			return &request{kind: kindPass}, nil
		}
	}
	return nil, notListed()
}

func notListed() *denial {
	return &denial{status: http.StatusNotFound, code: CodeNotListed, message: "this is no tool call, and it is not listed to pass"}
}

func (h *plainHTTP) readCall(r *http.Request, rt *route, name string, body bodyReader) (*request, *denial) {
	if r.URL.RawQuery != "" || r.URL.ForceQuery {
		return nil, bad(CodeBadPath, "a call has no query: no permit speaks of it")
	}
	if d := checkJSON(r); d != nil {
		return nil, d
	}
	c := &call{tool: name}
	var d *denial
	if c.permit, d = headerPermit(r); d != nil {
		return nil, d
	}
	if h.isPermitted && c.permit == "" {
		return nil, refusedPermit(permit.ReasonMissing)
	}
	data, d := body()
	if d != nil {
		return nil, d
	}
	if slices.Contains(rt.segments, toolSegment) {
		c.arguments, d = parseObject(data)
	} else {
		d = h.readEnvelope(c, data)
	}
	if d == nil && !isToolName(c.tool) {
		d = bad(CodeBadCall, "the name of the tool is not one that a policy can list")
	}
	if d != nil {
		return nil, d
	}
	return &request{kind: kindCall, call: c, body: data}, nil
}

// readEnvelope reads a body that names the tool beside its arguments, and has nothing else.
func (h *plainHTTP) readEnvelope(c *call, data []byte) *denial {
	tree, d := parseObject(data)
	if d != nil {
		return d
	}
	var isText, isObject bool
	c.tool, isText = tree[h.toolField].(string)
	c.arguments, isObject = tree[h.argumentsField].(map[string]any)
	if !isText || !isObject {
		return bad(CodeBadCall, "the body has to name the tool and its arguments, an empty object for none")
	}
	if len(tree) != 2 {
		return bad(CodeNotCovered, "the body holds more than tool and arguments, which no permit speaks of")
	}
	return nil
}

func parseObject(data []byte) (map[string]any, *denial) {
	tree, err := strictjson.Parse(data, strictjson.Limits{MaxBytes: len(data) + 1})
	if err != nil {
		return nil, bad(CodeBadCall, "the body is no JSON that can be read in one way only: "+codeOf(err))
	}
	object, ok := tree.(map[string]any)
	if !ok {
		return nil, bad(CodeBadCall, "the body is no JSON object")
	}
	return object, nil
}

// codeOf names the rule that a body breaks, without a word of the body.
func codeOf(err error) string {
	if e, ok := errors.AsType[*strictjson.Error](err); ok {
		return string(e.Code)
	}
	return "Syntax"
}

// headerPermit is the one permit in the headers, empty for none.
func headerPermit(r *http.Request) (string, *denial) {
	switch tokens := r.Header.Values(permit.Header); len(tokens) {
	case 0:
		return "", nil
	case 1:
		return tokens[0], nil
	}
	return "", refusedPermit(permit.ReasonMalformed)
}

func refusedPermit(reason permit.Reason) *denial {
	return &denial{status: http.StatusForbidden, code: CodeInternal, reason: reason, message: (&permit.Error{Reason: reason}).Error()}
}

func (h *plainHTTP) deny(w http.ResponseWriter, _ *call, d *denial) {
	answerJSON(w, d.status, d.refusal())
}
