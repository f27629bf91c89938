package proxy

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	signing "gatewright.dev/gatewright/internal/permit"
)

const refundBody = `{ "order": "A-7",  "amount": 1.0 }`

func TestAPermittedCallRunsOnceWithTheBytesThatWereVerified(t *testing.T) {
	p, gate, tools := permitting(t)
	token := gate.permit(t, "refund", refundBody)
	header := jsonWith(token)
	header.Set("Authorization", "Bearer of-the-tool")
	header.Set("Gatewright-Caller", "somebody-else")
	got := send(t, "POST", p.url+"/tools/refund", refundBody, header)
	if got.status != 200 || got.body != "ran" {
		t.Fatalf("HTTP %d %s\n%s", got.status, got.body, p.log)
	}
	ran := tools.take()
	if len(ran) != 1 {
		t.Fatalf("%d requests arrived, want 1", len(ran))
	}
	r := ran[0]
	if r.method != "POST" || r.target != "/tools/refund" || r.body != refundBody || r.length != int64(len(refundBody)) || r.chunked {
		t.Errorf("arrived %+v, want the bytes that were verified under their length", r)
	}
	want := map[string][]string{
		"Gatewright-Caller": {"system:serviceaccount:sales:agent"}, "Gatewright-Decision": {"d-1"}, "Authorization": {"Bearer of-the-tool"},
		"Gatewright-Permit": nil,
	}
	for name, values := range want {
		if diff := cmp.Diff(values, r.header.Values(name)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if again := send(t, "POST", p.url+"/tools/refund", refundBody, header); again.status != 403 || codeIn(t, again) != "PermitUsed" {
		t.Errorf("the second time: HTTP %d %s", again.status, again.body)
	}
	if n := len(tools.take()); n != 0 {
		t.Errorf("the second time %d requests arrived", n)
	}
	if strings.Contains(p.log.String(), "A-7") || strings.Contains(p.log.String(), token) {
		t.Error("the log holds arguments or a permit")
	}
}

func codeIn(t testing.TB, r reply) string {
	t.Helper()
	var said refusal
	if err := json.Unmarshal([]byte(r.body), &said); err != nil || said.Message == "" {
		t.Fatalf("%v in %q", err, r.body)
	}
	return said.Code
}

func TestRefusedCallsOverHTTP(t *testing.T) {
	p, gate, tools := permitting(t, func(c *Config) {
		c.Calls = []string{"POST /tools/{tool}", "PUT /call"}
		c.Passes = []string{"GET /docs/*", "GET /tools/refund", "POST /upload"}
		c.MaxBody = 4096
	})
	with := func(name, value string) func(http.Header) {
		return func(h http.Header) { h[name] = append(h[name], value) }
	}
	for name, tc := range map[string]struct {
		method, target, body string
		change               func(http.Header)
		claims               func(*signing.Claims)
		wantStatus           int
		wantCode             string
	}{
		"no permit":                       {change: func(h http.Header) { h.Del("Gatewright-Permit") }, wantStatus: 403, wantCode: "PermitMissing"},
		"an empty permit":                 {change: func(h http.Header) { h.Set("Gatewright-Permit", "") }, wantStatus: 403, wantCode: "PermitMissing"},
		"two permits":                     {change: with("Gatewright-Permit", "x"), wantStatus: 403, wantCode: "PermitMalformed"},
		"a permit for another audience":   {claims: func(c *signing.Claims) { c.Audience = "mail" }, wantStatus: 403, wantCode: "PermitWrongAudience"},
		"a permit for another server":     {claims: func(c *signing.Claims) { c.Server = "bank" }, wantStatus: 403, wantCode: "PermitWrongTool"},
		"a permit for another tool":       {target: "/tools/cancel", wantStatus: 403, wantCode: "PermitWrongTool"},
		"a permit for other arguments":    {body: `{"order":"A-7","amount":2}`, wantStatus: 403, wantCode: "PermitWrongArguments"},
		"one argument more":               {body: `{"order":"A-7","amount":1,"force":true}`, wantStatus: 403, wantCode: "PermitWrongArguments"},
		"a name twice":                    {body: `{"order":"A-7","amount":1,"amount":1}`, wantStatus: 400, wantCode: "BadCall"},
		"a name twice, once escaped":      {body: `{"order":"A-7","amount":1,"\u0061mount":1}`, wantStatus: 400, wantCode: "BadCall"},
		"data that follows":               {body: refundBody + `{"amount":9}`, wantStatus: 400, wantCode: "BadCall"},
		"a zero byte that follows":        {body: refundBody + "\x00", wantStatus: 400, wantCode: "BadCall"},
		"a byte order mark":               {body: "\ufeff" + refundBody, wantStatus: 400, wantCode: "BadCall"},
		"bytes that are not UTF-8":        {body: "{\"order\":\"A-7\xff\",\"amount\":1}", wantStatus: 400, wantCode: "BadCall"},
		"a comment":                       {body: `{"order":"A-7",/**/"amount":1}`, wantStatus: 400, wantCode: "BadCall"},
		"a number that no double holds":   {body: `{"order":"A-7","amount":9007199254740993}`, wantStatus: 400, wantCode: "BadCall"},
		"an array":                        {body: `[1]`, wantStatus: 400, wantCode: "BadCall"},
		"nothing":                         {body: " ", wantStatus: 400, wantCode: "BadCall"},
		"more than is read":               {body: strings.Repeat(" ", 4097), wantStatus: 413, wantCode: "TooLarge"},
		"a query":                         {target: "/tools/refund?amount=9", wantStatus: 400, wantCode: "BadPath"},
		"an empty query":                  {target: "/tools/refund?", wantStatus: 400, wantCode: "BadPath"},
		"an escape in the path":           {target: "/tools/%72efund", wantStatus: 400, wantCode: "BadPath"},
		"an escaped slash":                {target: "/tools%2Frefund", wantStatus: 400, wantCode: "BadPath"},
		"two slashes":                     {target: "//tools/refund", wantStatus: 400, wantCode: "BadPath"},
		"dots":                            {target: "/docs/../tools/refund", wantStatus: 400, wantCode: "BadPath"},
		"a parameter of the path":         {target: "/tools/refund;x=1", wantStatus: 400, wantCode: "BadPath"},
		"a backslash":                     {target: `/tools\refund`, wantStatus: 400, wantCode: "BadPath"},
		"a slash at the end":              {target: "/tools/refund/", wantStatus: 404, wantCode: "NotListed"},
		"capitals in the path":            {target: "/Tools/refund", wantStatus: 404, wantCode: "NotListed"},
		"another method":                  {method: "PATCH", wantStatus: 404, wantCode: "NotListed"},
		"a method that is listed to pass": {method: "GET", wantStatus: 404, wantCode: "NotListed"},
		"a path that is not listed":       {target: "/admin", wantStatus: 404, wantCode: "NotListed"},
		"options":                         {method: "OPTIONS", wantStatus: 404, wantCode: "NotListed"},
		"a name that no policy can list":  {target: "/tools/@refund", wantStatus: 400, wantCode: "BadCall"},
		"gzip":                            {change: with("Content-Encoding", "gzip"), wantStatus: 415, wantCode: "EncodedBody"},
		"identity":                        {change: with("Content-Encoding", "identity"), wantStatus: 415, wantCode: "EncodedBody"},
		"a form":                          {change: func(h http.Header) { h.Set("Content-Type", "application/x-www-form-urlencoded") }, wantStatus: 415, wantCode: "UnsupportedMediaType"},
		"no type":                         {change: func(h http.Header) { h.Del("Content-Type") }, wantStatus: 415, wantCode: "UnsupportedMediaType"},
		"two types":                       {change: with("Content-Type", "text/yaml"), wantStatus: 400, wantCode: "BadHeader"},
		"another charset":                 {change: func(h http.Header) { h.Set("Content-Type", "application/json; charset=utf-16") }, wantStatus: 415, wantCode: "UnsupportedMediaType"},
		"a type with a parameter":         {change: func(h http.Header) { h.Set("Content-Type", "application/json; boundary=x") }, wantStatus: 415, wantCode: "UnsupportedMediaType"},
		"a method override":               {change: with("X-HTTP-Method-Override", "DELETE"), wantStatus: 400, wantCode: "BadHeader"},
		"a method override, canonical":    {change: with("X-Http-Method-Override", "DELETE"), wantStatus: 400, wantCode: "BadHeader"},
		"another path by header":          {change: with("X-Original-Url", "/admin"), wantStatus: 400, wantCode: "BadHeader"},
		"a rewritten path":                {change: with("X-Rewrite-Url", "/admin"), wantStatus: 400, wantCode: "BadHeader"},
		"a header with an underscore":     {change: with("Content_type", "text/yaml"), wantStatus: 400, wantCode: "BadHeader"},
		"a header that Connection drops":  {change: with("Connection", "close, Content-Type"), wantStatus: 400, wantCode: "BadHeader"},
		"another protocol":                {change: with("Upgrade", "websocket"), wantStatus: 400, wantCode: "BadHeader"},
		"a web page":                      {change: with("Origin", "https://evil.example"), wantStatus: 403, wantCode: "OriginNotAllowed"},
		"an envelope without arguments":   {method: "PUT", target: "/call", body: `{"tool":"refund"}`, wantStatus: 400, wantCode: "BadCall"},
		"an envelope with more in it":     {method: "PUT", target: "/call", body: `{"tool":"refund","arguments":{"order":"A-7","amount":1},"as":"root"}`, wantStatus: 400, wantCode: "NotCovered"},
		"an envelope in other capitals":   {method: "PUT", target: "/call", body: `{"Tool":"refund","arguments":{"order":"A-7","amount":1}}`, wantStatus: 400, wantCode: "BadCall"},
		"an envelope with a name twice":   {method: "PUT", target: "/call", body: `{"tool":"refund","tool":"cancel","arguments":{"order":"A-7","amount":1}}`, wantStatus: 400, wantCode: "BadCall"},
		"an envelope of another tool":     {method: "PUT", target: "/call", body: `{"tool":"cancel","arguments":{"order":"A-7","amount":1}}`, wantStatus: 403, wantCode: "PermitWrongTool"},
		"an upload that is too long":      {target: "/upload", body: strings.Repeat(" ", 4097), wantStatus: 413, wantCode: "TooLarge"},
	} {
		t.Run(name, func(t *testing.T) {
			var change []func(*signing.Claims)
			if tc.claims != nil {
				change = append(change, tc.claims)
			}
			header := jsonWith(gate.permit(t, "refund", refundBody, change...))
			if tc.change != nil {
				tc.change(header)
			}
			request := fmt.Sprintf("%s %s HTTP/1.1\r\nHost: x\r\n", or(tc.method, "POST"), or(tc.target, "/tools/refund"))
			body := or(tc.body, refundBody)
			for name, values := range header {
				for _, v := range values {
					request += name + ": " + v + "\r\n"
				}
			}
			got := talk(t, p.address, request+fmt.Sprintf("Content-Length: %d\r\nConnection: close\r\n\r\n%s", len(body), body))
			if got.status != tc.wantStatus || codeIn(t, got) != tc.wantCode {
				t.Errorf("HTTP %d %s, want %d %s", got.status, got.body, tc.wantStatus, tc.wantCode)
			}
			if strings.Contains(got.body, "A-7") {
				t.Errorf("the answer repeats arguments: %s", got.body)
			}
			if ran := tools.take(); len(ran) != 0 {
				t.Errorf("arrived: %+v", ran)
			}
		})
	}
}

func or(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

func TestFramingThatTwoReadersCouldReadDifferently(t *testing.T) {
	p, gate, tools := permitting(t)
	for name, tc := range map[string]struct {
		framing, body string
		want          []int
	}{
		"chunks":                       {"Transfer-Encoding: chunked", "%x\r\n%s\r\n0\r\n\r\n", []int{411}},
		"chunks and a length":          {"Transfer-Encoding: chunked\r\nContent-Length: 4", "%x\r\n%s\r\n0\r\n\r\n", []int{400, 411}},
		"a length and chunks":          {"Content-Length: 4\r\nTransfer-Encoding: chunked", "%x\r\n%s\r\n0\r\n\r\n", []int{400, 411}},
		"chunks in disguise":           {"Transfer-Encoding: xchunked", "%x\r\n%s\r\n0\r\n\r\n", []int{400, 501}},
		"chunks with a space before":   {"Transfer-Encoding : chunked", "%x\r\n%s\r\n0\r\n\r\n", []int{400}},
		"two lengths that differ":      {"Content-Length: 4\r\nContent-Length: 34", "%[2]s", []int{400}},
		"a length with a sign":         {"Content-Length: +34", "%[2]s", []int{400}},
		"no length":                    {"X-Nothing: 1", "%[2]s", []int{400}},
		"two hosts":                    {"Host: y\r\nContent-Length: 34", "%[2]s", []int{400}},
		"a header that is folded":      {"X-A: 1\r\n X-Http-Method: PUT\r\nContent-Length: 34", "%[2]s", []int{400, 403}},
		"trailers":                     {"Transfer-Encoding: chunked\r\nTrailer: X-A", "%x\r\n%s\r\n0\r\nX-A: 1\r\n\r\n", []int{411}},
		"a target with host":           {"", "", []int{400}},
		"a target that is an asterisk": {"", "", []int{400}},
	} {
		t.Run(name, func(t *testing.T) {
			token := gate.permit(t, "refund", refundBody)
			first := "POST /tools/refund HTTP/1.1"
			switch name {
			case "a target with host":
				first = "POST http://x/tools/refund HTTP/1.1"
				tc.framing, tc.body = "Content-Length: 34", "%[2]s"
			case "a target that is an asterisk":
				first = "OPTIONS * HTTP/1.1"
				tc.framing, tc.body = "Content-Length: 34", "%[2]s"
			}
			body := fmt.Sprintf(tc.body, len(refundBody), refundBody)
			if i := strings.Index(body, "%!("); i >= 0 {
				body = body[:i]
			}
			got := raw(t, p.address, first+"\r\nHost: x\r\nContent-Type: application/json\r\nGatewright-Permit: "+token+"\r\n"+tc.framing+"\r\nConnection: close\r\n\r\n"+body)
			for _, want := range tc.want {
				if got == want {
					got = -1
				}
			}
			ran := tools.take()
			if name == "a header that is folded" && got == 200 && len(ran) == 1 && ran[0].header.Get("X-Http-Method") == "" {
				return // one reader made one value of it, and so does the next
			}
			if got != -1 {
				t.Errorf("HTTP %d, want one of %v", got, tc.want)
			}
			if len(ran) != 0 {
				t.Errorf("arrived: %+v", ran)
			}
		})
	}
}

func TestWhatIsListedPasses(t *testing.T) {
	p, _, tools := permitting(t, func(c *Config) {
		c.Passes = []string{"GET /docs/*", "POST /upload", "GET /health"}
		c.Origins = []string{"https://desk.example"}
	})
	for name, tc := range map[string]struct {
		method, target, body string
		header               http.Header
		want                 arrived
	}{
		"a page with a query": {"GET", "/docs/a/b?q=1", "", nil, arrived{method: "GET", target: "/docs/a/b?q=1"}},
		"a body of any type":  {"POST", "/upload", "a=b", http.Header{"Content-Type": {"text/plain"}}, arrived{method: "POST", target: "/upload", body: "a=b", length: 3}},
		"a probe":             {"GET", "/health", "", http.Header{"Origin": {"https://desk.example"}}, arrived{method: "GET", target: "/health"}},
		"a permit goes no further": {"GET", "/health", "", http.Header{"Gatewright-Permit": {"x"}, "Gatewright-Caller": {"root"}},
			arrived{method: "GET", target: "/health"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := send(t, tc.method, p.url+tc.target, tc.body, tc.header); got.status != 200 {
				t.Fatalf("HTTP %d %s", got.status, got.body)
			}
			ran := tools.take()
			if len(ran) != 1 {
				t.Fatalf("arrived: %+v", ran)
			}
			for header := range ran[0].header {
				if strings.HasPrefix(header, ownHeaders) {
					t.Errorf("%s arrived", header)
				}
			}
			ran[0].header = nil
			if diff := cmp.Diff(tc.want, ran[0], cmp.AllowUnexported(arrived{})); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestToolsInTheBody(t *testing.T) {
	p, gate, tools := permitting(t, func(c *Config) {
		c.Calls, c.ToolField, c.ArgumentsField = []string{"POST /run"}, "name", "input"
	})
	body := `{"input": ` + refundBody + `, "name": "refund"}`
	if got := send(t, "POST", p.url+"/run", body, jsonWith(gate.permit(t, "refund", refundBody))); got.status != 200 {
		t.Fatalf("HTTP %d %s", got.status, got.body)
	}
	if ran := tools.take(); len(ran) != 1 || ran[0].body != body {
		t.Errorf("arrived: %+v", ran)
	}
}

func TestRoutes(t *testing.T) {
	for name, tc := range map[string]struct {
		calls, passes []string
		want          string // in the error; empty is good
	}{
		"calls and passes apart":              {[]string{"POST /tools/{tool}"}, []string{"GET /*", "POST /upload", "POST /tools"}, ""},
		"a path with more behind the tool":    {[]string{"POST /v1/{tool}/run"}, []string{"POST /v1/{tool}x"}, "plain form"},
		"a pass of everything":                {[]string{"POST /tools/{tool}"}, []string{"POST /*"}, "would let calls pass"},
		"a pass of all tools":                 {[]string{"POST /tools/{tool}"}, []string{"POST /tools/*"}, "would let calls pass"},
		"a pass of one tool":                  {[]string{"POST /tools/{tool}"}, []string{"POST /tools/refund"}, "would let calls pass"},
		"a pass of one tool, other capitals":  {[]string{"POST /tools/{tool}"}, []string{"POST /TOOLS/refund"}, "would let calls pass"},
		"a pass of a call without tool":       {[]string{"POST /call"}, []string{"POST /call/"}, "would let calls pass"},
		"a pass below a call":                 {[]string{"POST /call"}, []string{"POST /call/*"}, "would let calls pass"},
		"no method":                           {[]string{"/tools/{tool}"}, nil, "no METHOD"},
		"a method in small letters":           {[]string{"post /tools/{tool}"}, nil, "no METHOD"},
		"a path without a slash":              {[]string{"POST tools/{tool}"}, nil, "no METHOD"},
		"a tool as a part of a segment":       {[]string{"POST /tools/x{tool}"}, nil, "segment of its own"},
		"a tree of calls":                     {[]string{"POST /tools/*"}, nil, "has no *"},
		"dots":                                {[]string{"POST /a/../b"}, nil, "plain form"},
		"two slashes":                         {[]string{"POST /tools//{tool}"}, nil, "plain form"},
		"a pass under another method is fine": {[]string{"POST /tools/{tool}"}, []string{"GET /tools/*"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := newPlainHTTP(tc.calls, tc.passes, "tool", "arguments", true)
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%v, want %q", err, tc.want)
			}
		})
	}
}
