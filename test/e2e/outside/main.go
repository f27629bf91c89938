// Command outside is a server of others for the test: TLS in front of a folder of files, or of a server on loopback that
// has none.
//
//	outside LISTEN CERTIFICATE KEY FOLDER|http://127.0.0.1:PORT
package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "outside:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) != 4 {
		return errors.New("usage: outside LISTEN CERTIFICATE KEY FOLDER|http://127.0.0.1:PORT")
	}
	handler, err := handlerOf(args[3])
	if err != nil {
		return err
	}
	server := &http.Server{Addr: args[0], Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	failed := make(chan error, 1)
	go func() { failed <- server.ListenAndServeTLS(args[1], args[2]) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
		return server.Close()
	}
}

func handlerOf(what string) (http.Handler, error) {
	if !strings.HasPrefix(what, "http://") {
		root, err := os.OpenRoot(what)
		if err != nil {
			return nil, err
		}
		return http.FileServerFS(root.FS()), nil
	}
	target, err := url.Parse(what)
	if err != nil {
		return nil, err
	}
	return &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }}, nil
}
