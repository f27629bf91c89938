package proxy

import (
	"bufio"
	"crypto/x509"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gatewright.dev/gatewright/permit"
)

func TestCallsComeToTheirEndAndStreamsDoNotHoldTheProcess(t *testing.T) {
	g := newIssuer(t)
	working, release := make(chan struct{}), make(chan struct{})
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, "data: {}\n\n")
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
			return
		}
		close(working)
		<-release
		_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":7,"result":{"content":[]}}`)
	}))
	defer upstream.Close()
	c := defaults(t)
	c.Protocol, c.Upstream, c.JWKS, c.Audience, c.Server = ProtocolMCP, upstream.URL, g.url, "shop", "orders"
	p := run(t, c)
	stream := must(client.Do(must(http.NewRequestWithContext(t.Context(), "GET", p.url+"/mcp", http.NoBody))(t)))(t)
	defer stream.Body.Close()
	events := bufio.NewReader(stream.Body)
	if line := must(events.ReadString('\n'))(t); line != "data: {}\n" {
		t.Fatalf("stream: %q", line)
	}
	answered := make(chan reply, 1)
	go func() {
		got, err := exchange(t.Context(), "POST", p.url+"/mcp", callMessage(`{"name":"refund","arguments":{}}`), jsonWith(g.permit(t, "refund", "{}")))
		if err != nil {
			got.body = err.Error()
		}
		answered <- got
	}()
	<-working
	stopped := make(chan struct{})
	go func() { p.stop(); close(stopped) }()
	if _, err := io.ReadAll(events); err == nil { // it ends, and not as if all had been said
		t.Error("the stream ended as if all had been said")
	}
	select {
	case <-stopped:
		t.Error("the process ended before its call")
	default:
	}
	close(release)
	if got := <-answered; got.status != 200 || !strings.Contains(got.body, "result") {
		t.Errorf("the call that ran: HTTP %d %s", got.status, got.body)
	}
	<-stopped
}

func TestReadiness(t *testing.T) {
	p, _, _ := permitting(t, func(c *Config) { c.DrainDelay = 300 * time.Millisecond })
	probe := func() int {
		got, err := exchange(t.Context(), "GET", p.probes+"/readyz", "", nil)
		if err != nil {
			return 0
		}
		return got.status
	}
	if got := probe(); got != 200 {
		t.Errorf("readiness: HTTP %d\n%s", got, p.log)
	}
	if got := send(t, "GET", p.probes+"/healthz", "", nil); got.status != 200 {
		t.Errorf("health: HTTP %d", got.status)
	}
	if got := send(t, "GET", p.url+"/metrics", "", nil); got.status != 404 {
		t.Errorf("callers reach metrics: HTTP %d", got.status)
	}
	go p.stop()
	for probe() == 200 {
		<-time.After(10 * time.Millisecond)
	}
	p.stop()
	unready, _, _ := permitting(t, func(c *Config) { c.JWKS = "http://127.0.0.1:1/" })
	if got := send(t, "GET", unready.probes+"/readyz", "", nil); got.status != 503 {
		t.Errorf("without keys: HTTP %d", got.status)
	}
}

func TestRoomIsBounded(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*Config)
		method string
	}{
		"requests": {func(c *Config) { c.MaxRequests = 1; c.Passes = []string{"ping"} }, "DELETE"},
		"streams":  {func(c *Config) { c.MaxStreams = 1 }, "GET"},
	} {
		t.Run(name, func(t *testing.T) {
			inside, release := make(chan struct{}, 2), make(chan struct{})
			upstream := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
				inside <- struct{}{}
				<-release
			}))
			defer upstream.Close()
			p, _, _ := permitting(t, func(c *Config) { c.Protocol, c.Upstream = ProtocolMCP, upstream.URL; tc.change(c) })
			first := make(chan int, 1)
			go func() {
				got, _ := exchange(t.Context(), tc.method, p.url+"/mcp", "", nil)
				first <- got.status
			}()
			<-inside
			if got := send(t, tc.method, p.url+"/mcp", "", nil); got.status != 503 || !strings.Contains(got.body, "Overloaded") || got.header.Get("Retry-After") == "" {
				t.Errorf("one more: HTTP %d %s", got.status, got.body)
			}
			close(release)
			if got := <-first; got != 200 {
				t.Errorf("the first: HTTP %d", got)
			}
			for try := 0; ; try++ { // the answer is there a moment before its place is free
				got := send(t, tc.method, p.url+"/mcp", "", nil)
				if got.status == 200 {
					break
				}
				if try == 100 {
					t.Fatalf("after that: HTTP %d", got.status)
				}
				<-time.After(10 * time.Millisecond)
			}
		})
	}
}

