package proxy

import (
	"net/http"
	"slices"
	"strings"

	"gatewright.dev/gatewright/permit"
)

// Names in the _meta of a tools/call.
const (
	// MetaPermit is the permit, if it is not in the header.
	MetaPermit = "gatewright.dev/permit"
	// MetaUserRequest are the user's own words, for a proxy that asks.
	MetaUserRequest = "gatewright.dev/userRequest"
	// MetaSession is the agent's session, for a proxy that asks.
	MetaSession = "gatewright.dev/session"
	// MetaApproval names an approval that was given for this call, for a proxy that asks.
	MetaApproval = "gatewright.dev/approval"
	// MetaDecision holds in a result why the call did not run.
	MetaDecision = "gatewright.dev/decision"
)

const (
	methodCall   = "tools/call"
	methodList   = "tools/list"
	methodListen = "subscriptions/listen"
)

// passedMethods run no tool and tell a client what it needs for a session. The rest is for an operator to list.
var passedMethods = []string{
	"initialize", "server/discover", "ping", methodList, methodListen,
	"notifications/initialized", "notifications/cancelled", "notifications/progress", "notifications/roots/list_changed",
}

// passResponses is what an operator lists so that a client may answer what the tool server asks it.
const passResponses = "responses"

// overMCP is the wire of MCP over streamable HTTP: one path, JSON-RPC in the bodies.
type overMCP struct {
	path      string
	methods   map[string]bool
	responses bool
	tools     *toolWatch
}

var _ wire = (*overMCP)(nil)

func newMCP(path string, pass []string, tools *toolWatch) *overMCP {
	m := &overMCP{path: path, methods: map[string]bool{}, tools: tools}
	for _, method := range slices.Concat(passedMethods, pass) {
		m.methods[method] = true
	}
	m.responses = m.methods[passResponses]
	delete(m.methods, passResponses)
	delete(m.methods, methodCall)
	return m
}

// isStream takes the client's word only for how long a request may last. The body has to agree with it.
func (m *overMCP) isStream(r *http.Request) bool {
	return r.Method == http.MethodGet || r.Method == http.MethodPost && r.Header.Get("Mcp-Method") == methodListen
}

func (m *overMCP) read(r *http.Request, body bodyReader) (*request, *denial) {
	if r.URL.Path != m.path {
		return nil, notListed()
	}
	if r.URL.RawQuery != "" || r.URL.ForceQuery {
		return nil, bad(CodeBadPath, "a message has no query")
	}
	switch r.Method {
	case http.MethodGet:
		return &request{kind: kindStream}, nil
	case http.MethodDelete:
		return &request{kind: kindPass}, nil
	case http.MethodPost:
	default:
		return nil, notListed()
	}
	if d := checkJSON(r); d != nil {
		return nil, d
	}
	data, d := body()
	if d != nil {
		return nil, d
	}
	req, d := m.classify(data, r.Header)
	if d == nil && req.call != nil {
		req.call.permit, d = onePermit(r, req.call)
	}
	if d != nil {
		return nil, d
	}
	return req, nil
}

// onePermit is the permit of a call, which is in its header or in its _meta and not in both.
func onePermit(r *http.Request, c *call) (string, *denial) {
	inHeader, d := headerPermit(r)
	if d == nil && inHeader != "" && c.permit != "" {
		d = refusedPermit(permit.ReasonMalformed)
	}
	if d != nil {
		d.id = c.id
		return "", d
	}
	return inHeader + c.permit, nil
}

// classify reads one JSON-RPC message. It is a function of the body and of the headers that repeat it.
func (m *overMCP) classify(data []byte, header http.Header) (*request, *denial) {
	if b := firstByte(data); b == '[' {
		return nil, bad(CodeBatch, "several messages in one body: send one")
	}
	message, d := parseObject(data)
	if d != nil {
		return nil, d
	}
	id, hasID, d := readID(message)
	if d != nil {
		return nil, d
	}
	req, d := m.classifyMessage(message, id, hasID, header)
	if d != nil {
		d.id = id
		return nil, d
	}
	req.body = data
	return req, nil
}

