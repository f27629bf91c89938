package proxy

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"gatewright.dev/gatewright/internal/strictjson"
)

// lenient is how a careless reader takes a message: names in any case, the last of several.
type lenient struct {
	Method string `json:"method"`
	Params struct {
		Name string `json:"name"`
	} `json:"params"`
}

// FuzzClassifyMCP: whatever passes as no tool call is none to a careless reader either, and a tool call is the same one.
func FuzzClassifyMCP(f *testing.F) {
	for _, seed := range []string{
		callMessage(`{"name":"refund","arguments":{"a":1}}`), `{"jsonrpc":"2.0","id":1,"method":"tools/list","Method":"tools/call"}`,
		`{"jsonrpc":"2.0","id":1,"result":{}}`, `[]`, `{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		callMessage(`{"name":"refund","NAME":"cancel"}`), `{"jsonrpc":"2.0","id":1,"method":"tools\/call","params":{"name":"x"}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"x":[1e400]}}}`,
	} {
		f.Add(seed, "tools/call", "refund")
	}
	m := newMCP("/mcp", []string{"responses", "resources/read"}, nil)
	f.Fuzz(func(t *testing.T, body, method, name string) {
		req, d := m.classify([]byte(body), http.Header{"Mcp-Method": {method}, "Mcp-Name": {name}})
		if (req == nil) == (d == nil) {
			t.Fatalf("%+v and %+v", req, d)
		}
		if d != nil {
			if d.code == "" || d.message == "" || d.status == 0 {
				t.Errorf("refused without a word: %+v", d)
			}
			return
		}
		var l lenient
		if err := json.Unmarshal([]byte(body), &l); err != nil && req.kind == kindCall {
			t.Fatalf("a call that nobody else can read: %v", err)
		}
		isCall := req.kind == kindCall
		if isCall != (req.call != nil) || (l.Method == methodCall) != isCall {
			t.Errorf("%s is a %s to us and a %q to others", body, req.kind, l.Method)
		}
		if isCall && (l.Params.Name != req.call.tool || !isToolName(req.call.tool) || string(req.body) != body) {
			t.Errorf("%s is a call of %s to us and of %s to others", body, req.call.tool, l.Params.Name)
		}
	})
}

// FuzzClassifyHTTP: no request that a careless router takes for a tool call goes through as anything else, and a call is
// forwarded as it was read.
func FuzzClassifyHTTP(f *testing.F) {
	for _, seed := range []string{
		"POST /tools/refund HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}",
		"GET /docs/../tools/refund HTTP/1.1\r\nHost: x\r\n\r\n", "GET /docs/%2e%2e/tools/x HTTP/1.1\r\nHost: x\r\n\r\n",
		"POST /Tools/refund/ HTTP/1.1\r\nHost: x\r\n\r\n", "GET /docs/a;b HTTP/1.1\r\nHost: x\r\nX-HTTP-Method: POST\r\n\r\n",
		"POST /tools/refund HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
	} {
		f.Add(seed)
	}
	h, err := newPlainHTTP([]string{"POST /tools/{tool}"}, []string{"GET /docs/*", "POST /upload", "GET /tools/list"}, "tool", "arguments", false)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, request string) {
		r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(request)))
		if err != nil {
			return
		}
		if checkShape(r, nil) != nil {
			return
		}
		req, d := h.read(r, func() ([]byte, *denial) {
			data, err := io.ReadAll(r.Body)
			if err != nil {
				return nil, bad(CodeBadCall, "broken")
			}
			return data, nil
		})
		if (req == nil) == (d == nil) {
			t.Fatalf("%+v and %+v", req, d)
		}
		if d != nil {
			return
		}
		careless := strings.Trim(strings.ToLower(r.URL.Path), "/")
		isCall := strings.HasPrefix(careless, "tools/") && strings.Count(careless, "/") == 1
		if isCall != (req.kind == kindCall) {
			t.Errorf("%s %s is a %s", r.Method, r.URL.Path, req.kind)
		}
		if req.kind != kindCall {
			return
		}
		tree, err := strictjson.Parse(req.body, strictjson.Limits{})
		if err != nil && !errors.As(err, new(*strictjson.Error)) || tree == nil || !isToolName(req.call.tool) || "/tools/"+req.call.tool != r.URL.Path {
			t.Errorf("a call of %q with %q", req.call.tool, req.body)
		}
	})
}

// FuzzEvents: what streams past is looked at without a fault.
func FuzzEvents(f *testing.F) {
	f.Add("data: {\"result\":{\"tools\":[{\"name\":\"x\"}]}}\n\n")
	f.Add("data:\r\rdata: []\n\n: x")
	f.Fuzz(func(t *testing.T, stream string) {
		w := newToolWatch(slog.New(slog.DiscardHandler), 1<<16)
		for _, e := range events([]byte(stream)) {
			w.look(e)
		}
		if len(w.tools) > maxTools {
			t.Errorf("%d tools are remembered", len(w.tools))
		}
	})
}