func TestTimesAreBounded(t *testing.T) {
	block := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	for name, tc := range map[string]struct {
		change     func(*Config)
		send       func(t *testing.T, p *running, token string) int
		wantStatus int
	}{
		"a body that does not come": {func(c *Config) { c.BodyTimeout = 50 * time.Millisecond }, func(t *testing.T, p *running, token string) int {
			return raw(t, p.address, "POST /tools/refund HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nGatewright-Permit: "+token+"\r\nContent-Length: 34\r\n\r\n{")
		}, 400},
		"a tool that does not answer": {func(c *Config) { c.UpstreamTimeout = 50 * time.Millisecond }, post, 504},
		"a tool that takes too long":  {func(c *Config) { c.CallTimeout = 50 * time.Millisecond }, post, 504},
		"a tool that is not there":    {func(c *Config) { c.Upstream = "http://127.0.0.1:1" }, post, 502},
	} {
		t.Run(name, func(t *testing.T) {
			p, gate, tools := permitting(t, tc.change)
			tools.say(block)
			if got := tc.send(t, p, gate.permit(t, "refund", refundBody)); got != tc.wantStatus {
				t.Errorf("HTTP %d, want %d\n%s", got, tc.wantStatus, p.log)
			}
		})
	}
}

func post(t *testing.T, p *running, token string) int {
	t.Helper()
	return send(t, "POST", p.url+"/tools/refund", refundBody, jsonWith(token)).status
}

func TestHeadersAreBounded(t *testing.T) {
	p, gate, _ := permitting(t)
	header := jsonWith(gate.permit(t, "refund", refundBody))
	header.Set("X-Long", strings.Repeat("x", 64<<10))
	if got := send(t, "POST", p.url+"/tools/refund", refundBody, header); got.status != 431 {
		t.Errorf("HTTP %d, want 431", got.status)
	}
}

