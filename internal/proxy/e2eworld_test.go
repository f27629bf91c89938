package proxy

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"gatewright.dev/gatewright/internal/serve"
)

const ordersPolicy = `
apiVersion: gatewright.dev/v1alpha1
kind: ToolPolicy
metadata: {name: orders, namespace: agents}
spec:
  tools:
  - {name: order_get, server: orders, class: ReadOnly, permit: Required, permitAudience: shop}
  - {name: order_delete, server: orders, class: Destructive}
  - name: order_note
    server: orders
    class: ReadOnly
    argumentSources: [{argument: /text, from: [User], otherwise: Clarify}]
`

// realGate is a gate of manifests, with its desk.
type realGate struct{ url, token, secret string }

func newRealGate(t *testing.T) *realGate {
	t.Helper()
	dir := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	g := &realGate{token: file("token", "a-token-of-the-agent\n"), secret: filepath.Join(dir, "secret")}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	address, done := make(chan net.Addr, 1), make(chan error, 1)
	config := serve.Config{
		Manifests: filepath.Dir(file("manifests/orders.yaml", ordersPolicy)), Listen: "127.0.0.1:0",
		TokenFile: file("tokens.csv", "a-token-of-the-agent,system:serviceaccount:agents:mcp,1\n"), AuditLog: filepath.Join(dir, "audit"),
		ApprovalLog: filepath.Join(dir, "approvals"), ApproverSecret: g.secret, PermitKey: filepath.Join(dir, "key"),
		Listening: func(a net.Addr) { address <- a },
	}
	go func() { done <- serve.Run(ctx, config) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("gate: %v", err)
		}
	})
	select {
	case a := <-address:
		g.url = "http://" + a.String()
	case err := <-done:
		done <- nil
		t.Fatalf("gate: %v", err)
	}
	return g
}

// approve is what a person does at the desk.
func (g *realGate) approve(t *testing.T, name string) {
	t.Helper()
	secret := strings.TrimSpace(string(must(os.ReadFile(g.secret))(t)))
	got := send(t, "POST", g.url+serve.ApprovalsPath+"/"+name, `{"outcome":"Approve"}`, http.Header{"Authorization": {"Bearer " + secret}})
	if got.status != 200 {
		t.Fatalf("approving: HTTP %d %s", got.status, got.body)
	}
}

// orders is a tool server of the MCP SDK. It notes which tools ran.
type orders struct {
	url    string
	server *mcp.Server
	mu     sync.Mutex
	ran    []string
}

type order struct {
	ID   string `json:"id,omitempty"`
	Text string `json:"text,omitempty"`
}

func newOrders(t *testing.T, o *mcp.StreamableHTTPOptions) *orders {
	t.Helper()
	s := &orders{server: mcp.NewServer(&mcp.Implementation{Name: "orders", Version: "1"}, nil)}
	for _, name := range []string{"order_get", "order_delete", "order_note", "order_secret"} {
		mcp.AddTool(s.server, &mcp.Tool{Name: name, Description: "Does " + name}, func(ctx context.Context, r *mcp.CallToolRequest, in order) (*mcp.CallToolResult, any, error) {
			s.mu.Lock()
			s.ran = append(s.ran, name+" "+in.ID)
			s.mu.Unlock()
			if token := r.Params.GetProgressToken(); token != nil {
				if err := r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: token, Progress: 1, Message: "half"}); err != nil {
					return nil, nil, err
				}
			}
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: name + " of " + in.ID + " ran"}}}, nil, nil
		})
	}
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s.server }, o)
	mux := http.NewServeMux()
	mux.Handle("/mcp", handler)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

func (s *orders) take() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	got := s.ran
	s.ran = nil
	return got
}

// connect is an unchanged client of the MCP SDK.
func connect(t *testing.T, url string, progress func(string)) *mcp.ClientSession {
	t.Helper()
	c := mcp.NewClient(&mcp.Implementation{Name: "agent", Version: "1"}, &mcp.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
			if progress != nil {
				progress(r.Params.Message)
			}
		},
	})
	transport := &http.Transport{}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 20*time.Second)
	t.Cleanup(cancel)
	session := must(c.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: url + "/mcp", HTTPClient: &http.Client{Transport: transport}}, nil))(t)
	t.Cleanup(func() {
		if err := session.Close(); err != nil {
			t.Errorf("ending the session: %v", err)
		}
		transport.CloseIdleConnections()
	})
	return session
}

// asking is a proxy before orders that asks a gate, as a side-car of an agent that knows nothing of it.
func asking(t *testing.T, g *realGate, s *orders, change ...func(*Config)) *running {
	t.Helper()
	c := defaults(t)
	c.Protocol, c.Ask, c.Upstream, c.GateURL, c.TokenFile, c.Server = ProtocolMCP, true, s.url, g.url, g.token, "orders"
	for _, f := range change {
		f(&c)
	}
	return run(t, c)
}
