package proxy

import "net/http"

// Codes of JSON-RPC.
const (
	rpcInvalidRequest = -32600
	rpcNoMethod       = -32601
	rpcInternal       = -32603
)

type rpcError struct {
	Code    int     `json:"code"`
	Message string  `json:"message"`
	Data    refusal `json:"data"`
}

type rpcAnswer struct {
	Version string      `json:"jsonrpc"`
	ID      any         `json:"id"`
	Result  *toolResult `json:"result,omitempty"`
	Error   *rpcError   `json:"error,omitempty"`
}

// toolResult is the result of a call that did not run, as a model reads it.
type toolResult struct {
	Content    []textContent      `json:"content"`
	IsError    bool               `json:"isError"`
	Structured *refusal           `json:"structuredContent,omitempty"`
	Meta       map[string]refusal `json:"_meta"`
}

type textContent struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// deny answers a call that may not run with a result that says so, since a model reads results; everything else is an
// error of the protocol.
func (m *overMCP) deny(w http.ResponseWriter, c *call, d *denial) {
	said := d.refusal()
	if c != nil && (d.decision != nil || d.reason != "" || d.code == CodeGateMismatch) {
		answerJSON(w, http.StatusOK, rpcAnswer{Version: "2.0", ID: c.id, Result: m.result(c, said)})
		return
	}
	failure := &rpcError{Code: rpcInvalidRequest, Message: d.message, Data: said}
	switch {
	case d.code == CodeMethodNotPassed:
		failure.Code = rpcNoMethod
	case d.status >= http.StatusInternalServerError:
		failure.Code = rpcInternal
	}
	id := d.id
	if c != nil {
		id = c.id
	}
	answerJSON(w, d.status, rpcAnswer{Version: "2.0", ID: id, Error: failure})
}

// result says no twice: in words, and for code. A tool that declares what it puts out gets no structured content of
// ours, since some clients would compare it with that and fail.
func (m *overMCP) result(c *call, said refusal) *toolResult {
	out := &toolResult{
		Content: []textContent{{Type: "text", Text: said.Message}}, IsError: true,
		Meta: map[string]refusal{MetaDecision: said},
	}
	if !m.tools.declaresOutput(c.tool) {
		out.Structured = &said
	}
	return out
}