func TestACallIsNotSentTwice(t *testing.T) {
	p, gate, tools := permitting(t)
	tools.say(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	header := jsonWith(gate.permit(t, "refund", refundBody))
	header.Set("Idempotency-Key", "1") // by which a transport may take the liberty
	if got := send(t, "POST", p.url+"/tools/refund", refundBody, header); got.status != 502 || codeIn(t, got) != "Upstream" {
		t.Errorf("HTTP %d %s", got.status, got.body)
	}
	if n := len(tools.take()); n != 1 {
		t.Errorf("the call arrived %d times, want once", n)
	}
}

func TestServingOverTLS(t *testing.T) {
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.StartTLS()
	defer server.Close()
	cert, key := pemOf(t, server)
	p, gate, _ := permitting(t, func(c *Config) { c.TLSCert, c.TLSKey = cert, key })
	secure := server.Client()
	defer secure.CloseIdleConnections()
	req := must(http.NewRequestWithContext(t.Context(), "POST", "https://"+p.address+"/tools/refund", strings.NewReader(refundBody)))(t)
	req.Header = jsonWith(gate.permit(t, "refund", refundBody))
	resp := must(secure.Do(req))(t)
	defer resp.Body.Close()
	if resp.StatusCode != 200 || resp.ProtoMajor != 1 {
		t.Errorf("HTTP/%d %d", resp.ProtoMajor, resp.StatusCode)
	}
}

func TestWhatDoesNotStart(t *testing.T) {
	good := func(t *testing.T) Config {
		c := defaults(t)
		c.Upstream, c.GateURL, c.Audience = "http://127.0.0.1:9000", "https://gate.example", "shop"
		return c
	}
	for name, tc := range map[string]struct {
		change func(*Config)
		want   string // in the error; empty is good
	}{
		"all that is required":                {func(*Config) {}, ""},
		"the keys' own address":               {func(c *Config) { c.GateURL, c.JWKS = "", "https://keys.example/jwks" }, ""},
		"no tool server":                      {func(c *Config) { c.Upstream = "" }, "--upstream is required"},
		"a tool server with a query":          {func(c *Config) { c.Upstream = "http://127.0.0.1/?x=1" }, "--upstream is no"},
		"a tool server with a password":       {func(c *Config) { c.Upstream = "http://u:p@127.0.0.1/" }, "--upstream is no"},
		"a tool server of another scheme":     {func(c *Config) { c.Upstream = "ftp://127.0.0.1/" }, "--upstream is no"},
		"plain http to another machine":       {func(c *Config) { c.Upstream = "http://tools.example" }, "altered on their way"},
		"plain http to it, wanted":            {func(c *Config) { c.Upstream, c.InsecureUpstream = "http://tools.example", true }, ""},
		"another protocol":                    {func(c *Config) { c.Protocol = "grpc" }, "neither http nor mcp"},
		"calls by pattern over MCP":           {func(c *Config) { c.Protocol, c.Calls = ProtocolMCP, []string{"POST /x"} }, "no effect"},
		"tool calls to pass over MCP":         {func(c *Config) { c.Protocol, c.Passes = ProtocolMCP, []string{"tools/call"} }, "no effect"},
		"a path of MCP that is none":          {func(c *Config) { c.Protocol, c.MCPPath = ProtocolMCP, "mcp" }, "--mcp-path"},
		"no gate":                             {func(c *Config) { c.GateURL = "" }, "--gate-url is required"},
		"a gate over plain http":              {func(c *Config) { c.GateURL = "http://gate.example" }, "--gate-url is no URL"},
		"no audience":                         {func(c *Config) { c.Audience = "" }, "--audience is required"},
		"asking":                              {func(c *Config) { c.Ask, c.Audience = true, "" }, ""},
		"asking with an audience":             {func(c *Config) { c.Ask = true }, "no effect with --ask"},
		"asking without a gate":               {func(c *Config) { c.Ask, c.Audience, c.GateURL = true, "", "" }, "--gate-url is required"},
		"asking for everybody":                {func(c *Config) { c.Ask, c.Audience, c.Listen = true, "", ":8471" }, "not loopback"},
		"asking for everybody, wanted":        {func(c *Config) { c.Ask, c.Audience, c.Listen, c.RemoteCallers = true, "", ":8471", true }, ""},
		"a token without asking":              {func(c *Config) { c.TokenFile = "token" }, "no effect without --ask"},
		"several replicas with a file each":   {func(c *Config) { c.Replicas = 2 }, "--replicas of more than 1 need --permit-store nats or lease"},
		"several replicas with NATS":          {func(c *Config) { c.Replicas, c.Store, c.NATSURL = 2, StoreNATS, "nats://127.0.0.1:4222" }, ""},
		"no replicas":                         {func(c *Config) { c.Replicas = 0 }, "--replicas"},
		"NATS without its address":            {func(c *Config) { c.Store = StoreNATS }, "--nats-url is required"},
		"an address of NATS without it":       {func(c *Config) { c.NATSURL = "nats://127.0.0.1:4222" }, "no effect"},
		"several replicas with Leases":        {func(c *Config) { c.Replicas, c.Store, c.LeaseNamespace, c.Kubeconfig = 2, StoreLease, "shop", "config" }, ""},
		"Leases of no namespace":              {func(c *Config) { c.Store = StoreLease }, "--lease-namespace is required"},
		"a namespace of Leases without them":  {func(c *Config) { c.LeaseNamespace = "shop" }, "no effect"},
		"an API server without Leases":        {func(c *Config) { c.Kubeconfig = "config" }, "no effect"},
		"Leases outside of a pod":             {func(c *Config) { c.Store, c.LeaseNamespace = StoreLease, "shop" }, "--kubeconfig outside of a pod"},
		"no file of the API server":           {func(c *Config) { c.Store, c.LeaseNamespace, c.Kubeconfig = StoreLease, "shop", "/nowhere" }, "--kubeconfig"},
		"another store":                       {func(c *Config) { c.Store = "memory" }, "none of file, nats and lease"},
		"an address that is none":             {func(c *Config) { c.Listen = "8471" }, "no host:port"},
		"a body longer than a gate reads":     {func(c *Config) { c.MaxBody = permit.MaxBody + 1 }, "--max-body"},
		"no time":                             {func(c *Config) { c.CallTimeout = 0 }, "have to be positive"},
		"no room":                             {func(c *Config) { c.MaxStreams = 0 }, "--max-streams"},
		"a certificate without its key":       {func(c *Config) { c.TLSCert = "cert" }, "go together"},
		"a pass that would let calls through": {func(c *Config) { c.Passes = []string{"POST /*"} }, "would let calls pass"},
		"a file of a gate's CA that is none":  {func(c *Config) { c.GateCA = "/dev/null" }, "--gate-ca"},
		"no file of the tool server's CA":     {func(c *Config) { c.UpstreamCA = "/nowhere" }, "--upstream-ca"},
		"a file of permits that cannot be":    {func(c *Config) { c.PermitLog = "/dev/null/x" }, "--permit-log"},
		"NATS that is not there":              {func(c *Config) { c.Store, c.NATSURL = StoreNATS, "nats://127.0.0.1:1" }, "--nats-url"},
	} {
		t.Run(name, func(t *testing.T) {
			c := good(t)
			tc.change(&c)
			err := c.Validate()
			t.Setenv("KUBERNETES_SERVICE_HOST", "") // no pod
			if err == nil && tc.want != "" {        // what only shows when it is opened
				err = Run(t.Context(), c)
			}
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%v, want %q", err, tc.want)
			}
		})
	}
}

func pemOf(t *testing.T, s *httptest.Server) (cert, key string) {
	t.Helper()
	pair := s.TLS.Certificates[0]
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	private := must(x509.MarshalPKCS8PrivateKey(pair.PrivateKey))(t)
	for path, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: pair.Certificate[0]}, key: {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}
