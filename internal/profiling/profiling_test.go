package profiling

import (
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

func TestProfilesAreApart(t *testing.T) {
	free, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	_ = free.Close()
	stop, err := Serve(t.Context(), address)
	if err != nil {
		t.Skip("somebody took the port in between")
	}
	defer stop()
	reply, err := http.Get("http://" + address + "/debug/pprof/")
	if err != nil {
		t.Fatal(err)
	}
	defer reply.Body.Close()
	body, err := io.ReadAll(reply.Body)
	if err != nil || reply.StatusCode != http.StatusOK || !strings.Contains(string(body), "goroutine") {
		t.Errorf("status %d, %v: %s", reply.StatusCode, err, body)
	}
}