func (m *overMCP) classifyMessage(message map[string]any, id any, hasID bool, header http.Header) (*request, *denial) {
	if message["jsonrpc"] != "2.0" {
		return nil, bad(CodeBadCall, "the message is not JSON-RPC 2.0")
	}
	method, isRequest := message["method"].(string)
	if !isRequest {
		return m.classifyResponse(message, hasID)
	}
	for name := range message {
		if name != "jsonrpc" && name != "id" && name != "method" && name != "params" {
			return nil, bad(CodeBadCall, "the message has a member that JSON-RPC does not have")
		}
	}
	if d := repeats(header, "Mcp-Method", method); d != nil {
		return nil, d
	}
	if method == methodCall {
		if !hasID {
			return nil, bad(CodeBadCall, "a tool call without id has no answer, and so no way to refuse it")
		}
		c, d := readMCPCall(message["params"], header)
		if d != nil {
			return nil, d
		}
		c.id = id
		return &request{kind: kindCall, call: c}, nil
	}
	if !m.methods[method] {
		return nil, notPassed(hasID)
	}
	kind := kindPass
	if method == methodListen {
		kind = kindStream
	}
	return &request{kind: kind, listsTools: method == methodList}, nil
}

func notPassed(hasID bool) *denial {
	d := &denial{status: http.StatusForbidden, code: CodeMethodNotPassed, message: "this proxy does not pass this method: see --pass"}
	if hasID {
		d.status = http.StatusOK // the answer is in JSON-RPC
	}
	return d
}

// classifyResponse passes what a client answers the tool server. A lone acknowledgement says nothing; other answers are
// input to a tool that no permit speaks of, so an operator has to list them.
func (m *overMCP) classifyResponse(message map[string]any, hasID bool) (*request, *denial) {
	result, hasResult := message["result"]
	_, hasError := message["error"]
	if !hasID || hasResult == hasError || len(message) != 3 {
		return nil, bad(CodeBadCall, "the message is neither request nor answer")
	}
	if object, ok := result.(map[string]any); hasError || m.responses || ok && len(object) == 0 {
		return &request{kind: kindPass}, nil
	}
	return nil, &denial{status: http.StatusForbidden, code: CodeMethodNotPassed, message: "this proxy does not pass answers to the tool server: see --pass responses"}
}

// readID takes ids that JSON-RPC and every reader agree on: text or a whole number.
func readID(message map[string]any) (id any, has bool, d *denial) {
	id, has = message["id"]
	if !has {
		return nil, false, nil
	}
	switch v := id.(type) {
	case string:
		if len(v) <= 256 {
			return id, true, nil
		}
	case int64:
		return id, true, nil
	}
	return nil, true, bad(CodeBadCall, "id is neither a short text nor a whole number")
}

// readMCPCall reads name, arguments and _meta of a tools/call. Another member is refused: no permit speaks of it.
func readMCPCall(params any, header http.Header) (*call, *denial) {
	object, ok := params.(map[string]any)
	if !ok {
		return nil, bad(CodeBadCall, "params of a tool call are no object")
	}
	for name := range object {
		if name != "name" && name != "arguments" && name != "_meta" {
			return nil, bad(CodeNotCovered, "params hold more than name, arguments and _meta, which no permit speaks of")
		}
	}
	c := &call{arguments: map[string]any{}}
	if c.tool, ok = object["name"].(string); !ok || !isToolName(c.tool) {
		return nil, bad(CodeBadCall, "the name of the tool is not one that a policy can list")
	}
	if arguments, has := object["arguments"]; has {
		if c.arguments, ok = arguments.(map[string]any); !ok {
			return nil, bad(CodeBadCall, "arguments are no object")
		}
	}
	if d := repeats(header, "Mcp-Name", c.tool); d != nil {
		return nil, d
	}
	if d := checkParamHeaders(header, c.arguments); d != nil {
		return nil, d
	}
	return c, readMeta(c, object["_meta"])
}

func readMeta(c *call, meta any) *denial {
	if meta == nil {
		return nil
	}
	object, ok := meta.(map[string]any)
	if !ok {
		return bad(CodeBadCall, "_meta is no object")
	}
	for name, into := range map[string]*string{
		MetaPermit: &c.permit, MetaUserRequest: &c.about.userRequest, MetaSession: &c.about.session, MetaApproval: &c.about.approval,
	} {
		value, has := object[name]
		if !has {
			continue
		}
		if *into, ok = value.(string); !ok {
			return bad(CodeBadCall, "a member of _meta that is for Gatewright is no text")
		}
	}
	return nil
}

// repeats says whether a header that repeats a part of the body does so.
func repeats(header http.Header, name, want string) *denial {
	for _, value := range header.Values(name) {
		if value != want {
			return bad(CodeBadHeader, name+" does not say what the body says")
		}
	}
	return nil
}

func firstByte(data []byte) byte {
	if trimmed := strings.TrimLeft(string(data[:min(len(data), 64)]), " \t\r\n"); trimmed != "" {
		return trimmed[0]
	}
	return 0
}
