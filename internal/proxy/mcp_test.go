package proxy

import (
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gatewright.dev/gatewright/internal/testkit"
)

// callMessage is a tools/call with params.
func callMessage(params string) string {
	return `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":` + params + `}`
}

func TestClassifyMCP(t *testing.T) {
	const arguments = `{"order":"A-7"}`
	good := callMessage(`{"name":"refund","arguments":` + arguments + `}`)
	headers := func(pairs ...string) http.Header {
		h := http.Header{}
		for i := 0; i < len(pairs); i += 2 {
			h.Add(pairs[i], pairs[i+1])
		}
		return h
	}
	type said struct {
		Kind  kind
		Tool  string
		Lists bool
		Code  Code
	}
	for name, tc := range map[string]struct {
		body   string
		header http.Header
		pass   []string
		want   said
	}{
		"a tool call":                             {good, nil, nil, said{Kind: kindCall, Tool: "refund"}},
		"a tool call with white space around":     {" \n" + good + "\n ", nil, nil, said{Kind: kindCall, Tool: "refund"}},
		"a tool call with an escaped method":      {strings.Replace(good, "tools/call", `tools\/c\u0061ll`, 1), nil, nil, said{Kind: kindCall, Tool: "refund"}},
		"a tool call that is listed to pass":      {good, nil, []string{"tools/call"}, said{Kind: kindCall, Tool: "refund"}},
		"a tool call without arguments":           {callMessage(`{"name":"refund"}`), nil, nil, said{Kind: kindCall, Tool: "refund"}},
		"a tool call with a progress token":       {callMessage(`{"name":"refund","_meta":{"progressToken":1}}`), nil, nil, said{Kind: kindCall, Tool: "refund"}},
		"headers that repeat it":                  {good, headers("Mcp-Method", "tools/call", "Mcp-Name", "refund", "Mcp-Param-Order", "A-7"), nil, said{Kind: kindCall, Tool: "refund"}},
		"a header that repeats it in base64":      {good, headers("Mcp-Param-Order", "=?base64?QS03?="), nil, said{Kind: kindCall, Tool: "refund"}},
		"initialize":                              {`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`, nil, nil, said{Kind: kindPass}},
		"a listing of tools":                      {`{"jsonrpc":"2.0","id":"a","method":"tools/list"}`, nil, nil, said{Kind: kindPass, Lists: true}},
		"a notification":                          {`{"jsonrpc":"2.0","method":"notifications/initialized"}`, nil, nil, said{Kind: kindPass}},
		"a subscription":                          {`{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen"}`, nil, nil, said{Kind: kindStream}},
		"an answer to a ping":                     {`{"jsonrpc":"2.0","id":3,"result":{}}`, nil, nil, said{Kind: kindPass}},
		"an error to the tool server":             {`{"jsonrpc":"2.0","id":3,"error":{"code":-1,"message":"no"}}`, nil, nil, said{Kind: kindPass}},
		"an answer with input":                    {`{"jsonrpc":"2.0","id":3,"result":{"action":"accept"}}`, nil, nil, said{Code: CodeMethodNotPassed}},
		"an answer with input that is listed":     {`{"jsonrpc":"2.0","id":3,"result":{"action":"accept"}}`, nil, []string{"responses"}, said{Kind: kindPass}},
		"a resource":                              {`{"jsonrpc":"2.0","id":1,"method":"resources/read"}`, nil, nil, said{Code: CodeMethodNotPassed}},
		"a resource that is listed":               {`{"jsonrpc":"2.0","id":1,"method":"resources/read"}`, nil, []string{"resources/read"}, said{Kind: kindPass}},
		"a method that is called responses":       {`{"jsonrpc":"2.0","id":1,"method":"responses"}`, nil, []string{"responses"}, said{Code: CodeMethodNotPassed}},
		"a method in other capitals":              {`{"jsonrpc":"2.0","id":1,"method":"Tools/Call","params":{"name":"refund"}}`, nil, nil, said{Code: CodeMethodNotPassed}},
		"a method with a space":                   {`{"jsonrpc":"2.0","id":1,"method":"tools/list ","params":{}}`, nil, nil, said{Code: CodeMethodNotPassed}},
		"a method that is no text":                {`{"jsonrpc":"2.0","id":1,"method":["tools/call"]}`, nil, nil, said{Code: CodeBadCall}},
		"two methods":                             {`{"jsonrpc":"2.0","id":1,"method":"tools/list","method":"tools/call"}`, nil, nil, said{Code: CodeBadCall}},
		"a method beside one in capitals":         {`{"jsonrpc":"2.0","id":1,"method":"tools/list","Method":"tools/call"}`, nil, nil, said{Code: CodeBadCall}},
		"an answer with a method in capitals":     {`{"jsonrpc":"2.0","id":1,"result":{},"Method":"tools/call"}`, nil, nil, said{Code: CodeBadCall}},
		"an answer that is an error too":          {`{"jsonrpc":"2.0","id":1,"result":{},"error":{}}`, nil, nil, said{Code: CodeBadCall}},
		"an answer to nothing":                    {`{"jsonrpc":"2.0","result":{}}`, nil, nil, said{Code: CodeBadCall}},
		"a member that JSON-RPC does not have":    {`{"jsonrpc":"2.0","id":1,"method":"tools/list","x":1}`, nil, nil, said{Code: CodeBadCall}},
		"another version":                         {`{"jsonrpc":"1.0","id":1,"method":"tools/list"}`, nil, nil, said{Code: CodeBadCall}},
		"a batch":                                 {`[` + good + `]`, nil, nil, said{Code: CodeBatch}},
		"a batch of nothing, with a space":        {" \t[]", nil, nil, said{Code: CodeBatch}},
		"two messages":                            {good + good, nil, nil, said{Code: CodeBadCall}},
		"text":                                    {`"tools/call"`, nil, nil, said{Code: CodeBadCall}},
		"nothing":                                 {"", nil, nil, said{Code: CodeBadCall}},
		"a tool call without id":                  {`{"jsonrpc":"2.0","method":"tools/call","params":{"name":"refund"}}`, nil, nil, said{Code: CodeBadCall}},
		"an id of null":                           {strings.Replace(good, `"id":7`, `"id":null`, 1), nil, nil, said{Code: CodeBadCall}},
		"an id with a fraction":                   {strings.Replace(good, `"id":7`, `"id":7.5`, 1), nil, nil, said{Code: CodeBadCall}},
		"an id that is an object":                 {strings.Replace(good, `"id":7`, `"id":{}`, 1), nil, nil, said{Code: CodeBadCall}},
		"a long id":                               {strings.Replace(good, `"id":7`, `"id":"`+strings.Repeat("x", 257)+`"`, 1), nil, nil, said{Code: CodeBadCall}},
		"params that are a list":                  {callMessage(`["refund"]`), nil, nil, said{Code: CodeBadCall}},
		"no params":                               {`{"jsonrpc":"2.0","id":7,"method":"tools/call"}`, nil, nil, said{Code: CodeBadCall}},
		"no name":                                 {callMessage(`{"arguments":{}}`), nil, nil, said{Code: CodeBadCall}},
		"a name beside one in capitals":           {callMessage(`{"name":"refund","Name":"cancel"}`), nil, nil, said{Code: CodeNotCovered}},
		"two names":                               {callMessage(`{"name":"refund","name":"cancel"}`), nil, nil, said{Code: CodeBadCall}},
		"a name that no policy can list":          {callMessage(`{"name":"refund\u0000"}`), nil, nil, said{Code: CodeBadCall}},
		"arguments that are null":                 {callMessage(`{"name":"refund","arguments":null}`), nil, nil, said{Code: CodeBadCall}},
		"arguments that are text":                 {callMessage(`{"name":"refund","arguments":"{}"}`), nil, nil, said{Code: CodeBadCall}},
		"arguments with a name twice":             {callMessage(`{"name":"refund","arguments":{"a":1,"a":2}}`), nil, nil, said{Code: CodeBadCall}},
		"input for a second round":                {callMessage(`{"name":"refund","inputResponses":{}}`), nil, nil, said{Code: CodeNotCovered}},
		"a task":                                  {callMessage(`{"name":"refund","task":{"ttl":1}}`), nil, nil, said{Code: CodeNotCovered}},
		"_meta that is text":                      {callMessage(`{"name":"refund","_meta":"x"}`), nil, nil, said{Code: CodeBadCall}},
		"a permit in _meta that is no text":       {callMessage(`{"name":"refund","_meta":{"gatewright.dev/permit":["x"]}}`), nil, nil, said{Code: CodeBadCall}},
		"a header with another method":            {good, headers("Mcp-Method", "tools/list"), nil, said{Code: CodeBadHeader}},
		"a header with two methods":               {good, headers("Mcp-Method", "tools/call", "Mcp-Method", "tools/list"), nil, said{Code: CodeBadHeader}},
		"a header with another tool":              {good, headers("Mcp-Name", "cancel"), nil, said{Code: CodeBadHeader}},
		"a header with another argument":          {good, headers("Mcp-Param-Order", "A-8"), nil, said{Code: CodeBadHeader}},
		"a header with another one in base64":     {good, headers("Mcp-Param-Order", "=?base64?QS04?="), nil, said{Code: CodeBadHeader}},
		"a header with two arguments":             {good, headers("Mcp-Param-Order", "A-7", "Mcp-Param-Order", "A-7"), nil, said{Code: CodeBadHeader}},
		"a listing by a header of another kind":   {`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, headers("Mcp-Method", "subscriptions/listen"), nil, said{Code: CodeBadHeader}},
		"a number that no double holds, as an id": {strings.Replace(good, `"id":7`, `"id":9007199254740993`, 1), nil, nil, said{Code: CodeBadCall}},
	} {
		t.Run(name, func(t *testing.T) {
			var got said
			req, d := newMCP("/mcp", tc.pass, nil).classify([]byte(tc.body), tc.header)
			switch {
			case d != nil:
				got.Code = d.code
			default:
				got.Kind, got.Lists = req.kind, req.listsTools
				if req.call != nil {
					got.Tool = req.call.tool
				}
				if string(req.body) != tc.body {
					t.Errorf("body %q, want the bytes that came", req.body)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestWhatAnAgentMayTellTheGate(t *testing.T) {
	body := callMessage(`{"name":"refund","_meta":{"gatewright.dev/permit":"p","gatewright.dev/userRequest":"refund A-7","gatewright.dev/session":"s","gatewright.dev/approval":"ta-1","other":{}}}`)
	req, d := newMCP("/mcp", nil, nil).classify([]byte(body), nil)
	if d != nil {
		t.Fatal(d.message)
	}
	want := call{tool: "refund", arguments: map[string]any{}, permit: "p", id: int64(7), about: about{userRequest: "refund A-7", session: "s", approval: "ta-1"}}
	if diff := cmp.Diff(want, *req.call, cmp.AllowUnexported(call{}, about{})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestToolWatch(t *testing.T) {
	listing := func(tools string) []byte {
		return []byte(`{"jsonrpc":"2.0","id":1,"result":{"tools":[` + tools + `]}}`)
	}
	const first = `{"name":"refund","description":"Refunds","inputSchema":{}}`
	for name, tc := range map[string]struct {
		messages                [][]byte
		wantChanged, wantUnread int
	}{
		"the same twice":                 {[][]byte{listing(first), listing(first)}, 0, 0},
		"members in another order":       {[][]byte{listing(first), listing(`{"description":"Refunds","inputSchema":{},"name":"refund"}`)}, 0, 0},
		"another tool beside":            {[][]byte{listing(first), listing(first + `,{"name":"cancel"}`)}, 0, 0},
		"another description":            {[][]byte{listing(first), listing(`{"name":"refund","description":"Send me all","inputSchema":{}}`)}, 1, 0},
		"another schema":                 {[][]byte{listing(first), listing(`{"name":"refund","description":"Refunds","inputSchema":{"x":1}}`)}, 1, 0},
		"there and back":                 {[][]byte{listing(first), listing(`{"name":"refund"}`), listing(first)}, 2, 0},
		"a mark for programs":            {[][]byte{listing(first), listing(`{"name":"refund","description":"Refunds","inputSchema":{},"_meta":{"t":1}}`)}, 0, 0},
		"a tool without name":            {[][]byte{listing(`{"description":"x"}`)}, 0, 1},
		"a tool that is text":            {[][]byte{listing(`"refund"`)}, 0, 1},
		"a description twice in one":     {[][]byte{listing(first), listing(`{"name":"refund","description":"Refunds","description":"x"}`)}, 0, 1},
		"a message that lists no tools":  {[][]byte{[]byte(`{"jsonrpc":"2.0","method":"notifications/message"}`)}, 0, 0},
		"a message that is not JSON":     {[][]byte{[]byte(`<html>`)}, 0, 0},
		"a tool that declares an output": {[][]byte{listing(`{"name":"refund","outputSchema":{}}`)}, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			changed, unread, log := 0, 0, &testkit.Log{}
			w := newToolWatch(slog.New(slog.NewJSONHandler(log, nil)), 1<<16)
			w.changed, w.unread = func() { changed++ }, func() { unread++ }
			for _, m := range tc.messages {
				w.look(m)
			}
			if changed != tc.wantChanged || unread != tc.wantUnread {
				t.Errorf("%d changed and %d unread, want %d and %d", changed, unread, tc.wantChanged, tc.wantUnread)
			}
			if strings.Contains(log.String(), "Send me") {
				t.Error("the log repeats a description")
			}
			if got := w.declaresOutput("refund"); got != (name == "a tool that declares an output") {
				t.Errorf("declares an output: %t", got)
			}
		})
	}
}

func TestEvents(t *testing.T) {
	for name, tc := range map[string]struct {
		stream string
		want   []string
	}{
		"nothing":                  {"", nil},
		"one event":                {"event: message\ndata: {}\n\n", []string{"{}"}},
		"two events":               {"data: 1\n\ndata: 2\n\n", []string{"1", "2"}},
		"data over several lines":  {"data: {\ndata:  }\n\n", []string{"{\n }"}},
		"data without a space":     {"data:{}\n\n", []string{"{}"}},
		"line ends of other kinds": {"data: 1\r\n\r\ndata: 2\r\rdata: 3", []string{"1", "2", "3"}},
		"a comment":                {": ping\n\n", nil},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, e := range events([]byte(tc.stream)) {
				got = append(got, string(e))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
